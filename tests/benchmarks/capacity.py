"""Measures what a page takes of each store: bytes, and milliseconds when one comes.

Usage: python tests/benchmarks/capacity.py [--pages 20000] [--new 500] [--first 1000] [STORE...]
STORE is the URI of a store that is created, such as leveldb:PATH or redis://localhost/1?store=NAME; without any, one of
each kind that needs no server, in a temporary folder. A store that has pages is not filled again: a large one is made
once.

Made-up pages of 40 clauses (2 500 characters), most of them their own, are added; then new pages, copies of these on
another host, and the new ones again. The command prints two things for each store:

- a table of how it grows: at ``--first`` pages, at ten times as many, and so on up to ``--pages``, the bytes of its
  files for each page (of a Redis server, `INFO memory` has them), and the milliseconds of the last ``--new`` pages;
- a JSON object: its ``bytes_a_page`` in the end, the seconds of opening it, and the milliseconds of each kind of page.

Milliseconds are from the paragraphs of a page to the store, as median and 99th percentile, and the CPU of the process,
which other work on the machine changes least. Extraction is not part of it. Beside the half millisecond of a page, its
made-up words take five: a hundred thousand pages take ten minutes.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections import deque
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from corpus import line, parser_of, rule

from dedup_middleware import Deduplicator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CLAUSES, WORDS = 40, 8
#: Of the clauses, those that all pages of a host have, and those that two or three pages have.
BOILERPLATE, QUOTED = 3, 1
ON_HOST = 500

Page = tuple[str, list[str]]


def clause(name: str) -> str:
    """Return the made-up clause of this name."""
    chance = random.Random(name)
    return " ".join("".join(chance.choices("abcdefghilmnoprstu", k=chance.randint(3, 9))) for _ in range(WORDS)) + "."


shared_clause = lru_cache(4_000)(clause)


def page(number: int, host: int) -> Page:
    """Return the URL and paragraphs of page *number*, a page of *host*."""
    names = [f"boilerplate {host} {place}" for place in range(BOILERPLATE)] + [f"quotation {number * 2 // 5}"]
    own = [clause(f"own {number} {place}") for place in range(CLAUSES - BOILERPLATE - QUOTED)]
    told = [*own, *map(shared_clause, names)]
    url = f"https://paper-{host}.example/{2000 + number % 25}/{number % 12 + 1:02}/{number:x}-ships"
    return url, [" ".join(told[i : i + 8]) for i in range(0, CLAUSES, 8)]


def milliseconds(dedup: Deduplicator, pages: Iterable[Page], verdict: str) -> Iterator[tuple[float, float]]:
    """Add *pages*, all of which have this *verdict*; yield what each takes, and what of that is CPU."""
    for url, paragraphs in pages:
        began, cpu = time.perf_counter(), time.process_time()
        found = dedup.add(url, paragraphs=paragraphs)
        yield 1000 * (time.perf_counter() - began), 1000 * (time.process_time() - cpu)
        assert found.verdict == verdict, found


def summary(pairs: Iterable[tuple[float, float]]) -> dict[str, float]:
    """Return median and 99th percentile, and the median of the CPU."""
    took, cpu = map(sorted, zip(*pairs, strict=True))
    median, percentile, cpu_median = took[len(took) // 2], took[len(took) * 99 // 100], cpu[len(cpu) // 2]
    return {"median": round(median, 3), "p99": round(percentile, 3), "cpu": round(cpu_median, 3)}


def bytes_of(uri: str) -> int:
    """Return the bytes of the files of the store at *uri*."""
    path = Path(uri.partition(":")[2].partition("?")[0])
    files = path.rglob("*") if path.is_dir() else path.parent.glob(f"{path.name}*")
    return sum(file.stat().st_size for file in files if file.is_file())


def grown(uri: str, pages: int, new: int, first: int) -> Iterator[tuple[float, ...]]:
    """Fill the empty store at *uri*; yield pages, bytes a page and `summary` at *first*, ten times that, …"""
    start, sizes = 0, [first * 10**n for n in range(9)]
    for size in [*(size for size in sizes if size < pages), pages]:
        with patch("os.fsync"), Deduplicator(uri) as dedup:
            added = (page(number, number // ON_HOST) for number in range(start, size))
            last = deque(milliseconds(dedup, added, "new"), maxlen=new)
        yield size, bytes_of(uri) // size, *summary(last).values()
        start = size


def measured(uri: str, pages: int, new: int, first: int) -> dict[str, Any]:
    """Fill the store at *uri*, if it is empty, and return what its pages take."""
    with Deduplicator(uri) as dedup:
        url, paragraphs = page(0, 0)
        is_empty = dedup.check(url, paragraphs=paragraphs).verdict == "new"
    if is_empty:
        columns = f"pages in {uri.partition(':')[0]}", "bytes a page", "ms, median", "99th percentile", "CPU, median"
        print(rule(columns), flush=True)
        for cells in grown(uri, pages, new, first):
            print(line(f"{cell:,}" for cell in cells), flush=True)
        print()
    size = bytes_of(uri)
    chance = random.Random()
    strangers = [page(chance.randrange(10**9, 10**12), chance.randrange(max(1, pages // ON_HOST))) for _ in range(new)]
    copies = [(f"https://mirror-{n % 7}.example/{n}", told) for n, (_, told) in enumerate(strangers)]
    began = time.perf_counter()
    with Deduplicator(uri) as dedup:
        found = {"store": uri.partition(":")[0], "pages": pages, "bytes_a_page": size // pages}
        return found | {
            "open_s": round(time.perf_counter() - began, 2),
            "new page": summary(milliseconds(dedup, strangers, "new")),
            "duplicate": summary(milliseconds(dedup, copies, "duplicate")),
            "the same again": summary(milliseconds(dedup, strangers, "unchanged")),
        }


def main() -> None:
    """Print what was measured."""
    parser = parser_of(__doc__, pages=20_000, new=500)
    parser.add_argument("stores", nargs="*")
    parser.add_argument("--first", type=int, default=1_000, help="pages in the first line of the table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        kinds = (f"leveldb:{scratch}/l", f"rocksdb:{scratch}/r", f"sqlite:{scratch}/s", f"sqlite:{scratch}/h?shared=1")
        for uri in options.stores or kinds:
            print(json.dumps(measured(uri, options.pages, options.new, options.first)), flush=True)


if __name__ == "__main__":
    main()
