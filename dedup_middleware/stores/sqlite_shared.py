"""A store in one SQLite file that several processes of one machine have open at once, without a server.

The file is that of :mod:`~dedup_middleware.stores.sqlite`, and either may open what the other has left. SQLite lets one
process write at a time, and the others read meanwhile; they must see the same memory, so a file system of another
machine will not do (sqlite.org/wal.html). Who is at work, :mod:`~dedup_middleware.stores.workers` knows.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from dedup_middleware.stores import sqlite
from dedup_middleware.stores.sqlite import SCHEME, files, known_ids, lock_path, probe, remove, watermark_path
from dedup_middleware.stores.sqlite_store import SQLiteStore, transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from dedup_middleware.stores.holder import Holder
    from dedup_middleware.stores.protocol import Store
    from dedup_middleware.stores.watermark import Watermark
    from dedup_middleware.stores.workers import Workers

    _T = TypeVar("_T")

__all__ = [
    "OPTIONS",
    "SCHEME",
    "connect",
    "files",
    "known_ids",
    "lock_path",
    "probe",
    "remove",
    "watermark_path",
]

OPTIONS = "?shared=1"


class SharedSQLiteStore(SQLiteStore):
    """A :class:`~dedup_middleware.stores.protocol.SharedStore` on the SQLite file *path*."""

    # Whoever writes has done so in some milliseconds; one that reads all of a store while it opens it, in seconds.
    patience = 30.0

    def __init__(self, path: Path, mark: Watermark, *, read_only: bool = False) -> None:
        """Open *path*; its process is no worker yet."""
        super().__init__(path, mark, read_only=read_only)
        self.uri += OPTIONS
        self.worker = b""
        self._workers: Workers | None = None
        self._depth = 0
        self._failure: BaseException | None = None
        self._is_to_be_synced = False

    def join(self, workers: Workers, holder: Holder) -> None:
        """Become one of *workers*, the *holder*, until it is closed."""
        self.worker = workers.join(holder)
        self._workers = workers
        self._mark.be_one_of_many(self.worker)

    def is_at_work(self, worker: bytes) -> bool:
        """See SharedStore; 30 µs."""
        return self._workers is not None and self._workers.is_at_work(worker)

    def changes_of_others(self) -> int:
        """See SharedStore; 4 µs."""
        with self._refusing("read"):
            (number,) = self._live().execute("PRAGMA data_version").fetchone()
        return int(number)

    def atomically(self, work: Callable[[], _T]) -> _T:
        """See SharedStore; one transaction. *work* is called once; while it runs, all others wait who want to write."""
        if self._depth:
            return work()
        self._failure, self._is_to_be_synced = None, False
        with self._refusing("write"), transaction(self._live()):
            self._depth += 1
            try:
                result = work()
            finally:
                self._depth -= 1
            if self._failure is not None:
                # What came before it in the transaction is there, and must not be without it.
                raise self._failure
        if self._is_to_be_synced:
            self.write([], sync=True)
        self._checkpoints.note(self._live())
        return result

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = (), *, sync: bool = False) -> None:
        """See Store; inside :meth:`atomically` it is applied, and synced, with all that is written there."""
        if not self._depth:
            super().write(puts, deletes, sync=sync)
            return
        self._is_to_be_synced |= sync
        self._unsynced = True
        try:
            with self._refusing("write"):
                self._change(self._live(), puts, deletes)
        except BaseException as error:
            self._failure = error
            raise

    def begin_sync(self) -> Callable[[], None]:
        """See DeferringStore; inside :meth:`atomically` for all that is written there, too."""
        return self.atomically(super().begin_sync)

    def close(self) -> None:
        """See Store; and be none of the workers any more."""
        try:
            super().close()
        finally:
            if self._workers is not None:
                with suppress(OSError):
                    self._workers.leave()


def connect(
    path: Path, seed: tuple[bytes, bytes], check: Callable[[Store], None], memory: int
) -> tuple[SharedSQLiteStore, bool]:
    """Open the store at *path*, or create it with the pair *seed* in it; return it and whether it was created."""
    return sqlite.connect_as(SharedSQLiteStore, path, seed, check, memory)
