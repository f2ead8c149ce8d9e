"""Measures how long the records of large crawls take to count and to report, and the report to open in Chromium.

Usage: python tests/benchmarks/report.py [NEW:OTHERS …] [--hosts 40] [--crawls 10] [--output FOLDER]

Prints, for so many records of new pages and of others (0:100000 and 1000000:100000 by default; 80 % of the others are
duplicates), their size, the seconds until `stats` has counted them and until the report is written, its size, the most
memory that was used, and the seconds from a click on its link until all of it is shown; without a store.
"""

from __future__ import annotations

import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from chromium import chromium
from corpus import parser_of
from prose import story

from dedup_middleware.records.counts import Counts
from dedup_middleware.records.crawl_lines import CrawlLine
from dedup_middleware.records.file import Record, open_records
from dedup_middleware.report.data import gather
from dedup_middleware.report.page import html
from dedup_middleware.settings import Config

_START = datetime(2026, 11, 1, tzinfo=timezone.utc)
_WIDTHS = (9, 8, 6, 10, 10, 7, 6, 10, 14)
_STORIES = [" ".join(story(n)) for n in range(50)]


def make_records(path: Path, new: int, others: int, hosts: int, crawls: int) -> None:
    """Write the records of daily *crawls* of three hours each."""
    minutes = crawls * 180
    with path.open("w", encoding="ascii") as file:
        for minute in range(minutes):
            crawl, part = divmod(minute, 180)
            name, time = f"{crawl:012x}", _START + timedelta(days=crawl, minutes=part)
            line = CrawlLine(
                event="end" if part else "begin", time=_time(time), spider="daily", crawl=name, version="0.1.0"
            )
            if part in {0, 179}:
                file.write(f"{line.to_line()}\n")
            host = f"host-{minute % hosts}.example"
            for number in range(_share(new, minute, minutes)):
                url = f"https://{host}/2026/11/new/{minute}-{number}/a-story-of-the-day"
                file.write(f"{Record(_time(time), 'daily', name, url, 'new', items_kept=1).to_line()}\n")
            for number in range(_share(others, minute, minutes)):
                record = _record(name, host, time, minute, number, is_drop=number % 5 > 0)
                file.write(f"{record.to_line()}\n")


def _share(total: int, part: int, parts: int) -> int:
    """Return how many of *total* are in *part*."""
    return total * (part + 1) // parts - total * part // parts


def _record(crawl: str, host: str, time: datetime, minute: int, number: int, *, is_drop: bool) -> Record:  # noqa: PLR0913
    text = _STORIES[(minute + number) % len(_STORIES)]
    return Record(
        _time(time),
        "daily",
        crawl,
        f"https://{host}/2026/11/{minute}-{number}/{text[:40].replace(' ', '-').lower()}",
        "duplicate" if is_drop else "related",
        "dropped" if is_drop else "kept",
        original_url=f"https://original-{number % 7}.example/{minute % 90}/{number % 40}",
        score=0.8 + (minute * 31 + number * 17) % 200 / 1000 if is_drop else 0.5 + number % 30 / 100,
        reason="cross_host" if is_drop else "below_threshold",
        evidence=[text[start : start + 120] for start in range(0, 480, 120)],
        items_dropped=int(is_drop),
        title=text[:70],
        bytes=30_000 + 371 * (number % 53),
    )


def _time(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds")


def main() -> None:
    """Measure each size."""
    parser = parser_of(__doc__, hosts=40, crawls=10)
    parser.add_argument("sizes", nargs="*", metavar="NEW:OTHERS", default=["0:100000", "1000000:100000"])
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="keep the reports there")
    options = parser.parse_args()
    names = ("new", "others", "MB", "counted s", "written s", "CPU s", "MB", "memory MB", "opened s")
    print(" ".join(f"{name:>{width}}" for name, width in zip(names, _WIDTHS, strict=True)))
    with tempfile.TemporaryDirectory() as scratch, chromium() as browser:
        for size in options.sizes:
            new, others = map(int, size.split(":"))
            folder = options.output or Path(scratch)
            records, page = Path(scratch) / "records.jsonl", folder / f"report-{new}.html"
            make_records(records, new, others, options.hosts, options.crawls)
            config = Config.from_settings({"DEDUP_STORE": "memory:", "DEDUP_LOG": str(records)}, None)
            began = time.perf_counter()
            for _ in Counts().counted(open_records(records)):
                pass
            counted = time.perf_counter() - began
            began, cpu_before = time.perf_counter(), time.process_time()
            page.write_text(html(gather(config)), encoding="utf8")
            written, cpu = time.perf_counter() - began, time.process_time() - cpu_before
            memory = getrusage(RUSAGE_SELF).ru_maxrss / 1024
            opened = []
            for _ in range(3):
                browser.driver.get("about:blank")
                browser.open(page)
                opened.append(browser.run("return performance.getEntriesByName('ready')[0].startTime / 1000"))
            sizes = [f"{path.stat().st_size / 1e6:.0f}" for path in (records, page)]
            shown = f"{min(opened):.2f} to {max(opened):.2f}"
            cells = (
                new,
                others,
                sizes[0],
                *(f"{n:.1f}" for n in (counted, written, cpu)),
                sizes[1],
                f"{memory:.0f}",
                shown,
            )
            print(" ".join(f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)), flush=True)


if __name__ == "__main__":
    main()
