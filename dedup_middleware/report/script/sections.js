// Warnings and hosts.

function body(section) {
  const place = document.querySelector(`#${section} .body`);
  place.replaceChildren();
  return place;
}

/** Have `element` show by a fade at its edge that it scrolls further to the right. */
function fading(element) {
  const look = () => element.classList.toggle("more", element.scrollLeft + element.clientWidth < element.scrollWidth - 1);
  element.addEventListener("scroll", look);
  const observer = new ResizeObserver(look);
  for (const each of [element, ...element.children]) observer.observe(each);
  return element;
}

/** Return a table in a box that scrolls where the table is wider. */
function scrolling(table, attributes = {}) {
  return fading(make("div", { ...attributes, class: "scroll" }, table));
}

/** Return a button that shows the rows of these filters. */
function toTable(filters, ...content) {
  return make("button", { type: "button", class: "to-table", onclick: () => showRows(filters) }, ...content);
}

function renderContents() {
  const links = [...document.querySelectorAll("main > section")].map((section) =>
    make("a", { href: `#${section.id}` }, section.querySelector("h2").textContent),
  );
  document.getElementById("contents").replaceChildren(...links);
}

function renderSigns(summary) {
  const { one_original, fields, mirrors } = summary.signs;
  const found = [];
  for (const sign of one_original) {
    const values = { ...sign, host: isolated(sign.host) };
    found.push([...sentence("sign_one_original", values), make("br"), link(sign.original), " ", toTable(sign, word("show_pages"))]);
  }
  for (const sign of fields) found.push(sentence("sign_field", { ...sign, field: make("code", {}, isolated(sign.field)) }));
  for (const sign of mirrors) {
    const values = { ...sign, host: isolated(sign.host), of: isolated(sign.of), score: scored(sign.score) };
    const filters = { host: sign.host, original_host: sign.of };
    found.push([...sentence("sign_mirror", values), " ", toTable(filters, word("show_pages"))]);
  }
  const place = body("signs");
  if (isFull("signs", found.length, "no_signs")) {
    place.append(make("ul", { class: "signs" }, ...found.map((parts) => make("li", {}, ...parts))));
  }
  if (summary.note) place.append(make("p", { class: "note" }, ...sentence("sign_note", { note: isolated(summary.note) })));
}

function renderHosts(summary) {
  const { copying, copied, pages, copying_total, others } = summary.hosts;
  const place = body("hosts");
  if (!isFull("hosts", copying.length)) return;
  const most = Math.max(...pages.flat());
  const name = (host) => (host ? isolated(host) : word("other_host"));
  const cell = (count, host, original) => {
    if (!count) return make("td");
    const label = word("hosts_cell", { n: count, host: visible(host), original: visible(original) });
    const filled = make("td", {}, toTable({ host, original_host: original }, number(count)));
    filled.firstChild.setAttribute("aria-label", label);
    filled.style.setProperty("--share", `${Math.round(8 + 42 * Math.sqrt(count / most))}%`);
    return filled;
  };
  const head = make(
    "tr",
    {},
    make("th", { scope: "col", class: "corner" }, word("hosts_row")),
    ...copied.map((host) => make("th", { scope: "col" }, make("span", {}, name(host)))),
    make("th", { scope: "col" }, word("hosts_all")),
  );
  const rows = copying.map((host, row) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, name(host)),
      ...copied.map((original, column) => cell(pages[row][column], host, original)),
      make("td", { class: "sum" }, number(copying_total[row])),
    ),
  );
  const table = make("table", { class: "matrix" }, make("thead", {}, head), make("tbody", {}, ...rows));
  place.append(scrolling(table, { tabindex: "0", role: "region", "aria-label": word("hosts") }));
  if (others.copying || others.copied) place.append(make("p", { class: "lead" }, word("hosts_more", others)));
}
