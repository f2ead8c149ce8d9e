"""The open SQLite database of a store: one table of keys, values and checksums.

It knows a database that may be used; :mod:`~dedup_middleware.stores.sqlite` finds out whether it may.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING

from dedup_middleware.errors import StoreError
from dedup_middleware.stores import refusals
from dedup_middleware.stores.layout import WATERMARK_KEY, decode_watermark, encode_watermark
from dedup_middleware.stores.sqlite_checkpoints import Checkpoints
from dedup_middleware.stores.sqlite_sums import checksum, is_whole, salt_of
from dedup_middleware.stores.syncing import nothing, sync_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from dedup_middleware.stores.watermark import Watermark

# "DDUP" in ASCII; `file` and every SQLite tool show it.
APPLICATION_ID = 0x44445550

# SQLite has no checksums of its own: a flipped bit would pass for an owner's text.
_TABLE = """CREATE TABLE pairs (
    key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL, checksum INTEGER NOT NULL
) WITHOUT ROWID"""
_GET = "SELECT key, value, checksum FROM pairs WHERE key = ?"
_SCAN = "SELECT key, value, checksum FROM pairs WHERE key >= ? AND key < ? ORDER BY key"
_ALL = "SELECT key, value, checksum FROM pairs ORDER BY key"
_PUT = "INSERT OR REPLACE INTO pairs (key, value, checksum) VALUES (?, ?, ?)"
_DELETE = "DELETE FROM pairs WHERE key = ?"


class SQLiteStore:
    """A :class:`~dedup_middleware.stores.protocol.Store` on the SQLite file *path*.

    Batches without *sync* survive the process's death; a batch with *sync* survives a power failure, and with it all
    that were written before.
    """

    #: Seconds for which others are waited for: nobody who keeps to our lock makes us wait, a stranger may.
    patience = 1.0

    def __init__(self, path: Path, mark: Watermark, *, read_only: bool = False) -> None:
        """Open *path*; SQLite makes an empty file where there is none. Synced batches raise *mark*."""
        self.uri = f"sqlite:{path}"
        self._path = path
        self._mark = mark
        self._read_only = read_only
        self._salt = salt_of(mark.store_id)
        self._unsynced = False
        self._sync_failed = False
        self._db: sqlite3.Connection | None = self._connection()
        self._scans: set[sqlite3.Connection] = set()
        self._checkpoints = Checkpoints(self._connection)
        self._log = path.with_name(f"{path.name}-wal")

    def create(self, seed: Sequence[tuple[bytes, bytes]]) -> bool:
        """Make the table with the pairs *seed* in it, if the file has no content; return whether it was so."""
        db = self._live()
        with self._refusing("open"):
            if db.execute("PRAGMA page_count").fetchone() != (0,):
                return False
            # Marker, table and header in one transaction, before WAL: killed in between, the file is empty again.
            with transaction(db):
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(_TABLE)
                db.executemany(_PUT, map(self._row, seed))
        return True

    def tune(self, memory: int) -> None:
        """Turn on WAL, where scans and writes do not hinder each other and a batch does not wait for the medium.

        Pages of the file are cached in *memory* bytes.
        """
        db = self._live()
        with self._refusing("open"):
            (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA wal_autocheckpoint = 0")
            # Below zero it counts KiB, and not pages.
            db.execute(f"PRAGMA cache_size = -{memory // 1024}")
            if mode != "wal":
                raise refusals.failed(self.uri, "open", f"its file system allows journal mode {mode!r} only, not WAL")
            if not self._log.exists() or not self._log.stat().st_size:
                # The first that is written there waits for two syncs: now, and not when the event loop runs. On a disk
                # that is full, it is for who has more to write to say so.
                with suppress(sqlite3.OperationalError), transaction(db):
                    db.execute("PRAGMA user_version = 0")

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """See Store; about 7 µs a key when the file is warm."""
        execute = self._live().execute
        with self._refusing("read"):
            rows = [execute(_GET, (key,)).fetchone() for key in keys]
        return [None if row is None else self._pair(row)[1] for row in rows]

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See Store; a connection of its own holds the snapshot, about 0.2 ms to begin. While it lasts, the WAL grows.

        On the writing connection a scan would see the batches that are written meanwhile.
        """
        self._live()
        rows = self._rows(start, stop)
        # The first step, which yields nothing of use, takes the snapshot now and not when the caller first looks.
        next(rows)
        return rows

    def _rows(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        with self._refusing("read"):
            reader = self._connection()
            self._scans.add(reader)
            try:
                reader.execute("BEGIN")
                cursor = reader.execute(_SCAN, (start, stop))
                yield b"", b""
                self._live()
                for pair in self._in_order(cursor):
                    yield pair
                    self._live()
            finally:
                self._scans.discard(reader)
                reader.close()

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = (), *, sync: bool = False) -> None:
        """See Store; one transaction. A failed one is rolled back, and the store can be used further.

        With *sync* the watermark is raised: two syncs more, and a get.
        """
        db = self._live()
        number = 0
        with self._refusing("write"), _synchronous(db) if sync else nullcontext(), transaction(db):
            self._change(db, puts, deletes)
            if sync:
                number = self._following_mark()
                self._change(db, [(WATERMARK_KEY, encode_watermark(number))], ())
        self._unsynced = not sync
        if sync:
            with refusals.of_os(self.uri, "write"):
                self._mark.advance(number)
        self._checkpoints.note(db)

    def begin_sync(self) -> Callable[[], None]:
        """See DeferringStore. What the log had before it began anew is in the file, which SQLite has synced."""
        if os.name == "nt":
            # There, nobody else may open what SQLite writes.
            self.write([], sync=True)
            return nothing
        number = self._following_mark()
        self.write([(WATERMARK_KEY, encode_watermark(number))])
        self._unsynced = False
        return partial(self._wait, number)

    def _wait(self, number: int) -> None:
        try:
            with refusals.of_os(self.uri, "write"):
                sync_files([self._log, self._path.parent])
                self._mark.advance(number)
        except StoreError:
            self._sync_failed = True
            raise

    def _following_mark(self) -> int:
        (value,) = self.get_many([WATERMARK_KEY])
        return decode_watermark(value or bytes(8)) + 1

    def _change(self, db: sqlite3.Connection, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes]) -> None:
        db.executemany(_DELETE, ((key,) for key in deletes))
        db.executemany(_PUT, map(self._row, puts))

    def close(self) -> None:
        """See Store; ends scans that are under way. Syncs first what was not, so that no cut of it goes unnoticed."""
        if self._unsynced and self._db is not None:
            # The batches are written all the same; they only survive less.
            with suppress(StoreError):
                self.write([], sync=True)
        self._checkpoints.finish()
        db, self._db = self._db, None
        if db is not None:
            with self._refusing("close"):
                for reader in list(self._scans):
                    reader.close()
                db.close()

    def verify(self) -> None:
        """Read everything; ``StoreCorruptError`` if a row or the tree of rows is rotten. About 160 MB/s."""
        db = self._live()
        with self._refusing("read"):
            ((said,),) = db.execute("PRAGMA quick_check(1)")
            if said != "ok":
                raise refusals.corrupt(self.uri, said)
            for _ in self._in_order(db.execute(_ALL)):
                pass

    def compact(self) -> None:
        """See CompactableStore; SQLite writes the file anew, some 50 MB/s, which takes twice its size in room."""
        db = self._live()
        with self._refusing("compact"):
            db.execute("VACUUM")
            # The new file is in the WAL, until this.
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _in_order(self, rows: Iterable[tuple[bytes, bytes, int]]) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs of *rows*. Where a page has taken the place of another, SQLite notices nothing, keys do."""
        before = b""
        for row in rows:
            key, value = self._pair(row)
            if key <= before:
                raise refusals.corrupt(self.uri, f"key {key!r:.40} is not in its place")
            before = key
            yield key, value

    def _row(self, pair: tuple[bytes, bytes]) -> tuple[bytes, bytes, int]:
        return *pair, checksum(*pair, self._salt)

    def _pair(self, row: tuple[bytes, bytes, int]) -> tuple[bytes, bytes]:
        key, value, checksum = row
        if not is_whole(row, self._salt):
            raise refusals.corrupt(self.uri, f"the checksum of key {key!r:.40} is not {checksum}")
        return key, value

    def _connection(self) -> sqlite3.Connection:
        # Two crawlers of one process may come from different threads, one at a time. isolation_level=None: the module
        # begins no transactions of its own.
        with self._refusing("open"):
            return sqlite3.connect(
                f"{self._path.as_uri()}?mode={'ro' if self._read_only else 'rwc'}",
                uri=True,
                timeout=self.patience,
                isolation_level=None,
                check_same_thread=False,
            )

    def _live(self) -> sqlite3.Connection:
        if self._db is None:
            raise refusals.closed(self.uri)
        if self._sync_failed:
            raise refusals.failed(self.uri, "use", "an earlier write failed; open it again")
        return self._db

    @contextmanager
    def _refusing(self, action: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            refusal = _refusal(self.uri, action, error)
            if refusal is None:
                raise
            raise refusal from error


def _refusal(uri: str, action: str, error: sqlite3.DatabaseError) -> StoreError | None:
    detail = str(error)
    # The module raises the base class itself for SQLITE_CORRUPT and SQLITE_NOTADB; error codes need Python 3.11.
    if type(error) is sqlite3.DatabaseError or "no such table" in detail or detail.startswith("Could not decode"):
        return refusals.corrupt(uri, detail)
    if not isinstance(error, sqlite3.OperationalError):
        return None
    # Our own lock was free, so this is a program that opened the file by itself.
    return refusals.locked(uri) if "locked" in detail else refusals.failed(uri, action, detail)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commit what the block writes; what it has read, nobody else changes meanwhile."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        # A full disk may have rolled it back already.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


@contextmanager
def _synchronous(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("PRAGMA synchronous = FULL")
    try:
        yield
    finally:
        db.execute("PRAGMA synchronous = NORMAL")
