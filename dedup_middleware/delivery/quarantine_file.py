"""The medium of the quarantine: a SQLite database that is ours, and what is said where it fails."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dedup_middleware.errors import PATH_ERRORS, QuarantineError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Seconds for which another process is waited for: it has the file for less than one of a thousand.
PATIENCE = 2.0
# "dedQ", for whoever looks what kind of file it is.
_APPLICATION_ID = 0x64656451
_SCHEMA = """
CREATE TABLE IF NOT EXISTS items (
    number INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, spider TEXT NOT NULL, run TEXT NOT NULL,
    url TEXT NOT NULL, host TEXT NOT NULL, owner_url TEXT NOT NULL, score REAL NOT NULL, identity BLOB NOT NULL,
    type TEXT NOT NULL, value BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS pages ON items (identity);
"""


def remove_quarantine(path: Path) -> bool:
    """Remove the file and return whether there was one."""
    with failing(path):
        there = path.exists()
        for name in (path, path.with_name(f"{path.name}-journal")):
            name.unlink(missing_ok=True)
    return there


def connected(path: Path) -> sqlite3.Connection:
    """Open the file at *path*: each statement is a transaction, and none waits for the disk."""
    database = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    try:
        database.execute("PRAGMA journal_mode = TRUNCATE").fetchall()
        database.execute("PRAGMA synchronous = OFF")
    except sqlite3.Error:
        database.close()
        raise
    return database


@contextmanager
def failing(path: Path) -> Iterator[None]:
    """Turn what a medium or SQLite raises into one line."""
    try:
        yield
    except sqlite3.OperationalError as error:
        remedy = "make room on its disk, make it writable, or set DEDUP_QUARANTINE = 0"
        raise QuarantineError(f"the quarantine {path} cannot be used ({error}); {remedy}") from error
    except sqlite3.Error as error:
        raise QuarantineError(
            f"the quarantine {path} is damaged, or is something else ({error}); move it away, or set "
            "DEDUP_QUARANTINE = 0"
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL or a lone surrogate in the path
        refusal = QuarantineError(
            f"the quarantine {path} cannot be used ({getattr(error, 'strerror', None) or error}); "
            "make it and its folder writable, or set DEDUP_QUARANTINE = 0"
        )
        refusal.misnamed = isinstance(error, OSError) and error.errno in PATH_ERRORS
        raise refusal from error


def prepare(database: sqlite3.Connection) -> None:
    """Make the tables where there are none; ``sqlite3.Error`` where they are another program's."""
    has_tables = database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    (owner,) = database.execute("PRAGMA application_id").fetchone()
    if has_tables and owner != _APPLICATION_ID:
        raise sqlite3.NotSupportedError("it belongs to another program")
    if not has_tables:
        database.executescript(f"PRAGMA application_id = {_APPLICATION_ID};{_SCHEMA}")
