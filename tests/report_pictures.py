"""Draws docs/images/report: ``python tests/report_pictures.py``. Needs Chromium and a font with Chinese characters."""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent / "benchmarks"))

from chromium import chromium
from report_demo import COPIER, MIRROR, demo

from dedup_middleware.report.data import gather
from dedup_middleware.report.page import html

if TYPE_CHECKING:
    from chromium import Browser

PICTURES = Path(__file__).parent.parent / "docs" / "images" / "report"
_PLACES = "const [from, to] = [...arguments].map((id) => document.getElementById(id).getBoundingClientRect());"
_SEARCH = "const box = document.querySelector('#drops .search input'); box.value = arguments[0];"


def main() -> None:
    """Draw the summary, a pair in dark, and the table on a phone in Chinese."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        page = Path(folder) / "report.html"
        page.write_text(html(gather(demo(Path(folder), hostile=False).config)), encoding="utf8")
        browser.emulate(width=1200, height=900)
        browser.open(page)
        top, bottom = browser.run(f"{_PLACES} return [from.top, to.bottom]", "overview", "host-pages")
        clip = {"x": 0, "y": top, "width": 1200, "height": bottom - top + 16, "scale": 1}
        _draw(browser, "light", captureBeyondViewport=True, clip=clip)
        browser.emulate(width=1200, height=820, scheme="dark")
        browser.open(page)
        _search(browser, COPIER)
        browser.run("document.querySelectorAll('#drops tbody tr')[3].click()")
        browser.wait("return document.querySelectorAll('#pair .sides p').length > 2")
        _draw(browser, "dark")
        browser.run("document.querySelector('#pair .close').click()")
        browser.emulate(width=360, height=780, scale=2)
        browser.open(page)
        browser.run("document.getElementById('language').click()")
        _search(browser, MIRROR)
        browser.run("document.querySelector('#drops .found').scrollIntoView({ behavior: 'instant' }); scrollBy(0, -60)")
        _draw(browser, "phone")


def _search(browser: Browser, text: str) -> None:
    browser.run(f"{_SEARCH} box.dispatchEvent(new Event('input'))", text)


def _draw(browser: Browser, name: str, **options: object) -> None:
    drawn = browser.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", **options})
    (PICTURES / f"{name}.png").write_bytes(base64.b64decode(drawn["data"]))


if __name__ == "__main__":
    main()
