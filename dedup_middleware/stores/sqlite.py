"""Keeps a store in a SQLite file, by Python's sqlite3, for one process or for several of one machine.

PATH is the database, with ``PATH-wal`` and ``PATH-shm`` beside it while it is open. SQLite lets one process write at a
time, and the others read meanwhile; they must see the same memory, so a file system of another machine will not do
(sqlite.org/wal.html).
"""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from dedup_middleware.common import permissions
from dedup_middleware.stores import refusals
from dedup_middleware.stores.base import Store
from dedup_middleware.stores.files import APPLICATION_ID

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dedup_middleware.errors import StoreError
    from dedup_middleware.stores.files import Workers

_TABLE = "CREATE TABLE IF NOT EXISTS pairs (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
_GET = "SELECT value FROM pairs WHERE key = ?"
_SCAN = "SELECT key, value FROM pairs WHERE key >= ? AND key < ? ORDER BY key LIMIT 256"
_PUT = "INSERT OR REPLACE INTO pairs (key, value) VALUES (?, ?)"
_DELETE = "DELETE FROM pairs WHERE key = ?"
# Up to this size, about 0.3 s, the file is checked when it is opened; beyond, damage is noticed when it is read.
_CHECKED_BYTES = 64 * 2**20
# From this size on a sync moves the log into the file. A page adds about 160 kB: each of its keys is in another block.
_LONG_LOG_BYTES = 16 * 2**20
# Blocks of the log, 64 MB, from which on SQLite moves it in the write that comes then, which takes 0.1 s.
_LONGEST_LOG = 16_000


# Seconds to wait until others have written: a foreign program that has opened the file by itself, and workers, whose
# transactions take milliseconds, or longer where one imports a store.
_PATIENCE, _PATIENCE_WITH_WORKERS = 1.0, 30.0


class SQLiteStore(Store):
    """A store in the SQLite file *path*, which this process has open alone, or as one of *workers*."""

    def __init__(self, uri: str, path: Path, memory: int, workers: Workers | None = None) -> None:
        """Open it, or create it if the file is missing or empty; *memory* bytes are for its cache."""
        self.uri = uri
        self._workers = workers
        self.worker = b"" if workers is None else workers.worker
        self._path = path
        self._log = path.with_name(f"{path.name}-wal")
        permissions.make_file(path)
        if not os.access(path, os.W_OK):
            # SQLite would open it, and fail to write.
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        self._db = self._connect()
        try:
            self._prepare(memory)
        except BaseException:
            self._db.close()
            raise

    def _prepare(self, memory: int) -> None:
        db = self._db
        if db.execute("PRAGMA page_count").fetchone() == (0,):
            # In one transaction, before WAL: killed in between, the file is empty again.
            self.begin()
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(_TABLE)
            db.execute("COMMIT")
        elif self._path.stat().st_size <= _CHECKED_BYTES:
            ((found,),) = db.execute("PRAGMA quick_check(1)")
            if found != "ok":
                raise refusals.corrupt(self.uri, found)
        # In WAL mode scans and writes do not hinder each other, and a batch does not wait for the disk.
        (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise refusals.failed(self.uri, "open", f"its file system allows journal mode {mode!r} only, not WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute(f"PRAGMA wal_autocheckpoint = {_LONGEST_LOG}")
        # Below zero it counts KiB, and not pages.
        db.execute(f"PRAGMA cache_size = -{memory // 1024}")

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        execute = self._db.execute
        rows = [execute(_GET, (key,)).fetchone() for key in keys]
        return [None if row is None else row[0] for row in rows]

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        while rows := self._db.execute(_SCAN, (start, stop)).fetchall():
            yield from rows
            start = rows[-1][0] + b"\x00"

    def write(self, puts: list[tuple[bytes, bytes]], deletes: list[bytes], *, sync: bool = False) -> None:
        self.begin()
        self.commit(puts, deletes)
        if sync:
            self.sync()

    def begin(self) -> None:
        """See Store; other writers wait."""
        self._db.execute("BEGIN IMMEDIATE")

    def commit(self, puts: list[tuple[bytes, bytes]], deletes: list[bytes]) -> bool:
        try:
            self._db.executemany(_DELETE, ((key,) for key in deletes))
            self._db.executemany(_PUT, puts)
            self._db.execute("COMMIT")
        except BaseException:
            self.rollback()
            raise
        return True

    def rollback(self) -> bool:
        # A full disk may have rolled it back already.
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        return True

    def sync(self) -> None:
        """See Store. What the log had before it was restarted is in the file, which SQLite has synced."""
        is_windows = os.name == "nt"  # where a folder cannot be synced, and what is only read neither
        for path in (self._log,) if is_windows else (self._log, self._path.parent):
            with suppress(FileNotFoundError):
                descriptor = os.open(path, os.O_RDWR if is_windows else os.O_RDONLY | os.O_NONBLOCK)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
        # Here and not in a write, for a crawl calls this in a thread. If it fails, the log gets longer.
        with suppress(OSError, sqlite3.Error):
            if self._log.stat().st_size > _LONG_LOG_BYTES:
                with closing(self._connect()) as db:
                    db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def compact(self) -> None:
        """See Store; SQLite rewrites the file, some 50 MB/s, which takes twice its size in room."""
        self._db.execute("VACUUM")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self._db.close()

    def changes_of_others(self) -> int:
        return 0 if self._workers is None else int(self._db.execute("PRAGMA data_version").fetchone()[0])

    def is_at_work(self, worker: bytes) -> bool:
        return worker == self.worker if self._workers is None else self._workers.is_at_work(worker)

    @classmethod
    def refusal(cls, uri: str, action: str, error: Exception) -> StoreError | None:
        if not isinstance(error, sqlite3.Error):
            return super().refusal(uri, action, error)
        detail = str(error)
        # The module raises the base class itself for SQLITE_CORRUPT and SQLITE_NOTADB; error codes need Python 3.11.
        if type(error) is sqlite3.DatabaseError or "no such table" in detail or detail.startswith("Could not decode"):
            return refusals.corrupt(uri, detail)
        # Our own lock was free, so another program has opened the file by itself.
        if isinstance(error, sqlite3.OperationalError) and "locked" in detail:
            return refusals.locked(uri)
        return refusals.failed(uri, action, detail)

    def _connect(self) -> sqlite3.Connection:
        # The openers of one process may be in different threads, one at a time. isolation_level=None: the module begins
        # no transactions of its own.
        patience = _PATIENCE if self._workers is None else _PATIENCE_WITH_WORKERS
        return sqlite3.connect(self._path, timeout=patience, isolation_level=None, check_same_thread=False)


ENGINE = SQLiteStore
