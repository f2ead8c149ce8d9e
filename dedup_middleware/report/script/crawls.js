// Crawls as a whole: the title, the numbers in all, by host and by crawl, what changed, and the settings.

// The kinds of page that the report shows together, in the order of the chart, from its base.
const GROUPS = {
  pages_new: ["new"],
  pages_related: ["related"],
  pages_unchanged: ["unchanged", "changed"],
  pages_duplicate: ["duplicate"],
  pages_without_items: ["without_items", "lists", "unchanged_dropped"],
  pages_skipped: ["skipped"],
  pages_unchecked: ["unchecked"],
};
const KINDS_KEPT = ["new", "related", "unchanged", "changed"];

/** Return the pages of a group, of the `counts` by kind: numbers, or lists of them. */
function pagesOf(group, counts) {
  const found = GROUPS[group].map((kind) => counts[kind] ?? 0);
  if (!Array.isArray(found[0])) return sum(found);
  return found[0].map((_, place) => sum(found.map((values) => values[place])));
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

/** Return the number of pages, and the share of duplicates among them. */
function totalOf(pages) {
  return sum(Object.values(pages));
}

function rateOf(pages) {
  return totalOf(pages) ? pages.duplicate / totalOf(pages) : null;
}

function shortName(crawl) {
  return crawl.length > 8 ? `${crawl.slice(0, 4)}…` : crawl;
}

/** Return the crawl of a report of one crawl, or else `undefined`. */
function onlyCrawl({ crawl, crawls }) {
  return crawl ? crawls.list.find((each) => each.crawl === crawl) : crawls.list.length === 1 ? crawls.list[0] : undefined;
}

function renderHeading(summary) {
  const { list } = summary.crawls;
  const day = (seconds) => (seconds === null ? "–" : moment(seconds, 86400));
  const only = onlyCrawl(summary);
  const shown = only ? [only] : list;
  const different = (name) => [...new Set(shown.map((crawl) => crawl[name]).filter(Boolean))];
  const spiders = different("spider");
  const names = [...new Set([...different("project"), ...(spiders.length > 3 ? [word("heading_spiders", { n: spiders.length })] : [spiders.join(", ")])])];
  const name = visible(names.filter(Boolean).join(" · "));
  const title = only
    ? [name, word("heading_crawl", { crawl: visible(shortName(only.crawl)), day: day(only.begin) })].filter(Boolean).join(" · ")
    : word(name ? "heading_crawls_of" : "heading_crawls", { n: shown.length, name });
  document.getElementById("heading").textContent = title;
  document.title = `${word("title")} · ${title}`;
  const times = shown.flatMap(({ begin, end }) => [begin, end]).filter((time) => time !== null);
  const minute = (time) => (time === undefined ? "–" : moment(time, 60));
  const [from, to] = [minute(times.length ? Math.min(...times) : undefined), minute(times.length ? Math.max(...times) : undefined)];
  const dates = from === to ? from : word("about_dates", { from, to });
  const made = summary.made.slice(0, 16).replace("T", " ");
  document.getElementById("about").replaceChildren(...sentence("about", { log: isolated(summary.log), made, dates }));
}

function renderOverview(summary) {
  const { sum: all, without_new, list, hosts } = summary.crawls;
  const { pages, items } = all;
  const partsOf = (counts, names) => names.filter((name) => counts[name]).map((name) => word(`kind_${name}`, { n: counts[name] })).join(" · ");
  const parts = (...names) => partsOf(pages, names);
  const tiles = [
    ["pages", number(totalOf(pages)), word(hosts.some(([host]) => !host) ? "tile_many_hosts" : "tile_hosts", { n: hosts.filter(([host]) => host).length })],
    ["kept_pages", number(sum(KINDS_KEPT.map((kind) => pages[kind]))), parts(...KINDS_KEPT)],
    ["duplicates", number(pages.duplicate), word("tile_rate", { share: percent(rateOf(pages)) })],
    ...(pages.skipped ? [["skipped", number(pages.skipped), partsOf(all.skipped, Object.keys(all.skipped))]] : []),
    ["unchecked", number(pages.unchecked), ""],
    ["without_items", number(pagesOf("pages_without_items", pages)), parts("lists", "unchanged_dropped")],
    ["items", number(all.items_dropped), all.items_released ? word("tile_released", { n: all.items_released }) : ""],
    ...(totalOf(items) ? [["items_checked", number(totalOf(items)), partsOf(items, [...KINDS_KEPT, "unchanged_dropped", "duplicate", "unchecked"])]] : []),
    ["bytes", size(summary.bytes), ""],
  ].map(([name, value, more]) => tile(word(`tile_${name}`), value, more, name));
  document.querySelector("#overview .tiles").replaceChildren(...tiles);
  const shares = Object.keys(GROUPS).map((group) => [group, pagesOf(group, pages)]).filter(([, n]) => n);
  const bar = make("div", { class: "shares", "aria-hidden": "true" }, ...shares.map(([group, n]) => {
    const part = make("span", { class: group });
    part.style.setProperty("flex-grow", n);
    return part;
  }));
  const keys = shares.map(([group, n]) => make("span", { class: `key ${group}` }, `${word(group)} ${number(n)}`));
  document.querySelector("#overview .composition").replaceChildren(...(shares.length ? [bar, make("p", { class: "legend" }, ...keys)] : []));
  const others = Object.entries(summary.outcomes).filter(([outcome]) => !["dropped", "links_last"].includes(outcome));
  const lines = others.map(([outcome, n]) => word("saved_outcome", { n, outcome: named("outcomes", outcome) }));
  if (without_new) lines.unshift(word("without_new", { n: without_new, all: summary.crawl ? 1 : list.length }));
  const place = body("overview");
  place.append(...lines.map((line) => make("p", { class: "note" }, line)));
  renderReasons(place, all);
}

/** Show for how many pages, and items, each reason to keep them or not to check them was found. */
function renderReasons(place, { reasons, items }) {
  const columns = [
    { id: "reason_of", label: word("column_reason"), isText: true, value: (row) => row.reason, show: (row) => named("reasons", row.reason) },
    { id: "what", label: word("column_what"), isText: true, value: (row) => row.what, show: (row) => word(`what_${row.what}`) },
    { id: "pages", label: word("column_pages"), value: (row) => row.pages, show: (row) => number(row.pages) },
    totalOf(items) ? { id: "items_of", label: word("column_items_checked"), value: (row) => row.items, show: (row) => number(row.items) } : null,
  ].filter(Boolean);
  if (reasons.length) showSheet(place, { name: "reasons", label: word("reasons_of"), columns, rows: reasons, search: (row) => named("reasons", row.reason) });
}

/** Return a number with its name above it and `more` below. */
function tile(name, value, more, kind = "") {
  return make("div", { class: `tile ${kind}` }, make("dt", {}, name), make("dd", {}, make("strong", {}, value), make("span", {}, more)));
}

/** Return a column of numbers, or `null` if it is empty for all rows. */
function counted(id, rows, value, show = (row) => number(value(row))) {
  return rows.some(value) ? { id, label: word(`column_${id}`), value, show } : null;
}

function shareColumn(pages) {
  const show = (row) => {
    const share = rateOf(pages(row));
    const bar = make("span", { class: "share" });
    bar.style.setProperty("--share", `${100 * (share ?? 0)}%`);
    return [bar, make("span", { class: "percent" }, percent(share))];
  };
  return { id: "rate", label: word("column_rate"), value: (row) => rateOf(pages(row)) ?? -1, show };
}

/** Return the columns of the counts of pages of each row. */
function pageColumns(rows, pages) {
  const of = (group) => (row) => pagesOf(group, pages(row));
  return [
    { id: "pages", label: word("column_pages"), value: (row) => totalOf(pages(row)), show: (row) => number(totalOf(pages(row))) },
    counted("new", rows, of("pages_new")),
    counted("related", rows, of("pages_related")),
    counted("unchanged", rows, of("pages_unchanged")),
    counted("duplicate", rows, of("pages_duplicate")),
    counted("skipped", rows, of("pages_skipped")),
    counted("unchecked", rows, of("pages_unchecked")),
    counted("without_items", rows, of("pages_without_items")),
    shareColumn(pages),
  ];
}

/** Return the rows of hosts as objects: name, and pages by kind. */
function hostRows(kinds, rows) {
  return rows.map(([host, ...counts]) => ({ host, pages: Object.fromEntries(counts.map((n, place) => [kinds[place], n])) }));
}

function hostCell(host) {
  return host === "?" ? word("other_host") : host ? isolated(host) : word("other_hosts");
}

function renderHostPages(summary) {
  const rows = hostRows(summary.crawls.kinds, summary.crawls.hosts);
  const place = body("host-pages");
  if (!isFull("host-pages", rows.length)) return;
  const has = new Set(summary.pairs.tables.host);
  const columns = [
    { id: "host", label: word("host"), isText: true, value: (row) => row.host, show: (row) => hostCell(row.host) },
    ...pageColumns(rows, (row) => row.pages),
  ].filter(Boolean);
  const duplicates = columns.find(({ id }) => id === "duplicate");
  if (duplicates) {
    duplicates.show = ({ host, pages: { duplicate } }) => {
      if (!duplicate || !has.has(host)) return number(duplicate);
      const button = toTable({ host }, number(duplicate));
      button.setAttribute("aria-label", word("host_duplicates", { n: duplicate, host: visible(host) }));
      return button;
    };
  }
  showSheet(place, { name: "hosts", label: word("host_pages"), columns, rows, sorted: { id: "pages", desc: true }, search: (row) => row.host });
}

function crawlName({ crawl, begin, spider }, several) {
  return [begin === null ? "–" : moment(begin, 60), several && spider, shortName(crawl)].filter(Boolean).map(visible).join(" · ");
}

function duration({ begin, end }) {
  if (begin === null) return "–";
  const [hours, minutes, seconds] = [Math.floor((end - begin) / 3600), Math.floor((end - begin) / 60) % 60, (end - begin) % 60];
  const unit = (value, name) => new Intl.NumberFormat(language, { style: "unit", unit: name, unitDisplay: "narrow" }).format(value);
  return hours ? `${unit(hours, "hour")} ${unit(minutes, "minute")}` : minutes ? `${unit(minutes, "minute")} ${unit(seconds, "second")}` : unit(seconds, "second");
}

function hasSpiders(list) {
  return new Set(list.map((crawl) => crawl.spider)).size > 1;
}

let compared = null;

function renderChanges(summary) {
  const { list, kinds } = summary.crawls;
  const place = body("changes");
  if (!isFull("changes", list.length > 1, "changes_none")) return;
  // A spider is compared with itself.
  const lastOf = (now) => list.findIndex((crawl, n) => n > now && crawl.spider === list[now].spider);
  if (compared === null) {
    const now = Math.max(0, list.findIndex((crawl) => crawl.crawl === summary.crawl));
    const before = lastOf(now);
    compared = before > 0 ? [now, before] : now + 1 < list.length ? [now, now + 1] : [0, 1];
  }
  const several = hasSpiders(list);
  const choose = (side, id) => {
    const options = list.map((crawl, n) => make("option", { value: n }, crawlName(crawl, several)));
    const change = (event) => {
      compared[side] = Number(event.target.value);
      renderChanges(summary);
      document.getElementById(id).focus();
    };
    const select = make("select", { id, onchange: change }, ...options);
    select.value = compared[side];
    return make("label", {}, word(id), select);
  };
  const [now, before] = compared.map((n) => list[n]);
  place.append(make("div", { class: "choices" }, choose(0, "changes_now"), choose(1, "changes_before")));
  const rows = [
    ["pages", (crawl) => totalOf(crawl.pages)],
    ...Object.keys(GROUPS).map((group) => [group, (crawl) => pagesOf(group, crawl.pages)]),
    ["rate", (crawl) => rateOf(crawl.pages), percent],
    ["items", (crawl) => crawl.items_dropped],
  ].filter(([, value]) => value(now) || value(before));
  const head = ["changes_of", "changes_was", "changes_is", "changes_change"].map((key) => make("th", { scope: "col" }, word(key)));
  const lines = rows.map(([name, value, format = number]) =>
    make("tr", {}, make("th", { scope: "row" }, word(name.startsWith("pages_") || name === "rate" ? name : `tile_${name}`)), make("td", {}, format(value(before))), make("td", {}, format(value(now))), make("td", {}, change(value(now), value(before), format))),
  );
  const table = make("table", { class: "sheet" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...lines));
  const hosts = make("div");
  place.append(make("div", { class: "halves" }, scrolling(table), hosts));
  // As long as the table beside it, with its pages.
  renderHostChanges(hosts, hostRows(kinds, now.hosts), hostRows(kinds, before.hosts), rows.length - 1);
  const pages = make("div", { class: "changed" });
  place.append(pages);
  if (compared[0] === 0 && compared[1] === lastOf(0)) renderSince(pages, summary.since);
  renderChangedPages(pages, summary);
}

/** Show how many pages are new, or were not seen again, since the crawl before the last, and the first of them. */
function renderSince(place, since) {
  const kinds = Object.entries(since).filter(([, { pages }]) => pages);
  const shown = kinds.map(([kind, { pages, urls }]) => {
    const name = make("span", {}, word(kind === "new" ? "since_new" : "since_not_seen"));
    const rest = pages > urls.length ? make("p", { class: "quiet" }, word("since_more", { n: pages - urls.length })) : null;
    const list = make("ul", {}, ...urls.map((url) => make("li", {}, link(url))));
    return make("details", {}, make("summary", {}, name, make("span", { class: "count" }, word("found", { n: pages }))), list, rest);
  });
  if (shown.length) place.append(make("div", { class: "list since" }, ...shown));
}

/** Show the pages that have changed or moved since the crawl compared with, with their difference, and those that are gone. */
function renderChangedPages(place, { crawls: { list, changed } }) {
  const { spider } = list[compared[0]];
  const between = new Set(list.slice(...compared).filter((crawl) => crawl.spider === spider).map(({ crawl }) => crawl));
  // The latest first, and each page once.
  const rows = [...new Map(changed.filter(({ crawl }) => between.has(crawl)).reverse().map((row) => [row.key || row.url, row])).values()].reverse();
  if (!rows.length) return place.append(make("p", { class: "lead" }, word("changes_no_page")));
  const show = ({ url, key, moved_from: from, rows: texts, is_shown_otherwise: isOtherwise }) => [
    ...(key ? [make("b", {}, key), " "] : []),
    ...(from ? [link(from), " → "] : []),
    link(url),
    ...(from || texts.length || isOtherwise ? [] : [" ", make("span", { class: "quiet" }, word("changes_gone"))]),
    make("div", { class: "sides" }, ...texts.map((row) => {
      // As the table above: what was, and then what is.
      const [one, other] = row.map((text) => text === null ? null : sentenceOf(["", text]));
      return textRow({ one, other }, ["del", "ins"]).element;
    })),
    isOtherwise ? make("span", { class: "quiet" }, word("changes_otherwise")) : null,
  ].filter(Boolean);
  const page = { id: "page", label: word("changes_pages", { n: rows.length }), isText: true, value: (row) => row.key || row.url, show };
  showSheet(place, { name: "changed", label: word("changes_pages", { n: rows.length }), columns: [page], rows, search: (row) => `${row.key} ${row.url}` });
}

/** Return the difference with its sign; of shares, in points. */
function change(now, before, format = number) {
  const difference = (now ?? 0) - (before ?? 0);
  if (!difference) return "=";
  const shown = format === percent ? word("points", { n: number(Math.round(1000 * Math.abs(difference)) / 10) }) : format(Math.abs(difference));
  return `${difference > 0 ? "+" : "−"}${shown}`;
}

function renderHostChanges(place, now, before, pageSize) {
  if (!now.length || !before.length) return place.append(make("p", { class: "lead" }, word("changes_no_hosts")));
  const was = new Map(before.map(({ host, pages }) => [host, pages]));
  const is = new Map(now.map(({ host, pages }) => [host, pages]));
  const rows = [...new Set([...is.keys(), ...was.keys()])].map((host) => ({ host, now: is.get(host) ?? {}, before: was.get(host) ?? {} }));
  const column = (id, of) => ({
    id,
    label: word(`column_${id}`),
    value: (row) => Math.abs(of(row.now) - of(row.before)),
    show: (row) => [number(of(row.now)), " ", make("span", { class: "quiet" }, change(of(row.now), of(row.before)))],
  });
  const total = (row) => sum([totalOf, (pages) => pages.duplicate ?? 0].map((of) => Math.abs(of(row.now) - of(row.before))));
  const changed = rows.filter((row) => total(row)).sort((one, other) => total(other) - total(one));
  if (!changed.length) return place.append(make("p", { class: "lead" }, word("changes_no_host")));
  const columns = [
    { id: "host", label: word("host"), isText: true, value: (row) => row.host, show: (row) => hostCell(row.host) },
    column("pages", totalOf),
    column("new", (pages) => pages.new ?? 0),
    column("duplicate", (pages) => pages.duplicate ?? 0),
  ];
  showSheet(place, { name: "changes", label: word("changes_by_host"), columns, rows: changed, search: (row) => row.host, pageSize: Math.max(5, pageSize) });
}

/** Show how many requests were fetched last, and of which forms. */
function renderRequests(summary) {
  const { requests_last, last } = summary.crawls;
  const place = body("requests");
  if (!isFull("requests", requests_last, "requests_none")) return;
  place.append(make("p", {}, word("requests_last", { n: requests_last })));
  const form = { id: "form", label: word("column_form"), isText: true, value: (row) => row.form, show: (row) => isolated(row.form, { class: "url" }) };
  const columns = [form, ...["requests", "pages", "nothing"].map((id) => ({ id: `last_${id}`, label: word(`column_last_${id}`), value: (row) => row[id], show: (row) => number(row[id]) }))];
  if (last.length) showSheet(place, { name: "last", label: word("requests_forms"), columns, rows: last, search: (row) => row.form });
}

function renderCrawls(summary) {
  const { list } = summary.crawls;
  const place = body("crawls");
  if (!isFull("crawls", list.length)) return;
  const several = hasSpiders(list);
  const pages = (crawl) => crawl.pages;
  const columns = [
    { id: "begin", label: word("column_begin"), isText: true, value: (crawl) => crawl.begin ?? 0, show: (crawl) => (crawl.begin === null ? "–" : moment(crawl.begin, 60)) },
    several ? { id: "spider", label: word("column_spider"), isText: true, value: (crawl) => crawl.spider, show: (crawl) => isolated(crawl.spider) } : null,
    { id: "crawl", label: word("crawl"), isText: true, value: (crawl) => crawl.crawl, show: (crawl) => isolated(crawl.crawl) },
    { id: "duration", label: word("column_duration"), value: (crawl) => crawl.end - crawl.begin, show: (crawl) => (crawl.is_closed ? duration(crawl) : word("not_closed", { duration: duration(crawl) })) },
    ...pageColumns(list, pages),
    counted("items", list, (crawl) => crawl.items_dropped),
    counted("released", list, (crawl) => crawl.items_released),
  ].filter(Boolean);
  showSheet(place, { name: "crawls", label: word("crawls"), columns, rows: list, sorted: { id: "begin", desc: true }, search: (crawl) => `${crawl.crawl} ${crawl.spider}` });
}

/** Show the settings of the crawls, those of neighbours with the same ones together. */
function renderSettings(summary) {
  const only = onlyCrawl(summary);
  const spans = [];
  for (const crawl of only ? [only] : summary.crawls.list) {
    const { version, settings, begin } = crawl;
    const key = JSON.stringify([version, settings]);
    if (spans.at(-1)?.key === key) Object.assign(spans.at(-1), { n: spans.at(-1).n + 1, from: begin });
    else spans.push({ key, n: 1, from: begin, to: begin, version, settings });
  }
  const known = spans.filter(({ version }) => version);
  const place = body("settings");
  if (!isFull("settings", known.length, "settings_none")) return;
  const day = (time) => (time === null ? "–" : moment(time, 60));
  const shown = known.map(({ n, from, to, version, settings }) => {
    const values = Object.entries(settings);
    const list = values.map(([name, value]) => make("li", {}, make("code", {}, `${visible(name)} = ${visible(value)}`)));
    const when = day(from) === day(to) ? day(from) : word("about_dates", { from: day(from), to: day(to) });
    return [
      make("h3", {}, `${word("heading_crawls", { n })} · ${when} · dedup-middleware ${visible(version)}`),
      values.length ? make("ul", {}, ...list) : make("p", { class: "quiet" }, word("settings_defaults")),
    ];
  });
  const count = make("span", { class: "count" }, word("settings_different", { n: known.length }));
  place.append(make("div", { class: "list" }, make("details", {}, make("summary", {}, make("span", {}, word("settings_show")), count), ...shown.flat())));
}

/** Make a section that has nothing one line: its title, and `key`. Return whether it has something. */
function isFull(section, has, key = "nothing") {
  document.getElementById(section).classList.toggle("empty", !has);
  if (!has) document.querySelector(`#${section} .body`).append(make("p", {}, word(key)));
  return Boolean(has);
}
