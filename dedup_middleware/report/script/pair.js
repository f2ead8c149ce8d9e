// A page and the one that it is similar to, side by side, in a dialog with an address of its own.

const unpackedPairs = new Map();
let openedPair = null;
let onlyDifferences = false;
let commands = {};

async function detailsOf(n) {
  const chunk = Math.floor(n / PAGES_TOGETHER);
  if (!unpackedPairs.has(chunk)) unpackedPairs.set(chunk, await unpacked(`pairs-${chunk}`));
  return unpackedPairs.get(chunk)[n % PAGES_TOGETHER];
}

function pairDialog() {
  return document.getElementById("pair");
}

/** Open the pair `n`; its neighbours are those in `list`, which has `root`, `rows()` and `turnTo(n)`. */
async function openPair(n, list) {
  const dialog = pairDialog();
  openedPair = { n, list };
  if (!dialog.open) {
    dialog.replaceChildren(make("p", { id: "pair-title" }, word("pair_loading")));
    dialog.showModal();
  }
  setAddress(`#pair=${encodeURIComponent(visible(valueOf("url", n)))}${crawlInAddress(n)}`);
  const details = await detailsOf(n);
  if (openedPair?.n !== n) return;
  const focused = dialog.contains(document.activeElement) ? document.activeElement.dataset.name : null;
  dialog.replaceChildren(pairHead(n, list), pairFacts(n, details), ...pairBody(n, details));
  dialog.scrollTop = 0;
  (dialog.querySelector(`[data-name="${focused}"]:not(:disabled)`) ?? dialog.querySelector(".close")).focus();
}

/** Show the opened pair in another language. */
function renderPair() {
  if (pairDialog().open) openPair(openedPair.n, openedPair.list);
}

function closedPair() {
  // The event comes late: another pair may be open already.
  if (pairDialog().open || !openedPair) return;
  const { n, list } = openedPair;
  openedPair = null;
  setAddress(location.pathname + location.search);
  const button = list.root.querySelector(`[data-row="${n}"] .open`);
  if (button) focusAmong([...button.closest("tbody").querySelectorAll(".open")], button);
}

function goTo(step) {
  const { n, list } = openedPair;
  const rows = list.rows();
  const place = rows.indexOf(n);
  const next = rows[place + step];
  if (place < 0 || next === undefined) return;
  list.turnTo(next);
  openPair(next, list);
}

/** Listen to the keys of the dialog: the arrows lead to the neighbours, 1 and 2 label. */
function pairKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey || !openedPair) return;
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const button = /^\d$/.test(event.key) ? pairDialog().querySelector(`[data-key="${event.key}"]`) : null;
  if (step) goTo(step);
  else if (button) button.click();
  else return;
  event.preventDefault();
}

function setAddress(address) {
  try {
    history.replaceState(null, "", address);
  } catch {
    // In a frame without an address.
  }
}

/** Return what tells the pair `n` from another one of the same page: its crawl. */
function crawlInAddress(n) {
  return pairOf(valueOf("url", n)) === n ? "" : `&crawl=${encodeURIComponent(visible(valueOf("crawl", n)))}`;
}

/** Return the number of the pair with the page `url` in `crawl`, the latest if none is given; -1 without one. */
function pairOf(url, crawl) {
  return pairs.columns.url.findIndex((each, n) => visible(each) === url && (crawl === null || crawl === undefined || visible(valueOf("crawl", n)) === crawl));
}

/** Open the pair that the address of the report names. */
function openAddressed() {
  const named = new URLSearchParams(location.hash.slice(1).replaceAll("+", "%2B"));
  const url = named.get("pair");
  if (url === null) return;
  const n = pairOf(url, named.get("crawl"));
  if (n < 0) return showTrouble("pair_unknown", { url: visible(url) });
  if (openedPair?.n === n) return;
  const table = n < pairs.shown ? tables.drops : tables.near;
  table.turnTo(n);
  openPair(n, table);
}

function pairHead(n, list) {
  const rows = list.rows();
  const place = rows.indexOf(n);
  const title = valueOf("title", n);
  const neighbour = (name, step, sign) =>
    make("button", { type: "button", "data-name": name, class: name, disabled: place < 0 || !(place + step in rows), "aria-label": word(name), onclick: () => goTo(step) }, sign);
  return make(
    "header",
    {},
    make("h2", { id: "pair-title" }, title ? isolated(title) : word("untitled")),
    make(
      "div",
      { class: "switches" },
      neighbour("previous", -1, "←"),
      make("span", {}, word("pair_place", { n: place + 1, all: rows.length })),
      neighbour("next", 1, "→"),
      make("button", { type: "button", "data-name": "close", class: "close", onclick: () => pairDialog().close() }, `${word("close")} ✕`),
    ),
  );
}

/** Return whether the page of the pair `n` was kept once, and is dropped now because it has not changed since. */
function isUnchanged(n) {
  return n >= pairs.shown && valueOf("outcome", n) === "dropped";
}

function pairFacts(n, details) {
  const facts = [
    ["score", scored(pairs.columns.score[n])],
    [n < pairs.shown ? "reason" : isUnchanged(n) ? "differed" : "differs", named("reasons", valueOf("reason", n))],
    ["outcome", isUnchanged(n) ? word("pair_unchanged") : named("outcomes", valueOf("outcome", n))],
    ["time", visible(valueOf("time", n)).replace("T", " ")],
    ["crawl", isolated(valueOf("crawl", n))],
    ["pair_size", size(details.bytes)],
    ["pair_items", number(details.items_dropped)],
  ];
  return make("dl", {}, ...facts.map(([name, value]) => make("div", {}, make("dt", {}, word(name)), make("dd", {}, value))));
}

function pairBody(n, details) {
  const mayAllow = !isUnchanged(n) && ["dropped", "links_last"].includes(valueOf("outcome", n));
  const allow = mayAllow ? allowCommand(commands.allow, valueOf("url", n)) : null;
  const labelled = labelButtons(n);
  const parts = [
    make(
      "div",
      { class: "actions" },
      labelled && make("span", {}, `${word("label")} `, labelled),
      allow && make("span", {}, `${word("pair_allow")} `, commandToCopy(allow)),
      copyButton(word("pair_link"), () => location.href),
    ),
  ];
  if (details.difference.length) parts.push(quoted("pair_difference", details.difference));
  const heads = ["page", "original"].map((side) =>
    make("div", {}, make("h3", {}, word(side === "original" && n >= pairs.shown ? "pair_other" : `pair_${side}`)), make("p", {}, link(valueOf(side === "page" ? "url" : side, n)))),
  );
  const text = details.texts ? textRows(details.texts.page, details.texts.original) : [];
  if (details.texts) parts.push(textKeys());
  parts.push(make("div", { class: "sides" }, make("div", { class: "heads" }, ...heads), ...text));
  if (!details.texts) parts.push(make("p", { class: "note" }, word(details.evidence.length ? "pair_no_texts" : "pair_no_evidence")));
  if (!details.texts && details.evidence.length) parts.push(quoted("pair_evidence", details.evidence));
  return parts;
}

function textKeys() {
  const change = (event) => {
    onlyDifferences = event.target.checked;
    pairDialog().classList.toggle("only-differences", onlyDifferences);
  };
  const box = make("input", { type: "checkbox", "data-name": "only", onchange: change });
  box.checked = onlyDifferences;
  pairDialog().classList.toggle("only-differences", onlyDifferences);
  const keys = [make("ins", {}, word("pair_new")), make("del", {}, word("pair_gone")), make("span", { class: "moved" }, word("pair_moved"))];
  return make("div", { class: "marks" }, make("label", {}, box, word("pair_only")), ...keys);
}

/** Return the sentences of both texts in rows; each run of rows without a difference is preceded by their number. */
function textRows(page, original) {
  const rows = aligned(page, original).map((row) => textRow(row));
  const shown = [];
  rows.forEach((row, place) => {
    if (row.isSame && !rows[place - 1]?.isSame) {
      const next = rows.findIndex((each, after) => after > place && !each.isSame);
      shown.push(make("p", { class: "skipped" }, word("pair_skipped", { n: (next < 0 ? rows.length : next) - place })));
    }
    shown.push(row.element);
  });
  return shown;
}

/** Return two sentences side by side; `marks` are the elements of what only the left one, or the right one, has. */
function textRow({ one, other }, marks = ["ins", "del"]) {
  const cell = (name, ...content) => make("p", { class: name }, ...content.map((part) => (part instanceof Node ? part : make("bdi", {}, part))));
  const written = (sentence) => sentence.words.map(({ text, space }) => text + space).join("");
  const row = (isSame, ...cells) => ({ isSame, element: make("div", { class: isSame ? "same" : "different" }, ...cells) });
  if (one && other) {
    if (one.key === other.key) return row(true, cell("", written(one)), cell("", written(other)));
    const runs = runsOf(one, other);
    const isSame = one.mark === "=" && other.mark === "=";
    const marked = (side) => make("bdi", {}, ...runs[side].flatMap(({ text, space, isOwn }) => [isOwn ? make(marks[side], {}, text) : text, space]));
    return row(isSame, cell("", marked(0)), cell("", marked(1)));
  }
  const sentence = one ?? other;
  const isElsewhere = "=~".includes(sentence.mark) && sentence.mark !== "";
  const alone = isElsewhere ? cell("moved", written(sentence)) : cell("", make(marks[one ? 0 : 1], {}, make("bdi", {}, written(sentence))));
  return row(sentence.mark === "=", ...(one ? [alone, cell("none")] : [cell("none"), alone]));
}

function quoted(title, texts) {
  return make("section", {}, make("h3", {}, word(title)), ...texts.map((text) => make("blockquote", {}, isolated(text))));
}
