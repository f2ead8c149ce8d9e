// Clusters: originals with their duplicates, each opened into its members.

const CLUSTERS_SHOWN = 10;
const MEMBERS_SHOWN = 20;
let clusters = [];
let clusterFilter = "";
let clustersShown = CLUSTERS_SHOWN;

/** Return what the pair `n` repeats: an item with its key, or an original. */
function repeatedBy(n) {
  const key = valueOf("key", n);
  return key ? { key } : { original: valueOf("original", n) };
}

/**
 * Return the originals, and items with keys, with the numbers of their pairs, the largest first. A page counts once, with
 * its last record, and so does a key on a page.
 */
function clustersOf() {
  const found = new Map();
  const nameOf = (n) => JSON.stringify([valueOf("key", n), valueOf("url", n)]);
  const names = new Set(pairs.columns.url.slice(pairs.shown).map((_, place) => nameOf(pairs.shown + place)));
  for (let n = 0; n < pairs.shown; n += 1) {
    const repeated = JSON.stringify(repeatedBy(n));
    if (names.has(nameOf(n)) || !(valueOf("key", n) || valueOf("original", n))) continue;
    names.add(nameOf(n));
    if (valueOf("outcome", n) === "released") continue;
    if (!found.has(repeated)) found.set(repeated, []);
    found.get(repeated).push(n);
  }
  return [...found.values()].sort((one, other) => other.length - one.length);
}

function renderClusters() {
  if (!clusters.length) clusters = clustersOf();
  const place = body("clusters");
  if (!isFull("clusters", clusters.length)) return;
  const search = make("input", { type: "search", autocomplete: "off", oninput: (event) => {
    clusterFilter = event.target.value;
    clustersShown = CLUSTERS_SHOWN;
    renderClusterList();
  } });
  search.value = clusterFilter;
  const list = make("div", { class: "list" });
  place.append(
    make("div", { class: "filters", role: "search", "aria-label": word("clusters") }, make("label", { class: "search" }, word("search"), search)),
    make("p", { class: "found", role: "status" }),
    list,
    make("div", { class: "pager" }),
  );
  renderClusterList();
}

function renderClusterList() {
  const text = clusterFilter.toLowerCase();
  const found = clusters.filter((members) => !text || members.some((n) => searched(n).includes(text)));
  const section = document.getElementById("clusters");
  const open = new Set([...section.querySelectorAll("details[open]")].map((each) => each.dataset.cluster));
  section.querySelector(".found").textContent = word("clusters_found", { n: found.length });
  section.querySelector(".list").replaceChildren(...found.slice(0, clustersShown).map((members) => clusterOf(members, open)));
  section.querySelector(".list").hidden = found.length === 0;
  const more = () => {
    clustersShown += CLUSTERS_SHOWN;
    renderClusterList();
    section.querySelectorAll("summary")[clustersShown - CLUSTERS_SHOWN]?.focus();
  };
  section.querySelector(".pager").replaceChildren(...(found.length > clustersShown ? [moreButton(found.length - clustersShown, more)] : []));
}

function moreButton(n, more) {
  return make("button", { type: "button", onclick: more }, word("show_more", { n }));
}

/** Return the title that most of the pairs `members` have, those on its host if there are any: the log has none of the original. */
function titleOf(members) {
  const host = pairs.hosts_of_originals[pairs.columns.original[members[0]]];
  const own = members.filter((n) => valueOf("host", n) === host);
  const counts = new Map();
  for (const n of own.length ? own : members) counts.set(valueOf("title", n), (counts.get(valueOf("title", n)) ?? 0) + 1);
  return [...counts].reduce((best, each) => (each[1] > best[1] ? each : best))[0];
}

function clusterOf(members, open) {
  const original = valueOf("original", members[0]);
  const title = titleOf(members);
  const bar = make("span", { class: "bar" });
  bar.style.setProperty("--share", `${(100 * members.length) / clusters[0].length}%`);
  const hosts = new Set(members.map((n) => pairs.columns.host[n])).size;
  const count = `${word("clusters_pages", { n: members.length })} ${word("clusters_hosts", { n: hosts })}`;
  const name = make("span", {}, make("span", { class: "title" }, title ? isolated(title) : word("untitled")), isolated(original, { class: "url" }));
  const cluster = JSON.stringify(repeatedBy(members[0]));
  const details = make("details", { "data-cluster": cluster }, make("summary", {}, name, make("span", { class: "count" }, count), bar));
  const fill = () => {
    if (details.open && !details.querySelector("table")) details.append(...membersOf(members, original, details));
  };
  details.addEventListener("toggle", fill);
  details.open = open.has(cluster);
  return details;
}

/** Return what an opened cluster shows: its original, and a table of its members. */
function membersOf(members, original, root) {
  const list = { root, rows: () => members, turnTo: () => {} };
  const rows = make("tbody", { onkeydown: moveAmongRows });
  const place = make("p");
  const more = () => {
    const start = rows.children.length;
    rows.append(...members.slice(start, start + MEMBERS_SHOWN).map((n, index) => {
      const cells = { ...cellsOf(n), page: [openButton(n, list, start + index), isolated(valueOf("url", n), { class: "url" })] };
      return make("tr", { "data-row": n }, ...["page", "score", "host", "reason"].map((name) => make("td", { class: name, "data-column": word(name) }, ...cells[name])));
    }));
    const left = members.length - rows.children.length;
    place.replaceChildren(...(left > 0 ? [moreButton(left, more)] : []), toTable(repeatedBy(members[0]), word("show_in_table")));
  };
  more();
  const head = make("tr", {}, ...["page", "score", "host", "reason"].map((name) => make("th", { scope: "col", class: name }, word(name))));
  return [make("p", {}, `${word("original")}: `, link(original)), make("table", { class: "pairs" }, make("thead", {}, head), rows), place];
}
