// Tables of pairs: the duplicates and the related pages. TanStack Table searches, filters, sorts and counts.

const FILTERS = ["host", "reason", "outcome", "crawl"];
let pairs = null;
const tables = {};

/** Return the value of the column `name` of the pair `n`. */
function valueOf(name, n) {
  const value = pairs.columns[name][n];
  return name in pairs.tables ? pairs.tables[name][value] : value;
}

/** Return the text of the pair `n` in which searches look. */
function searched(n) {
  return (pairs.found[n] ??= `${valueOf("title", n)}\n${valueOf("url", n)}\n${valueOf("original", n)}`.toLowerCase());
}

function hasScore(n, from, to) {
  const score = pairs.columns.score[n];
  const ofTenThousand = (share) => Math.round(share * 1e4);
  return score !== null && ofTenThousand(score) >= ofTenThousand(from) && ofTenThousand(score) <= ofTenThousand(to);
}

function byValue(one, other, id) {
  const [a, b] = [one.getValue(id), other.getValue(id)];
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * A table of the pairs `numbers` in the section `id`. `columns` are their names, and `cells` returns what is in them;
 * `lead` returns text that follows the number of pages found; `words` are other names for columns.
 */
class PairTable {
  constructor(id, { numbers, columns, cells, lead = () => "", accessors = {}, words = {}, pageSize = 20 }) {
    Object.assign(this, { id, numbers, cells, lead, words, pageSize, filterOf: {}, root: document.getElementById(id) });
    // Without columns and filters that have one value.
    this.valuesOf = Object.fromEntries(FILTERS.map((name) => [name, new Set(numbers.map((n) => valueOf(name, n)))]));
    this.columns = columns.filter((name) => name !== "crawl" || this.valuesOf.crawl.size > 1);
    const column = (id, accessorFn, more = {}) => ({ id, accessorFn, filterFn: "equals", sortUndefined: "last", sortingFn: byValue, ...more });
    const score = (n) => pairs.columns.score[n] ?? undefined;
    const all = [
      column("page", (n) => valueOf("title", n) || valueOf("url", n)),
      column("search", searched, { filterFn: (row, _, text) => searched(row.original).includes(text) }),
      column("score", score),
      column("from", score, { filterFn: (row, _, from) => hasScore(row.original, from, 1) }),
      column("to", score, { filterFn: (row, _, to) => hasScore(row.original, 0, to) }),
      column("time", (n) => valueOf("time", n)),
      column("original_host", (n) => pairs.hosts_of_originals[pairs.columns.original[n]]),
      ...["original", "key", ...FILTERS].map((id) => column(id, (n) => valueOf(id, n))),
      ...Object.entries(accessors).map(([id, accessor]) => column(id, accessor)),
    ];
    this.table = TableCore.createTable({
      data: numbers,
      columns: all,
      state: {},
      initialState: { pagination: { pageSize, pageIndex: 0 } },
      autoResetPageIndex: false,
      enableSortingRemoval: false,
      renderFallbackValue: null,
      onStateChange: () => {},
      getCoreRowModel: TableCore.getCoreRowModel(),
      getFilteredRowModel: TableCore.getFilteredRowModel(),
      getSortedRowModel: TableCore.getSortedRowModel(),
      getPaginationRowModel: TableCore.getPaginationRowModel(),
    });
    let state = { ...this.table.initialState };
    this.table.setOptions((options) => ({
      ...options,
      state,
      onStateChange: (update) => {
        state = typeof update === "function" ? update(state) : update;
        this.table.setOptions((now) => ({ ...now, state }));
        this.renderRows();
      },
    }));
  }

  /** Return the numbers of the pairs that pass the filters, in their order. */
  rows() {
    return this.table.getSortedRowModel().rows.map((row) => row.original);
  }

  /** Turn to the page with the pair `n`. */
  turnTo(n) {
    const place = this.rows().indexOf(n);
    if (place >= 0) this.table.setPageIndex(Math.floor(place / this.pageSize));
  }

  /** Filter by `wanted`, names of columns and their values, and by nothing else. */
  setFilters(wanted) {
    this.filterOf = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value));
    this.table.setState((state) => ({
      ...state,
      columnFilters: Object.entries(this.filterOf).map(([id, value]) => ({
        id,
        value: id === "search" ? value.toLowerCase() : ["from", "to"].includes(id) ? Number(value) : value,
      })),
      pagination: { ...state.pagination, pageIndex: 0 },
    }));
  }

  /** Show the rows of `wanted` and go there. */
  show(wanted) {
    this.setFilters(wanted);
    this.renderFilters();
    this.root.scrollIntoView();
    this.root.focus({ preventScroll: true });
  }

  render() {
    body(this.id);
    if (!isFull(this.id, this.numbers.length)) return;
    this.renderFilters();
    this.renderRows();
  }

  renderFilters() {
    const form = this.root.querySelector(".filters");
    const change = (name) => (event) => this.setFilters({ ...this.filterOf, [name]: event.target.value });
    const search = make("input", { type: "search", oninput: change("search"), autocomplete: "off" });
    search.value = this.filterOf.search ?? "";
    const choices = FILTERS.filter((name) => this.valuesOf[name].size > 1).map((name) => this.choice(name, change(name)));
    const [from, to] = [["from", 0], ["to", 1]].map(([name, end]) => {
      const input = make("input", { type: "number", min: 0, max: 1, step: "any", placeholder: end, "aria-label": word(`score_${name}`), oninput: change(name) });
      input.value = this.filterOf[name] ?? "";
      return input;
    });
    const range = make("div", { class: "range", role: "group", "aria-label": word("score_range") }, make("span", {}, word("score_range")), from, "–", to);
    const chips = ["original", "original_host", "key"].filter((name) => this.filterOf[name]).map((name) => {
      const remove = () => { this.setFilters({ ...this.filterOf, [name]: "" }); this.renderFilters(); };
      const what = word(name === "key" ? "key" : "original");
      const label = `${word("clear")}: ${what} ${visible(this.filterOf[name])}`;
      const attributes = { type: "button", class: "chip", "aria-label": label, onclick: remove };
      return make("button", attributes, `${what}: `, isolated(this.filterOf[name], { class: "url" }), " ✕");
    });
    form.replaceChildren(make("label", { class: "search" }, word("search"), search), ...choices, range, ...chips);
    form.onsubmit = (event) => event.preventDefault();
  }

  choice(name, change) {
    const kind = { reason: "reasons", outcome: "outcomes" }[name];
    const options = [...this.valuesOf[name]].filter((value) => value).sort().map((value) =>
      make("option", { value }, kind ? named(kind, value) : visible(value)),
    );
    const select = make("select", { class: `filter-${name}`, onchange: change }, make("option", { value: "" }, word("all")), ...options);
    select.value = this.filterOf[name] ?? "";
    return make("label", {}, word(this.words[name] ?? name), select);
  }

  renderRows() {
    const { pageIndex } = this.table.getState().pagination;
    const [sorted] = this.table.getState().sorting;
    const head = this.columns.map((name) => {
      const direction = sorted?.id === name ? (sorted.desc ? "descending" : "ascending") : null;
      const sort = () => { this.table.getColumn(name).toggleSorting(); this.root.querySelector(`.sort-${name}`).focus(); };
      const button = make("button", { type: "button", class: `sort-${name}`, onclick: sort }, word(name));
      return make("th", { scope: "col", class: name, "aria-sort": direction }, button);
    });
    const rows = this.table.getRowModel().rows.map((row, place) => this.rowOf(row.original, place));
    const table = make("table", { class: "pairs" }, make("thead", {}, make("tr", { "data-sort": word("sort") }, ...head)), make("tbody", { onkeydown: moveAmongRows }, ...rows));
    this.root.querySelector(".rows").replaceChildren(table);
    this.root.querySelector(".found").textContent = this.foundText() + this.lead();
    this.renderPager(pageIndex, Math.max(1, this.table.getPageCount()));
  }

  foundText() {
    const { rows } = this.table.getFilteredRowModel();
    const pages = this.valuesOf.crawl.size > 1 ? new Set(rows.map((row) => pairs.columns.url[row.original])).size : rows.length;
    return word(pages === rows.length ? "found" : "found_records", { n: rows.length, pages });
  }

  rowOf(n, place) {
    const cells = { ...cellsOf(n), ...this.cells(n) };
    cells.page = [openButton(n, this, place), isolated(valueOf("url", n), { class: "url" })];
    const show = (event) => { if (!event.target.closest("a, .labels")) openPair(n, this); };
    return make(
      "tr",
      { "data-row": n, onclick: show },
      ...this.columns.map((name) => make("td", { class: name, "data-column": word(name) }, ...cells[name])),
    );
  }

  renderPager(page, pages) {
    const go = (to) => () => { this.table.setPageIndex(to); this.root.querySelector(".open")?.focus(); };
    const pager = this.root.querySelector(".pager");
    pager.hidden = pages === 1;
    pager.replaceChildren(
      make("button", { type: "button", disabled: page === 0, onclick: go(page - 1) }, `← ${word("previous")}`),
      make("span", {}, word("page_of", { page: page + 1, pages })),
      make("button", { type: "button", disabled: page + 1 >= pages, onclick: go(page + 1) }, `${word("next")} →`),
    );
  }
}

function setUpTables(summary) {
  const { differences } = summary.near;
  const all = Array.from(summary.pairs.columns.url, (_, n) => n);
  const shown = all.length - differences.length;
  pairs = { ...summary.pairs, found: [], shown };
  const latest = () => (summary.duplicates > shown ? ` ${word("drops_latest", { n: shown, all: summary.duplicates })}` : "");
  const most = () => (summary.near.pages > differences.length ? ` ${word("near_most", { n: differences.length, all: summary.near.pages })}` : "");
  tables.drops = new PairTable("drops", {
    numbers: all.slice(0, shown),
    columns: ["page", "original", "score", "reason", "host", "time", "crawl"],
    cells: () => ({}),
    lead: latest,
  });
  tables.near = new PairTable("near", {
    numbers: all.slice(shown),
    columns: ["page", "similar_to", "score", "differs", "label"],
    cells: (n) => ({
      similar_to: cellsOf(n).original,
      differs: [make("div", {}, named("reasons", valueOf("reason", n)), ...differences[n - shown].map((own) => make("blockquote", {}, isolated(own))))],
      label: [labelButtons(n, "-1")],
    }),
    lead: most,
    words: { reason: "differs" },
    accessors: { similar_to: (n) => valueOf("original", n), differs: (n) => valueOf("reason", n), label: (n) => labelOf(n)?.same ?? undefined },
  });
}

function cellsOf(n) {
  return {
    original: [isolated(valueOf("original", n), { class: "url" })],
    score: [scored(pairs.columns.score[n])],
    reason: [named("reasons", valueOf("reason", n))],
    host: [isolated(valueOf("host", n))],
    time: [visible(valueOf("time", n)).replace("T", " ")],
    crawl: [isolated(valueOf("crawl", n))],
  };
}

/** Return a button that opens the pair `n` of `list`, at `place` in it. */
function openButton(n, list, place) {
  const title = valueOf("title", n);
  const attributes = { type: "button", class: "open", tabindex: place ? "-1" : "0", "aria-haspopup": "dialog" };
  return make("button", { ...attributes, onclick: (event) => { event.stopPropagation(); openPair(n, list); } }, title ? isolated(title) : word("untitled"));
}

/** Show the duplicates of `wanted` and go there. */
function showRows(wanted) {
  const known = ["original", "original_host", "key", "from", "to", ...FILTERS].filter((name) => wanted[name]);
  tables.drops.show(Object.fromEntries(known.map((name) => [name, wanted[name]])));
}

/** Move among the rows by the arrows, Home and End, and label one by 1 and 2. */
function moveAmongRows(event) {
  const buttons = [...event.currentTarget.querySelectorAll(".open")];
  const now = buttons.indexOf(event.target);
  if (now < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
  const label = event.target.closest("tr").querySelector(`[data-key="${event.key}"]`);
  if (label) label.click();
  const to = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  focusAmong(buttons, buttons[Math.min(Math.max(to, 0), buttons.length - 1)]);
}

/** Focus `wanted`, the only one of `buttons` that Tab reaches. */
function focusAmong(buttons, wanted) {
  for (const button of buttons) button.tabIndex = button === wanted ? 0 : -1;
  wanted.focus();
}
