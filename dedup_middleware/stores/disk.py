"""What every store on disk has in common: who may open it, who shares it, and when it goes.

Law of this file: it asks a backend what is at a path and never looks into the files itself.
"""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from filelock import FileLock, Timeout

from dedup_middleware.protocols import Store
from dedup_middleware.stores import refusals
from dedup_middleware.stores.layout import HEADER_KEY, SCHEMA_VERSION, Header
from dedup_middleware.stores.opened import Medium, OpenStore
from dedup_middleware.stores.watermark import Watermark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Place(Enum):
    """What is at a path."""

    FREE = "nothing, or an empty folder or file"
    OURS = "a store of ours, whole or damaged"
    FOREIGN = "something that does not bear our marker"


class DiskStore(Store, Protocol):
    """A store that can read itself through."""

    def verify(self) -> None:
        """Read everything; ``StoreCorruptError`` if some of it is rotten."""


class Backend(Protocol):
    """What the module of a store on disk offers. Paths are ``resolved``; every ``OSError`` may pass."""

    def look(self, path: Path) -> Place:
        """Return what is at *path*; never writes."""

    def lock_path(self, path: Path) -> Path:
        """Return the path of the file to lock."""

    def watermark_path(self, path: Path) -> Path:
        """Return the path of the file with the number of the newest synced batch."""

    def known_ids(self, path: Path) -> set[bytes]:
        """Return the ids that the files beside the database give the store, which may be damaged."""

    def connect(self, path: Path, seed: tuple[bytes, bytes], check: Callable[[Store], None]) -> tuple[DiskStore, bool]:
        """Open what is ours, or create it with the pair *seed* in it; return it and whether it was created.

        What is there is read and given to *check* before anything is changed: when it raises, all is as it was.
        """

    def remove(self, path: Path) -> None:
        """Remove what is ours, and nothing else."""


# By the backend's lock file. One guard for opening and the last close: neither may overtake the other.
_MEDIA: dict[Path, Medium] = {}
_GUARD = threading.Lock()


def _after_fork() -> None:
    """Begin anew in a forked child: nothing is open, and the guard is free, whoever held it in the parent."""
    global _GUARD  # noqa: PLW0603 - a lock that another thread held at the fork can only be replaced
    for medium in _MEDIA.values():
        medium.leave_to_parent()
    _MEDIA.clear()
    _GUARD = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def resolved(path: str) -> Path:
    """Return *path* absolute and without symbolic links: one store has one name."""
    # Not Path.resolve(): before Python 3.13 it raises RuntimeError for a loop of links.
    return Path(os.path.realpath(path))


def open_shared(backend: Backend, path: Path, fingerprint_scheme: str) -> OpenStore:
    """Open or create the store at *path*, or join those of this process that have it open."""
    name = backend.lock_path(path)
    with _GUARD, refusals.of_os(path, "open"):
        medium, created = _MEDIA.get(name), False
        if medium is None:
            medium, created = _open_medium(backend, path, fingerprint_scheme)
            _MEDIA[name] = medium
        else:
            _check(medium.header, fingerprint_scheme, path)
        medium.openers += 1
    return OpenStore(medium, created=created, leave=lambda: _leave(name))


def _leave(name: Path) -> None:
    with _GUARD:
        medium = _MEDIA[name]
        medium.openers -= 1
        if medium.openers == 0:
            del _MEDIA[name]
            medium.close()


def _open_medium(backend: Backend, path: Path, fingerprint_scheme: str) -> tuple[Medium, bool]:
    # Before the lock: a stranger's folder must not even get a lock file.
    if backend.look(path) is Place.FOREIGN:
        raise refusals.foreign(path)
    backend.lock_path(path).parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as undo:
        undo.enter_context(locked(backend, path))
        store, created = backend.connect(
            path,
            (HEADER_KEY, Header.new(fingerprint_scheme).encode()),
            lambda store: _check(read_header(store, path), fingerprint_scheme, path),
        )
        undo.callback(store.close)
        header = read_header(store, path)
        _check(header, fingerprint_scheme, path)
        return Medium(store, header, undo.pop_all()), created


@contextmanager
def locked(backend: Backend, path: Path) -> Iterator[None]:
    """Hold the lock of the store at *path*; ``StoreLockedError`` at once if somebody else does."""
    # thread_local=False: the last close may come from another thread than the opening.
    lock = FileLock(backend.lock_path(path), timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise refusals.locked(path) from None
    except NotImplementedError as error:
        raise refusals.failed(path, "lock", str(error)) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def exclusively(backend: Backend, path: Path) -> Iterator[None]:
    """Hold the lock of the store at *path*, which may have lost its marker; nobody in this process has it open."""
    with _GUARD:
        if backend.lock_path(path) in _MEDIA:
            raise refusals.locked(path)
        with refusals.of_os(path, "read"):
            place = backend.look(path)
        if place is Place.FREE:
            raise refusals.absent(path)
        if place is Place.FOREIGN:
            try:
                Watermark.there(backend.watermark_path(path))
            except (ValueError, OSError):
                raise refusals.foreign(path) from None
        with locked(backend, path):
            yield


def read_header(store: Store, path: Path) -> Header:
    """Return the header of *store*, which lies at *path*; ``StoreCorruptError`` if it has none."""
    (value,) = store.get_many([HEADER_KEY])
    if value is None:
        raise refusals.corrupt(path, "it has no header")
    try:
        return Header.decode(value)
    except ValueError as error:
        raise refusals.corrupt(path, f"its header cannot be read: {error}") from error


def _check(header: Header, fingerprint_scheme: str, path: Path) -> None:
    if header.schema != SCHEMA_VERSION:
        raise refusals.other_schema(path, header.schema, SCHEMA_VERSION)
    if header.scheme != fingerprint_scheme:
        raise refusals.other_scheme(path, header.scheme, fingerprint_scheme)


def exists(backend: Backend, path: Path) -> bool:
    """Return whether *path* holds a store of ours, whole or damaged; takes no lock."""
    # What this process has open is not looked at: closing any handle of a file drops the process's POSIX locks on it,
    # those of SQLite too (sqlite.org/howtocorrupt.html, 2.2).
    with _GUARD, refusals.of_os(path, "read"):
        return backend.lock_path(path) in _MEDIA or backend.look(path) is Place.OURS


def destroy(backend: Backend, path: Path) -> bool:
    """Remove the store at *path*; return whether there was one."""
    with _GUARD, refusals.of_os(path, "remove"):
        if backend.lock_path(path) in _MEDIA:
            raise refusals.locked(path)
        place = backend.look(path)
        if place is Place.FOREIGN:
            raise refusals.foreign(path)
        if place is Place.FREE:
            return False
        with locked(backend, path):
            backend.remove(path)
    return True
