"""Locks stores on disk: for one process, or for the workers of a store that several share.

The system releases a lock when its process ends, however that comes about: no lease has to be renewed, and no clock
decides which processes are alive.
"""

from __future__ import annotations

import json
import os
import platform
import re
import secrets
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from dedup_middleware import permissions, times
from dedup_middleware.bounded import loads
from dedup_middleware.stores import refusals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: What is beside a lock: the file that names its holder, and the folder of the workers' locks.
HOLDER_SUFFIX, WORKERS_SUFFIX = ".holder", ".workers"
_WORKER_BYTES = 8
_MAX_HOLDER_BYTES = 4096
_WORKERS_LOCK = re.compile(rf"[0-9a-f]{{{2 * _WORKER_BYTES}}}\.lock")
# Seconds for which those who share a store wait while others open it.
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that has a store open, as named in a file beside the lock. For messages only: the lock decides."""

    what: str
    """What it does: ``spider news``, ``scrapy dedup stats``."""
    brief: bool
    """Whether it ends in a moment: a command, not a crawl."""
    pid: int
    host: str
    since: str
    """ISO 8601, UTC, to the second."""

    @classmethod
    def this_process(cls, what: str, *, brief: bool = False) -> Holder:
        """Return this process, from now on."""
        return cls(what, brief, os.getpid(), platform.node(), times.now())

    @classmethod
    def read(cls, path: Path) -> Holder | None:
        """Return the holder in the file *path*; ``None`` if there is no valid one."""
        try:
            with path.open("rb") as file:
                holder = cls(**loads(file.read(_MAX_HOLDER_BYTES)))
        except (OSError, ValueError, TypeError):
            return None
        fields = (holder.what, holder.brief, holder.pid, holder.host, holder.since)
        return holder if [*map(type, fields)] == [str, bool, int, str, str] else None

    def write(self, path: Path) -> None:
        """Write it into the file *path*, unless something else is there, or the disk is full."""
        with suppress(OSError), permissions.replaced(path, _is_holder) as file:
            file.write(json.dumps(asdict(self)).encode("ascii"))

    def __str__(self) -> str:
        elsewhere = "" if self.host == platform.node() else f" on {self.host}"
        return f"process {self.pid}{elsewhere} ({self.what}, since {self.since})"


def _is_holder(start: bytes) -> bool:
    return start.startswith(b'{"what": ')


@contextmanager
def held(path: Path, uri: str, holder: Holder, *, is_shared: bool = False) -> Iterator[None]:
    """Hold the lock file *path* of the store at *uri*; with *is_shared*, wait for others who hold it in order to share.

    ``StoreLockedError`` if another process holds it, or shares the store that this one wants for itself.
    """
    names = path.with_name(path.name + HOLDER_SUFFIX)
    # A lock is an empty file, which locking may make empty again.
    if os.path.lexists(path) and (not path.is_file() or path.stat().st_size):
        raise refusals.no_path(uri, f"{path} is no lock of ours")
    lock = _lock(path)
    try:
        lock.acquire(timeout=_PATIENCE if is_shared else 0)
    except Timeout:
        raise refusals.locked(uri, Holder.read(names)) from None
    except NotImplementedError as error:  # older versions of filelock, where the system has no flock
        raise refusals.failed(uri, "lock", str(error)) from error
    try:
        if not is_shared and Workers(path).prune():
            raise refusals.locked(uri)
        holder.write(names)
        yield
    finally:
        if Holder.read(names) is not None:
            with suppress(OSError):
                names.unlink()
        lock.release()


class Workers:
    """The processes that share the store with the lock file *path*: each holds the lock of a file of its own."""

    def __init__(self, path: Path) -> None:
        self._folder = path.with_name(path.name + WORKERS_SUFFIX)
        self._own: FileLock | None = None
        self.worker = b""
        """The name of this process, while it is one of them."""

    def join(self) -> None:
        """Make this process one of them."""
        permissions.make_folder(self._folder)
        self.prune()
        self.worker = secrets.token_bytes(_WORKER_BYTES)
        self._own = _lock(self._path(self.worker))
        self._own.acquire()

    def leave(self) -> None:
        """End the part of this process."""
        if self._own is not None:
            self._own.release()
            self._own = None
            self._path(self.worker).unlink(missing_ok=True)

    def is_at_work(self, worker: bytes) -> bool:
        """Return whether *worker* is one of them. 30 µs."""
        if worker == self.worker:
            return self._own is not None
        return self._path(worker).exists() and _is_held(self._path(worker))

    def prune(self) -> bool:
        """Remove the files of those that have ended; return whether any is left. Call it under the store's lock."""
        for path in self._locks():
            if not _is_held(path):
                path.unlink(missing_ok=True)
        return bool(self._locks())

    def remove(self) -> None:
        """Remove the folder, once none is left."""
        with suppress(OSError):
            self._folder.rmdir()

    def _locks(self) -> list[Path]:
        files = self._folder.glob("*.lock")
        return [f for f in files if _WORKERS_LOCK.fullmatch(f.name) and f.is_file() and not f.stat().st_size]

    def _path(self, worker: bytes) -> Path:
        return self._folder / f"{worker.hex()}.lock"


def _lock(path: Path) -> FileLock:
    # thread_local=False: the last close may come from another thread than the opening.
    return FileLock(path, timeout=0, mode=permissions.FILE_MODE, thread_local=False)


def _is_held(path: Path) -> bool:
    """Return whether another process holds the lock *path*; one that asks at this moment counts, too."""
    lock = _lock(path)
    try:
        lock.acquire()
    except Timeout:
        return True
    lock.release()
    return False
