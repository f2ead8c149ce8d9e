"""A store in one SQLite file: where plyvel has no wheel, and for those who like a single file.

PATH is the database, with ``PATH-wal`` and ``PATH-shm`` beside it while it is open; the lock is ``PATH.lock``.
"""

from __future__ import annotations

import sqlite3
import stat
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from dedup_middleware.stores import refusals
from dedup_middleware.stores.disk import Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from dedup_middleware.errors import StoreError

# "DDUP" in ASCII; `file` and every SQLite tool show it. Where it lies in the file: sqlite.org/fileformat2.html, 1.3.
APPLICATION_ID = 0x44445550
_MAGIC = b"SQLite format 3\x00"
_APPLICATION_ID_OFFSET = 68
_FILE_HEADER_BYTES = 100

_GET = "SELECT value FROM pairs WHERE key = ?"
_SCAN = "SELECT key, value FROM pairs WHERE key >= ? AND key < ? ORDER BY key"
_PUT = "INSERT OR REPLACE INTO pairs (key, value) VALUES (?, ?)"
_DELETE = "DELETE FROM pairs WHERE key = ?"


class SQLiteStore:
    """A :class:`~dedup_middleware.protocols.Store` on the SQLite file *path*.

    Batches without *sync* survive the process's death; a batch with *sync* survives a power failure, and with it all
    that were written before.
    """

    def __init__(self, path: Path) -> None:
        """Open *path*; SQLite makes an empty file where there is none."""
        self.uri = f"sqlite:{path}"
        self._path = path
        self._db: sqlite3.Connection | None = self._connection()
        self._scans: set[sqlite3.Connection] = set()

    def create(self, seed: tuple[bytes, bytes]) -> bool:
        """Make the table with the pair *seed* in it, if the file has no content; return whether it was so."""
        db = self._live()
        with self._refusing("open"):
            if db.execute("PRAGMA page_count").fetchone() != (0,):
                return False
            # Marker, table and header in one transaction, before WAL: killed in between, the file is empty again.
            with _transaction(db):
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute("CREATE TABLE pairs (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
                db.execute(_PUT, seed)
        return True

    def tune(self) -> None:
        """Turn on WAL, where scans and writes do not hinder each other and a batch does not wait for the medium."""
        db = self._live()
        with self._refusing("open"):
            (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
            db.execute("PRAGMA synchronous = NORMAL")
        if mode != "wal":
            raise refusals.failed(self._path, "open", f"its file system allows journal mode {mode!r} only, not WAL")

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """See Store; about 7 µs a key when the file is warm."""
        execute = self._live().execute
        with self._refusing("read"):
            rows = [execute(_GET, (key,)).fetchone() for key in keys]
        return [None if row is None else row[0] for row in rows]

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
                while True:
                    self._live()
                    row = cursor.fetchone()
                    if row is None:
                        return
                    yield row
            finally:
                self._scans.discard(reader)
                reader.close()

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = (), *, sync: bool = False) -> None:
        """See Store; one transaction. A failed one is rolled back, and the store can be used further."""
        db = self._live()
        with self._refusing("write"), _synchronous(db) if sync else nullcontext(), _transaction(db):
            db.executemany(_DELETE, ((key,) for key in deletes))
            db.executemany(_PUT, puts)
            if sync:
                # A transaction that changes nothing (deletes of absent keys) would write no frame and so sync none.
                db.execute("PRAGMA user_version = 1")

    def close(self) -> None:
        """See Store; ends scans that are under way."""
        db, self._db = self._db, None
        if db is not None:
            with self._refusing("close"):
                for reader in list(self._scans):
                    reader.close()
                db.close()

    def _connection(self) -> sqlite3.Connection:
        # Two crawlers of one process may come from different threads, one at a time. isolation_level=None: the module
        # begins no transactions of its own. Nobody who keeps to our lock makes us wait; a stranger may for a second.
        with self._refusing("open"):
            return sqlite3.connect(self._path, timeout=1.0, isolation_level=None, check_same_thread=False)

    def _live(self) -> sqlite3.Connection:
        if self._db is None:
            raise refusals.closed(self.uri)
        return self._db

    @contextmanager
    def _refusing(self, action: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            refusal = _refusal(self._path, action, error)
            if refusal is None:
                raise
            raise refusal from error


def _refusal(path: Path, action: str, error: sqlite3.DatabaseError) -> StoreError | None:
    detail = str(error)
    # The module raises the base class itself for SQLITE_CORRUPT and SQLITE_NOTADB; error codes need Python 3.11.
    if type(error) is sqlite3.DatabaseError or "no such table" in detail:
        return refusals.corrupt(path, detail)
    if not isinstance(error, sqlite3.OperationalError):
        return None
    # Our own lock was free, so this is a program that opened the file by itself.
    return refusals.locked(path) if "locked" in detail else refusals.failed(path, action, detail)


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
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


def look(path: Path) -> Place:
    """Return what is at *path*, by the application id; never writes, and never lets SQLite touch a stranger's file."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        status = None
    if status is None or (stat.S_ISREG(status.st_mode) and status.st_size == 0):
        # SQLite deletes the WAL of an empty file, and with it the batches that are nowhere else.
        return Place.FOREIGN if _beside(path, "-wal").exists() else Place.FREE
    if not stat.S_ISREG(status.st_mode):
        return Place.FOREIGN
    with path.open("rb") as file:
        start = file.read(_FILE_HEADER_BYTES)
    application_id = int.from_bytes(start[_APPLICATION_ID_OFFSET : _APPLICATION_ID_OFFSET + 4], "big")
    return Place.OURS if start.startswith(_MAGIC) and application_id == APPLICATION_ID else Place.FOREIGN


def lock_path(path: Path) -> Path:
    """Return the path of the file to lock for the store at *path*."""
    return _beside(path, ".lock")


def connect(path: Path, seed: tuple[bytes, bytes]) -> tuple[SQLiteStore, bool]:
    """Open the store at *path*, or create it with the pair *seed* in it; return it and whether it was created."""
    # SQLite opens a file that it may only read without a word; this fails now and not at the first page.
    path.open("ab").close()
    store = SQLiteStore(path)
    try:
        created = store.create(seed)
        store.tune()
    except BaseException:
        store.close()
        raise
    return store, created


def remove(path: Path) -> None:
    """Remove the store's files, the marked one last: what is left by an interruption is still recognisably ours.

    The lock file stays: unlinking a lock splits those who wait for it from those who come later.
    """
    for suffix in ("-wal", "-shm", "-journal"):
        _beside(path, suffix).unlink(missing_ok=True)
    path.unlink()


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
