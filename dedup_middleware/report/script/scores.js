// The histogram of scores around the threshold: duplicates above the axis, related pages below. Each bar is a button.

// Percents below the threshold from where each percent has its bars, if there are scores; lower ones have common bars.
const [LEAST_BELOW, MOST_BELOW] = [5, 20];
// Pixels of the highest bar.
const HIGHEST = 96;

/** Return the percents of the bars: the first and the last score of each, both included. */
function scoreBins(threshold, scores) {
  const smallest = scores.reduce((least, score) => Math.min(least, score), 1);
  const near = scores.reduce((least, score) => (100 * score < 100 * threshold - MOST_BELOW ? least : Math.min(least, score)), 1);
  const lowest = Math.max(0, 5 * Math.floor(Math.min(100 * near, 100 * threshold - LEAST_BELOW) / 5));
  const bins = Array.from({ length: 100 - lowest }, (_, place) => [lowest + place, lowest + place + 0.99]);
  return [...(lowest && 100 * smallest < lowest ? [[0, lowest - 0.01]] : []), ...bins, [100, 100]];
}

/** Return `percents` as the filter of scores has them: from 0 to 1. */
function shareOf(percents) {
  return String(Math.round(100 * percents) / 1e4);
}

function renderScores(summary) {
  const scores = pairs.columns.score.filter((score) => score !== null);
  const bins = scoreBins(summary.threshold, scores);
  const counts = { drops: bins.map(() => 0), near: bins.map(() => 0) };
  pairs.columns.score.forEach((score, n) => {
    if (score === null) return;
    const percents = Math.round(score * 1e4) / 100;
    counts[n < pairs.shown ? "drops" : "near"][bins.findIndex(([, to]) => percents <= to)] += 1;
  });
  const most = Math.max(...counts.drops, ...counts.near);
  const heightOf = (n) => Math.round((HIGHEST * Math.log1p(n)) / Math.log1p(most));
  body("scores");
  if (!isFull("scores", most)) return;
  const named = ([from, to]) => (from === to ? scored(from / 100) : word("score_from_to", { from: scored(from / 100), to: scored(to / 100) }));
  const readout = make("p", { class: "readout", "aria-hidden": "true" }, "\u00a0");
  let isFirst = true;
  const bar = (table, place) => {
    const n = counts[table][place];
    if (!n) return make("span");
    const label = word(`scores_${table}`, { n, score: named(bins[place]) });
    const show = () => tables[table].show({ from: shareOf(bins[place][0]), to: shareOf(bins[place][1]) });
    const said = () => (readout.textContent = label);
    const attributes = { type: "button", "aria-label": label, tabindex: isFirst ? "0" : "-1", onclick: show, onfocus: said, onpointerenter: said };
    isFirst = false;
    const button = make("button", attributes, make("span", {}, number(n)));
    button.style.setProperty("--height", `${heightOf(n)}px`);
    return button;
  };
  const columns = bins.map(([from], place) => {
    const isMarked = from % 5 === 0 && (place > 1 || bins[0][1] - bins[0][0] < 1);
    return make("div", {}, bar("drops", place), make("i", {}, isMarked ? scored(from / 100) : null), bar("near", place));
  });
  if (bins[0][1] - bins[0][0] > 1) columns[0].querySelector("i").textContent = `<${scored(bins[1][0] / 100)}`;
  const chart = make("div", { class: "bars", role: "group", "aria-label": word("scores"), onkeydown: moveAmongBars }, ...columns);
  const place = bins.findIndex(([, to]) => 100 * summary.threshold <= to);
  const [from] = bins[place];
  chart.style.setProperty("--columns", bins.length);
  for (const table of ["drops", "near"]) chart.style.setProperty(`--${table}`, `${heightOf(Math.max(...counts[table])) + 16}px`);
  chart.style.setProperty("--threshold", `${(100 * (place + Math.min(1, 100 * summary.threshold - from))) / bins.length}%`);
  chart.append(make("b", { class: place < bins.length / 2 ? "threshold" : "threshold right" }, make("span", {}, word("scores_threshold", { n: scored(summary.threshold) }))));
  const keys = ["drops", "near"].map((name) => make("span", { class: `key pages_${name === "drops" ? "duplicate" : "related"}` }, word(`scores_key_${name}`)));
  document.querySelector("#scores .chart").replaceChildren(make("p", { class: "legend" }, ...keys), chart, readout);
}

/** Move among the bars by the arrows to the left and right. */
function moveAmongBars(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const bars = [...event.currentTarget.querySelectorAll("button")];
  const next = bars[bars.indexOf(event.target) + step];
  if (!next) return;
  event.preventDefault();
  focusAmong(bars, next);
}
