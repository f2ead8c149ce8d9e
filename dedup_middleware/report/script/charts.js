// Two charts by uPlot: what was saved over time, and the histogram of scores.

const CHART_HEIGHT = 220;
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

function drawCharts(summary, metric) {
  charts.forEach((chart) => chart.destroy());
  charts = [drawSaved(summary, metric), drawScores(summary)].filter((chart) => chart !== null);
}

/** Make the charts as wide as their places are now. */
function fitCharts() {
  for (const chart of charts) chart.setSize({ width: chart.root.parentNode.clientWidth, height: CHART_HEIGHT });
}

function drawSaved(summary, metric) {
  const { start, span, ...sums } = summary.over_time;
  const values = sums[metric];
  const place = document.querySelector("#saved .chart");
  place.replaceChildren();
  place.hidden = values.length === 0;
  if (place.hidden) return null;
  const times = values.map((_, bar) => start + bar * span);
  const format = metric === "bytes" ? size : number;
  const what = word(`saved_${metric}`);
  const total = format(summary.saved[metric]);
  const [from, to] = [moment(times[0], span), moment(times.at(-1) + span, span)];
  return chart(place, word("saved_chart", { what, n: total, from, to }), {
    data: [times.map((time) => time + span / 2), values],
    series: [{ ...bars("accent"), label: what }],
    range: [times[0] - span / 4, times.at(-1) + span * 1.25],
    incrs: SECONDS,
    // Without the year, and without the day where it is the same for all.
    xValues: (_, splits, __, ___, step) =>
      splits.map((time) => moment(time, step).slice(step >= 86400 ? 0 : from.slice(0, 10) === to.slice(0, 10) ? 11 : 5)),
    yValues: (_, splits) => splits.map((value) => (metric === "bytes" || Number.isInteger(value) ? format(value) : "")),
    readout: (bar) => `${moment(times[bar], span)} · ${format(values[bar])}`,
  });
}

function drawScores(summary) {
  const { dropped, kept } = summary.scores;
  const width = 1 / dropped.length;
  const all = dropped.map((count, bin) => count + kept[bin]);
  const sum = (counts) => counts.reduce((total, count) => total + count, 0);
  const place = document.querySelector("#scores .chart");
  place.replaceChildren();
  place.hidden = sum(all) === 0;
  if (place.hidden) return null;
  const threshold = percent(summary.threshold);
  const label = word("scores_chart", { dropped: sum(dropped), kept: sum(kept), threshold });
  const drawn = chart(place, label, {
    data: [all.map((_, bin) => (bin + 0.5) * width), all, dropped],
    series: [bars("muted"), bars("accent")],
    range: [0, 1],
    xValues: (_, splits) => splits.map((share) => percent(share)),
    yValues: (_, splits) => splits.map((value) => (Number.isInteger(value) ? number(value) : "")),
    readout: (bin) =>
      `${percent(bin * width)}–${percent((bin + 1) * width)} · ${number(dropped[bin])} ${word("scores_dropped")}, ` +
      `${number(kept[bin])} ${word("scores_kept")}`,
    over: (u) => drawThreshold(u, summary.threshold, word("scores_threshold", { n: threshold })),
  });
  place.prepend(
    make(
      "p",
      { class: "legend" },
      make("span", { class: "key accent" }, word("scores_dropped")),
      make("span", { class: "key muted" }, word("scores_kept")),
    ),
  );
  return drawn;
}

function bars(name) {
  return { fill: colour(name), width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.86, 60] }) };
}

/** Return a chart of bars in `place`, whose numbers at the pointer are read out below it. */
function chart(place, label, { data, series, range, incrs, xValues, yValues, readout, over }) {
  const output = make("p", { class: "readout", "aria-hidden": "true" }, "\u00a0");
  const canvas = make("div", { class: "canvas", role: "img", "aria-label": label });
  place.append(canvas, output);
  const axis = { stroke: colour("quiet"), font: "12px system-ui, sans-serif", ticks: { show: false } };
  const grid = { stroke: colour("line"), width: 1 };
  return new uPlot(
    {
      width: place.clientWidth,
      height: CHART_HEIGHT,
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
        draw: over ? [over] : [],
      },
    },
    data,
    canvas,
  );
}

function drawThreshold(u, threshold, label) {
  const context = u.ctx;
  const x = Math.round(u.valToPos(threshold, "x", true));
  context.save();
  context.strokeStyle = context.fillStyle = colour("ink");
  context.lineWidth = devicePixelRatio;
  context.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  context.beginPath();
  context.moveTo(x, u.bbox.top);
  context.lineTo(x, u.bbox.top + u.bbox.height);
  context.stroke();
  context.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  context.textAlign = threshold > 0.5 ? "right" : "left";
  context.textBaseline = "top";
  context.fillText(label, x + (threshold > 0.5 ? -6 : 6) * devicePixelRatio, u.bbox.top);
  context.restore();
}
