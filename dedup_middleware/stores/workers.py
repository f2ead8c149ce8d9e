"""Which processes of this machine have a store open that they share: each holds the lock of a file of its own.

The system lets go of a lock when its process ends, however that comes about, so nobody has to renew a lease, and no
clock decides who is still there. It knows files, and nothing of stores.
"""

from __future__ import annotations

import secrets
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from dedup_middleware import permissions
from dedup_middleware.stores.holder import Holder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WORKER_BYTES = 8
_PATIENCE = 5.0
_LOCK, _HOLDER = ".lock", ".holder"


class Workers:
    """The workers whose locks are in *folder*."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._gone: set[bytes] = set()
        self._own: tuple[bytes, FileLock] | None = None

    def join(self, holder: Holder) -> bytes:
        """Make this process, the *holder*, one of them, and return its name; what the dead have left is removed."""
        permissions.make_folder(self._folder)
        for other in self._named():
            if not self.is_at_work(other):
                self._remove(other)
        worker = secrets.token_bytes(WORKER_BYTES)
        lock = _lock(self._path(worker, _LOCK))
        # Somebody may be looking whether it is held, at this moment.
        lock.acquire(timeout=_PATIENCE)
        self._own = worker, lock
        holder.write(self._path(worker, _HOLDER))
        return worker

    def leave(self) -> None:
        """Let this process be none of them any more."""
        own, self._own = self._own, None
        if own is not None:
            worker, lock = own
            lock.release()
            self._remove(worker)

    def is_at_work(self, worker: bytes) -> bool:
        """Tell whether *worker* is one of them. 30 µs; once it is gone, nothing."""
        if self._own is not None and worker == self._own[0]:
            return True
        if worker in self._gone:
            return False
        path = self._path(worker, _LOCK)
        if path.exists() and _is_held(path):
            return True
        self._gone.add(worker)
        return False

    def others(self) -> Iterator[Holder | None]:
        """Yield those who are at work, and are not this process; ``None`` for one of whom nothing is known."""
        for worker in self._named():
            if (self._own is None or worker != self._own[0]) and self.is_at_work(worker):
                yield Holder.written(self._path(worker, _HOLDER))

    def remove(self) -> None:
        """Remove the folder, if nobody is at work any more."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _named(self) -> list[bytes]:
        if not self._folder.is_dir():
            return []
        names = [entry.name.removesuffix(_LOCK) for entry in self._folder.iterdir() if entry.name.endswith(_LOCK)]
        return [bytes.fromhex(name) for name in names if len(name) == 2 * WORKER_BYTES]

    def _path(self, worker: bytes, suffix: str) -> Path:
        return self._folder / (worker.hex() + suffix)

    def _remove(self, worker: bytes) -> None:
        for suffix in (_HOLDER, _LOCK):
            with suppress(OSError):
                self._path(worker, suffix).unlink()


def _lock(path: Path) -> FileLock:
    return FileLock(path, timeout=0, mode=permissions.FILE_MODE, thread_local=False)


def _is_held(path: Path) -> bool:
    """Tell whether somebody holds the lock *path*; for whoever else asks at this moment, we do."""
    lock = _lock(path)
    try:
        lock.acquire()
    except Timeout:
        return True
    lock.release()
    return False
