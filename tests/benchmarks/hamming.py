"""What a paragraph SimHash costs, and a search and an insertion among many, on LevelDB.

Usage: python tests/benchmarks/hamming.py [ENTRIES] [--distance 3]
Random bits: of real text, a few lists are longer.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prose import story, zh_story

from dedup_middleware.fingerprints.simhash import load_dictionary, paragraph_simhashes
from dedup_middleware.index.hamming import HammingIndex
from dedup_middleware.stores import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Paragraphs of a page, which are written in one batch.
PAGE = 8


def microseconds(work: Callable[[], object], each: int) -> float:
    """Return the time of *work*, divided by *each*."""
    start = time.perf_counter()
    work()
    return round((time.perf_counter() - start) / each * 1e6, 1)


def hashing(tell: Callable[[int], list[str]]) -> dict[str, float]:
    """Return the cost of a paragraph and its length."""
    paragraphs = [paragraph for number in range(100) for paragraph in tell(number)]
    return {
        "us_a_paragraph": microseconds(lambda: paragraph_simhashes(paragraphs), len(paragraphs)),
        "characters": round(sum(map(len, paragraphs)) / len(paragraphs)),
    }


def indexing(entries: int, distance: int) -> dict[str, float]:
    """Return the cost of the last insertions into a store of *entries* bits, and of searches in it."""
    rng = random.Random(entries)
    stored = [rng.getrandbits(128) for _ in range(entries)]
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"leveldb:{folder}/store", fingerprint_scheme="benchmark")
        index = HammingIndex(store, distance)

        def insert(pairs: Sequence[tuple[int, int]]) -> None:
            for start in range(0, len(pairs), PAGE):
                store.write(*index.changes(added=pairs[start : start + PAGE]))

        def search(sought: list[int]) -> None:
            for bits in sought:
                deque(index.search(bits), maxlen=0)

        pairs = [(bits, n // PAGE + 1) for n, bits in enumerate(stored)]
        last = max(PAGE, entries // 20)
        insert(pairs[:-last])
        sample = min(entries, 2000)
        near = [bits ^ sum(1 << b for b in rng.sample(range(128), distance)) for bits in rng.sample(stored, sample)]
        figures = {
            "entries": entries,
            "distance": distance,
            "us_an_insertion": microseconds(lambda: insert(pairs[-last:]), last),
            "us_a_search_that_finds": microseconds(lambda: search(near), sample),
            "us_a_search_in_vain": microseconds(lambda: search([rng.getrandbits(128) for _ in near]), sample),
        }
        store.close()
        files = [file for file in Path(folder).rglob("*") if file.is_file()]
        return figures | {"bytes_an_entry": round(sum(file.stat().st_size for file in files) / entries)}


def main() -> None:
    """Print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("entries", type=int, nargs="?", default=100_000)
    parser.add_argument("--distance", type=int, default=3)
    options = parser.parse_args()
    load = microseconds(load_dictionary, 10**6)
    figures = {"en": hashing(story), "zh": hashing(zh_story), "index": indexing(options.entries, options.distance)}
    print(json.dumps({"dictionary_s": load, **figures}))


if __name__ == "__main__":
    main()
