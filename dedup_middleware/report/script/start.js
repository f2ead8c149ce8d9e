// Unpack, show, and listen.

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function renderAll(summary) {
  renderTemplate();
  renderHeading(summary);
  renderContents();
  const other = language === "en" ? "zh" : "en";
  const languageButton = document.getElementById("language");
  languageButton.lang = other;
  languageButton.textContent = WORDS[other].language;
  renderSigns(summary);
  renderOverview(summary);
  renderHostPages(summary);
  renderChanges(summary);
  renderRequests(summary);
  renderCrawls(summary);
  renderSettings(summary);
  renderHosts(summary);
  renderClusters();
  renderScores(summary);
  tables.near.render();
  setUpLabels(summary);
  tables.drops.render();
  renderPair();
  renderTheme(summary);
}

/** Name the other theme on its button, and draw in the colours of this one: a canvas does not change by itself. */
function renderTheme(summary) {
  const themeButton = document.getElementById("theme");
  themeButton.textContent = word(isDark() ? "light" : "dark");
  themeButton.setAttribute("aria-label", word("theme", { theme: themeButton.textContent }));
  drawCharts(summary);
}

async function start() {
  renderTemplate();
  const summary = await unpacked("summary");
  commands = summary.commands;
  setUpTables(summary);
  readLabels(summary);
  renderAll(summary);
  document.getElementById("language").addEventListener("click", () => {
    language = language === "en" ? "zh" : "en";
    renderAll(summary);
  });
  document.getElementById("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    renderTheme(summary);
  });
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", () => renderTheme(summary));
  }
  pairDialog().addEventListener("close", closedPair);
  pairDialog().addEventListener("keydown", pairKey);
  pairDialog().addEventListener("click", (event) => {
    if (event.target.id === "pair") event.target.close();
  });
  addEventListener("hashchange", openAddressed);
  openAddressed();
  fading(document.getElementById("contents"));
  new ResizeObserver(fitCharts).observe(document.querySelector("main"));
  performance.mark("ready");
  document.documentElement.dataset.ready = "true";
}

function showTrouble(key, values) {
  const trouble = document.getElementById("trouble");
  trouble.textContent = word(key, values);
  trouble.hidden = false;
}

start().catch((error) => {
  showTrouble("trouble", { error: String(error) });
  throw error;
});
