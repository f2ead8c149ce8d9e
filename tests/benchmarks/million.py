"""What checking and keeping a page costs in a store that is large, and what the store and its commands cost.

Usage: python tests/benchmarks/million.py [--pages 1000000] [--new 3000] [--store leveldb] [--in-doubt 13581] [--text]
    [--at FOLDER]
It fills a new store with so many made-up pages of 40 clauses, by the loader of ``scrapy dedup store import``; 36 of the
clauses are a page's own, three its host's, and one stands on one or two other pages. Then so many new pages go through
a `Deduplication` as `detection.py` drives it, from the fingerprint to the store, and the commands run. With ``--text``
pages have their text, 2 500 letters. ``--at`` keeps the store in FOLDER, or takes the one that is there.

Prints one JSON object: ``ms`` and ``cpu_ms`` a new page, with how many took more than 5 and than 50 of them, and the
latter with the engine's own threads;
``bytes_a_page`` of the files, ``text_bytes_a_page`` of them texts; ``tables``; ``memory_mb``, anonymous, by which the
process has grown; the seconds of opening, of ``stats`` and ``explain`` in a process that is up already, and as a
command, whose bare start is ``scrapy version``; and of rolling back the originals that a crash left in a store of
their own. A million pages take some eight minutes and 1 GB.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from detection import Silence

from dedup_middleware.api import pass_through
from dedup_middleware.budget import Budget
from dedup_middleware.checks.detector import Detector
from dedup_middleware.cli.store_info import store_info
from dedup_middleware.deduplicator import Deduplication
from dedup_middleware.durability import recover
from dedup_middleware.fingerprints import FAST_HASH_BYTES, ClauseFingerprinter, Fingerprinter, instance_of
from dedup_middleware.index.opening import index_of
from dedup_middleware.index.schema import NEXT_PLACE_KEY, encode_number, page_number
from dedup_middleware.index.transfer import Exported, put_pages
from dedup_middleware.model import Action, Fingerprint, ItemContent, Page, PageFeatures, StoredPage
from dedup_middleware.records.explain import explain
from dedup_middleware.settings import SETTINGS, Config
from dedup_middleware.stores import open_store
from dedup_middleware.urls import request_identity, url_identity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dedup_middleware.stores import OpenStore

CLAUSES = 40
#: Of these, those that all pages of a host have, and those that two or three pages have.
BOILERPLATE, QUOTED = 3, 1
#: Of ten clauses, how many have digits, and so a masked_hash.
_NUMBERED = 2
#: Pages on one host.
_ON_HOST = 500
#: Different quotations, for each page.
_QUOTATIONS = 0.4
_RUN = "0123456789ab"
#: Milliseconds; how many pages took longer is printed.
_STALLS = (5, 50)


def words(chance: random.Random, count: int) -> str:
    """Return a made-up clause of so many words, about six letters each."""
    return " ".join("".join(chance.choices("abcdefghilmnoprstu", k=chance.randint(3, 9))) for _ in range(count))


class Shared:
    """What several pages say: the text of a clause by its name, and its hash."""

    def __init__(self, pages: int, fingerprint: Fingerprinter) -> None:
        self.hosts = max(1, pages // _ON_HOST)
        self.quotations = max(1, int(pages * _QUOTATIONS))
        self._fingerprint = fingerprint

    def names(self, host: int, quotation: int) -> list[str]:
        """Return the names of the clauses that a page of *host* has that quotes so."""
        return [*(f"boilerplate {host} {place}" for place in range(BOILERPLATE)), f"quotation {quotation}"]

    @staticmethod
    def clause(name: str) -> str:
        """Return the text of a clause."""
        return words(random.Random(name), 8)

    def of_stored(self, number: int, chance: random.Random) -> list[bytes]:
        """Return the hashes of those that a stored page has: neighbours quote one another."""
        quotation = max(0, int(number * _QUOTATIONS) - chance.randrange(200))
        return [*map(self.hash, self.names(number // _ON_HOST, quotation))]

    @lru_cache(4_000)  # noqa: B019 - there is one, for as long as the process lives
    def hash(self, name: str) -> bytes:
        """Return its hash, as a fingerprint has it."""
        (found,) = self._fingerprint([self.clause(name) + "."]).weights
        return found


def url_of(number: int) -> str:
    """Return the address of a stored page."""
    host = number // _ON_HOST
    return f"https://paper-{host}.example/{2000 + number % 25}/{number % 12 + 1:02}/{number:x}-ships"


@lru_cache(64)
def _boilerplate(host: int) -> list[bytes]:
    """Return what stands around each text of a host."""
    chance = random.Random(host)
    return [chance.randbytes(FAST_HASH_BYTES) for _ in range(18)]


def features_of(chance: random.Random, number: int, host: int) -> PageFeatures:
    """Return a title and what stands around a text, most of it the host's own."""
    own = chance.randbytes(6 * FAST_HASH_BYTES)
    texts = [*_boilerplate(host), *(own[i : i + FAST_HASH_BYTES] for i in range(0, len(own), FAST_HASH_BYTES))]
    title = f"The {number:x} ships of {chance.randrange(2**56):x} | Paper {host}"
    return PageFeatures(title, "", frozenset(texts), frozenset(texts[-4:]))


def stored_page(number: int, chance: random.Random, shared: Sequence[bytes], paragraphs: tuple[str, ...]) -> Page:
    """Return a page whose own clauses are made-up hashes."""
    size = len(shared[0])
    own = chance.randbytes(size * (CLAUSES - len(shared)))
    hashes = [*shared, *(own[i : i + size] for i in range(0, len(own), size))]
    masked_hashes = {h: chance.randbytes(FAST_HASH_BYTES) for h in hashes[:: 10 // _NUMBERED]}
    print_ = Fingerprint(dict.fromkeys(hashes, 40), masked_hashes, chance.randbytes(16), chance.randbytes(8))
    url = url_of(number)
    said = ItemContent(frozenset(hashes), frozenset({chance.randbytes(FAST_HASH_BYTES)}), has_text=True)
    asked = (request_identity(url.encode()), url_identity(url))
    return Page(
        url,
        asked,
        print_,
        paragraphs,
        _RUN,
        features=features_of(chance, number, number // _ON_HOST),
        item_content=said,
    )


def fill(store: OpenStore, shared: Shared, pages: int, *, text: bool = False) -> None:
    """Import so many pages, as one crawl has left them."""
    chance = random.Random(1)
    texts = [tuple(f"{words(chance, 60)}." for _ in range(6)) for _ in range(200)] if text else [()]
    gc.disable()

    def stored() -> Iterator[Exported]:
        for number in range(pages):
            said = texts[number % len(texts)]
            page = stored_page(number, chance, shared.of_stored(number, chance), said)
            original = StoredPage.of(page, page_number(number + 1, page.url), feeds=frozenset())
            yield Exported.of(original, text=said or None)

    store.write([(NEXT_PLACE_KEY, encode_number(pages + 1))])
    put_pages(index_of(store), stored())
    store.sync()
    gc.enable()


def leave_in_doubt(store: OpenStore, originals: int) -> None:
    """Let a crawl keep so many pages, and crash."""
    chance = random.Random(1)
    shared = Shared(originals, instance_of("clauses", store.header.key))
    index = index_of(store)
    for number in range(originals):
        index.commit(stored_page(number, chance, shared.of_stored(number, chance), ()))


def new_page(crawl: Deduplication, number: int, chance: random.Random, shared: Shared) -> Page:
    """Return a page that was never seen, of a host that was."""
    host = chance.randrange(shared.hosts)
    own = [f"{words(chance, 8)}." for _ in range(CLAUSES - BOILERPLATE - QUOTED)]
    own += [f"{shared.clause(name)}." for name in shared.names(host, chance.randrange(shared.quotations))]
    paragraphs = [" ".join(own[i : i + 8]) for i in range(0, CLAUSES, 8)]
    url = f"https://paper-{host}.example/new/{chance.randrange(2**40):x}/{number}"
    asked = (request_identity(url.encode()), url_identity(url))
    return crawl.reader.paragraphs(url, asked, paragraphs, features=features_of(chance, number, host))


def checked(store: Any, shared: Shared, pages: int) -> dict[str, Any]:
    """Check and keep so many new pages; return what they cost."""
    fingerprint = instance_of("clauses", store.header.key)
    threshold = SETTINGS["DEDUP_THRESHOLD"].default
    index = index_of(store)
    detector = Detector(index, fingerprint.hash, threshold)
    listener = Silence()
    crawl = Deduplication(
        spider="benchmark",
        run="benchmark",
        detector=detector,
        fingerprint=fingerprint,
        log=None,
        listener=listener,
    )
    chance = random.Random(time.time_ns())
    took, cpu, own_cpu = list[float](), list[float](), list[float]()
    new = [new_page(crawl, number, chance, shared) for number in range(pages)]
    gc.freeze()
    for page in new:
        # The clock on the wall within the others: to ask the system for these takes 3 µs each on some machines.
        began_cpu, began_own, began = time.process_time(), time.thread_time(), time.perf_counter()
        visit = crawl.check(page, Action.DROP, threshold, Budget())
        pass_through(crawl, visit, {})
        took.append(1000 * (time.perf_counter() - began))
        own_cpu.append(1000 * (time.thread_time() - began_own))
        cpu.append(1000 * (time.process_time() - began_cpu))
        assert not visit.is_duplicate
    gc.unfreeze()
    return {"ms": _summary(took), "cpu_ms": _summary(own_cpu), "cpu_with_engine_ms": _summary(cpu)}


def _summary(numbers: list[float]) -> dict[str, float]:
    ordered = sorted(numbers)
    found = {
        "median": statistics.median(ordered),
        "mean": statistics.fmean(ordered),
        "p99": ordered[len(ordered) * 99 // 100],
        "max": ordered[-1],
        **{f"over_{limit}": sum(value > limit for value in ordered) for limit in _STALLS},
    }
    return {name: round(value, 3) for name, value in found.items()}


# --- the store and its commands


def recovery(uri: str, originals: int) -> dict[str, float]:
    """Return the seconds that a crawl waits for its store after a crash that left so many *originals* in doubt."""
    found = {}
    for is_there in (False, True):
        with closing(open_store(uri, fingerprint_scheme=ClauseFingerprinter.scheme)) as store:
            if is_there:
                found["recover_s"] = _seconds(lambda: recover(index_of(store)))
            else:
                leave_in_doubt(store, originals)
    return found


def files_of(store: Path) -> list[Path]:
    """Return the files of the store at *store*, which is a folder or a file with others beside it."""
    return [f for f in store.rglob("*") if f.is_file()] if store.is_dir() else [*store.parent.glob(f"{store.name}*")]


def sizes(scheme: str, path: Path, pages: int) -> dict[str, Any]:
    """Return what the closed store of this *scheme* at *path* takes."""
    files = files_of(path)
    found: dict[str, Any] = {"bytes_a_page": round(sum(f.stat().st_size for f in files) / pages)}
    if path.is_dir():
        found["tables"] = sum(f.suffix in (".ldb", ".sst") for f in files)
    if scheme == "leveldb":
        import plyvel  # noqa: PLC0415 - not everywhere

        with closing(plyvel.DB(str(path / "db"), create_if_missing=False, max_file_size=32 * 2**20)) as db:
            for name, kind in (("clause", b"c"), ("text", b"t"), ("record", b"p"), ("identity", b"i"), ("equal", b"e")):
                found[f"{name}_bytes_a_page"] = round(db.approximate_size(kind, bytes([kind[0] + 1])) / pages)
    return found


def commands(uri: str, url: str) -> dict[str, float]:
    """Return how many seconds the commands take."""
    config = Config.from_settings({"DEDUP_STORE": uri, "DEDUP_LOG": ""}, None)
    scrapy = [sys.executable, "-m", "scrapy"]
    named = ["-s", f"DEDUP_STORE={uri}", "-s", "DEDUP_LOG="]
    return {
        "info_s": _seconds(lambda: store_info(uri)),
        "explain_s": _seconds(lambda: explain(config, url)),
        "info_command_s": _seconds(lambda: _run([*scrapy, "dedup", "store", "info", *named])),
        "explain_command_s": _seconds(lambda: _run([*scrapy, "dedup", "explain", url, *named])),
        "start_of_scrapy_s": _seconds(lambda: _run([*scrapy, "version"])),
    }


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, cwd=tempfile.gettempdir())


def _seconds(work: Any) -> float:
    began = time.perf_counter()
    work()
    return round(time.perf_counter() - began, 2)


def anonymous_mb() -> float:
    """Return the anonymous memory of this process; 0 where the system does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon")), 0.0)


def measured(folder: Path, scheme: str, pages: int, new: int, *, text: bool) -> dict[str, Any]:
    """Fill the store in *folder*, if it is not there, and return what was measured on it."""
    uri, known = f"{scheme}:{folder / 'store'}", folder / "pages"
    found: dict[str, Any] = {"pages": pages, "store": scheme}

    def opened() -> Any:
        return open_store(uri, fingerprint_scheme=ClauseFingerprinter.scheme)

    # What a power failure would take does not matter here.
    with patch("os.fsync"), closing(opened()) as store:
        shared = Shared(pages, instance_of("clauses", store.header.key))
        if not known.exists():
            found["fill_s"] = _seconds(lambda: fill(store, shared, pages, text=text))
            known.write_text(str(pages))
    found |= sizes(scheme, folder / "store", pages)
    before = anonymous_mb()
    began = time.perf_counter()
    with closing(opened()) as store:
        found["open_s"] = round(time.perf_counter() - began, 2)
        found |= checked(store, shared, new)
        found["memory_mb"] = round(anonymous_mb() - before)
    return found | commands(uri, url_of(pages // 2))


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--new", type=int, default=3_000)
    parser.add_argument("--store", choices=["leveldb", "rocksdb", "sqlite"], default="leveldb")
    parser.add_argument("--in-doubt", type=int, default=13_581)
    parser.add_argument("--text", action="store_true")
    parser.add_argument("--at", type=Path)
    options = parser.parse_args()
    os.environ["SCRAPY_SETTINGS_MODULE"] = ""
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.at or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        found = measured(folder, options.store, options.pages, options.new, text=options.text)
        print(json.dumps(found | recovery(f"{options.store}:{scratch}/crashed", options.in_doubt)))


if __name__ == "__main__":
    main()
