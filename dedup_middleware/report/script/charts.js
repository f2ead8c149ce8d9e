// A chart by uPlot: the pages over time.

// Seconds between two times on an axis; uPlot's own are in the browser's time zone.
const SECONDS = [1, 5, 15, 60, 300, 900, 3600, 10800, 21600, 43200, ...[1, 2, 7, 14, 28, 91, 365, 3650].map((days) => days * 86400)];
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

/** Draw the pages of each group over time, one upon the other. */
function drawOverTime(summary) {
  const { start, span, pages } = summary.crawls.over_time;
  const names = Object.keys(GROUPS);
  const counts = names.map((name) => pagesOf(name, pages));
  const times = counts[0].map((_, bar) => start + bar * span);
  const place = document.querySelector("#overview .chart");
  place.replaceChildren();
  // All in one moment is what the tiles have already.
  place.hidden = times.length < 2;
  if (place.hidden) return null;
  const stacked = [];
  for (const values of counts) stacked.push(values.map((value, bar) => value + (stacked.at(-1)?.[bar] ?? 0)));
  const isEmpty = stacked.at(-1).map((total) => !total);
  const [from, to] = [moment(times[0], span), moment(times.at(-1) + span, span)];
  const isOneDay = from.slice(0, 10) === to.slice(0, 10);
  return chart(place, word("over_time_chart", { from, to }), {
    height: 180,
    data: [times.map((time) => time + span / 2), ...stacked.reverse().map((values) => values.map((value, bar) => (isEmpty[bar] ? null : value)))],
    series: [...names].reverse().map((name) => {
      const fill = name === "pages_duplicate" ? striped(name) : colour(name);
      return { ...bars(name), fill, stroke: colour("card"), width: 1 };
    }),
    range: [times[0] - span / 4, times.at(-1) + span * 1.25],
    incrs: SECONDS,
    // Without the year, and without the day where it is the same for all.
    xValues: (_, splits, __, ___, step) => splits.map((time) => moment(time, step).slice(step >= 86400 ? 0 : isOneDay ? 11 : 5)),
    yValues: (_, splits) => splits.map((value) => (Number.isInteger(value) ? number(value) : "")),
    readout: (bar) =>
      [`${moment(times[bar], span)} UTC`, ...names.map((name, n) => counts[n][bar] && `${number(counts[n][bar])} ${word(name)}`)]
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
  return { fill: colour(name), width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.86, 60] }) };
}

/** Return a chart of bars in `place`, whose numbers at the pointer are read out below it. */
function chart(place, label, { height = 220, data, series, range, incrs, xValues, yValues, readout }) {
  const output = make("p", { class: "readout", "aria-hidden": "true" }, "\u00a0");
  const canvas = make("div", { class: "canvas", role: "img", "aria-label": label });
  place.append(canvas, output);
  const axis = { stroke: colour("quiet"), font: "12px system-ui, sans-serif", ticks: { show: false } };
  const grid = { stroke: colour("line"), width: 1 };
  return new uPlot(
    {
      width: place.clientWidth,
      height,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: { x: { time: false, range }, y: { range: (_, __, most) => [0, Math.max(most, 1) * 1.1] } },
      axes: [
        { ...axis, grid: { show: false }, values: xValues, space: 90, size: 30, ...(incrs && { incrs }) },
        { ...axis, grid, values: yValues, size: 64 },
      ],
      series: [{}, ...series],
      hooks: {
        setCursor: [(u) => (output.textContent = u.cursor.idx === null ? "\u00a0" : readout(u.cursor.idx))],
      },
    },
    data,
    canvas,
  );
}
