"""A repaired copy of a damaged store, beside it; the store itself stays as it is, and is only read.

It copies, and knows bytes only. What holds together, and what does not and is left out, its caller
says.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Protocol

from dedup_middleware import permissions
from dedup_middleware.stores import backend_of, disk, parse_uri, refusals, schema
from dedup_middleware.stores.holder import Holder
from dedup_middleware.stores.layout import HEADER_KEY, ID_KEY, OWN_KEYS_END, WATERMARK_KEY, Header, decode_watermark
from dedup_middleware.stores.watermark import Watermark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from dedup_middleware.stores.protocol import Store

    Scan = Callable[[bytes, bytes], Iterator[tuple[bytes, bytes]]]

# The copy, what an engine's repair writes beside it, and the new store; a copy that is rewritten in part takes less.
_ROOM = 3
_BATCH = 1000
_END = b"\xff" * 64
_HOLDER = "scrapy dedup repair"


class Salvage(Protocol):
    """What a backend's module for reading the damaged offers."""

    def files(self, path: Path) -> list[Path]:
        """Return the files that hold the content of the store at *path*."""

    def salvaged(self, path: Path, scratch: Path) -> AbstractContextManager[Scan]:
        """Return a context in which what is left of the store can be scanned; *scratch* is a new folder for it."""


@dataclass(frozen=True)
class Repaired:
    """What became of a store."""

    uri: str
    """The copy's."""
    read: int
    """Pairs that could be read of the damaged one."""
    written: int
    """Pairs in the copy."""
    batches_missing: int | None
    """How many of the newest synced batches are missing; ``None`` where nothing tells."""


def _salvage(scheme: str) -> Salvage:
    if scheme == "leveldb":
        from dedup_middleware.stores import leveldb_salvage  # noqa: PLC0415 - plyvel has wheels for few platforms

        return leveldb_salvage
    if scheme == "rocksdb":
        from dedup_middleware.stores import rocksdb_salvage  # noqa: PLC0415 - as rocksdict has

        return rocksdb_salvage
    from dedup_middleware.stores import sqlite_salvage  # noqa: PLC0415 - a Python may be built without sqlite3

    return sqlite_salvage


def repair_store(uri: str, *, sound: Callable[[Scan], Iterable[tuple[bytes, bytes]]]) -> Repaired:
    """Write what is left of the store at *uri* into a new one beside it, ``PATH.repaired``, and open that to verify it.

    *sound* is given a scan of what can be read and returns the pairs, in any order, that are to be in the copy.
    Raises ``StoreLockedError`` while the store is open anywhere, ``StoreCorruptError`` for what is not ours or beyond
    repair, and ``StoreError`` where there is no store or no room: three times its size. Reads all of it, 5 MB/s of logs
    and 100 MB/s of tables.
    """
    scheme, named = parse_uri(uri)
    if scheme == "memory":
        raise refusals.absent(uri)
    path, backend, salvage = disk.resolved(named), backend_of(scheme), _salvage(scheme)
    with (
        disk.exclusively(backend, path, Holder.this_process(_HOLDER)),
        refusals.of_os(uri, "repair"),
        ExitStack() as undo,
    ):
        target = _free_name(path)
        _check_room(uri, path, salvage.files(path))
        scratch = target.with_name(target.name + ".scratch")
        undo.callback(shutil.rmtree, scratch, ignore_errors=True)
        scan = undo.enter_context(salvage.salvaged(path, scratch))
        header, missing = _own(scan, path, backend, uri)
        failed = undo.enter_context(ExitStack())
        failed.callback(_discard, backend, target)
        read = sum(1 for _ in scan(OWN_KEYS_END, _END))
        _fill(backend, target, header, sound(scan))
        written = _verify(backend, target)
        failed.pop_all()
        return Repaired(f"{scheme}:{target}", read, written, missing)


def _own(scan: Scan, path: Path, backend: disk.Backend, uri: str) -> tuple[Header, int | None]:
    """Return the header, and how many synced batches are missing."""
    own = dict(scan(b"", OWN_KEYS_END))
    try:
        header = Header.decode(own.get(HEADER_KEY, b""))
    except ValueError:
        # Fingerprints are hashed with a key in the header: no page could ever be compared with what is stored.
        raise refusals.beyond_repair(uri, "its header is lost, and with it the key of its fingerprints") from None
    store_id, ids = own.get(ID_KEY, b""), backend.known_ids(path)
    if ids and store_id not in ids:
        raise refusals.beyond_repair(uri, "its database is that of another store")
    with suppress(ValueError):
        mark, reached = Watermark.load(backend.watermark_path(path))
        if mark.store_id != store_id:
            return header, None
        return header, max(0, reached - decode_watermark(own.get(WATERMARK_KEY, bytes(8))))
    return header, None


def _free_name(path: Path) -> Path:
    taken = [entry.name for entry in path.parent.iterdir()]
    names = chain([f"{path.name}.repaired"], (f"{path.name}.repaired-{number}" for number in count(2)))
    return next(path.with_name(n) for n in names if n not in taken and not any(t.startswith(f"{n}.") for t in taken))


def _check_room(uri: str, path: Path, files: list[Path]) -> None:
    needed = _ROOM * sum(file.stat().st_size for file in files)
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise refusals.no_room(uri, needed, free)


def _fill(backend: disk.Backend, target: Path, header: Header, pairs: Iterable[tuple[bytes, bytes]]) -> None:
    permissions.make_folder(backend.lock_path(target).parent)
    with disk.locked(backend, target, Holder.this_process(_HOLDER)):
        store, _ = backend.connect(target, (HEADER_KEY, header.encode()), lambda _: None, disk.MEMORY)
        with closing(store):
            rest = iter(pairs)
            while batch := list(islice(rest, _BATCH)):
                store.write(batch)
            store.write([], sync=True)


def _verify(backend: disk.Backend, target: Path) -> int:
    """Open the copy as a crawl does and read all of it, whatever its size; return the number of its pairs."""
    with disk.locked(backend, target, Holder.this_process(_HOLDER)):
        store, _ = backend.connect(target, (HEADER_KEY, b""), _check, disk.MEMORY)
        with closing(store):
            store.verify()
            return sum(1 for _ in store.scan(OWN_KEYS_END, _END))


def _check(store: Store) -> None:
    schema.read_header(store)


def _discard(backend: disk.Backend, target: Path) -> None:
    with suppress(OSError):
        backend.remove(target)
        backend.lock_path(target).unlink()
        target.rmdir()
