// A chart by uPlot: the pages over time.

// With fewer bars, their numbers are shown.
const LEAST_BARS = 9;
let charts = [];

/** Return what the style sheet calls `name`, as a colour that a canvas understands. */
function colour(name) {
  const probe = document.body.appendChild(make("i"));
  probe.style.color = `var(--${name})`;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function drawCharts(summary) {
  charts.forEach((chart) => chart.destroy());
  charts = [drawOverTime(summary)].filter((chart) => chart !== null);
}

/** Make the charts as wide as their places are now. */
function fitCharts() {
  for (const chart of charts) chart.setSize({ width: chart.root.parentNode.clientWidth, height: chart.height });
}

/** Show the pages of each group over time: few bars as numbers, more as bars, one upon the other. */
function drawOverTime(summary) {
  const { start, span, pages } = summary.crawls.over_time;
  const names = Object.keys(GROUPS);
  const counts = names.map((name) => pagesOf(name, pages));
  const totals = counts[0].map((_, bar) => sum(counts.map((values) => values[bar])));
  // Of the time between two crawls, one empty bar is left.
  const shown = [...totals.keys()].filter((bar) => totals[bar] || totals[bar - 1]);
  const full = shown.filter((bar) => totals[bar]);
  const place = document.querySelector("#overview .chart");
  const caption = make("p", { class: "readout" }, word("over_time"));
  place.replaceChildren(caption);
  // All in one moment is what the tiles have already.
  place.hidden = full.length < 2;
  if (place.hidden) return null;
  const [from, to] = [moment(start + full[0] * span, span), moment(start + (full.at(-1) + 1) * span, span)];
  // Without the year, and without the day where it is the same for all.
  const isOneDay = from.slice(0, 10) === to.slice(0, 10);
  const timeOf = (bar) => moment(start + bar * span, span).slice(span >= 86400 ? 0 : isOneDay ? 11 : 5);
  const isFew = full.length < LEAST_BARS;
  place.classList.toggle("few", isFew);
  if (isFew) {
    const duplicates = counts[names.indexOf("pages_duplicate")];
    const numbers = full.map((bar) => tile(timeOf(bar), number(totals[bar]), duplicates[bar] ? `${word("column_duplicate")}: ${number(duplicates[bar])}` : ""));
    place.append(make("dl", { class: "tiles" }, ...numbers));
    return null;
  }
  const stacked = [];
  for (const values of counts) stacked.push(shown.map((bar, n) => values[bar] + (stacked.at(-1)?.[n] ?? 0)));
  return chart(place, `${word("over_time")} ${word("about_dates", { from, to })}`, {
    height: 160,
    data: [[...shown.keys()], ...stacked.reverse().map((values) => values.map((value, n) => (totals[shown[n]] ? value : null)))],
    series: [...names].reverse().map((name) => {
      const fill = name === "pages_duplicate" ? striped(name) : colour(name);
      return { ...bars(name), fill, stroke: colour("card"), width: 1 };
    }),
    range: [-0.6, shown.length - 0.4],
    incrs: [1, 2, 3, 6, 12, 24, 48],
    xValues: (_, splits) => splits.map((n) => (n in shown ? timeOf(shown[n]) : "")),
    yValues: (_, splits) => splits.map((value) => (Number.isInteger(value) ? number(value) : "")),
    caption,
    readout: (n) =>
      [`${moment(start + shown[n] * span, span)} UTC`, ...names.map((name, group) => counts[group][shown[n]] && `${number(counts[group][shown[n]])} ${word(name)}`)]
        .filter(Boolean)
        .join(" · "),
  });
}

/** Return a fill with stripes, for eyes and printers that see no colours. */
function striped(name) {
  const side = 6 * devicePixelRatio;
  const tile = Object.assign(document.createElement("canvas"), { width: side, height: side });
  const context = tile.getContext("2d");
  context.fillStyle = colour(name);
  context.fillRect(0, 0, side, side);
  context.strokeStyle = colour(`${name}_stripe`);
  context.lineWidth = side / 4;
  for (const shift of [-side, 0, side]) {
    context.moveTo(shift - 1, -1);
    context.lineTo(shift + side + 1, side + 1);
  }
  context.stroke();
  return context.createPattern(tile, "repeat");
}

function bars(name) {
  return { fill: colour(name), width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.86, 100] }) };
}

/** Return a chart of bars in `place`; the numbers at the pointer stand in its `caption`. */
function chart(place, label, { height, caption, data, series, range, incrs, xValues, yValues, readout }) {
  const text = caption.textContent;
  const canvas = make("div", { class: "canvas", role: "img", "aria-label": label });
  place.append(canvas);
  const axis = { stroke: colour("quiet"), font: "12px system-ui, sans-serif", ticks: { show: false } };
  const grid = { stroke: colour("line"), width: 1 };
  return new uPlot(
    {
      width: place.clientWidth,
      padding: [null, 36, null, null],
      height,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: { x: { time: false, range }, y: { range: (_, __, most) => [0, Math.max(most, 1) * 1.1] } },
      axes: [
        { ...axis, grid: { show: false }, values: xValues, space: 84, size: 30, incrs },
        { ...axis, grid, values: yValues, size: 64 },
      ],
      series: [{}, ...series],
      hooks: {
        setCursor: [(u) => (caption.textContent = u.cursor.idx === null ? text : readout(u.cursor.idx))],
      },
    },
    data,
    canvas,
  );
}
