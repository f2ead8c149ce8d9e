"""How long a report takes to make and to open, and how large it is.

Usage: python tests/benchmarks/report.py [DROPS ...]
For each number of dropped pages (default: 10 000 and 100 000) a log is made up, with titles, addresses and evidence as
a crawl of news has them; the report of it is written, and opened in headless Chromium, thrice. The fastest counts:
seconds from the start of the navigation until the table stands and every button works.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from corpus import table

sys.path.insert(0, str(Path(__file__).parents[1]))
from chromium import chromium
from prose import story

from dedup_middleware.records.records import Record
from dedup_middleware.report.data import gather
from dedup_middleware.report.page import html
from dedup_middleware.settings.config import Config

_STORIES = 2_000


def write_log(path: Path, drops: int) -> None:
    """Write a log of *drops* duplicates, of some hosts and stories."""
    rng = random.Random(drops)
    stories = [story(number, 2) for number in range(_STORIES)]
    with path.open("w", encoding="ascii") as file:
        for number in range(drops):
            sentences = " ".join(stories[rng.randrange(_STORIES)]).split(". ")
            original = (
                f"https://news{rng.randrange(40)}.example/2026/11/{rng.randrange(drops // 4 + 1)}/a-story-of-the-day"
            )
            seconds = number * 86_400 // drops
            moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1_795_000_000 + seconds))
            record = Record(
                time=f"{moment}.000+00:00",
                spider="news",
                run=f"{number * 4 // drops:012x}",
                url=f"https://copy{rng.randrange(200)}.example/{rng.randrange(10**9)}/a-story-of-the-day-again.html",
                verdict="duplicate",
                outcome="dropped",
                original_url=original,
                score=round(1 - min(rng.expovariate(20), 0.2), 4),
                reason=rng.choice(["", "on another host", "in nearly the same words"]),
                witness="page and item",
                evidence=rng.sample(sentences, 5),
                items_dropped=1,
                title=f"{sentences[0][:60]} {number}",
                bytes=rng.randrange(20_000, 200_000),
            )
            file.write(record.to_line() + "\n")


def measured(folder: Path, drops: int) -> list[str]:
    """Return a row of the table: of a report of *drops* dropped pages."""
    log, page = folder / "log.jsonl", folder / "report.html"
    write_log(log, drops)
    config = Config.from_settings({"DEDUP_STORE": "memory:", "DEDUP_LOG": str(log)}, None)
    began = time.perf_counter()
    page.write_text(html(gather(config)), encoding="utf8")
    making = time.perf_counter() - began
    opening = []
    for _ in range(3):
        with chromium() as browser:
            browser.open(page, seconds=120)
            opening.append(float(browser.run(_SINCE)))
    size = page.stat().st_size / 1e6
    return [f"{drops:,}", f"{making:.1f}", f"{size:.1f}", f"{min(opening):.2f}"]


#: Seconds from the start of the navigation until the page said that it is ready.
_SINCE = "return performance.getEntriesByName('ready')[0].startTime / 1000"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drops", type=int, nargs="*", default=[10_000, 100_000])
    rows = []
    for drops in parser.parse_args().drops:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measured(Path(folder), drops))
    print(table(["dropped pages", "made in (s)", "size (MB)", "opened in (s)"], rows))


if __name__ == "__main__":
    main()
