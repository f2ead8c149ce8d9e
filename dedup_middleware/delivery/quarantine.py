"""The quarantine: a file of the items that were dropped, as they were, so that a wrong verdict costs nothing.

One SQLite file, bounded by size and age. Each item is committed for itself, without waiting for the disk: what a
process has written outlives the process, however that ends, but not the power. Several processes may share the file.
"""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from dedup_middleware import permissions
from dedup_middleware.delivery import item_codec
from dedup_middleware.errors import PATH_ERRORS, QuarantineError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from typing_extensions import Self

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
# What a row takes beside its longer fields, and the pages that inserting it may split, one of each tree.
_ROW_BYTES = 200
_SPLIT_PAGES = 4
# Rows that are read at a time, for a reader that is slow must not keep a crawl from writing.
_AT_A_TIME = 100
_COLUMNS = "number, time, spider, run, url, host, owner_url, score, identity, type, value"


@dataclass(frozen=True, slots=True)
class QuarantinedItem:
    """An item that was dropped."""

    number: int
    """Its place in the order in which items were dropped."""
    time: str
    """When it was dropped: UTC, ISO 8601."""
    spider: str
    run: str
    url: str
    """The page that it is from."""
    host: str
    owner_url: str
    """The page that this one was said to repeat."""
    score: float
    """Share of the page's live text that the owner holds, 0-1."""
    identity: bytes
    """16 bytes of the page, as the store knows it."""
    type: str
    """Its class: ``module:qualified.name``."""
    item: Any
    """The item as it was; a dict where its class cannot be imported here."""


class Quarantine:
    """The items in one file; :class:`QuarantineError` is all that its methods raise."""

    def __init__(self, path: Path, *, bound: int, age: timedelta | None = None) -> None:
        """Open the file at *path*, or make it; what is older than *age* goes, and what is beyond *bound* bytes."""
        self.path = path
        self._bound = bound
        with self._named():
            permissions.make_folder(path.parent)
            permissions.make_file(path)
            self._database = _connected(path)
        try:
            with self._named():
                self._prepare()
                self._page_size = self._pragma("page_size")
                if age is not None:
                    self._evict_before(_now(age))
                self._shrink()
        except QuarantineError:
            self._database.close()
            raise

    @classmethod
    def existing(cls, path: Path) -> Self | None:
        """Open the file at *path* as it is, nothing of it goes; ``None`` where there is none."""
        with _failing(path):
            there = path.exists()
        return cls(path, bound=2**63 - 1) if there else None

    # --- what a crawl does

    def keep(self, *, identity: bytes, item: Any, **described: Any) -> int:
        """Add an *item*, as dropped now, and return its number; the oldest go where there is no room for it.

        *identity* and *described* are fields of :class:`QuarantinedItem`. `item_codec.UnkeepableError` for an item
        that could not be had back. 0.1 ms.
        """
        value = zlib.compress(item_codec.encode(item), 1)
        row = {
            **described,
            "time": _now(),
            "identity": identity,
            "type": item_codec.name_of(type(item)),
            "value": value,
        }
        with self._named(), self._transaction():
            self._make_room(sum(len(v) for v in row.values() if not isinstance(v, float)))
            names = ", ".join(row)
            inserted = self._database.execute(
                f"INSERT INTO items ({names}) VALUES ({', '.join(f':{name}' for name in row)})",  # noqa: S608
                {name: _text(v) for name, v in row.items()},
            )
            assert inserted.lastrowid is not None
            return inserted.lastrowid

    def take_out(self, numbers: Collection[int]) -> None:
        """Forget these items."""
        with self._named(), self._transaction():
            self._database.executemany("DELETE FROM items WHERE number = ?", [(number,) for number in numbers])

    def supersede(self, identity: bytes, but: Collection[int]) -> None:
        """Forget the items of a page *but* these: the page was seen again, and they are what it has."""
        with self._named():
            rows = self._database.execute("SELECT number FROM items WHERE identity = ?", (identity,)).fetchall()
        if earlier := [number for (number,) in rows if number not in but]:
            self.take_out(earlier)

    # --- what people do

    def __iter__(self) -> Iterator[QuarantinedItem]:
        """Yield the items in the order in which they were dropped; those that come meanwhile may be among them."""
        last = 0
        while True:
            with self._named():
                rows = self._database.execute(
                    f"SELECT {_COLUMNS} FROM items WHERE number > ? ORDER BY number LIMIT {_AT_A_TIME}",  # noqa: S608
                    (last,),
                ).fetchall()
            if not rows:
                return
            last = rows[-1][0]
            yield from map(self._item, rows)

    def __len__(self) -> int:
        with self._named():
            (count,) = self._database.execute("SELECT count(*) FROM items").fetchone()
        return int(count)

    def has(self, identity: bytes) -> bool:
        """Tell whether there is any item of a page."""
        with self._named():
            found = self._database.execute("SELECT 1 FROM items WHERE identity = ? LIMIT 1", (identity,))
            return found.fetchone() is not None

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._pages * self._page_size

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        with self._named():
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- inside

    def _prepare(self) -> None:
        has_tables = self._database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        if has_tables and self._pragma("application_id") != _APPLICATION_ID:
            raise sqlite3.NotSupportedError("it belongs to another program")
        if not has_tables:
            self._database.executescript(f"PRAGMA application_id = {_APPLICATION_ID};{_SCHEMA}")

    def _item(self, row: tuple[Any, ...]) -> QuarantinedItem:
        try:
            fields = (*row[:-1], item_codec.decode(zlib.decompress(row[-1])))
            return QuarantinedItem(*fields)
        except (ValueError, TypeError, zlib.error) as error:
            raise QuarantineError(
                f"item {row[0]} of the quarantine {self.path} is damaged ({error}); "
                "move the file away, or remove it: `scrapy dedup reset --log`"
            ) from error

    def _make_room(self, length: int) -> None:
        """Let the oldest go until an item of *length* bytes fits, or none is left."""
        needed = (length + _ROW_BYTES) // (self._page_size - 4) + _SPLIT_PAGES
        allowed = self._bound // self._page_size - needed
        while self._pages - self._pragma("freelist_count") > allowed:
            if not self._database.execute("DELETE FROM items WHERE number = (SELECT min(number) FROM items)").rowcount:
                return

    def _evict_before(self, moment: str) -> None:
        # They are in the order of time, so that this need not look at all of them.
        first = self._database.execute(
            "SELECT number FROM items WHERE time >= ? ORDER BY number LIMIT 1", (moment,)
        ).fetchone()
        with self._transaction():
            self._database.execute("DELETE FROM items WHERE number < ?", first or (2**63 - 1,))

    def _shrink(self) -> None:
        """Give back what a smaller bound than before leaves no room for."""
        if self.size > self._bound:
            with self._transaction():
                self._make_room(0)
            self._database.execute("VACUUM")

    @property
    def _pages(self) -> int:
        return self._pragma("page_count")

    def _pragma(self, name: str) -> int:
        (value,) = self._database.execute(f"PRAGMA {name}").fetchone()
        return int(value)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite may have done it already
                self._database.execute("ROLLBACK")
            raise

    @contextmanager
    def _named(self) -> Iterator[None]:
        with _failing(self.path):
            yield


def remove_quarantine(path: Path) -> bool:
    """Remove the file and return whether there was one."""
    with _failing(path):
        there = path.exists()
        for name in (path, path.with_name(f"{path.name}-journal")):
            name.unlink(missing_ok=True)
    return there


def _connected(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    try:
        database.execute("PRAGMA journal_mode = TRUNCATE").fetchall()
        database.execute("PRAGMA synchronous = OFF")
    except sqlite3.Error:
        database.close()
        raise
    return database


@contextmanager
def _failing(path: Path) -> Iterator[None]:
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


def _now(ago: timedelta = timedelta(0)) -> str:
    return (datetime.now(timezone.utc) - ago).isoformat(timespec="milliseconds")


def _text(value: Any) -> Any:
    """Return *value* without lone surrogates, of which SQLite has none."""
    return value.encode("utf8", "backslashreplace").decode() if isinstance(value, str) else value
