"""What a page takes of each store: bytes, and what is read and written when one comes.

Usage: python tests/benchmarks/capacity.py [--pages 20000] [--new 500] [--text] [STORE ...]
STORE: the URI of a store that is to be made, such as leveldb:PATH or redis://localhost/1; without any, one of each kind
that needs no server, in a folder that is removed.

The pages are those of `million.py`, imported; then three kinds come through a `Deduplication`: new pages, pages of
another host that repeat one of these, and the new ones again under the same address. Prints one JSON object a store:
``bytes_a_page``, of its files once it is compacted, or of its server's memory; and by kind of page ``calls`` of the
store, the keys that it was ``asked`` for and those that it ``found``, pairs ``put``, ``bytes_put`` with them, and
``synced`` batches, each a page; ``ms`` is the median of each kind.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import statistics
import tempfile
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from detection import Silence
from million import Shared, features_of, files_of, fill, new_page

from dedup_middleware.api import pass_through
from dedup_middleware.budget import Budget
from dedup_middleware.checks.detector import Detector
from dedup_middleware.deduplicator import Deduplication
from dedup_middleware.errors import StoreError
from dedup_middleware.fingerprints import ClauseFingerprinter, instance_of
from dedup_middleware.index.opening import index_of
from dedup_middleware.model import Action
from dedup_middleware.settings import SETTINGS
from dedup_middleware.stores import open_store, parse_uri
from dedup_middleware.urls import request_identity, url_identity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dedup_middleware.model import Page
    from dedup_middleware.stores import OpenStore
    from dedup_middleware.stores.base import Store

    Pairs = Iterable[tuple[bytes, bytes]]


class Counting:
    """Counts what a store is asked to do, without the plugin's own memory of what it asked for lately."""

    def __init__(self, store: Store) -> None:
        self.counts: Counter[str] = Counter()
        self._get, self._write, self._scan = store.get_many, store.write, store.scan
        store.get_many, store.write, store.scan = self.get_many, self.write, self.scan  # type: ignore[method-assign]

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """See Store."""
        values = self._get(keys)
        self.counts.update(calls=1, asked=len(keys), found=sum(value is not None for value in values))
        return values

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See Store."""
        self.counts.update(calls=1, scans=1)
        return self._scan(start, stop)

    def write(self, puts: Pairs, deletes: Iterable[bytes] = (), *, sync: bool = False) -> None:
        """See Store."""
        puts, deletes = list(puts), list(deletes)
        size = sum(len(key) + len(value) for key, value in puts)
        self.counts.update(calls=1, put=len(puts) + len(deletes), bytes_put=size, synced=int(sync))
        self._write(puts, deletes, sync=sync)


def measured(uri: str, pages: int, new: int, *, text: bool) -> dict[str, Any]:
    """Fill the store at *uri*, and return what its pages take."""
    with patch("os.fsync"), closing(opened(uri)) as store:
        shared = Shared(pages, instance_of("clauses", store.header.key))
        fill(store, shared, pages, text=text)
        with suppress(StoreError):
            store.compact()
    kind = parse_uri(uri)[0] + "?shared=1" * uri.endswith("?shared=1")
    found: dict[str, Any] = {"store": kind, "pages": pages, "bytes_a_page": size(uri) // pages}
    with closing(opened(uri)) as store:
        chance = random.Random(5)
        first = crawl_on(store, "first")
        strangers = [new_page(first, number, chance, shared) for number in range(new)]
        copies = [copy_of(page, number, chance) for number, page in enumerate(strangers)]
        found["new page"] = passed(store, first, strangers, is_duplicate=False)
        found["duplicate"] = passed(store, first, copies, is_duplicate=True)
        found["the same again"] = passed(store, crawl_on(store, "second"), strangers, is_duplicate=False)
    return found


def opened(uri: str) -> OpenStore:
    """Return the store at *uri*."""
    return open_store(uri, fingerprint_scheme=ClauseFingerprinter.scheme)


def crawl_on(store: OpenStore, run: str) -> Deduplication:
    """Return a crawl, *run*, of *store*."""
    fingerprint = instance_of("clauses", store.header.key)
    index = index_of(store)
    detector = Detector(index, fingerprint.hash, SETTINGS["DEDUP_THRESHOLD"].default)
    listener = Silence()
    return Deduplication(spider="x", run=run, detector=detector, fingerprint=fingerprint, log=None, listener=listener)


def copy_of(page: Page, number: int, chance: random.Random) -> Page:
    """Return *page* as another host has it."""
    assert page.features is not None
    url = f"https://mirror-{number % 7}.example/{chance.randrange(2**40):x}"
    features = dataclasses.replace(features_of(chance, number, 7), title=page.features.title)
    return dataclasses.replace(
        page, url=url, identities=(request_identity(url.encode()), url_identity(url)), features=features
    )


def passed(store: OpenStore, crawl: Deduplication, pages: Sequence[Page], *, is_duplicate: bool) -> dict[str, float]:
    """Let *pages* come; return what each takes."""
    counting, took = Counting(store.in_process.store), list[float]()
    for page in pages:
        began = time.perf_counter()
        visit = crawl.check(page, Action.DROP, SETTINGS["DEDUP_THRESHOLD"].default, Budget())
        pass_through(crawl, visit, {})
        took.append(1000 * (time.perf_counter() - began))
        assert visit.is_duplicate == is_duplicate, visit.verdict
    return {"ms": round(statistics.median(took), 3)} | {
        name: round(count / len(pages), 2) for name, count in counting.counts.items()
    }


def size(uri: str) -> int:
    """Return how many bytes the closed store at *uri* takes."""
    scheme, path = parse_uri(uri)
    if scheme in ("redis", "rediss"):
        import redis  # noqa: PLC0415 - only where a server is named

        with closing(redis.Redis.from_url(uri.partition("?")[0])) as server:
            return int(server.info("memory")["used_memory"])
    return sum(file.stat().st_size for file in files_of(Path(path)))


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", nargs="*")
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--new", type=int, default=500)
    parser.add_argument("--text", action="store_true")
    options = parser.parse_args()
    measure: Callable[[str], dict[str, Any]] = lambda uri: measured(  # noqa: E731
        uri, options.pages, options.new, text=options.text
    )
    with tempfile.TemporaryDirectory() as scratch:
        kinds = (f"leveldb:{scratch}/l", f"rocksdb:{scratch}/r", f"sqlite:{scratch}/s", f"sqlite:{scratch}/h?shared=1")
        for uri in options.stores or kinds:
            print(json.dumps(measure(uri)), flush=True)


if __name__ == "__main__":
    main()
