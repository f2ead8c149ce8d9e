"""A report as a user sees it: opened in Chromium, without a network, by mouse and keyboard, in both languages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from chromium import BROWSER, DRIVER, chromium
from report_demo import CLUB, COPIER, HOSTILE, SCRIPT, demo
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from dedup_middleware.report.data import gather
from dedup_middleware.report.page import html

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chromium import Browser

pytestmark = pytest.mark.skipif(
    BROWSER is None or DRIVER is None, reason="needs Chromium and its driver: apt-get install chromium chromium-driver"
)
AXE = (Path(__file__).parent / "libraries" / "axe.js").read_text(encoding="utf8")
FOUND = "return Number(/\\d+/.exec(document.querySelector('.found').textContent)[0])"
IS_BACK = "return !document.getElementById('pair').open && document.activeElement.matches('.open')"
IS_SHOWN = "return document.querySelector('#pair dl') !== null"
HAS_TEXTS = "return document.querySelectorAll('#pair .text p').length > 0"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    page = folder / "report.html"
    page.write_text(html(gather(demo(folder).config)), encoding="utf8")
    return page


@pytest.fixture(scope="module")
def started() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def browser(started: Browser, report: Path) -> Iterator[Browser]:
    """Open the report again, and fail if a test causes an error or a request."""
    started.emulate()
    started.console()
    started.requests()
    started.open(report)
    yield started
    assert started.console() == []
    asked = started.requests()
    assert report.as_uri() in asked
    assert {re.split("[/,]", url)[0] for url in asked} <= {"file:", "data:"}
    assert asked.count(report.as_uri()) == len([url for url in asked if url.startswith("file:")])


def press(browser: Browser, *keys: str) -> None:
    ActionChains(browser.driver, duration=0).send_keys(*keys).perform()


def click(browser: Browser, selector: str) -> None:
    browser.run("document.querySelector(arguments[0]).click()", selector)


def search(browser: Browser, text: str) -> int:
    """Type *text* into the search box and return how many pages are found."""
    browser.run("const box = document.getElementById('search'); box.focus(); box.select()")
    press(browser, *text)
    return int(browser.run(FOUND))


def texts(browser: Browser, selector: str) -> list[str]:
    found: list[str] = browser.run(
        "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)", selector
    )
    return found


def focused(browser: Browser) -> str:
    return str(browser.run("return document.activeElement.textContent"))


def faults(browser: Browser, *rules: str) -> list[dict[str, Any]]:
    """Return what axe-core calls serious or worse, by all its rules or by *rules*."""
    browser.run(AXE)
    options = {"runOnly": rules} if rules else {}
    found = browser.driver.execute_async_script("axe.run(arguments[0]).then(arguments[1])", options)
    assert rules or len(found["passes"]) > 10
    return [
        {"rule": rule["id"], "places": [node["target"] for node in rule["nodes"]][:5]}
        for rule in found["violations"]
        if rule["impact"] in {"serious", "critical"}
    ]


class TestTable:
    def test_it_is_searched(self, browser: Browser) -> None:
        assert browser.run(FOUND) == 197
        assert search(browser, COPIER.upper()) == 24
        assert all(COPIER in row for row in texts(browser, ".drops tbody tr"))
        assert search(browser, "nowhere at all") == 0

    def test_it_is_filtered(self, browser: Browser) -> None:
        change = "const box = document.getElementById('filter-host'); box.value = arguments[0];"
        browser.run(f"{change} box.dispatchEvent(new Event('change'))", CLUB)
        assert browser.run(FOUND) == 30
        assert {*texts(browser, ".drops td.host")} == {CLUB}

    def test_it_is_sorted(self, browser: Browser) -> None:
        click(browser, "#sort-score")
        first = browser.run("return document.querySelector('th.score').ariaSort")
        one = [float(text.rstrip("%")) for text in texts(browser, ".drops td.score")]
        click(browser, "#sort-score")
        other = [float(text.rstrip("%")) for text in texts(browser, ".drops td.score")]
        assert first == "descending"
        assert one == sorted(one, reverse=True)
        assert other == sorted(other)
        assert other[0] < 90

    def test_the_sign_and_the_matrix_lead_to_their_rows(self, browser: Browser) -> None:
        click(browser, "#signs .to-table")
        assert browser.run(FOUND) == 30
        click(browser, ".chip")
        assert browser.run(FOUND) == 30, "the host is still chosen"
        click(browser, ".matrix .to-table")
        assert browser.run(FOUND) == int(texts(browser, ".matrix .to-table")[0])

    def test_it_has_pages(self, browser: Browser) -> None:
        before = texts(browser, ".open")
        click(browser, ".pager button:last-child")
        after = texts(browser, ".open")
        assert len(before) == len(after) == 50
        assert before != after


class TestPair:
    def test_the_keyboard_opens_and_closes_it(self, browser: Browser) -> None:
        assert search(browser, COPIER) == 24
        rows = texts(browser, ".open")
        browser.run("document.querySelector('.open').focus()")
        press(browser, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_UP, Keys.ENTER)
        browser.wait(HAS_TEXTS)
        assert texts(browser, "#pair h2") == [rows[1]]
        browser.wait("return document.activeElement.matches('#pair .close')")
        press(browser, Keys.ESCAPE)
        browser.wait(IS_BACK)
        assert focused(browser) == rows[1]

    def test_both_pages_stand_side_by_side(self, browser: Browser) -> None:
        search(browser, COPIER)
        marks: set[str] = set()
        for row in range(5):
            browser.run("document.querySelectorAll('.drops tbody tr')[arguments[0]].click()", row)
            browser.wait(HAS_TEXTS)
            marks |= set(browser.run("return [...document.querySelectorAll('.text p')].map((each) => each.className)"))
            assert len(browser.run("return [...document.querySelectorAll('.sides a')].map((each) => each.href)")) == 2
            click(browser, "#pair .close")
        assert {"same", "near", "new"} <= marks

    def test_one_leads_to_the_next(self, browser: Browser) -> None:
        rows = texts(browser, ".open")
        click(browser, ".drops tbody tr:last-child")
        browser.wait("return document.querySelector('#pair header span')?.textContent === '50 of 197'")
        click(browser, "#pair .on")
        browser.wait("return document.querySelector('#pair header span').textContent === '51 of 197'")
        press(browser, Keys.ESCAPE)
        browser.wait(IS_BACK)
        assert texts(browser, ".open") != rows, "the table has turned its page with it"
        assert focused(browser) == texts(browser, ".open")[0]


class TestHostileTexts:
    def test_they_are_text(self, browser: Browser) -> None:
        assert search(browser, HOSTILE) == 5
        titles = texts(browser, ".open")
        assert SCRIPT in titles
        assert '"><img src=x onerror=alert(2)>' in titles
        assert max(map(len, titles)) == 200
        assert browser.run("return document.querySelectorAll('main script, main img, dialog script').length") == 0
        for row in range(5):
            browser.run("document.querySelectorAll('.drops tbody tr')[arguments[0]].click()", row)
            browser.wait(IS_SHOWN)
            click(browser, "#pair .close")

    def test_what_turns_the_direction_is_written_out(self, browser: Browser) -> None:
        search(browser, "javascript:")
        click(browser, ".drops tbody tr")
        browser.wait(IS_SHOWN)
        shown = "".join(texts(browser, "main, dialog"))
        assert {"⟨U+202E⟩", "⟨U+200F⟩", "⟨U+001B⟩"} <= set(re.findall("⟨.*?⟩", shown))
        assert not re.search(r"[\x00-\x08\x1b\u200e\u200f\u202a-\u202e\u2066-\u2069]", shown)

    def test_links_lead_to_pages_and_run_nothing(self, browser: Browser) -> None:
        search(browser, "javascript:")
        click(browser, ".drops tbody tr")
        browser.wait(IS_SHOWN)
        links = browser.run("return [...document.querySelectorAll('a.url')].map((each) => each.href)")
        assert links
        assert all(link.startswith("https://") for link in links)

    def test_no_markup_can_be_made_of_text(self, browser: Browser) -> None:
        made = "try { document.body.insertAdjacentHTML('beforeend', '<i>') } catch (error) { return error.name }"
        assert browser.run(made) == "TypeError"
        assert "TrustedHTML" in "".join(browser.console())


class TestLooks:
    def test_it_speaks_the_readers_language(self, browser: Browser, report: Path) -> None:
        assert texts(browser, ".kicker, h1") == ["Duplicate report", "3 crawls of newsroom · news"]
        click(browser, "#language")
        assert texts(browser, ".kicker, h1") == ["重复页面报告", "newsroom · news 的 3 次抓取"]
        assert browser.run("return document.documentElement.lang") == "zh"
        assert "在另一个主机上" in texts(browser, ".drops td.reason")
        agent = browser.run("return navigator.userAgent")
        override = {"userAgent": agent, "acceptLanguage": "zh-CN"}
        browser.driver.execute_cdp_cmd("Emulation.setUserAgentOverride", override)
        try:
            browser.requests()
            browser.open(report)
            assert texts(browser, ".kicker") == ["重复页面报告"]
        finally:
            browser.driver.execute_cdp_cmd("Emulation.setUserAgentOverride", override | {"acceptLanguage": "en"})

    def test_it_is_dark_for_those_who_like_it(self, browser: Browser) -> None:
        def brightness() -> float:
            colour = browser.run("return getComputedStyle(document.body).backgroundColor")
            return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3

        assert brightness() > 200
        browser.emulate(scheme="dark")
        assert brightness() < 60
        click(browser, "#theme")
        assert brightness() > 200

    def test_a_phone_shows_all_of_it(self, browser: Browser) -> None:
        browser.emulate(width=360, height=740)
        browser.wait("return document.querySelector('canvas').getBoundingClientRect().width <= 360")
        assert browser.run("return document.documentElement.scrollWidth") == 360
        click(browser, ".drops tbody tr:last-child")
        browser.wait(HAS_TEXTS)
        assert (
            browser.run("const pair = document.getElementById('pair'); return pair.scrollWidth - pair.clientWidth") == 0
        )

    def test_axe_finds_no_serious_fault(self, browser: Browser) -> None:
        search(browser, COPIER)
        browser.run("document.querySelectorAll('details').forEach((each) => (each.open = true))")
        assert faults(browser) == []
        browser.emulate(width=360, scheme="dark")
        click(browser, ".drops tbody tr")
        browser.wait(HAS_TEXTS)
        assert faults(browser) == []

    def test_axe_would_find_one(self, browser: Browser) -> None:
        browser.run("document.getElementById('search').parentNode.replaceWith(document.getElementById('search'))")
        assert "label" in {fault["rule"] for fault in faults(browser, "label")}
