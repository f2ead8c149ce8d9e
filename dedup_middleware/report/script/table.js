// The table of dropped pages. TanStack Table searches, filters, sorts and counts; what is seen is made here.

const ROWS_A_PAGE = 50;
const COLUMNS = ["page", "original", "score", "reason", "host", "time", "run"];
const FILTERS = ["host", "reason", "outcome", "run"];
let drops = null;
let table = null;
let filterOf = {};

/** Return the columns that are shown: of a report of one crawl, all but that. */
function shownColumns() {
  return COLUMNS.filter((name) => name !== "run" || drops.tables.run.length > 1);
}

/** Return the value of the column `name` in row `n`. */
function valueOf(name, n) {
  const value = drops.columns[name][n];
  return name in drops.tables ? drops.tables[name][value] : value;
}

function setUpTable(data) {
  drops = data;
  const found = drops.columns.url.map(() => null);
  const searched = (n) =>
    (found[n] ??= `${valueOf("title", n)}\n${valueOf("url", n)}\n${valueOf("original", n)}`.toLowerCase());
  const column = (id, accessorFn, more = {}) => ({ id, accessorFn, filterFn: "equals", sortUndefined: "last", ...more });
  const columns = [
    column("page", (n) => valueOf("title", n) || valueOf("url", n)),
    column("search", searched, { filterFn: (row, _, text) => searched(row.original).includes(text) }),
    column("score", (n) => drops.columns.score[n] ?? undefined),
    column("time", (n) => valueOf("time", n)),
    column("original_host", (n) => drops.hosts_of_originals[drops.columns.original[n]]),
    ...["original", ...FILTERS].map((id) => column(id, (n) => valueOf(id, n))),
  ].map((each) => ({ ...each, sortingFn: byValue }));
  table = TableCore.createTable({
    data: Array.from(drops.columns.url, (_, n) => n),
    columns,
    state: {},
    initialState: { pagination: { pageSize: ROWS_A_PAGE, pageIndex: 0 } },
    autoResetPageIndex: false,
    enableSortingRemoval: false,
    renderFallbackValue: null,
    onStateChange: () => {},
    getCoreRowModel: TableCore.getCoreRowModel(),
    getFilteredRowModel: TableCore.getFilteredRowModel(),
    getSortedRowModel: TableCore.getSortedRowModel(),
    getPaginationRowModel: TableCore.getPaginationRowModel(),
  });
  let state = { ...table.initialState };
  table.setOptions((options) => ({
    ...options,
    state,
    onStateChange: (update) => {
      state = typeof update === "function" ? update(state) : update;
      table.setOptions((now) => ({ ...now, state }));
      renderRows();
    },
  }));
}

function byValue(one, other, id) {
  const [a, b] = [one.getValue(id), other.getValue(id)];
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Return the numbers of the rows that pass the filters, in their order. */
function chosenRows() {
  return table.getSortedRowModel().rows.map((row) => row.original);
}

/** Filter by `wanted`, names of columns and their values, and by nothing else. */
function setFilters(wanted) {
  filterOf = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value));
  table.setState((state) => ({
    ...state,
    columnFilters: Object.entries(filterOf).map(([id, value]) => ({
      id,
      value: id === "search" ? value.toLowerCase() : value,
    })),
    pagination: { ...state.pagination, pageIndex: 0 },
  }));
}

/** Show the rows of `wanted` and go there. */
function showRows(wanted) {
  const known = ["original", "original_host", ...FILTERS].filter((name) => wanted[name]);
  setFilters(Object.fromEntries(known.map((name) => [name, wanted[name]])));
  renderFilters();
  const section = document.getElementById("drops");
  section.scrollIntoView();
  section.focus({ preventScroll: true });
}

function renderFilters() {
  const form = document.querySelector(".filters");
  const change = (name) => (event) => setFilters({ ...filterOf, [name]: event.target.value });
  const search = make("input", { type: "search", id: "search", oninput: change("search"), autocomplete: "off" });
  search.value = filterOf.search ?? "";
  const choices = FILTERS.filter((name) => drops.tables[name].length > 1).map((name) => choice(name, change(name)));
  const originals = ["original", "original_host"].filter((name) => filterOf[name]).map((name) => {
    const remove = () => { setFilters({ ...filterOf, [name]: "" }); renderFilters(); };
    const label = `${word("clear")}: ${word("original")} ${visible(filterOf[name])}`;
    const attributes = { type: "button", class: "chip", "aria-label": label, onclick: remove };
    return make("button", attributes, `${word("original")}: `, isolated(filterOf[name], { class: "url" }), " ✕");
  });
  form.replaceChildren(make("label", { class: "search" }, word("search"), search), ...choices, ...originals);
  form.onsubmit = (event) => event.preventDefault();
}

function choice(name, change) {
  const kind = { reason: "reasons", outcome: "outcomes" }[name];
  const values = [...drops.tables[name]].sort();
  const options = values.filter((value) => value).map((value) =>
    make("option", { value }, kind ? named(kind, value) : visible(value)),
  );
  const select = make("select", { id: `filter-${name}`, onchange: change }, make("option", { value: "" }, word("all")), ...options);
  select.value = filterOf[name] ?? "";
  return make("label", {}, word(name), select);
}

function renderRows() {
  const { pageIndex } = table.getState().pagination;
  const [sorted] = table.getState().sorting;
  const head = shownColumns().map((name) => {
    const direction = sorted?.id === name ? (sorted.desc ? "descending" : "ascending") : null;
    const sort = () => { table.getColumn(name).toggleSorting(); document.getElementById(`sort-${name}`).focus(); };
    const button = make("button", { type: "button", id: `sort-${name}`, onclick: sort }, word(name));
    return make("th", { scope: "col", class: name, "aria-sort": direction }, button);
  });
  const rows = table.getRowModel().rows.map((row, place) => rowOf(row.original, place));
  document.querySelector(".rows").replaceChildren(
    make("table", { class: "drops" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", { onkeydown: move }, ...rows)),
  );
  const count = table.getFilteredRowModel().rows.length;
  const met = drops.met > drops.columns.url.length ? ` ${word("drops_latest", { n: drops.columns.url.length, all: drops.met })}` : "";
  document.querySelector(".found").textContent = word("found", { n: count }) + met;
  renderPager(pageIndex, Math.max(1, table.getPageCount()));
}

function rowOf(n, place) {
  const title = valueOf("title", n);
  const open = make(
    "button",
    { type: "button", class: "open", tabindex: place ? "-1" : "0", "aria-haspopup": "dialog" },
    title ? isolated(title) : word("untitled"),
  );
  const cells = {
    page: [open, isolated(valueOf("url", n), { class: "url" })],
    original: [isolated(valueOf("original", n), { class: "url" })],
    score: [percent(drops.columns.score[n])],
    reason: [named("reasons", valueOf("reason", n))],
    host: [isolated(valueOf("host", n))],
    time: [visible(valueOf("time", n)).replace("T", " ")],
    run: [isolated(valueOf("run", n))],
  };
  const show = () => openPair(n);
  return make(
    "tr",
    { "data-row": n, onclick: (event) => { if (!event.target.closest("a")) show(); } },
    ...shownColumns().map((name) => make("td", { class: name, "data-column": word(name) }, ...cells[name])),
  );
}

/** Move among the rows by the arrows, Home and End. */
function move(event) {
  const buttons = [...event.currentTarget.querySelectorAll(".open")];
  const now = buttons.indexOf(event.target);
  const to = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (now < 0 || to === undefined) return;
  event.preventDefault();
  focusRow(buttons, buttons[Math.min(Math.max(to, 0), buttons.length - 1)]);
}

function focusRow(buttons, wanted) {
  for (const button of buttons) button.tabIndex = button === wanted ? 0 : -1;
  wanted.focus();
}

function renderPager(page, pages) {
  const go = (to) => () => { table.setPageIndex(to); document.querySelector(".open")?.focus(); };
  document.querySelector(".pager").replaceChildren(
    make("button", { type: "button", disabled: page === 0, onclick: go(page - 1) }, `← ${word("previous")}`),
    make("span", {}, word("page_of", { page: page + 1, pages })),
    make("button", { type: "button", disabled: page + 1 >= pages, onclick: go(page + 1) }, `${word("next")} →`),
  );
}
