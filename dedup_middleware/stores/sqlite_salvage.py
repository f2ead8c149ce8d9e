"""What can still be read of a damaged SQLite store.

It reads the store and writes to a scratch folder only.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from dedup_middleware import permissions
from dedup_middleware.stores import refusals
from dedup_middleware.stores.layout import ID_KEY
from dedup_middleware.stores.sqlite import SCHEME
from dedup_middleware.stores.sqlite_sums import is_whole, salt_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_FORWARDS = "SELECT key, value, checksum FROM pairs WHERE key >= ? AND key < ? ORDER BY key"
_END = b"\xff" * 64
_BACKWARDS = _FORWARDS + " DESC"


def files(path: Path) -> list[Path]:
    """Return the files that hold the store's content."""
    return [file for file in (path, path.with_name(path.name + "-wal")) if file.exists()]


@contextmanager
def salvaged(path: Path, scratch: Path) -> Iterator[Callable[[bytes, bytes], Iterator[tuple[bytes, bytes]]]]:
    """Copy the database to the new folder *scratch* and hand out a scan of the rows of the copy that are whole."""
    permissions.make_folder(scratch)
    for file in files(path):
        shutil.copyfile(file, scratch / file.name)
    with (
        closing(sqlite3.connect(scratch / path.name, isolation_level=None)) as db,
        closing(sqlite3.connect(scratch / f"{path.name}.whole", isolation_level=None)) as whole,
    ):
        try:
            ((store_id,),) = db.execute("SELECT value FROM pairs WHERE key = ?", (ID_KEY,)).fetchall() or [(b"",)]
        except sqlite3.DatabaseError as error:
            raise refusals.beyond_repair(f"{SCHEME}:{path}", str(error)) from error

        # Of any other type, it is damaged, and no row will be whole.
        salt = salt_of(store_id if isinstance(store_id, bytes) else b"")

        # Read once: where a tree is damaged, two ways to a row need not both lead there.
        whole.execute("CREATE TABLE whole (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
        whole.execute("BEGIN")
        whole.executemany("INSERT OR IGNORE INTO whole VALUES (?, ?)", _rows(db, b"", _END, salt))

        def scan(start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
            yield from whole.execute(
                "SELECT key, value FROM whole WHERE key >= ? AND key < ? ORDER BY key", (start, stop)
            )

        yield scan


def _rows(db: sqlite3.Connection, start: bytes, stop: bytes, salt: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the whole rows of a range: up to the first rotten page, then, from smaller ranges, what lies behind it.

    Two bytes are enough to come within a few pages of the rot: keys are hashes or numbers after their first byte.
    """
    last = start
    try:
        for row in db.execute(_FORWARDS, (start, stop)):
            if is_whole(row, salt):
                last = row[0]
                yield row[:2]
    except sqlite3.DatabaseError:
        for number in range(int.from_bytes(last[:2].ljust(2, b"\0"), "big"), 1 << 16):
            low, high = number.to_bytes(2, "big"), (number + 1).to_bytes(3, "big").removeprefix(b"\0")
            # The last range of all ends where keys do.
            high = stop if number == (1 << 16) - 1 else min(high, stop)
            if low < stop:
                yield from sorted(_both_ways(db, max(low, last + b"\0"), high, salt).items())


def _both_ways(db: sqlite3.Connection, start: bytes, stop: bytes, salt: int) -> dict[bytes, bytes]:
    found = {}
    for query in (_FORWARDS, _BACKWARDS):
        try:
            for row in db.execute(query, (start, stop)):
                if is_whole(row, salt):
                    found[row[0]] = row[1]
        except sqlite3.DatabaseError:
            continue
        break
    return found
