"""Stores the items that were dropped, so that each of them can be released.

    j<item key, 12>                  -> page number, 7; original's number, 7; zlib of a JSON header, a line end and the
                                        item, see `item_codec`
    v<page number, 7><item key, 12>  -> size of that value, 4; the crawl that the drop relies on, NUL, the crawl that
                                        dropped it
    r<item key, 12>                  -> to be released: JSON, see `Release`

An item key is the time of the drop in microseconds, 8 bytes, and 4 random ones: items sort by age, and processes that
share a store need no common counter.
"""

from __future__ import annotations

import json
import os
import struct
import time
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from dedup_middleware import bounded, item_codec
from dedup_middleware.errors import UnreadableError
from dedup_middleware.index import schema
from dedup_middleware.stores import refusals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dedup_middleware.index.in_doubt import InDoubt
    from dedup_middleware.stores import OpenStore

    Pair = tuple[bytes, bytes]

_HEAD = struct.Struct(">7s7s")
_SIZE = struct.Struct(">I")
# Bytes of an item and its header, unpacked: the header has some URLs. Of what else is stored, far more than we write.
_MAX_BYTES, _MAX_RELEASE = item_codec.MAX_BYTES + 2**20, 10_000


class Release(NamedTuple):
    """An item that is to be released."""

    key: bytes
    spider: str
    """The spider whose crawls may release it."""
    crawl: str
    """The only crawl that may; empty for any."""
    by_person: bool
    """Whether a person has allowed its page: then it is kept in any case."""
    worker: str = ""
    """The process that releases it, in a shared store: hexadecimal."""


@dataclass(frozen=True)
class DroppedItem:
    """An item that was dropped."""

    key: bytes
    number: int
    """The number of its page."""
    original: int
    """The number of the page that its page repeats."""
    spider: str
    run: str
    crawl: str
    """The only crawl that may release it after a crash; empty for any."""
    time: str
    """When it was dropped: UTC, ISO 8601."""
    url: str
    original_url: str
    score: float
    """Share of the page's text that the original contains, 0 to 1."""
    type: str
    """Its class: ``module:qualified.name``."""
    data: bytes

    @property
    def item(self) -> Any:
        """The item as it was; a dict if the project does not have its class. :class:`UnreadableError`."""
        try:
            return item_codec.decode(self.data)
        except ValueError as error:
            raise UnreadableError(f"a dropped item cannot be read: {error}") from error


class DroppedItems:
    """The dropped items of one open store.

    Methods that change them return pairs and keys for the batch that they belong to.
    """

    def __init__(self, store: OpenStore, in_doubt: InDoubt) -> None:
        self._store = store
        self._in_doubt = in_doubt
        self._size: int | None = None

    # --- a drop

    def pairs(self, number: int, original: int, relies_on: str, header: dict[str, Any], data: bytes) -> list[Pair]:
        """Return what stores an item of the page *number*, dropped now in favour of *original*.

        *relies_on* is the crawl that must make *original* durable; empty if it is. *header* has the fields of
        :class:`DroppedItem` that are not known otherwise.
        """
        now = time.time_ns() // 1_000
        key = now.to_bytes(8, "big") + os.urandom(4)
        moment = datetime.fromtimestamp(now / 1e6, timezone.utc).isoformat(timespec="milliseconds")
        head = json.dumps({**header, "time": moment}).encode("ascii")
        value = _HEAD.pack(schema.encode_number(number), schema.encode_number(original))
        value += zlib.compress(head + b"\n" + data, 1)
        crawls = f"{relies_on}\0{header['run']}".encode("utf8", "surrogatepass")
        return [(_item_key(key), value), (_page_key(number, key), _SIZE.pack(len(value)) + crawls)]

    def deletes(self, items: Iterable[DroppedItem]) -> list[bytes]:
        """Return the keys of these items, and that they are to be released."""
        return [key for item in items for key in self._keys(item.number, item.key)]

    def obsolete(self, number: int, run: str) -> list[bytes]:
        """Return the keys of the items of the page *number* that other crawls than *run* have dropped.

        The page was fetched again, and has the items that it has now. What is still to be released stays. One scan.
        """
        found = self._store.scan(*_page_range(number))
        keys = [_key_in(name) for name, value in found if _crawls(value)[1] != run]
        releases = self._store.get_many([*map(_release_key, keys)])
        pairs = zip(keys, releases, strict=True)
        return [each for key, release in pairs if release is None for each in self._keys(number, key)]

    @staticmethod
    def _keys(number: int, key: bytes) -> list[bytes]:
        return [_item_key(key), _page_key(number, key), _release_key(key)]

    # --- releases

    def lost_with(self, original: int, run: str) -> list[bytes]:
        """Return the keys of the items whose drops rely on the crawl *run* of *original*. A scan, and one a page."""
        pages = [schema.last_number(key) for key, _ in self._store.scan(*schema.repeat_range(original))]
        scanned = (pair for number in pages for pair in self._store.scan(*_page_range(number)))
        return [_key_in(name) for name, value in scanned if _crawls(value)[0] == run]

    def of_page(self, number: int) -> list[bytes]:
        """Return the keys of the items of the page *number*, oldest first. One scan."""
        return [_key_in(name) for name, _ in self._store.scan(*_page_range(number))]

    def to_release(self, items: Iterable[DroppedItem], *, by_person: bool = False) -> list[Pair]:
        """Return what marks these items as to be released; only a person marks again what is marked. One get.

        A process that is releasing an item goes on with it.
        """
        items = [*items]
        marks = self._store.get_many([_release_key(item.key) for item in items])
        workers = ("" if mark is None or not by_person else _release(b"", mark).worker for mark in marks)
        return [
            (_release_key(item.key), json.dumps([item.spider, item.crawl, by_person, worker]).encode())
            for item, mark, worker in zip(items, marks, workers, strict=True)
            if by_person or mark is None
        ]

    def releases(self, spider: str, run: str) -> Iterator[Release]:
        """Yield what the crawl *run* of *spider* is to release, oldest first. One scan."""
        for key, value in list(self._store.scan(*schema.RELEASES)):
            release = _release(key[1:], value)
            if release.spider == spider and release.crawl in ("", run):
                yield release

    def is_free(self, release: Release) -> bool:
        """Return whether no other process is carrying out *release*."""
        shared = self._store.shared
        if shared is None or release.worker in ("", shared.worker.hex()):
            return True
        return not shared.is_at_work(bytes.fromhex(release.worker))

    def take(self, release: Release) -> bool:
        """Return whether this process may carry out *release*, and write down that it does. In a transaction."""
        if self._store.shared is None:
            return True
        key = _release_key(release.key)
        (value,) = self._store.get_many([key])
        if value is None or not self.is_free(_release(release.key, value)):
            return False
        self._store.write([(key, json.dumps([*release[1:4], self._store.shared.worker.hex()]).encode())])
        return True

    # --- reading

    def get(self, keys: Iterable[bytes]) -> list[DroppedItem]:
        """Return the items with these keys that are there; :class:`StoreCorruptError` if one cannot be read."""
        keys = [*keys]
        values = self._store.get_many([*map(_item_key, keys)])
        with refusals.of_value(self._store.uri, UnreadableError):
            return [_decoded(key, value) for key, value in zip(keys, values, strict=True) if value is not None]

    def __iter__(self) -> Iterator[DroppedItem]:
        """Yield all dropped items, oldest first."""
        with refusals.of_value(self._store.uri, UnreadableError):
            for key, value in self._store.scan(*schema.DROPPED):
                yield _decoded(key[1:], value)

    @property
    def count(self) -> int:
        """How many there are. One scan of small values."""
        return sum(1 for _ in self._store.scan(*schema.DROPPED_OF_PAGES))

    @property
    def size(self) -> int:
        """Bytes of the dropped items. A scan of small values the first time."""
        if self._size is None:
            with refusals.of_value(self._store.uri, UnreadableError):
                self._size = sum(_size(value) for _, value in self._store.scan(*schema.DROPPED_OF_PAGES))
        return self._size

    # --- bounds

    def make_room(self, added: int, *, size: int, age: timedelta | None) -> None:
        """Remove the oldest items beyond *size* bytes in all, now that *added* bytes were written.

        The first call also removes those older than *age*. An item whose original is not durable stays, and so does one
        that is to be released.
        """
        is_first, self._size = self._size is None, self.size + added
        oldest = int((time.time() - age.total_seconds()) * 1e6) if is_first and age is not None else 0
        if self._size <= size and not oldest:
            return
        deletes: list[bytes] = []
        for key, value in self._store.scan(*schema.DROPPED):
            if self._size <= size and key[1:] >= oldest.to_bytes(8, "big"):
                break
            if self._may_go(key[1:], value):
                self._size -= len(value)
                deletes += self._keys(schema.decode_number(value), key[1:])
        self._store.write([], deletes)

    def _may_go(self, key: bytes, value: bytes) -> bool:
        number, original = _pages(value)
        described, release = self._store.get_many([_page_key(number, key), _release_key(key)])
        if release is not None:
            return False
        relies_on = "" if described is None else _crawls(described)[0]
        doubt = self._in_doubt.of(original) if relies_on else None
        return doubt is None or relies_on not in doubt.runs


def _item_key(key: bytes) -> bytes:
    return schema.DROPPED[0] + key


def _page_key(number: int, key: bytes) -> bytes:
    return schema.DROPPED_OF_PAGES[0] + schema.encode_number(number) + key


def _page_range(number: int) -> tuple[bytes, bytes]:
    return _page_key(number, b""), _page_key(number + 1, b"")


def _release_key(key: bytes) -> bytes:
    return schema.RELEASES[0] + key


def _key_in(page_key: bytes) -> bytes:
    return page_key[len(_page_key(0, b"")) :]


def _crawls(value: bytes) -> tuple[str, str]:
    """Return the crawl that a drop relies on, and the one that dropped the item."""
    try:
        relies_on, _, run = value[_SIZE.size :].decode("utf8", "surrogatepass").partition("\0")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"the crawl of a dropped item cannot be read: {error}") from error
    return relies_on, run


def _size(value: bytes) -> int:
    if len(value) < _SIZE.size:
        raise UnreadableError("the size of a dropped item is cut off")
    return int.from_bytes(value[: _SIZE.size], "big")


def _pages(value: bytes) -> tuple[int, int]:
    """Return the numbers of the page of an item, and of its original."""
    return schema.decode_number(value), schema.decode_number(value[schema.NUMBER_BYTES : _HEAD.size])


def _release(key: bytes, value: bytes) -> Release:
    try:
        fields = msgspec.convert(bounded.loads(value, values=_MAX_RELEASE), tuple[str, str, bool, str])
        bytes.fromhex(fields[-1])
    except ValueError as error:
        raise UnreadableError(f"the release of a dropped item cannot be read: {error}") from error
    return Release(key, *fields)


def _decoded(key: bytes, value: bytes) -> DroppedItem:
    try:
        number, original = _pages(value)
        head, _, data = bounded.unpacked(value[_HEAD.size :], _MAX_BYTES).partition(b"\n")
        known = {"key": key, "number": number, "original": original, "data": data}
        return msgspec.convert({**bounded.loads(head), **known}, DroppedItem)
    except (ValueError, TypeError) as error:
        raise UnreadableError(f"a dropped item cannot be read: {error}") from error
