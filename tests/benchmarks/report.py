"""Measures how long a report of a large crawl takes to write, and to open in headless Chromium.

Usage: python tests/benchmarks/report.py [PAGES:DROPS …] [--hosts 40] [--crawls 10] [--output FOLDER]

Prints, for each log of so many pages and dropped pages (20000:8000 and 250000:100000 by default), the seconds until the
report is written, its size, and the seconds from a click on its link until all of it is shown; without a store.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from chromium import chromium
from prose import story

from dedup_middleware.records.crawls import Begin, Counts, counts_beside
from dedup_middleware.records.log import Record
from dedup_middleware.report.data import gather
from dedup_middleware.report.page import html
from dedup_middleware.settings import Config

_START = datetime(2026, 11, 1, tzinfo=timezone.utc)
_STORIES = [" ".join(story(n)) for n in range(50)]


def make_log(log: Path, pages: int, drops: int, hosts: int, crawls: int) -> None:
    """Write the records and the counts of daily *crawls* of three hours each, of *pages* in all."""
    related = drops // 4
    with log.open("w", encoding="ascii") as records, counts_beside(log).open("w", encoding="ascii") as counts:
        for crawl in range(crawls):
            run, begin = f"{crawl:012x}", _START + timedelta(days=crawl)
            lines: list[Begin | Counts] = [Begin(run, _time(begin), "daily", "newsroom", "0.1.0")]
            parts = [
                (n * (crawl + 1) // crawls) - (n * crawl // crawls) for n in (pages - drops - related, drops, related)
            ]
            for minute in range(180):
                until = begin + timedelta(minutes=minute + 1)
                shares = [n * (minute + 1) // 180 - n * minute // 180 for n in parts]
                host = f"host-{minute % hosts}.example"
                kinds = dict(zip(("new", "duplicate", "related"), shares, strict=True))
                since = until - timedelta(seconds=59)
                lines.append(Counts(run, _time(since), _time(until), hosts={host: kinds}, items_dropped=shares[1]))
                for number in range(shares[1] + shares[2]):
                    record = _record(run, host, since, crawl * 180 + minute, number, is_drop=number < shares[1])
                    records.write(f"{record.to_line()}\n")
            lines[-1].is_last = True  # type: ignore[union-attr]
            counts.writelines(f"{json.dumps(msgspec.to_builtins(line))}\n" for line in lines)


def _record(run: str, host: str, time: datetime, minute: int, number: int, *, is_drop: bool) -> Record:  # noqa: PLR0913
    text = _STORIES[(minute + number) % len(_STORIES)]
    return Record(
        _time(time),
        "daily",
        run,
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", metavar="PAGES:DROPS", default=["20000:8000", "250000:100000"])
    parser.add_argument("--hosts", type=int, default=40)
    parser.add_argument("--crawls", type=int, default=10)
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="keep the reports there")
    options = parser.parse_args()
    print(f"{'pages':>9} {'drops':>9} {'written s':>10} {'MB':>6} {'opened s':>14}")
    with tempfile.TemporaryDirectory() as scratch, chromium() as browser:
        for size in options.sizes:
            pages, drops = map(int, size.split(":"))
            folder = options.output or Path(scratch)
            log = Path(scratch) / "log.jsonl"
            make_log(log, pages, drops, options.hosts, options.crawls)
            config = Config.from_settings({"DEDUP_STORE": "memory:", "DEDUP_LOG": str(log)}, None)
            began = time.perf_counter()
            page = folder / f"report-{pages}.html"
            page.write_text(html(gather(config)), encoding="utf8")
            written = time.perf_counter() - began
            opened = []
            for _ in range(3):
                browser.driver.get("about:blank")
                browser.open(page)
                opened.append(browser.run("return performance.getEntriesByName('ready')[0].startTime / 1000"))
            megabytes, shown = page.stat().st_size / 1e6, f"{min(opened):.2f} to {max(opened):.2f}"
            print(f"{pages:>9} {drops:>9} {written:>10.1f} {megabytes:>6.1f} {shown:>14}")


if __name__ == "__main__":
    main()
