"""Measures what a page takes of each store: bytes, and milliseconds when one comes.

Usage: python tests/benchmarks/capacity.py [--pages 20000] [--new 500] [STORE...]
STORE is the URI of a store that is created, such as leveldb:PATH or redis://localhost/1?store=NAME; without any, one of
each kind that needs no server, in a temporary folder. A store that has pages is not filled again: a large one is made
once.

Made-up pages of 40 clauses (2 500 characters), most of them their own, are added; then new pages, copies of these on
another host, and the new ones again. The command prints one JSON object for each store: ``bytes_a_page`` of its files
(of a Redis server, `INFO memory` has it), the seconds of opening it, and for each kind of page the milliseconds from
its paragraphs to the store, as median and 99th percentile. Extraction is not part of it. A page takes half a
millisecond: a million pages take ten minutes.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from corpus import parser_of

from dedup_middleware import Deduplicator

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def milliseconds(dedup: Deduplicator, pages: Iterable[Page], verdict: str) -> dict[str, float]:
    """Add *pages*, all of which have this *verdict*; return what one takes."""
    took = []
    for url, paragraphs in pages:
        began = time.perf_counter()
        found = dedup.add(url, paragraphs=paragraphs)
        took.append(1000 * (time.perf_counter() - began))
        assert found.verdict == verdict, found
    took.sort()
    return {"median": round(took[len(took) // 2], 3), "p99": round(took[len(took) * 99 // 100], 3)}


def measured(uri: str, pages: int, new: int) -> dict[str, Any]:
    """Fill the store at *uri*, if it is empty, and return what its pages take."""
    with patch("os.fsync"), Deduplicator(uri) as dedup:
        for number in range(pages):
            url, paragraphs = page(number, number // ON_HOST)
            if dedup.add(url, paragraphs=paragraphs).verdict != "new":
                break
    path = Path(uri.partition(":")[2].partition("?")[0])
    files = path.rglob("*") if path.is_dir() else path.parent.glob(f"{path.name}*")
    size = sum(file.stat().st_size for file in files if file.is_file())
    chance = random.Random()
    strangers = [page(chance.randrange(10**9, 10**12), chance.randrange(max(1, pages // ON_HOST))) for _ in range(new)]
    copies = [(f"https://mirror-{n % 7}.example/{n}", told) for n, (_, told) in enumerate(strangers)]
    began = time.perf_counter()
    with Deduplicator(uri) as dedup:
        found = {"store": uri.partition(":")[0], "pages": pages, "bytes_a_page": size // pages}
        return found | {
            "open_s": round(time.perf_counter() - began, 2),
            "new page": milliseconds(dedup, strangers, "new"),
            "duplicate": milliseconds(dedup, copies, "duplicate"),
            "the same again": milliseconds(dedup, strangers, "unchanged"),
        }


def main() -> None:
    """Print what was measured."""
    parser = parser_of(__doc__, pages=20_000, new=500)
    parser.add_argument("stores", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        kinds = (f"leveldb:{scratch}/l", f"rocksdb:{scratch}/r", f"sqlite:{scratch}/s", f"sqlite:{scratch}/h?shared=1")
        for uri in options.stores or kinds:
            print(json.dumps(measured(uri, options.pages, options.new)), flush=True)


if __name__ == "__main__":
    main()
