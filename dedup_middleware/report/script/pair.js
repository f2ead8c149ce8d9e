// A page and the one that it repeats, side by side, in a dialog.

const MARKS = { "=": "same", "~": "near", "+": "new", "": "short" };
const unpackedPairs = new Map();
let openedPair = null;

async function detailsOf(n) {
  const chunk = Math.floor(n / PAGES_TOGETHER);
  if (!unpackedPairs.has(chunk)) unpackedPairs.set(chunk, await unpacked(`pairs-${chunk}`));
  return unpackedPairs.get(chunk)[n % PAGES_TOGETHER];
}

async function openPair(n) {
  const dialog = document.getElementById("pair");
  openedPair = n;
  const isFirst = !dialog.open;
  if (isFirst) {
    dialog.replaceChildren(make("p", { id: "pair-title" }, word("pair_loading")));
    dialog.showModal();
  }
  const details = await detailsOf(n);
  if (openedPair !== n) return;
  dialog.replaceChildren(pairHead(n), pairFacts(n, details), ...pairBody(n, details));
  dialog.scrollTop = 0;
  if (isFirst) dialog.querySelector(".close").focus();
}

/** Show the opened pair in another language. */
function renderPair() {
  if (document.getElementById("pair").open) openPair(openedPair);
}

function closedPair() {
  const row = document.querySelector(`[data-row="${openedPair}"] .open`);
  if (row) focusRow([...document.querySelectorAll(".open")], row);
  openedPair = null;
}

function pairHead(n) {
  const rows = chosenRows();
  const place = rows.indexOf(n);
  const go = (step) => async () => {
    const to = rows[place + step];
    const { pageSize } = table.getState().pagination;
    table.setPageIndex(Math.floor((place + step) / pageSize));
    await openPair(to);
    const button = document.querySelector(step < 0 ? "#pair .back" : "#pair .on");
    (button.disabled ? document.querySelector("#pair .close") : button).focus();
  };
  const title = valueOf("title", n);
  return make(
    "header",
    {},
    make("h2", { id: "pair-title" }, title ? isolated(title) : word("untitled")),
    make(
      "div",
      { class: "switches" },
      make("button", { type: "button", class: "back", disabled: place <= 0, "aria-label": word("previous"), onclick: go(-1) }, "←"),
      make("span", {}, word("pair_place", { n: place + 1, all: rows.length })),
      make("button", { type: "button", class: "on", disabled: place < 0 || place + 1 >= rows.length, "aria-label": word("next"), onclick: go(1) }, "→"),
      make("button", { type: "button", class: "close", onclick: () => document.getElementById("pair").close() }, `${word("close")} ✕`),
    ),
  );
}

function pairFacts(n, details) {
  const facts = [
    ["score", percent(drops.columns.score[n])],
    ["reason", named("reasons", valueOf("reason", n))],
    ["outcome", named("outcomes", valueOf("outcome", n))],
    ["time", visible(valueOf("time", n)).replace("T", " ")],
    ["run", isolated(valueOf("run", n))],
    ["pair_size", size(details.bytes)],
    ["pair_items", number(details.items_dropped)],
  ];
  return make("dl", {}, ...facts.map(([name, value]) => make("div", {}, make("dt", {}, word(name)), make("dd", {}, value))));
}

function pairBody(n, details) {
  const sides = { page: valueOf("url", n), original: valueOf("original", n) };
  const parts = [];
  if (details.texts?.original_changed) parts.push(make("p", { class: "note" }, word("pair_changed")));
  if (details.texts) {
    const keys = ["same", "near", "new"].map((mark) => make("span", { class: mark }, word(`pair_${mark}`)));
    parts.push(make("p", { class: "marks" }, ...keys));
  }
  const columns = Object.entries(sides).map(([side, url]) =>
    make("section", {}, make("h3", {}, word(`pair_${side}`)), make("p", {}, link(url)), ...pairText(details.texts?.[side])),
  );
  parts.push(make("div", { class: "sides" }, ...columns));
  if (!details.texts) parts.push(make("p", { class: "note" }, word(details.evidence.length ? "pair_no_texts" : "pair_no_evidence")));
  if (!details.texts && details.evidence.length) parts.push(quoted("pair_evidence", details.evidence));
  if (details.difference.length) parts.push(quoted("pair_difference", details.difference));
  return parts;
}

function pairText(sentences) {
  return sentences ? [make("div", { class: "text" }, ...sentences.map(([mark, text]) => make("p", { class: MARKS[mark] }, isolated(text))))] : [];
}

function quoted(title, texts) {
  return make("section", {}, make("h3", {}, word(title)), ...texts.map((text) => make("blockquote", {}, isolated(text))));
}
