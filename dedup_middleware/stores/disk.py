"""What every store on disk has in common: what is there, who may open it, and when it goes.

It asks a backend what is at a path and never looks into the files itself.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from filelock import FileLock, Timeout

from dedup_middleware import permissions
from dedup_middleware.stores import marker, refusals, schema, sharing
from dedup_middleware.stores.holder import Holder
from dedup_middleware.stores.medium import Medium
from dedup_middleware.stores.protocol import SharedStore, Store
from dedup_middleware.stores.watermark import Watermark
from dedup_middleware.stores.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dedup_middleware.errors import StoreCorruptError
    from dedup_middleware.stores.opened import OpenStore

HOLDER_SUFFIX = ".holder"
_WORKERS_SUFFIX = ".workers"
# Seconds for which whoever shares a store waits for others who are opening it: they may read all of it.
_PATIENCE = 10.0
_NO_SCHEME = "none"
#: Bytes that an engine may hold in memory where nobody says how many.
MEMORY = 128 * 2**20


class Found(Enum):
    """What is at a path."""

    NOTHING = "nothing, or an empty folder or file"
    OURS = "a store of ours, whole or damaged"
    FOREIGN = "something that does not bear our marker"
    BEREFT = "a damaged store of ours: its marker is lost, its watermark is there"


class DiskStore(Store, Protocol):
    """A store that can read itself through."""

    def verify(self) -> None:
        """Read everything; ``StoreCorruptError`` if some of it is rotten."""


@runtime_checkable
class SharedDiskStore(DiskStore, SharedStore, Protocol):
    """A store that several processes of this machine share."""

    def join(self, workers: Workers, holder: Holder) -> None:
        """Become one of *workers*, the *holder*, until it is closed."""


class Backend(Protocol):
    """What the module of a store on disk offers. Paths are ``resolved``; every ``OSError`` may pass."""

    SCHEME: str
    """What its URIs begin with."""

    OPTIONS: str
    """What they end with, behind the path."""

    def probe(self, path: Path) -> Found:
        """Return what is at *path*; never writes."""

    def lock_path(self, path: Path) -> Path:
        """Return the path of the file to lock."""

    def watermark_path(self, path: Path) -> Path:
        """Return the path of the file with the number of the newest synced batch."""

    def known_ids(self, path: Path) -> set[bytes]:
        """Return the ids that the files beside the database give the store, which may be damaged."""

    def connect(
        self, path: Path, seed: tuple[bytes, bytes], check: Callable[[Store], None], memory: int
    ) -> tuple[DiskStore, bool]:
        """Open what is ours, or create it with the pair *seed* in it; return it and whether it was created.

        Its caches and buffers take about *memory* bytes.

        What is there is read and given to *check* before anything is changed: when it raises, all is as it was.
        """

    def files(self, path: Path) -> list[Path]:
        """Return what is ours, folders and files."""

    def remove(self, path: Path) -> None:
        """Remove what is ours, and nothing else."""


def resolved(path: str) -> Path:
    """Return *path* absolute and without symbolic links: one store has one name."""
    # Not Path.resolve(): before Python 3.13 it raises RuntimeError for a loop of links.
    return Path(os.path.realpath(path))


def uri_of(backend: Backend, path: Path) -> str:
    """Return the URI of the store at *path*."""
    return f"{backend.SCHEME}:{path}{backend.OPTIONS}"


class Opening(NamedTuple):
    """How somebody opens a store; see `open_store`."""

    fingerprint_scheme: str | None
    holder: Holder
    memory: int


def open_shared(backend: Backend, path: Path, opening: Opening) -> OpenStore:
    """Open or create the store at *path*, or join those of this process that have it open, with the memory it has."""
    name, uri = backend.lock_path(path), uri_of(backend, path)
    with sharing.guarded(), refusals.of_os(uri, "open"):
        opened = sharing.join(name, opening.fingerprint_scheme, partial(_open_medium, backend, path, opening))
    if opened.uri != uri:
        # The same file, as a store that is shared and as one that is not.
        opened.close()
        raise refusals.locked(uri)
    return opened


def _open_medium(backend: Backend, path: Path, opening: Opening) -> tuple[Medium, bool]:
    fingerprint_scheme, holder, memory = opening
    uri = uri_of(backend, path)
    # Before the lock: a stranger's folder must not even get a lock file.
    found = _look(backend, path)
    if found is Found.FOREIGN:
        raise _foreign(backend, path)
    if found is Found.BEREFT:
        raise refusals.corrupt(uri, "what tells whose it is has been lost")
    if found is Found.NOTHING and fingerprint_scheme is None:
        raise refusals.absent(uri)
    permissions.make_folder(backend.lock_path(path).parent)

    def check(store: Store) -> None:
        schema.check(store, fingerprint_scheme)

    with ExitStack() as undo, ExitStack() as until_open:
        # One that is shared is locked while it is opened, and then as long as its workers are at work.
        (until_open if backend.OPTIONS else undo).enter_context(locked(backend, path, holder))
        seed = schema.new_header(fingerprint_scheme or _NO_SCHEME)
        store, created = backend.connect(path, seed, check, memory)
        undo.callback(store.close)
        if created and fingerprint_scheme is None:
            # What was there is a creation that was killed, with nothing in it.
            store.close()
            backend.remove(path)
            raise refusals.absent(uri)
        header = schema.check(store, fingerprint_scheme)
        if isinstance(store, SharedDiskStore):
            store.join(_workers(backend, path), holder)
        return Medium(store, header, undo.pop_all()), created


@contextmanager
def locked(backend: Backend, path: Path, holder: Holder) -> Iterator[None]:
    """Hold the lock of the store at *path*, and say that it is *holder* who does.

    ``StoreLockedError`` if somebody else holds it, or shares the store; at once, but for those who share it themselves,
    and wait until others have opened it.
    """
    said = backend.lock_path(path).with_name(backend.lock_path(path).name + HOLDER_SUFFIX)
    # thread_local=False: the last close may come from another thread than the opening.
    lock = FileLock(backend.lock_path(path), timeout=0, mode=permissions.FILE_MODE, thread_local=False)
    is_shared = bool(backend.OPTIONS)
    try:
        lock.acquire(timeout=_PATIENCE if is_shared else 0)
    except Timeout:
        raise refusals.locked(uri_of(backend, path), Holder.written(said)) from None
    except NotImplementedError as error:  # older versions of filelock, where the system has no flock
        raise refusals.failed(uri_of(backend, path), "lock", str(error)) from error
    try:
        if not is_shared:
            for other in _workers(backend, path).others():
                raise refusals.locked(uri_of(backend, path), other)
        holder.write(said)
        yield
    finally:
        with suppress(OSError):
            said.unlink()
        lock.release()


def _workers(backend: Backend, path: Path) -> Workers:
    lock = backend.lock_path(path)
    return Workers(lock.with_name(lock.name + _WORKERS_SUFFIX))


@contextmanager
def exclusively(backend: Backend, path: Path, holder: Holder) -> Iterator[None]:
    """Hold the lock of the store at *path*, which may have lost its marker; nobody in this process has it open."""
    uri = uri_of(backend, path)
    with sharing.guarded():
        if sharing.is_open(backend.lock_path(path)):
            raise refusals.locked(uri)
        with ExitStack() as stack:
            with refusals.of_os(uri, "open"):
                found = _look(backend, path)
                if found is Found.NOTHING:
                    raise refusals.absent(uri)
                if found is Found.FOREIGN:
                    raise _foreign(backend, path)
                stack.enter_context(locked(backend, path, holder))
            yield


def _look(backend: Backend, path: Path) -> Found:
    """Return what is at *path*; a store whose marker is lost is known by its watermark. Never writes."""
    found = backend.probe(path)
    if found is Found.FOREIGN and _kind_at(path) is None:
        with suppress(ValueError, OSError):
            Watermark.load(backend.watermark_path(path))
            return Found.BEREFT
    return found


def _kind_at(path: Path) -> str | None:
    """Return what the URI of the store at *path* begins with, whatever its kind; ``None`` if no marker tells."""
    if path.is_dir():
        return marker.scheme_of(path)
    try:
        from dedup_middleware.stores import sqlite  # noqa: PLC0415 - a Python may be built without sqlite3
    except ImportError:
        return None
    # See exists().
    is_ours = sharing.is_open(sqlite.lock_path(path)) or sqlite.probe(path) is Found.OURS
    return sqlite.SCHEME if is_ours else None


def _foreign(backend: Backend, path: Path) -> StoreCorruptError:
    uri, kind = uri_of(backend, path), _kind_at(path)
    return refusals.foreign(uri) if kind is None else refusals.of_another_kind(uri, kind)


def exists(backend: Backend, path: Path) -> bool:
    """Tell whether *path* holds a store, whole or damaged; ``StoreCorruptError`` for something else. Takes no lock."""
    # What this process has open is not looked at: closing any handle of a file drops the process's POSIX locks on it,
    # those of SQLite too (sqlite.org/howtocorrupt.html, 2.2).
    with sharing.guarded(), refusals.of_os(uri_of(backend, path), "read"):
        if sharing.is_open(backend.lock_path(path)):
            return True
        found = _look(backend, path)
        if found is Found.FOREIGN:
            raise _foreign(backend, path)
        return found is not Found.NOTHING


def size(backend: Backend, path: Path) -> int:
    """Return how many bytes the files of the store at *path* have; takes no lock."""
    with refusals.of_os(uri_of(backend, path), "read"):
        return sum(file.stat().st_size for file in backend.files(path) if file.is_file())


def destroy(backend: Backend, path: Path) -> bool:
    """Remove the store at *path*; return whether there was one."""
    uri = uri_of(backend, path)
    with sharing.guarded(), refusals.of_os(uri, "remove"):
        if sharing.is_open(backend.lock_path(path)):
            raise refusals.locked(uri)
        found = _look(backend, path)
        if found is Found.FOREIGN:
            raise _foreign(backend, path)
        if found is Found.NOTHING:
            return False
        with locked(backend, path, Holder.this_process("scrapy dedup reset", brief=True)):
            backend.remove(path)
            _workers(backend, path).remove()
    return True
