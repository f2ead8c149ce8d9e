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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dedup_middleware import permissions
from dedup_middleware.delivery import item_codec, quarantine_file
from dedup_middleware.errors import QuarantineError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from os import PathLike

    from typing_extensions import Self

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
    """The item as it was, but for fields that cannot be stored; a dict where its class cannot be imported here."""


class Quarantine:
    """The items in one file; :class:`QuarantineError` is all that its methods raise."""

    def __init__(self, path: Path, *, bound: int, age: timedelta | None = None) -> None:
        """Open the file at *path*, or make it; what is older than *age* goes, and what is beyond *bound* bytes."""
        self.path = path
        self._bound = bound
        with self._named():
            permissions.make_folder(path.parent)
            permissions.make_file(path)
            self._database = quarantine_file.connected(path)
        try:
            with self._named():
                quarantine_file.prepare(self._database)
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
        with quarantine_file.failing(path):
            there = path.exists()
        return cls(path, bound=2**63 - 1) if there else None

    # --- what a crawl does

    def keep(self, *, identity: bytes, item: Any, **described: Any) -> tuple[int, dict[str, type]]:
        """Add an *item*, as dropped now; the oldest go where there is no room for it. 0.2 ms.

        Return its number, and the fields that could not be stored, each with the class of its value. *identity* and
        *described* are fields of :class:`QuarantinedItem`. `item_codec.UnkeepableError` for an item of a class that
        cannot be stored.
        """
        data, left_out = item_codec.encode(item)
        value = zlib.compress(data, 1)
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
            return inserted.lastrowid, left_out

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

    def last_run(self) -> str:
        """Return the crawl that has dropped an item last; empty where none has."""
        with self._named():
            row = self._database.execute("SELECT run FROM items ORDER BY number DESC LIMIT 1").fetchone()
        return "" if row is None else str(row[0])

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
        with quarantine_file.failing(self.path):
            yield


def open_quarantine(path: str | PathLike[str]) -> Quarantine:
    """Open the items that crawls have dropped, to be read: the file beside their log, ``log.quarantine``.

    ``pandas.DataFrame(map(asdict, open_quarantine(path)))`` has a row for each. Classes of items are imported from the
    project; outside of it, items are dicts. :class:`QuarantineError` if there is no such file, or it cannot be read.
    """
    quarantine = Quarantine.existing(Path(path))
    if quarantine is None:
        raise QuarantineError(
            f"there is no quarantine at {path}; it is beside the log of a crawl that has dropped items"
        )
    return quarantine


def _now(ago: timedelta = timedelta(0)) -> str:
    return (datetime.now(timezone.utc) - ago).isoformat(timespec="milliseconds")


def _text(value: Any) -> Any:
    """Return *value* without lone surrogates, of which SQLite has none."""
    return value.encode("utf8", "backslashreplace").decode() if isinstance(value, str) else value
