// Words and numbers, and untrusted text, which gets into the document as text, never as HTML.

let language = navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";

// Controls, marks that turn the direction of writing, invisible ones, and halves of characters.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udfff]/gu;

/** Return `text` with what cannot be seen in it written out, as ⟨U+202E⟩. */
function visible(text) {
  return String(text).replace(HIDDEN, (sign) => `⟨U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** Return an element with these attributes; strings among the children become text. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Return untrusted text isolated, so that its writing direction affects nothing around it. */
function isolated(text, attributes = {}) {
  return make("bdi", attributes, visible(text));
}

/** Return `url` as a link, if it is one that a browser should follow. */
function link(url) {
  if (!/^https?:\/\//i.test(url)) return isolated(url, { class: "url" });
  return make("a", { class: "url", href: url, target: "_blank", rel: "noopener noreferrer" }, isolated(url));
}

/** Return what is called `key` in the chosen language, with `values` for the names in braces. */
function word(key, values = {}) {
  return sentence(key, values).map((part) => (part instanceof Node ? part.textContent : part)).join("");
}

/** Return the same as parts to append: elements among `values` stay what they are. */
function sentence(key, values = {}) {
  let text = WORDS[language][key];
  if (typeof text === "object") {
    text = text[new Intl.PluralRules(language).select(values.n)] ?? text.other;
  }
  return text.split(/\{(\w+)\}/).map((part, position) => {
    if (position % 2 === 0) return part;
    const value = values[part];
    return typeof value === "number" ? number(value) : value;
  });
}

/** Return the name of a reason or an outcome of the log in the chosen language. */
function named(kind, value) {
  const names = WORDS[language][kind];
  return Object.hasOwn(names, value) ? names[value] : visible(value);
}

const formats = new Map();

/** Return a format of numbers in the chosen language; to make one takes longer than to use it. */
function numberFormat(options = {}) {
  const key = language + JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat(language, options));
  return formats.get(key);
}

function number(value) {
  return numberFormat().format(value);
}

function percent(share, digits = 1) {
  if (share === null || share === undefined) return "–";
  return numberFormat({ style: "percent", maximumFractionDigits: digits }).format(share);
}

/** Return a score, from 0 to 1. */
function scored(score) {
  if (score === null || score === undefined) return "–";
  return numberFormat({ minimumFractionDigits: 2, maximumFractionDigits: 4 }).format(score);
}

function size(bytes) {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];
  let unit = 0;
  for (; bytes >= 1000 && unit < units.length - 1; unit += 1) bytes /= 1000;
  const digits = { maximumFractionDigits: bytes < 10 && unit ? 1 : 0 };
  // A byte has no sign of its own in the short form, and no plural.
  return numberFormat({ style: "unit", unit: units[unit], unitDisplay: unit ? "short" : "long", ...digits }).format(bytes);
}

/** Return the seconds since 1970 as a day, and as a time of day where `span` seconds are less than one. */
function moment(seconds, span = 1) {
  const text = new Date(seconds * 1000).toISOString();
  return span >= 86400 ? text.slice(0, 10) : text.slice(0, span >= 60 ? 16 : 19).replace("T", " ");
}

/** Return the parsed JSON of the packed element `id`. */
async function unpacked(id) {
  const text = document.getElementById(id).textContent;
  const bytes = Uint8Array.fromBase64
    ? Uint8Array.fromBase64(text)
    : Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/** Put the words of the chosen language where the template asks for them. */
function renderTemplate() {
  document.documentElement.lang = language;
  document.title = word("title");
  for (const element of document.querySelectorAll("[data-word]")) element.textContent = word(element.dataset.word);
  for (const element of document.querySelectorAll("[data-label]")) {
    element.setAttribute("aria-label", word(element.dataset.label));
  }
}
