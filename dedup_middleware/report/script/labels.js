// Labels that a person gives to pairs, as `scrapy dedup tune --labels` reads them. The browser keeps them where it can.

const LABELS_FILE = "dedup-labels.jsonl";
const labels = new Map();
let labelsPlace = null;

function keyOf(n) {
  return JSON.stringify([valueOf("url", n), valueOf("original", n)]);
}

function labelOf(n) {
  return labels.get(keyOf(n));
}

function readLabels(summary) {
  labelsPlace = `scrapy dedup labels of ${summary.log_id}`;
  try {
    for (const label of JSON.parse(localStorage.getItem(labelsPlace) ?? "[]")) {
      if (typeof label.same === "boolean") labels.set(JSON.stringify([label.url, label.original_url]), label);
    }
  } catch {
    // A browser may keep nothing for a file; labels then last as long as the page is open.
  }
}

/** Label the pair `n`; the same label again removes it. */
function label(n, same) {
  const score = pairs.columns.score[n];
  if (labelOf(n)?.same === same) labels.delete(keyOf(n));
  else {
    const time = new Date().toISOString().replace("Z", "+00:00");
    const reason = valueOf("reason", n);
    labels.set(keyOf(n), { url: valueOf("url", n), original_url: valueOf("original", n), score, same, reason, time });
  }
  try {
    localStorage.setItem(labelsPlace, JSON.stringify([...labels.values()]));
  } catch {
    // As above.
  }
  for (const group of document.querySelectorAll(`.labels[data-pair="${n}"]`)) markLabels(group, n);
  renderLabels();
}

/** Return the two buttons that label the pair `n`. In a table, the keys of its rows label; Tab passes over the buttons. */
function labelButtons(n, tabindex = null) {
  if (pairs.columns.score[n] === null || !valueOf("original", n)) return null;
  const button = (key, name, same) =>
    make("button", { type: "button", "data-key": key, tabindex, "aria-keyshortcuts": key, onclick: () => label(n, same) }, word(name), make("kbd", {}, key));
  const group = make("span", { class: "labels", role: "group", "aria-label": word("label"), "data-pair": n }, button("1", "label_same", true), button("2", "label_different", false));
  markLabels(group, n);
  return group;
}

function markLabels(group, n) {
  const [same, different] = group.children;
  same.setAttribute("aria-pressed", String(labelOf(n)?.same === true));
  different.setAttribute("aria-pressed", String(labelOf(n)?.same === false));
}

function labelLines() {
  return [...labels.values()].map((each) => `${JSON.stringify(each)}\n`).join("");
}

function downloadLabels() {
  const url = URL.createObjectURL(new Blob([labelLines()], { type: "application/jsonl" }));
  make("a", { href: url, download: LABELS_FILE }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function renderLabels() {
  const same = [...labels.values()].filter((each) => each.same).length;
  const place = document.querySelector("#near .labelled");
  const counts = word("labelled", { same, different: labels.size - same });
  const none = sentence("labelled_none", { command: make("code", {}, "scrapy dedup tune") });
  place.querySelector("p").replaceChildren(...(labels.size ? [counts] : none));
  place.querySelector(".out").hidden = labels.size === 0;
}

/** Make the line that counts the labels, and the ways out of the page. */
function setUpLabels(summary) {
  const command = summary.commands.tune;
  document.querySelector("#near .labelled").replaceChildren(
    make("p", { role: "status" }),
    make(
      "div",
      { class: "out" },
      make("button", { type: "button", class: "copy", onclick: downloadLabels }, word("labels_download")),
      copyButton(word("labels_copy"), labelLines),
      commandToCopy(command),
    ),
  );
  renderLabels();
}

/** Return a command with a button that copies it. */
function commandToCopy(command) {
  return make("span", { class: "command" }, make("code", {}, command), copyButton(word("copy"), () => command));
}

/** Return a button that copies what `text` returns. */
function copyButton(name, text) {
  const copy = async () => {
    // A page that came by plain HTTP has no clipboard.
    const isDone = await navigator.clipboard?.writeText(text()).then(() => true, () => false);
    button.textContent = word(isDone ? "copied" : "not_copied");
    setTimeout(() => (button.textContent = name), 2_000);
  };
  const button = make("button", { type: "button", class: "copy", onclick: copy }, name);
  return button;
}

/** Return `scrapy dedup allow URL` for a shell; null for a URL that a terminal or the command may take for more. */
function allowCommand(prefix, url) {
  if (visible(url) !== url || !/^[a-z][a-z0-9+.-]*:/i.test(url)) return null;
  const quoted = /^[\w@%+=:,./-]+$/.test(url) ? url : `'${url.replaceAll("'", `'"'"'`)}'`;
  return `${prefix} ${quoted}`;
}
