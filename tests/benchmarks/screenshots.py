"""Pictures of a report: light, dark, and on a phone.

Usage: python tests/benchmarks/screenshots.py FOLDER
The report of the demo newspaper is opened in headless Chromium. `light.png` is its top, `dark.png` a pair of pages side
by side, `phone.png` the table of dropped pages in Chinese.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

sys.path.extend(str(Path(__file__).parents[level]) for level in (1, 2))
from chromium import chromium
from report_demo import COPIER, demo

from dedup_middleware.report.data import gather
from dedup_middleware.report.page import html

if TYPE_CHECKING:
    from chromium import Browser

# Smooth scrolling, and a chart that fits itself to a new width.
_SETTLED = 0.5
# Of a picture of text, nobody misses the others.
_COLOURS = 128


def picture(browser: Browser, path: Path) -> None:
    """Write what *browser* shows to *path*."""
    time.sleep(_SETTLED)
    browser.driver.save_screenshot(str(path))
    with Image.open(path) as shot:
        shot.convert("RGB").quantize(_COLOURS).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def search(browser: Browser, text: str) -> None:
    """Have the table show the pages with *text* alone, those with the lowest scores first."""
    browser.run(
        "const box = document.getElementById('search'); box.value = arguments[0];"
        "box.dispatchEvent(new Event('input'));"
        "for (const _ of [1, 2]) document.getElementById('sort-score').click(); document.activeElement.blur()",
        text,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.absolute()
    with tempfile.TemporaryDirectory() as made, chromium() as browser:
        # The page names its log: a path that is nobody's.
        os.chdir(made)
        page = Path("report.html")
        page.write_text(html(gather(demo(Path(), hostile=False).config)), encoding="utf8")
        browser.emulate(width=1200, height=1340)
        browser.open(page)
        picture(browser, folder / "light.png")
        browser.emulate(width=1200, height=820, scheme="dark")
        search(browser, COPIER)
        browser.run("document.querySelector('.drops tbody tr').click()")
        browser.wait("return document.querySelector('#pair .text') !== null")
        browser.run("document.activeElement.blur()")
        picture(browser, folder / "dark.png")
        browser.run("document.getElementById('pair').close(); document.getElementById('language').click()")
        browser.emulate(width=360, height=780, scale=2)
        time.sleep(_SETTLED)
        browser.run("document.getElementById('drops').scrollIntoView({ behavior: 'instant' })")
        picture(browser, folder / "phone.png")


if __name__ == "__main__":
    main()
