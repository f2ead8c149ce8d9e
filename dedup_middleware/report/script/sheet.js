// A table of numbers. TanStack Table sorts, searches and pages it.

/**
 * Show `rows` in `place`. Of a column: `id`, `label`, `value(row)` to sort by, `show(row)`, and `isText`. The search box
 * is there where `search(row)` is given and there are more than 20 rows.
 */
function showSheet(place, { name, label, columns, rows, sorted, search, pageSize = 10 }) {
  const table = make("table", { class: "sheet", "aria-label": label });
  const pager = make("div", { class: "turns" });
  const sheet = TableCore.createTable({
    data: rows,
    columns: columns.map(({ id, value, isText }) => ({ id, accessorFn: value, sortingFn: byValue, sortDescFirst: !isText })),
    state: {},
    initialState: { pagination: { pageSize, pageIndex: 0 }, sorting: sorted ? [sorted] : [] },
    globalFilterFn: (row, _, text) => search(row.original).toLowerCase().includes(text),
    getColumnCanGlobalFilter: (column) => column.id === columns[0].id,
    autoResetPageIndex: false,
    enableSortingRemoval: false,
    renderFallbackValue: null,
    getCoreRowModel: TableCore.getCoreRowModel(),
    getFilteredRowModel: TableCore.getFilteredRowModel(),
    getSortedRowModel: TableCore.getSortedRowModel(),
    getPaginationRowModel: TableCore.getPaginationRowModel(),
  });
  let state = { ...sheet.initialState };
  const onStateChange = (update) => {
    const before = state;
    state = typeof update === "function" ? update(state) : update;
    // Other rows are first: begin with the first page.
    if (state.pagination === before.pagination) state = { ...state, pagination: { ...state.pagination, pageIndex: 0 } };
    sheet.setOptions((now) => ({ ...now, state }));
    render();
  };
  sheet.setOptions((options) => ({ ...options, state, onStateChange }));

  function heading({ id, label: text, isText }) {
    const [first] = state.sorting;
    const sort = () => { sheet.getColumn(id).toggleSorting(); document.getElementById(`${name}-${id}`).focus(); };
    const button = make("button", { type: "button", id: `${name}-${id}`, onclick: sort }, text);
    const direction = first?.id === id ? (first.desc ? "descending" : "ascending") : null;
    return make("th", { scope: "col", class: isText ? "text" : null, "aria-sort": direction }, button);
  }

  function render() {
    const shown = sheet.getRowModel().rows.map(({ original }) =>
      make("tr", {}, ...columns.map(({ show, isText }, place) => {
        const attributes = { class: isText ? "text" : null, scope: place ? null : "row" };
        return make(place ? "td" : "th", attributes, ...[show(original)].flat());
      })),
    );
    const head = make("thead", {}, make("tr", {}, ...columns.map(heading)));
    table.replaceChildren(head, make("tbody", {}, ...shown));
    const { pageIndex } = state.pagination;
    const pages = sheet.getPageCount();
    pager.hidden = pages < 2;
    const turn = (step, text) => {
      const go = () => { sheet.setPageIndex(pageIndex + step); pager.querySelector(`.${step > 0 ? "on" : "back"}`).focus(); };
      const isEnd = pageIndex + step < 0 || pageIndex + step >= pages;
      return make("button", { type: "button", class: step > 0 ? "on" : "back", "aria-disabled": String(isEnd), onclick: isEnd ? null : go }, text);
    };
    pager.replaceChildren(
      turn(-1, `← ${word("previous")}`),
      make("span", {}, word("page_of", { page: pageIndex + 1, pages })),
      turn(1, `${word("next")} →`),
    );
  }

  render();
  const box = make("input", { type: "search", autocomplete: "off", oninput: (event) => sheet.setGlobalFilter(event.target.value.toLowerCase()) });
  const isLong = search && rows.length > 20;
  place.append(...(isLong ? [make("label", { class: "search" }, word("sheet_search"), box)] : []), scrolling(table), pager);
}
