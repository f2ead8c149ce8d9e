"""A report as a user sees it: opened in Chromium, without a network, by mouse and keyboard, in both languages."""

import re
import shlex
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from chromium import BROWSER, DRIVER, chromium
from msgspec.structs import replace
from report_demo import CLUB, COPIER, HOSTILE, JOINED, SCRIPT, demo
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from test_commands import run_here, write_log

from dedup_middleware.records.crawl_lines import CrawlLine
from dedup_middleware.records.file import Record, RecordedChanges, RecordLog, Records
from dedup_middleware.report import page
from dedup_middleware.report.answers import Answers
from dedup_middleware.report.data import gather
from dedup_middleware.report.page import html
from dedup_middleware.settings import Config

pytestmark = pytest.mark.skipif(
    BROWSER is None or DRIVER is None, reason="needs Chromium and its driver: apt-get install chromium chromium-driver"
)
AXE = (Path(__file__).parent / "libraries" / "axe.js").read_text(encoding="utf8")
FOUND = "return Number(/\\d+/.exec(document.querySelector('#drops .found').textContent)[0])"
IS_BACK = "return !document.getElementById('pair').open && document.activeElement.matches('.open')"
IS_SHOWN = "return document.querySelector('#pair dl') !== null"
HAS_TEXTS = "return document.querySelectorAll('#pair .sides p bdi').length > 2"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def report(made):
    page = made.folder / "report.html"
    page.write_text(html(gather(made.config)), encoding="utf8")
    return page


def report_of(log):
    """Return the report of a *log*, without a store."""
    page = log.with_suffix(".html")
    config = Config.from_settings({"DEDUP_LOG": str(log), "DEDUP_STORE": "memory:"}, None)
    page.write_text(html(gather(config)), encoding="utf8")
    return page


def script(*names):
    """Return functions of the report, to run them by themselves."""
    return "\n".join((Path(page.__file__).parent / "script" / name).read_text(encoding="utf8") for name in names)


@pytest.fixture(scope="module")
def started():
    with chromium() as browser:
        yield browser


@pytest.fixture
def browser(started, report):
    """Open the report again, and fail if a test causes an error or a request."""
    started.emulate()
    started.console()
    started.requests()
    started.open(report)
    yield started
    assert started.console() == []
    asked = started.requests()
    assert report.as_uri() in asked
    assert {re.split("[/,]", url)[0] for url in asked} <= {"file:", "data:", "blob:file:"}
    assert asked.count(report.as_uri()) == len([url for url in asked if url.startswith("file:")])


def press(browser, *keys):
    ActionChains(browser.driver, duration=0).send_keys(*keys).perform()


def click(browser, selector):
    browser.run("document.querySelector(arguments[0]).click()", selector)


def search(browser, text):
    """Type *text* into the search box and return how many pages are found."""
    browser.run("const box = document.querySelector('#drops .search input'); box.focus(); box.select()")
    press(browser, *text)
    return int(browser.run(FOUND))


def texts(browser, selector):
    return browser.run("return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)", selector)


def focused(browser):
    return str(browser.run("return document.activeElement.textContent"))


def faults(browser, *rules):
    """Return the violations that axe-core finds, by all its rules or by *rules*."""
    browser.run(AXE)
    options = {"runOnly": rules} if rules else {}
    found = browser.driver.execute_async_script("axe.run(arguments[0]).then(arguments[1])", options)
    assert rules or len(found["passes"]) > 10
    return [
        {"rule": rule["id"], "places": [node["target"] for node in rule["nodes"]][:5]} for rule in found["violations"]
    ]


class TestTable:
    def test_it_is_searched(self, browser):
        assert browser.run(FOUND) == 192
        assert search(browser, COPIER.upper()) == 24
        assert all(COPIER in row for row in texts(browser, "#drops tbody tr"))
        assert search(browser, "nowhere at all") == 0

    def test_it_is_filtered(self, browser):
        change = "const box = document.querySelector('#drops .filter-host'); box.value = arguments[0];"
        browser.run(f"{change} box.dispatchEvent(new Event('change'))", CLUB)
        assert browser.run(FOUND) == 30
        assert {*texts(browser, "#drops td.host")} == {CLUB}

    def test_it_is_sorted(self, browser):
        click(browser, "#drops .sort-score")
        first = browser.run("return document.querySelector('#drops th.score').ariaSort")
        one = [float(text) for text in texts(browser, "#drops td.score")]
        click(browser, "#drops .sort-score")
        other = [float(text) for text in texts(browser, "#drops td.score")]
        assert first == "descending"
        assert one == sorted(one, reverse=True)
        assert other == sorted(other)
        assert other[0] < 90

    def test_the_sign_and_the_matrix_lead_to_their_rows(self, browser):
        click(browser, "#signs .to-table")
        assert browser.run(FOUND) == 30
        click(browser, ".chip")
        assert browser.run(FOUND) == 30, "the host is still chosen"
        click(browser, ".matrix .to-table")
        assert browser.run(FOUND) == int(texts(browser, ".matrix .to-table")[0])

    def test_it_has_pages(self, browser):
        before = texts(browser, "#drops .open")
        click(browser, "#drops .pager button:last-child")
        after = texts(browser, "#drops .open")
        assert len(before) == len(after) == 20
        assert before != after


class TestCrawls:
    def test_the_numbers_add_up(self, browser):
        numbers = [int(text) for text in texts(browser, ".tile:not(.bytes) strong")]
        tiles = dict(zip(texts(browser, ".tile dt"), numbers, strict=False))
        kinds = ("Kept", "Duplicates", "Not judged as pages", "Unchecked", "No items kept")
        assert tiles["Pages crawled"] == sum(tiles.get(kind, 0) for kind in kinds)
        assert tiles["Duplicates"] == browser.run(FOUND)
        of_hosts = texts(browser, "#host-pages td:nth-child(2)")
        click(browser, "#host-pages .turns .on")
        of_hosts += texts(browser, "#host-pages td:nth-child(2)")
        assert tiles["Pages crawled"] == sum(map(int, of_hosts))
        keys = [int(text.split()[-1]) for text in texts(browser, ".composition .key")]
        assert sum(keys) == tiles["Pages crawled"]

    def test_each_reason_is_there_for_pages_and_items(self, started, tmp_path):
        base = Record("2026-11-18T06:00:00.000+00:00", "news", "one", "http://a.test/1", "new", items_kept=1)
        related = {"verdict": "related", "reason": "original_pending"}
        pages = [
            base,
            replace(base, url="http://a.test/2", **related),
            replace(base, url="http://a.test/api", verdict="unchecked", reason="items_checked"),
        ]
        items = (base, replace(base, **related), replace(base, verdict="unchecked", reason="too_large"))
        pages += [replace(item, url="http://a.test/api", is_item=True) for item in items]
        started.open(report_of(write_log(tmp_path / "log.jsonl", *pages)))
        numbers = dict(zip(texts(started, ".tile dt"), texts(started, ".tile strong"), strict=True))
        assert (numbers["Pages crawled"], numbers["Items checked"]) == ("3", "3")
        cells = texts(started, "#overview .body tbody :is(th, td)")
        assert [cells[n : n + 4] for n in range(0, len(cells), 4)] == [
            ["new", "kept", "1", "1"],
            ["the items of the original were still in the pipelines", "kept", "1", "1"],
            ["the response is larger than DEDUP_MAX_BYTES", "unchecked", "0", "1"],
        ]

    def test_hosts_are_sorted(self, browser):
        assert browser.run("return document.getElementById('hosts-pages').parentNode.ariaSort") == "descending"
        browser.run("document.getElementById('hosts-host').focus()")
        press(browser, Keys.ENTER)
        assert browser.run("return document.activeElement.id") == "hosts-host"
        hosts = texts(browser, "#host-pages tbody th")
        assert hosts[0] == "no host"
        assert hosts[1:] == sorted(hosts[1:])
        click(browser, "#host-pages .turns .on")
        assert texts(browser, "#host-pages tbody th")[0] > hosts[-1]

    def test_a_number_of_duplicates_leads_to_them(self, browser):
        number = int(texts(browser, "#host-pages .to-table")[0])
        click(browser, "#host-pages .to-table")
        assert browser.run(FOUND) == number

    def test_two_crawls_are_side_by_side(self, browser):
        def row(number):
            return texts(browser, f"#changes .halves > .scroll tr:nth-child({number}) td")

        before, now, change = row(1)
        assert change.replace("−", "-") == f"{int(now) - int(before):+}"
        boxes = "const [now, before] = document.querySelectorAll('#changes select'); now.value = before.value;"
        browser.run(f"{boxes} now.dispatchEvent(new Event('change'))")
        assert browser.run("return document.activeElement.id") == "changes_now"
        assert row(1)[1:] == [before, "="]

    def test_the_pages_that_changed_between_two_crawls_have_their_differences(self, started, tmp_path):
        sentences = [("Closed for nine weeks.", "Closed for ten weeks.")]
        found = RecordedChanges(sentences, ["Old."], [f"New {SCRIPT}."], values=[("price", "20", "25")])
        bases = [
            Record(f"2026-11-18T06:00:0{len(day)}.000+00:00", "news", day, "http://a.test/1", "new", "kept")
            for day in ("one", "two", "three")
        ]
        changed = [replace(base, verdict="changed", changes=found) for base in bases[1:]]
        moved = replace(bases[2], url="http://a.test/2", verdict="unchanged", moved_from="http://a.test/old")
        gone = replace(bases[2], url="http://a.test/gone", verdict="gone")
        started.open(report_of(write_log(tmp_path / "log.jsonl", bases[0], *changed, moved, gone)))
        rows = "#changes [aria-label^='Pages that changed'] tbody tr"
        gone, moved, changed = texts(started, rows)
        assert moved == "http://a.test/old → http://a.test/2"
        assert [text[:18] for text in (gone, changed)] == ["http://a.test/gone", "http://a.test/1pri"]
        assert texts(started, f"{rows} ins") == ["25", "ten", f"New {SCRIPT}."]
        assert texts(started, f"{rows} del") == ["20", "nine", "Old."]
        # In the order of the table above: before, and now.
        assert texts(started, f"{rows} p:first-child :is(ins, del)") == ["20", "nine", "Old."]
        # Over several crawls, each page once.
        before = "const [, before] = document.querySelectorAll('#changes select'); before.value = arguments[0];"
        for crawl in ("2", "1"):
            started.run(f"{before} before.dispatchEvent(new Event('change'))", crawl)
            assert texts(started, rows) == [gone, moved, changed]
        change = "const [now] = document.querySelectorAll('#changes select'); now.value = arguments[0];"
        browser_event = "now.dispatchEvent(new Event('change'))"
        started.run(f"{change} {browser_event}", "1")
        assert len(texts(started, rows)) == 0
        assert started.console() == []

    def test_pages_that_are_new_or_were_not_seen_are_counted_and_the_first_listed(self, started, tmp_path):
        time, lines = "2026-11-18T06:00:00.000+00:00", []
        for crawl, urls in (("one", range(3)), ("two", range(2, 25))):
            lines.append(CrawlLine(event="begin", time=time, spider="news", crawl=crawl))
            lines += [Record(time, "news", crawl, f"http://a.test/{n}", "new", items_kept=1) for n in urls]
            lines.append(CrawlLine(event="end", time=time, spider="news", crawl=crawl, reason="finished"))
        started.open(report_of(write_log(tmp_path / "log.jsonl", *lines)))
        assert texts(started, "#changes .since summary") == [
            "New URLs since the crawl before22 pages",
            "Not seen any more2 pages",
        ]
        new, not_seen = (texts(started, f"#changes .since details:nth-child({n}) li") for n in (1, 2))
        assert new == [f"http://a.test/{n}" for n in range(3, 23)]
        assert not_seen == ["http://a.test/0", "http://a.test/1"]
        assert texts(started, "#changes .since p") == ["And 2 more: `scrapy dedup changes` lists them all."]
        started.run(
            "const [, before] = document.querySelectorAll('#changes select'); before.value = 0;"
            "before.dispatchEvent(new Event('change'))"
        )
        assert texts(started, "#changes .since li") == [], "only of the last two crawls"

    def test_duplicates_are_first_and_kept_pages_have_three_colours(self, browser):
        assert browser.run("return document.querySelector('main > section').id") == "drops"
        kept = ("new", "related", "unchanged")
        colours = [browser.run(f"{script('text.js', 'charts.js')} return colour('pages_{name}')") for name in kept]
        assert len({*colours}) == 3
        css = (Path(page.__file__).parent / "report.css").read_text(encoding="utf8")
        assert all(f".pages_{name} {{ --group" in css for name in kept)

    def test_the_settings_of_each_crawl_are_there(self, browser):
        assert texts(browser, "#settings code") == ["DEDUP_THRESHOLD = 0.75"]
        assert "dedup-middleware 0.1.0" in texts(browser, "#settings h3")[0]
        assert len(texts(browser, "#crawls tbody tr")) == 3

    def test_a_short_crawl_has_numbers_in_place_of_a_chart(self, started, tmp_path):
        times = ["18T06:00:00", "18T06:00:01", "18T06:00:01", "19T06:00:00"]
        records = [
            Record(f"2026-11-{time}.000+00:00", "news", "one", f"http://a.test/{n}", "new" if n < 2 else "duplicate")
            for n, time in enumerate(times)
        ]
        started.open(report_of(write_log(tmp_path / "log.jsonl", *records)))
        assert texts(started, "#overview .chart strong") == ["3", "1"]
        assert texts(started, "#overview .chart dd span") == ["Duplicates: 1", "Duplicates: 1"]
        assert texts(started, "#overview .chart canvas") == []

    def test_that_new_pages_have_no_records_is_noted(self, browser, tmp_path):
        log = demo(tmp_path, hostile=False).folder / "records.jsonl"
        log.write_text(log.read_text().replace('"version":"0.1.0"', '"version":"0.1.0","has_new":false'))
        page = report_of(log)
        before = browser.requests()
        browser.open(page)
        assert "New pages are missing for 2 of 2 crawls" in "".join(texts(browser, "#overview .note"))
        browser.requests()
        browser.driver.get(before[0])


class TestPair:
    def test_the_keyboard_opens_and_closes_it(self, browser):
        assert search(browser, COPIER) == 24
        rows = texts(browser, "#drops .open")
        browser.run("document.querySelector('#drops .open').focus()")
        press(browser, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_UP, Keys.ENTER)
        browser.wait(HAS_TEXTS)
        assert texts(browser, "#pair h2") == [rows[1]]
        browser.wait("return document.activeElement.matches('#pair .close')")
        press(browser, Keys.ESCAPE)
        browser.wait(IS_BACK)
        assert focused(browser) == rows[1]

    def test_both_pages_stand_side_by_side(self, browser):
        search(browser, COPIER)
        marks = set()
        for row in range(5):
            browser.run("document.querySelectorAll('#drops tbody tr')[arguments[0]].click()", row)
            browser.wait(HAS_TEXTS)
            marks |= set(texts(browser, ".sides ins, .sides del"))
            assert len(browser.run("return [...document.querySelectorAll('.heads a')].map((each) => each.href)")) == 2
            click(browser, "#pair .close")
        assert {"very"} <= {word.lower() for word in marks}
        assert any(mark.startswith("Our readers may write") for mark in marks)

    def test_the_differences_are_shown_alone(self, browser):
        search(browser, COPIER)
        click(browser, "#drops tbody tr")
        browser.wait(HAS_TEXTS)
        shown = "return [...document.querySelectorAll('.sides > div:not(.heads)')].map((each) => each.offsetHeight > 0)"
        differ = "return [...document.querySelectorAll('.sides > div:not(.heads)')].map((e) => e.matches('.different'))"
        assert all(browser.run(shown))
        assert not all(browser.run(differ))
        click(browser, "#pair .marks input")
        assert browser.run(shown) == browser.run(differ)
        skipped = sum(int(re.findall(r"\d+", text)[0]) for text in texts(browser, ".skipped"))
        assert skipped == browser.run(differ).count(False)
        click(browser, "#pair .marks input")

    def test_it_has_an_address(self, browser, report):
        search(browser, COPIER)
        click(browser, "#drops tbody tr:nth-child(3)")
        browser.wait(HAS_TEXTS)
        title, address = texts(browser, "#pair h2"), browser.run("return location.href")
        page = browser.run("return document.querySelector('#pair .heads a').href")
        assert address == f"{report.as_uri()}#pair={quote(page, safe='')}"
        browser.driver.refresh()
        browser.wait(HAS_TEXTS)
        assert texts(browser, "#pair h2") == title
        assert browser.run("return document.querySelector('#pair .heads a').href") == page
        click(browser, "#pair .close")
        browser.wait(IS_BACK)
        assert browser.run("return location.href") == report.as_uri()
        browser.run("location.hash = '#pair=http://nowhere.example/'")
        browser.wait("return !document.getElementById('trouble').hidden")
        assert texts(browser, "#trouble") == ["This report does not have the pair of http://nowhere.example/."]
        assert not browser.run("return document.getElementById('pair').open")
        browser.run("location.hash = new URL(arguments[0]).hash", address)
        browser.wait(HAS_TEXTS)
        assert texts(browser, "#pair h2") == title

    @pytest.mark.parametrize(
        ("url", "quoted"),
        [
            ("http://a.test/b-c_1.html", "http://a.test/b-c_1.html"),
            ("http://a.test/?a=1&b=$(x)", "'http://a.test/?a=1&b=$(x)'"),
            ("http://a.test/it's", """'http://a.test/it'"'"'s'"""),
            ("--all", None),
            ("http://a.test/\x1b[201~", None),
            ("http://a.test/\n", None),
        ],
    )
    def test_a_command_is_safe_to_paste(self, browser, url, quoted):
        found = browser.run(f"{script('text.js', 'labels.js')} return allowCommand('p', arguments[0])", url)
        assert found == (quoted and f"p {quoted}")
        if quoted:
            assert shlex.split(found) == ["p", url]

    def test_the_command_and_the_link_are_copied(self, browser):
        browser.run("window.copies = []; navigator.clipboard.writeText = async (text) => { window.copies.push(text) }")
        search(browser, COPIER)
        click(browser, "#drops tbody tr")
        browser.wait(IS_SHOWN)
        browser.run("document.querySelectorAll('#pair .copy').forEach((each) => each.click())")
        browser.wait("return document.querySelector('#pair .copy').textContent === 'Copied'")
        page = browser.run("return document.querySelector('#pair .heads a').href")
        copies = [f"scrapy dedup allow {page}", browser.run("return location.href")]
        assert browser.run("return window.copies") == copies

    def test_the_arrows_lead_to_the_neighbours(self, browser):
        titles = texts(browser, "#drops .open")
        click(browser, "#drops tbody tr")
        browser.wait(IS_SHOWN)
        for key, place in ((Keys.ARROW_LEFT, 0), (Keys.ARROW_RIGHT, 1), (Keys.ARROW_RIGHT, 2), (Keys.ARROW_LEFT, 1)):
            press(browser, key)
            said = f"return document.querySelector('#pair header span')?.textContent === '{place + 1} of 192'"
            browser.wait(said)
            assert texts(browser, "#pair h2") == [titles[place]]
        press(browser, Keys.ESCAPE)
        browser.wait(IS_BACK)
        assert focused(browser) == titles[1]

    def test_one_leads_to_the_next(self, browser):
        rows = texts(browser, "#drops .open")
        click(browser, "#drops tbody tr:last-child")
        browser.wait("return document.querySelector('#pair header span')?.textContent === '20 of 192'")
        click(browser, "#pair .next")
        browser.wait("return document.querySelector('#pair header span').textContent === '21 of 192'")
        press(browser, Keys.ESCAPE)
        browser.wait(IS_BACK)
        assert texts(browser, "#drops .open") != rows, "the table has turned its page with it"
        assert focused(browser) == texts(browser, "#drops .open")[0]


class TestDifferences:
    @pytest.mark.parametrize(
        ("page", "original", "shown"),
        [
            (
                "The cat sat on the mat.",
                "The dog sat on that mat.",
                "The [cat] sat on [the] mat.|The [dog] sat on [that] mat.",
            ),
            ("中国经济增长百分之五。", "中国经济增长百分之六。", "中国经济增长百分之[五]。|中国经济增长百分之[六]。"),
            ("a b", "c d", "[a b]|[c d]"),
            ("Up TO", "up to date", "Up TO|up to [date]"),
            ("", "x", "|[x]"),
        ],
    )
    def test_words_that_differ_are_marked(self, browser, page, original, shown):
        runs = "runsOf(...[...arguments].map((text) => sentenceOf(['+', text])))"
        mark = "runs.map((run) => (run.isOwn ? `[${run.text}]` : run.text) + run.space).join('')"
        written = f"return {runs}.map((runs) => {mark}).join('|')"
        assert browser.run(f"{script('text.js', 'diff.js')} {written}", page, original) == shown

    def test_sentences_are_aligned(self, browser):
        page = [["+", text] for text in ("same", "Only the page has it.", "It ends at 9 today.", "b")]
        original = [["+", text] for text in ("same", "It ends at 8 today.", "Only the original has that.", "b")]
        rows = "aligned(...arguments).map(({ one, other }) => [one?.key ?? null, other?.key ?? null])"
        found = browser.run(f"{script('text.js', 'diff.js')} return {rows}", page, original)
        assert [[one and one[:5], other and other[:5]] for one, other in found] == [
            ["same", "same"],
            ["only ", None],
            ["it en", "it en"],
            [None, "only "],
            ["b", "b"],
        ]

    @pytest.mark.parametrize("texts", ["['+', 'ab '.repeat(10_000)]", "...Array(5_000).fill(['+', 'a b'])"])
    def test_the_time_is_bounded(self, browser, texts):
        other = texts.replace("b", "c")
        assert (
            browser.run(f"""{script("text.js", "diff.js")}
            const start = performance.now();
            for (const {{ one, other }} of aligned([{texts}], [{other}])) if (one && other) runsOf(one, other);
            return performance.now() - start""")
            < 3_000
        )


class TestNearMisses:
    def test_labels_leave_the_page_for_tune(self, browser, report, tmp_path, made):
        browser.run("localStorage.clear()")
        behaviour = {"behavior": "allow", "downloadPath": str(tmp_path)}
        browser.driver.execute_cdp_cmd("Page.setDownloadBehavior", behaviour)
        browser.run("document.querySelector('#near .open').focus()")
        press(browser, "1", Keys.ARROW_DOWN, "1", "2")
        assert "1 as duplicate, 1 as different" in texts(browser, "#near .labelled p")[0]
        press(browser, Keys.ENTER)
        browser.wait(IS_SHOWN)
        press(browser, "2", "1", Keys.ESCAPE)
        browser.wait(IS_BACK)
        assert browser.run("return [...document.querySelectorAll('#near [aria-pressed=true]')].length") == 2
        click(browser, "#near tbody tr:last-child [data-key='1']")
        browser.open(report)
        assert "3 as duplicate, 0 as different" in texts(browser, "#near .labelled p")[0], "the browser keeps them"
        click(browser, "#near .labelled button")
        saved = tmp_path / "dedup-labels.jsonl"
        browser.wait_for(lambda: saved.is_file() and saved.stat().st_size)
        labels = {(answer.url, answer.same, answer.reason) for answer in Answers(saved).about()}
        near = [record for record in Records(made.folder / "records.jsonl") if record.verdict == "related"]
        assert len(labels) == 3
        assert labels < {(record.url, True, record.reason) for record in near}
        said = run_here("tune", "--labels", str(saved), *made.here, folder=tmp_path)
        assert "3 labels in" in said.err
        assert "Pages that a check keeps at any threshold: 3 labels, 3 duplicates." in said.out
        assert "Labelled pairs: 0 duplicates, 0 different." in said.out
        browser.run("localStorage.clear()")

    def test_labels_last_as_long_as_the_page_where_nothing_is_kept(self, browser):
        browser.run("Object.defineProperty(window, 'localStorage', { get() { throw new Error('no') } })")
        click(browser, "#near .labels button")
        assert "1 as duplicate" in texts(browser, "#near .labelled p")[0]
        click(browser, "#near .labels button")
        assert browser.run("return document.querySelector('#near .out').hidden")


class TestScores:
    def test_a_bar_leads_to_its_pages(self, browser):
        bars = "return [...document.querySelectorAll('.bars button')].map((each) => each.getAttribute('aria-label'))"
        labels = browser.run(bars)
        assert sum(int(label.split()[0]) for label in labels if "duplicate" in label) == 192
        assert sum(int(label.split()[0]) for label in labels if "related page" in label) == 6
        for place, label in enumerate(labels):
            browser.run("document.querySelectorAll('.bars button')[arguments[0]].click()", place)
            section = "drops" if "duplicate" in label else "near"
            assert texts(browser, f"#{section} .found")[0].split()[0] == label.split()[0]

    def test_the_keyboard_moves_among_bars_and_a_filter_does_the_same(self, browser):
        labels = browser.run("return [...document.querySelectorAll('.bars button')].map((each) => each.ariaLabel)")
        place = next(place for place, label in enumerate(labels) if "duplicate" in label)
        browser.run("document.querySelector('.bars [tabindex=\"0\"]').focus()")
        press(browser, *[Keys.ARROW_RIGHT] * place, Keys.ENTER)
        found = browser.run(FOUND)
        assert found == int(labels[place].split()[0])
        browser.run("const to = document.querySelectorAll('#drops .range input')[1]; to.focus(); to.select()")
        press(browser, Keys.BACKSPACE)
        assert browser.run(FOUND) > found


def test_a_related_page_that_is_dropped_as_unchanged_is_no_duplicate(started, tmp_path):
    base = Record("2026-11-18T06:00:00.000+00:00", "news", "one", "http://a.test/2", "related", "kept", items_kept=1)
    base = replace(base, reason="extra_text", original_url="http://a.test/1", score=0.9, title="Two")
    with closing(RecordLog(tmp_path / "log.jsonl")) as log:
        log.append(base)
        again = replace(base, crawl="two", verdict="unchanged", outcome="dropped", items_kept=0, items_dropped=1)
        log.append(again)
    started.open(report_of(log.path))
    click(started, "#near .open")
    started.wait(IS_SHOWN)
    facts = dict(zip(texts(started, "#pair dt"), texts(started, "#pair dd"), strict=True))
    assert (facts["Outcome"], "Kept because" in facts) == ("dropped: unchanged since it was kept", False)
    assert facts["Kept at first because"]
    assert "allow" not in texts(started, "#pair .actions")[0]


class TestClusters:
    def test_a_cluster_has_the_title_of_its_host(self, started, tmp_path):
        """The records have none of an original."""
        base = Record("2026-11-18T06:00:00.000+00:00", "news", "one", "http://a.test/print", "duplicate", "dropped")
        base = replace(base, original_url="http://a.test/1", score=1.0, bytes=985, title="Old bridge closes")
        with closing(RecordLog(tmp_path / "log.jsonl")) as log:
            log.append(base)
            for host in "bc":
                log.append(replace(base, url=f"http://{host}.test/1", title="Bridge to close", bytes=0))
        started.open(report_of(log.path))
        assert texts(started, "#clusters summary .title") == ["Old bridge closes"]
        assert texts(started, ".tile.bytes strong") == ["985 bytes"]

    def test_items_with_keys_are_clusters_by_key(self, started, tmp_path):
        lists = [f"http://shop.test/list/{n}" for n in range(3)]
        page = Record("2026-11-18T06:00:00.000+00:00", "shop", "one", lists[0], "unchecked", reason="items_have_keys")
        copy = replace(page, verdict="duplicate", reason="", original_url=lists[0], score=1.0, is_item=True)
        keyed = ((lists[1], "1"), (lists[1], "2"), (lists[2], "1"), (lists[2], "1"))
        records = [replace(page, url=url) for url in lists]
        records += [replace(copy, url=url, key=key, items_dropped=1) for url, key in keyed]
        started.open(report_of(write_log(tmp_path / "log.jsonl", *records)))
        assert texts(started, "#clusters summary .title") == ["1", "2"]
        assert texts(started, "#clusters summary .count") == ["2 pages on 1 host", "1 page on 1 host"]
        click(started, "#clusters summary")
        started.wait("return document.querySelectorAll('#clusters tbody tr').length === 2")
        click(started, "#clusters details .to-table")
        assert started.run(FOUND) == 3
        assert texts(started, "#drops .chip") == ["Key: 1 ✕"]
        tiles = dict(zip(texts(started, ".tile dt"), texts(started, ".tile dd"), strict=True))
        assert (tiles["Not judged as pages"], tiles["Unchecked"]) == ("33 judged by key", "0")
        assert started.console() == []

    def test_one_is_found_and_opened_into_its_members(self, browser):
        everything = int(texts(browser, "#clusters .found")[0].split()[0])
        assert len(texts(browser, "#clusters details")) == 10 < everything
        click(browser, "#clusters .pager button")
        assert len(texts(browser, "#clusters details")) == min(20, everything)
        browser.run("document.querySelector('#clusters input').focus()")
        press(browser, *JOINED)
        assert texts(browser, "#clusters .found") == ["1 cluster"]
        assert "30 pages on 1 host" in texts(browser, "#clusters summary .count")
        click(browser, "#clusters summary")
        browser.wait("return document.querySelectorAll('#clusters tbody tr').length === 20")
        click(browser, "#clusters details .to-table")
        assert browser.run(FOUND) == 30
        click(browser, "#clusters tbody tr:nth-child(2) .open")
        browser.wait("return document.querySelector('#pair header span')?.textContent === '2 of 30'")
        press(browser, Keys.ARROW_LEFT)
        browser.wait("return document.querySelector('#pair header span')?.textContent === '1 of 30'")
        press(browser, Keys.ESCAPE)
        browser.wait("return document.activeElement.matches('#clusters tr:first-child .open')")


class TestHostileTexts:
    def test_they_are_text(self, browser):
        assert search(browser, HOSTILE) == 5
        titles = texts(browser, "#drops .open")
        assert SCRIPT in titles
        assert '"><img src=x onerror=alert(2)>' in titles
        assert max(map(len, titles)) == 200
        assert browser.run("return document.querySelectorAll('main script, main img, dialog script').length") == 0
        for row in range(5):
            browser.run("document.querySelectorAll('#drops tbody tr')[arguments[0]].click()", row)
            browser.wait(IS_SHOWN)
            click(browser, "#pair .close")

    def test_what_turns_the_direction_is_written_out(self, browser):
        search(browser, "javascript:")
        click(browser, "#drops tbody tr")
        browser.wait(IS_SHOWN)
        shown = "".join(texts(browser, "main, dialog"))
        assert {"⟨U+202E⟩", "⟨U+200F⟩", "⟨U+001B⟩"} <= set(re.findall("⟨.*?⟩", shown))
        assert not re.search(r"[\x00-\x08\x1b\u200e\u200f\u202a-\u202e\u2066-\u2069]", shown)

    def test_links_lead_to_pages_and_run_nothing(self, browser):
        search(browser, "javascript:")
        click(browser, "#drops tbody tr")
        browser.wait(IS_SHOWN)
        links = browser.run("return [...document.querySelectorAll('a.url')].map((each) => each.href)")
        assert links
        assert all(link.startswith("https://") for link in links)

    def test_no_markup_can_be_made_of_text(self, browser):
        made = "try { document.body.insertAdjacentHTML('beforeend', '<i>') } catch (error) { return error.name }"
        assert browser.run(made) == "TypeError"
        assert "TrustedHTML" in "".join(browser.console())


class TestLooks:
    def test_it_speaks_the_readers_language(self, browser, report):
        assert texts(browser, ".kicker, h1") == ["Duplicate report", "3 crawls of newsroom · news"]
        click(browser, "#language")
        assert texts(browser, ".kicker, h1") == ["重复页面报告", "newsroom · news 的 3 次抓取"]
        assert browser.run("return document.documentElement.lang") == "zh"
        assert "在另一个主机上" in texts(browser, "#drops td.reason")
        agent = browser.run("return navigator.userAgent")
        override = {"userAgent": agent, "acceptLanguage": "zh-CN"}
        browser.driver.execute_cdp_cmd("Emulation.setUserAgentOverride", override)
        try:
            browser.requests()
            browser.open(report)
            assert texts(browser, ".kicker") == ["重复页面报告"]
        finally:
            browser.driver.execute_cdp_cmd("Emulation.setUserAgentOverride", override | {"acceptLanguage": "en"})

    def test_it_is_dark_for_those_who_like_it(self, browser):
        def brightness():
            colour = browser.run("return getComputedStyle(document.body).backgroundColor")
            return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3

        assert brightness() > 200
        browser.emulate(scheme="dark")
        assert brightness() < 60
        click(browser, "#theme")
        assert brightness() > 200

    def test_a_phone_shows_all_of_it(self, browser):
        browser.emulate(width=360, height=740)
        browser.wait("return document.querySelector('canvas').getBoundingClientRect().width <= 360")
        assert browser.run("return document.documentElement.scrollWidth") == 360
        click(browser, "#drops tbody tr:last-child")
        browser.wait(HAS_TEXTS)
        assert (
            browser.run("const pair = document.getElementById('pair'); return pair.scrollWidth - pair.clientWidth") == 0
        )

    def test_a_table_that_is_wider_than_a_phone_fades_up_to_its_end(self, browser):
        assert texts(browser, ".scroll.more") == []
        browser.emulate(width=390, height=844)
        fades = "return document.querySelector('#host-pages .scroll').matches('.more')"
        browser.wait(fades)
        browser.run("document.querySelector('#host-pages .scroll').scrollLeft = 9999")
        browser.wait(fades.replace("return ", "return !"))

    def test_on_a_phone_each_url_stands_above_its_text(self, browser):
        browser.emulate(width=390, height=844)
        search(browser, COPIER)
        click(browser, "#drops tbody tr")
        browser.wait(HAS_TEXTS)
        sides = "['.heads > :first-child', '.same > :first-child', '.heads > :last-child', '.same > :last-child']"
        top = "(selector) => document.querySelector(`#pair ${selector}`).getBoundingClientRect().top"
        tops = browser.run(f"return {sides}.map({top})")
        assert tops == sorted(tops)
        assert len({*tops}) == 4

    def test_axe_finds_no_violation(self, browser):
        search(browser, COPIER)
        browser.run("document.querySelectorAll('details').forEach((each) => (each.open = true))")
        assert faults(browser) == []
        browser.emulate(width=360, scheme="dark")
        click(browser, "#drops tbody tr")
        browser.wait(HAS_TEXTS)
        assert faults(browser) == []
