"""What becomes of a store whose files were damaged: each kind of damage to each file, with random places and lengths.

Usage: python tests/benchmarks/damage.py [--seeds 20] [--backend leveldb] [--no-repair]
A store is filled page by page, and what it held after each page is known. Then copies of it are damaged. A copy must be
refused when it is opened, with no byte of it changed, or when the damaged part is read, or hold exactly what it held
after some page, not before the last one that was synced. Everything else is WRONG, and the exit status 1. Half of the
copies are opened as large stores are, without being read through. What was refused is then repaired: the copy must
open, hold nothing that the store never held, and no posting of a page that is not there or never held the clause.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prose import story, zh_story

from dedup_middleware.errors import StoreCorruptError, StoreError
from dedup_middleware.fingerprints import ClauseFingerprinter
from dedup_middleware.index import codec, consistency, page_codec
from dedup_middleware.index.opening import index_of
from dedup_middleware.model import Page
from dedup_middleware.stores import disk, folder, open_store, sqlite
from dedup_middleware.stores.layout import OWN_KEYS_END

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Pairs = dict[bytes, bytes]
SYNC_EVERY = 10
# The least there is: RocksDB has several logs then, each with a part of its write buffer.
MEMORY = 4_000_000
OUTCOMES = ("refused at open", "refused when read", "harmless", "repaired", "beyond repair", "WRONG")


@dataclass
class Filled:
    """A store as a crawl leaves it, and what it held after each page."""

    backend: str
    folder: Path
    history: list[Pairs] = field(default_factory=list)
    synced: int = 0
    """How many pages it must hold at least."""

    @property
    def uri(self) -> str:
        return f"{self.backend}:{self.folder / 'store'}"

    def copied(self, to: Path) -> Filled:
        # An open database tidies up in the background: a copy is one only if nothing has changed meanwhile.
        while True:
            before = self.files_as_they_are()
            with contextlib.suppress(shutil.Error):
                shutil.copytree(self.folder, to)
                if self.files_as_they_are() == before:
                    break
            shutil.rmtree(to)
        return Filled(self.backend, to, self.history, self.synced)

    def files_as_they_are(self) -> list[tuple[str, int, int]]:
        """Return name, size and time of every file that is there."""
        found = []
        for file in sorted(self.folder.rglob("*")):
            with contextlib.suppress(FileNotFoundError):
                state = file.stat()
                found.append((str(file), state.st_size, state.st_mtime_ns))
        return found

    def files(self) -> Pairs:
        """Return every file and its bytes; no holder, no engine's diary and lock, and SQLite's index of its WAL."""
        return {
            str(file.relative_to(self.folder)).encode(): file.read_bytes()
            for file in sorted(self.folder.rglob("*"))
            if file.is_file()
            and not (file.parent.name == "db" and file.name.startswith("LO"))
            and not file.name.endswith(("-shm", disk.HOLDER_SUFFIX))
        }


def fill(backend: str, folder: Path, *, pages: int, killed: bool, first: int = 0) -> Filled:
    """Return a store of *pages* pages under *folder*, closed, or as it is where its process was killed."""
    work = Filled(backend, folder.with_name(folder.name + "-open") if killed else folder)
    work.folder.mkdir(parents=True)
    for turn in range(3):
        # Three crawls: logs become tables when the next one opens the store.
        store = open_store(work.uri, fingerprint_scheme=ClauseFingerprinter.scheme, memory=MEMORY)
        index = index_of(store, common=3, text_limit=20_000)
        fingerprint = ClauseFingerprinter(store.header.key)
        for number in range(first + turn * pages // 3, first + (turn + 1) * pages // 3):
            text = tuple((story if number % 2 else zh_story)(number))
            name = (number % (pages * 3 // 4)).to_bytes(16, "big")
            index.commit(Page(f"http://site{number % 7}.test/{number}", (name,), fingerprint(text), text, "run"))
            work.history.append(dict(store.scan(OWN_KEYS_END, b"\xff" * 64)))
            if len(work.history) % SYNC_EVERY == 0:
                store.write([], sync=True)
                work.synced = len(work.history)
        if turn < 2 or not killed:
            store.close()
            work.synced = len(work.history)
    if not killed:
        return work
    left = work.copied(folder)
    store.close()
    shutil.rmtree(work.folder)
    return left


# --- what may lie where


def _tables(path: Path) -> list[Path]:
    return sorted(file for file in (path / "db").iterdir() if file.suffix in (".ldb", ".sst"))


def _newest(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern))


FOLDER_FILES: dict[str, Callable[[Path, random.Random], Path]] = {
    "CURRENT": lambda path, _: path / "db" / "CURRENT",
    "manifest": lambda path, _: _newest(path / "db", "MANIFEST-*"),
    "log": lambda path, rng: rng.choice(sorted((path / "db").glob("*.log"))),
    "table": lambda path, rng: rng.choice(_tables(path)),
    "marker": lambda path, _: path / "DEDUP",
    "watermark": lambda path, _: path / "watermark",
    "lock": lambda path, _: path / "lock",
}
SQLITE_FILES: dict[str, Callable[[Path, random.Random], Path]] = {
    "database": lambda path, _: path,
    "WAL": lambda path, _: path.with_name("store-wal"),
    "watermark": lambda path, _: path.with_name("store.watermark"),
    "lock": lambda path, _: path.with_name("store.lock"),
}
ROCKSDB_FILES = FOLDER_FILES | {"rocksdict's": lambda path, _: path / "db" / "rocksdict-config.json"}
FILES = {"leveldb": FOLDER_FILES, "rocksdb": ROCKSDB_FILES, "sqlite": SQLITE_FILES}


# --- what may happen to a file


def _truncated(data: bytes, rng: random.Random, _: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def _emptied(_data: bytes, _rng: random.Random, _other: bytes) -> bytes:
    return b""


def _zeroed(data: bytes, rng: random.Random, _: bytes) -> bytes:
    start = rng.randrange(len(data))
    length = min(rng.choice([1, 16, 512, 4096, 32768, 65536]), len(data) - start)
    return data[:start] + bytes(length) + data[start + length :]


def _block_zeroed(data: bytes, rng: random.Random, _: bytes) -> bytes:
    start = rng.randrange(0, len(data), 32768)
    return data[:start] + bytes(min(32768, len(data) - start)) + data[start + 32768 :]


def _bit_flipped(data: bytes, rng: random.Random, _: bytes) -> bytes:
    changed = bytearray(data)
    changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _noise(data: bytes, rng: random.Random, _: bytes) -> bytes:
    start = rng.randrange(len(data))
    length = min(rng.choice([4, 512, 4096]), len(data) - start)
    return data[:start] + rng.randbytes(length) + data[start + length :]


def _appended(data: bytes, rng: random.Random, _: bytes) -> bytes:
    return data + rng.randbytes(rng.choice([1, 100, 40_000]))


def _shortened_inside(data: bytes, rng: random.Random, _: bytes) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.choice([1, 512, 32768]) :]


def _of_another(_data: bytes, _rng: random.Random, other: bytes) -> bytes:
    return other


CHANGES: dict[str, Callable[[bytes, random.Random, bytes], bytes]] = {
    "truncated": _truncated,
    "emptied": _emptied,
    "zeroed": _zeroed,
    "block zeroed": _block_zeroed,
    "bit flipped": _bit_flipped,
    "noise": _noise,
    "appended": _appended,
    "a piece cut out": _shortened_inside,
    "that of another store": _of_another,
}


def record_ends(data: bytes) -> list[int]:
    """Return where the records of a log or manifest end."""
    ends, position = [], 0
    while position + 7 <= len(data):
        room = 32768 - position % 32768
        if room < 7:
            position += room
            continue
        position += 7 + int.from_bytes(data[position + 4 : position + 6], "little")
        ends.append(position)
    return ends


def kinds(backend: str) -> Iterator[tuple[str, Callable[[Filled, Filled, random.Random], None]]]:
    """Yield the name of each kind of damage and what does it to a store, given another one."""
    files = FILES[backend]
    for name, find in files.items():
        for change, apply in CHANGES.items():

            def damage(store: Filled, other: Filled, rng: random.Random, find=find, apply=apply) -> None:
                file, others = (find(s.folder / "store", random.Random(rng.random())) for s in (store, other))
                data = file.read_bytes() if file.exists() else b""
                if data or apply in (_of_another, _appended):
                    file.write_bytes(apply(data, rng, others.read_bytes() if others.exists() else b""))

            yield f"{name}: {change}", damage
        yield f"{name}: removed", lambda s, _, r, find=find: find(s.folder / "store", r).unlink(missing_ok=True)
    if backend != "sqlite":
        yield "manifest: cut at a record", lambda s, _, r: _cut_at_record(FOLDER_FILES["manifest"], s, r)
        yield "log: cut at a record", lambda s, _, r: _cut_at_record(FOLDER_FILES["log"], s, r)
        yield "tables: swapped", _swap_tables
        yield "db/: that of another store", _swap_databases
        yield "db/: removed", lambda s, _, __: shutil.rmtree(s.folder / "store" / "db")
    yield "header: overwritten", _spoil_header


def _cut_at_record(find: Callable[[Path, random.Random], Path], store: Filled, rng: random.Random) -> None:
    file = find(store.folder / "store", rng)
    data = file.read_bytes()
    file.write_bytes(data[: rng.choice([0, *record_ends(data)][:-1] or [0])])


def _swap_tables(store: Filled, _: Filled, rng: random.Random) -> None:
    tables = _tables(store.folder / "store")
    if len(tables) < 2:
        # A slow machine may have copied the store before the engine wrote its second table.
        return
    one, other = rng.sample(tables, 2)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def _swap_databases(store: Filled, other: Filled, _: random.Random) -> None:
    shutil.rmtree(store.folder / "store" / "db")
    shutil.copytree(other.folder / "store" / "db", store.folder / "store" / "db")


def _spoil_header(store: Filled, _: Filled, rng: random.Random) -> None:
    opened = open_store(store.uri, fingerprint_scheme=ClauseFingerprinter.scheme)
    value = bytearray(opened.header.encode())
    # What opening brings into order is no damage.
    before = dict(opened.scan(OWN_KEYS_END, b"\xff" * 64))
    value[rng.randrange(len(value) - 40)] = rng.randrange(128, 256)
    opened.write([(b"\x00header", bytes(value))], sync=True)
    opened.close()
    assert before in store.history


# --- what is made of it


def judge(store: Filled, *, large: bool) -> tuple[str, str]:
    """Open the damaged *store*, read all of it, and return the outcome and the reason."""
    before = store.files()
    limit = 0 if large else 1 << 40
    folder.VERIFIED_BYTES = sqlite.VERIFIED_BYTES = limit
    try:
        opened = open_store(store.uri, fingerprint_scheme=ClauseFingerprinter.scheme)
    except StoreError as error:
        changed = [
            name.decode()
            for name in before.keys() | store.files().keys()
            if before.get(name) != store.files().get(name)
        ]
        if not isinstance(error, StoreCorruptError):
            return "WRONG", f"not called damaged: {error}"
        return ("WRONG", f"refused, but changed {changed}") if changed else ("refused at open", str(error))
    try:
        keys = sorted(store.history[-1])
        found = dict(zip(keys, opened.get_many(keys), strict=True))
        held = dict(opened.scan(OWN_KEYS_END, b"\xff" * 64))
    except StoreCorruptError as error:
        return "refused when read", str(error)
    finally:
        opened.close()
    if opened.created or held not in store.history[store.synced - 1 :]:
        return "WRONG", f"{opened.created=}, {store.history.count(held)=}, {held.keys() ^ store.history[-1].keys()}"[
            :300
        ]
    if {key: value for key, value in found.items() if value is not None} != {k: held[k] for k in keys if k in held}:
        return "WRONG", "gets and a scan differ"
    return "harmless", ""


def repaired(store: Filled, other: Filled) -> tuple[str, str]:
    """Repair the damaged *store*, which may have files of the *other*, and return the outcome and the reason.

    Pages of the other one do no harm in the copy: they are hashed under another key, and nothing is like them.
    """
    before = store.files()
    try:
        report = consistency.repair(store.uri)
    except StoreError as error:
        kept = before == {name: data for name, data in store.files().items() if name in before}
        return ("beyond repair", str(error)) if kept else ("WRONG", "repairing changed the store")
    after = store.files()
    if any(after.get(name) != data for name, data in before.items()):
        return "WRONG", "repairing changed the store"
    opened = open_store(report["copy"], fingerprint_scheme=ClauseFingerprinter.scheme)
    held = dict(opened.scan(OWN_KEYS_END, b"\xff" * 64))
    opened.close()
    ever = {pair for pairs in (*store.history, *other.history) for pair in pairs.items()}
    owners = {k[1:]: page_codec.decode_page(0, v).hashes for k, v in held.items() if k[:1] == b"p"}
    for key, value in held.items():
        if key[:1] == b"c":
            numbers = map(codec.encode_number, codec.decode_postings(value))
            if any(key[1:] not in owners.get(number, ()) for number in numbers):
                return "WRONG", f"the copy has a posting without its page: {key!r}"
        elif key != codec.NEXT_PLACE_KEY and (key, value) not in ever:
            return "WRONG", f"the copy has what the store never had: {key!r}"
    return "repaired", f"{len(owners)} pages"


def campaign(backend: str, seeds: int, scratch: Path, *, repair: bool, pages: int = 90) -> dict[str, Counter[str]]:
    """Return how often each kind of damage had which outcome, and beside them what was WRONG, in words."""
    # The least that they take: several tables, and a manifest with a history.
    disk.MEMORY = 1 << 18
    stores = [fill(backend, scratch / f"base{k}", pages=pages, killed=k) for k in (False, True)]
    # A page more for each crawl, or the operations of its middle logs have by chance the very numbers of the other's.
    other = fill(backend, scratch / "other", pages=pages + 3, killed=True, first=1000)
    results: dict[str, Counter[str]] = {}
    for turn, (name, damage) in enumerate(kinds(backend)):
        results[name] = Counter()
        for seed in range(seeds):
            rng = random.Random(f"{name} {seed}")
            # The killed one has a log, or a WAL, with batches in it; the closed one none in SQLite.
            store = stores[(turn + seed) % 2].copied(scratch / "damaged")
            damage(store, other, rng)
            outcome, why = judge(store, large=(turn + seed) % 4 > 1)
            results[name][outcome] += 1
            if repair and outcome.startswith("refused"):
                outcome, why = repaired(store, other)
                results[name][outcome] += 1
            if outcome == "WRONG":
                results[name][f"seed {seed}: {why}"] += 1
            shutil.rmtree(scratch / "damaged")
    return results


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--backend", choices=FILES, default="leveldb")
    parser.add_argument("--no-repair", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        results = campaign(options.backend, options.seeds, Path(scratch), repair=not options.no_repair)
    total: Counter[str] = Counter()
    print(f"| {options.backend} | " + " | ".join(OUTCOMES) + " |\n|---" + "|---:" * len(OUTCOMES) + "|")
    for name, outcomes in results.items():
        print(f"| {name} | " + " | ".join(str(outcomes[o] or "") for o in OUTCOMES) + " |")
        total += outcomes
    print("| all | " + " | ".join(str(total[o]) for o in OUTCOMES) + " |")
    for name, outcomes in results.items():
        for why in outcomes:
            if why not in OUTCOMES:
                print(f"{name}: {why}")
    sys.exit(1 if total["WRONG"] else 0)


if __name__ == "__main__":
    main()
