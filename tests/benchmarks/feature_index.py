"""What an index from features to pages costs: in memory, where the literature has a red-black tree, and in a store.

Usage: python tests/benchmarks/feature_index.py [FEATURES...] [--lookups 20000] [--stores leveldb sqlite]
Features are random, of 8 bytes as in the published methods, 20 to a page, each with the 8 bytes of the page's number.
They are written page by page and looked up page by page, half of them unknown; a store is closed and opened in between.
In memory stands ``sortedcontainers.SortedDict``. It is no red-black tree: it finds the place of a key among sorted
lists of at most 2 000 in O(log n) comparisons, as such a tree does, and beside them keeps a dict that answers look-ups.
The best known red-black tree for Python, ``bintrees``, was ended in its favour, and none of the later ones is as widely
used. A ``dict``, which has no order, is there for comparison.

Prints a Markdown table: microseconds a feature to insert and to look up, and the bytes that one takes, of memory or of
files. 10 000, 100 000 and a million features take a minute.
"""

from __future__ import annotations

import argparse
import gc
import random
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from sortedcontainers import SortedDict

from dedup_middleware.stores import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, MutableMapping, Sequence

#: Of a page.
FEATURES = 20
SIZES = (10_000, 100_000, 1_000_000)

#: The features of a page, and its number.
Page: TypeAlias = "list[tuple[bytes, bytes]]"


def pages(features: int) -> Iterator[Page]:
    """Yield pages that have so many features between them, the same each time."""
    chance = random.Random(features)
    for start in range(0, features, FEATURES):
        number = start.to_bytes(8, "big")
        yield [(chance.randbytes(8), number) for _ in range(min(FEATURES, features - start))]


def sought(features: int, lookups: int) -> list[list[bytes]]:
    """Return about so many features, by page, of which half are on `pages` of so many."""
    chance = random.Random(lookups)
    known = chance.sample([feature for page in pages(features) for feature, _ in page], min(lookups // 2, features))
    mixed = [*known, *(chance.randbytes(8) for _ in known)]
    chance.shuffle(mixed)
    return [mixed[start : start + FEATURES] for start in range(0, len(mixed), FEATURES)]


def microseconds(work: Callable[[], object], each: int) -> float:
    """Return the time of *work*, divided by *each*."""
    gc.collect()
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) / each * 1e6


def in_memory(
    new: Callable[[], MutableMapping[bytes, bytes]], features: int, asked: Sequence[Sequence[bytes]]
) -> tuple[float, float, float]:
    """Return the microseconds of an insertion and of a look-up, and the bytes of a feature, in a mapping."""
    index, made = new(), [*pages(features)]

    def insert() -> None:
        for page in made:
            index.update(page)

    def look_up() -> int:
        return sum(index.get(feature) is not None for page in asked for feature in page)

    took = microseconds(insert, features), microseconds(look_up, sum(map(len, asked)))
    assert look_up() * 2 == sum(map(len, asked))
    # In a second one, for watching takes time; it has keys of its own, which are what takes most of the room.
    tracemalloc.start()
    watched = new()
    for page in pages(features):
        watched.update(page)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return *took, size / len(watched)


def in_store(scheme: str, features: int, asked: Sequence[Sequence[bytes]]) -> tuple[float, float, float]:
    """Return the same for a store, whose bytes are those of its files."""
    made = [*pages(features)]
    with tempfile.TemporaryDirectory() as folder:
        uri = f"{scheme}:{folder}/store"
        store = open_store(uri, fingerprint_scheme="benchmark")

        def insert() -> None:
            for page in made:
                store.write(page)
            store.close()

        def look_up() -> int:
            return sum(value is not None for page in asked for value in store.get_many(page))

        insertion = microseconds(insert, features)
        store = open_store(uri, fingerprint_scheme="benchmark")
        lookup = microseconds(look_up, sum(map(len, asked)))
        assert look_up() * 2 == sum(map(len, asked))
        store.close()
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    return insertion, lookup, size / features


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=int, nargs="*", default=SIZES)
    parser.add_argument("--lookups", type=int, default=20_000)
    parser.add_argument("--stores", nargs="*", choices=["leveldb", "rocksdb", "sqlite"], default=["leveldb", "sqlite"])
    options = parser.parse_args()
    print("| features | index | insert, µs | look up, µs | bytes a feature |")
    print("|---" * 5 + "|")
    for features in options.features:
        asked = sought(features, options.lookups)
        rows = {"dict": in_memory(dict, features, asked), "SortedDict": in_memory(SortedDict, features, asked)}
        rows |= {scheme: in_store(scheme, features, asked) for scheme in options.stores}
        for name, (insertion, lookup, size) in rows.items():
            print(f"| {features:,} | {name} | {insertion:.2f} | {lookup:.2f} | {size:.0f} |".replace(",", " "))


if __name__ == "__main__":
    main()
