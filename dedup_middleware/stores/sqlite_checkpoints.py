"""How what is in the log of a SQLite database gets into its file, and when anybody waits for that.

SQLite itself does it after every 4 MB, in the write that happens to come then, with two syncs. Here a thread does, with
a connection of its own, which is in no writer's way. The next write that finds all of the log in the file begins it
anew, with one sync: sqlite.org/wal.html.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from dedup_middleware.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

# Rows that are written between two checkpoints, 400 pages of a crawl. Keys come in no order, so nearly each row changes
# a block of its own, 4 kB of log: 64 MB.
ROWS = 16_000
# Blocks, 256 MB. A log that is never in the file as a whole, for more is written all the time, grows up to that.
LONGEST_LOG = 64_000
# What is written while one is under way the next has to move, which takes less time.
_ATTEMPTS = 8


class Checkpoints:
    """Those of one connection that writes; *connect* opens another one to the same database."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._thread: threading.Thread | None = None
        self._rows = 0
        # How many blocks the log had when it could not be moved as a whole; 0 when it could.
        self._log = 0

    def note(self, db: sqlite3.Connection) -> None:
        """Note what *db* has written, in no transaction any more; begin a checkpoint where one is due. 0.2 µs."""
        rows = db.total_changes
        # SQLite counts up to 2³¹, and from below again.
        if 0 <= rows - self._rows < ROWS or (self._thread is not None and self._thread.is_alive()):
            return
        self._rows = rows
        # What fails here makes the log longer, and nothing else; whoever needs its disk hears of that by himself.
        if self._log > LONGEST_LOG:
            with suppress(sqlite3.Error):
                self._log = _begin_anew(db)
            return
        # Unless it ends well, the next one is waited for.
        self._log = LONGEST_LOG + 1
        # A daemon: a disk that never answers must not keep a process that was told twice to end.
        self._thread = threading.Thread(target=self._run, name="dedup-checkpoint", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Return when none is under way."""
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        with suppress(sqlite3.Error, StoreError), closing(self._connect()) as db:
            for _ in range(_ATTEMPTS):
                self._log = _moved(db, "PASSIVE")
                if not self._log:
                    return


def _moved(db: sqlite3.Connection, mode: str) -> int:
    """Move the log into the file; return how many blocks it has, 0 if all are there or somebody else is at it."""
    is_busy, blocks, moved = db.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
    return 0 if is_busy or blocks == moved else int(blocks)


def _begin_anew(db: sqlite3.Connection) -> int:
    """Do as :func:`_moved`, and let nobody write meanwhile, unless somebody is."""
    ((patience,),) = db.execute("PRAGMA busy_timeout")
    db.execute("PRAGMA busy_timeout = 0")
    try:
        return _moved(db, "RESTART")
    finally:
        db.execute(f"PRAGMA busy_timeout = {patience}")
