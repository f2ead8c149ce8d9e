"""Stores the items that were dropped, so that each of them can be released.

    j<item key, 12>                  -> page number, 7; original's number, 7; zlib of a `DroppedItem`
    v<page number, 7><item key, 12>  -> `_Drop`
    r<item key, 12>                  -> to be released: `Release`

An item key is the time of the drop in microseconds, 8 bytes, and 4 random ones: items sort by age, and processes that
share a store need no common counter.
"""

from __future__ import annotations

import os
import time
import zlib
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.common import bounded
from dedup_middleware.errors import UnreadableError
from dedup_middleware.index import item_codec, schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dedup_middleware.model import StoredPage
    from dedup_middleware.stores import OpenStore

    KeyValue = tuple[bytes, bytes]

# The two numbers before the packed item.
_HEAD = 2 * schema.NUMBER_BYTES
#: Dropped items of a page that may be the same as an item, and are looked at: a page may have hundreds.
MOST_ALIKE = 16
# Bytes of an item, unpacked, with some URLs.
_MAX_BYTES = item_codec.MAX_BYTES + 2**20
# Of the digest of a basis.
_BASIS_BYTES = 8


class Release(NamedTuple):
    """An item that is to be released."""

    spider: str
    """The spider whose crawls may release it."""
    jobdir: str
    """The only JOBDIR whose crawl may; empty for any, and where a person has allowed its page."""
    by_person: bool
    """Whether a person has allowed its page: then it is kept in any case."""
    holder: bytes = b""
    """The process that releases it, or that has its feed open: no other releases it as long as that is at work."""
    key: bytes = b""
    """Empty where it is stored: it is in the key of the store."""


class _Drop(NamedTuple):
    same: bytes
    """16 bytes that are equal for all drops of the same item; empty for a kept item."""
    size: int
    """Bytes of the stored item."""


class DroppedItem(NamedTuple):
    """An item that was dropped."""

    number: int
    """The number of its page."""
    original: int
    """The number of the page that its page repeats; of an item that was kept, that of its own page."""
    spider: str
    crawl: str
    jobdir: str
    """The only JOBDIR whose crawl may release it; empty for any."""
    for_feed: bool
    """Whether a feed wanted it: then it waits for a crawl in which one does."""
    time: str
    """When it was dropped: UTC, ISO 8601."""
    url: str
    original_url: str
    score: float
    """Share of the page's text that the original contains, 0 to 1."""
    type: str
    """Its class: ``module:qualified.name``."""
    data: bytes
    basis: bytes = b""
    """Changes with what the drop rests on: the original's text and items. Empty if that is unknown, or it was kept."""
    key: bytes = b""
    """Empty where it is stored: it is in the key of the store."""

    @property
    def was_kept(self) -> bool:
        """Whether it was kept, and is stored until its feed has ended."""
        return self.number == self.original

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

    def __init__(self, store: OpenStore, holder: bytes) -> None:
        """*holder* is the name of this process among those that have had the store open."""
        self._store = store
        self.holder = holder
        self._size: int | None = None

    # --- a drop

    def pairs(self, item: DroppedItem, same: bytes = b"") -> list[KeyValue]:
        """Return what stores *item*, dropped now. Its own pair is first. *same* is equal for all drops of this item."""
        now = time.time_ns() // 1_000
        key = now.to_bytes(8, "big") + os.urandom(4)
        item = item._replace(time=datetime.fromtimestamp(now / 1e6, timezone.utc).isoformat(timespec="milliseconds"))
        try:
            packed = schema.encode(item)
        except UnicodeEncodeError:
            urls = {"url": schema.whole(item.url), "original_url": schema.whole(item.original_url)}
            packed = schema.encode(item._replace(**urls))  # type: ignore[arg-type]
        value = schema.encode_postings((item.number, item.original)) + zlib.compress(packed, 1)
        drop = _Drop(same, len(value))
        return [(_item_key(key), value), (_page_key(item.number, key), schema.encode(drop))]

    def kept_pairs(self, item: DroppedItem) -> list[KeyValue]:
        """Return what stores *item*, which is kept, until its feed has ended.

        It is marked as to be released, by other processes once this one is not at work any more.
        """
        pairs = self.pairs(item)
        release = Release(item.spider, item.jobdir, by_person=False, holder=self.holder)
        return [*pairs, (_release_key(pairs[0][0][1:]), schema.encode(release))]

    def deletes(self, items: Iterable[DroppedItem]) -> list[bytes]:
        """Return the keys of these items, and of their marks as to be released."""
        return [key for item in items for key in _keys(item.number, item.key)]

    def by_sameness(self, number: int) -> dict[bytes, dict[bytes, int]]:
        """Return the items of the page *number* that may be the same, together: their keys, and their sizes. A scan."""
        found: dict[bytes, dict[bytes, int]] = {}
        for key, drop in self.of_page(number).items():
            found.setdefault(drop.same, {})[key] = drop.size
        return found

    def replaceable(self, keys: Iterable[bytes]) -> list[DroppedItem]:
        """Return the first of the items with these *keys*, but for those that are to be released. Two gets, or none."""
        first = [*islice(keys, MOST_ALIKE)]
        items = self.get(first) if first else []
        releases = self._store.get_many([_release_key(item.key) for item in items]) if items else []
        return [item for item, release in zip(items, releases, strict=True) if release is None]

    def of_page(self, number: int) -> dict[bytes, _Drop]:
        """Return the keys of the items of the page *number*, oldest first, and what is known of each drop. One scan."""
        prefix = _page_key(number, b"")
        pairs = self._store.scan(*schema.within(prefix))
        return {key[len(prefix) :]: schema.decode(_Drop, value) for key, value in pairs}

    # --- releases

    def to_release(self, items: Iterable[DroppedItem], *, by_person: bool = False) -> list[KeyValue]:
        """Return what marks these items as to be released; only a person marks again what is marked. One get.

        A process that is releasing an item goes on with it.
        """
        items = [*items]
        marks = self._store.get_many([_release_key(item.key) for item in items])
        holders = (b"" if mark is None or not by_person else schema.decode(Release, mark).holder for mark in marks)
        return [
            (
                _release_key(item.key),
                schema.encode(Release(item.spider, "" if by_person else item.jobdir, by_person, holder)),
            )
            for item, mark, holder in zip(items, marks, holders, strict=True)
            if by_person or mark is None
        ]

    def releases(self, spider: str, jobdir: str) -> Iterator[Release]:
        """Yield what a crawl of *spider* is to release, oldest first; *jobdir* names its JOBDIR, if any. One scan."""
        for key, value in list(self._store.scan(*schema.RELEASES)):
            release = schema.decode(Release, value)
            if release.spider == spider and release.jobdir in ("", jobdir):
                yield release._replace(key=key[1:])

    def is_free(self, release: Release) -> bool:
        """Return whether no process at work is carrying out *release*, or has its feed open."""
        if not self._store.worker:
            return release.holder != self.holder
        return not release.holder or not self._store.is_at_work(release.holder)

    def take(self, release: Release) -> bool:
        """Return whether this process may carry out *release*, and write down that it does. In a transaction."""
        key = _release_key(release.key)
        (value,) = self._store.get_many([key])
        if value is None or not self.is_free(schema.decode(Release, value)):
            return False
        self._store.write([(key, schema.encode(release._replace(holder=self.holder, key=b"")))])
        return True

    def adopt(self, keys: Iterable[bytes], former: bytes) -> None:
        """Take over those of the marks with these *keys* that the process *former*, this one until now, has made."""
        keys = [key for key in keys if key[:1] == schema.RELEASES[0]]
        found = zip(keys, self._store.get_many(keys), strict=True) if keys else ()
        marks = [(key, schema.decode(Release, value)) for key, value in found if value is not None]
        ours = [(key, mark._replace(holder=self.holder)) for key, mark in marks if mark.holder == former]
        if ours:
            self._store.write([(key, schema.encode(mark)) for key, mark in ours])

    # --- reading

    def get(self, keys: Iterable[bytes]) -> list[DroppedItem]:
        """Return the items with these keys that are there; :class:`UnreadableError` if one cannot be read."""
        keys = [*keys]
        values = self._store.get_many([*map(_item_key, keys)])
        return [_decoded(key, value) for key, value in zip(keys, values, strict=True) if value is not None]

    def __iter__(self) -> Iterator[DroppedItem]:
        """Yield all dropped items, oldest first."""
        for key, value in self._store.scan(*schema.DROPPED):
            item = _decoded(key[1:], value)
            if not item.was_kept:
                yield item

    @property
    def count(self) -> int:
        """How many there are. One scan of small values."""
        return len(self._sizes())

    @property
    def size(self) -> int:
        """Bytes of the dropped items. A scan of small values the first time."""
        if self._size is None:
            self._size = sum(self._sizes())
        return self._size

    def _sizes(self) -> list[int]:
        drops = [schema.decode(_Drop, value) for _, value in self._store.scan(*schema.DROPPED_OF_PAGES)]
        return [drop.size for drop in drops if drop.same]

    # --- bounds

    def make_room(self, added: int, *, size: int, age: timedelta | None) -> None:
        """Remove the oldest items beyond *size* bytes in all, now that *added* bytes were written.

        The first call also removes those older than *age*. An item that is to be released stays.
        """
        is_first, self._size = self._size is None, self.size + added
        oldest = int((time.time() - age.total_seconds()) * 1e6) if is_first and age is not None else 0
        if self._size <= size and not oldest:
            return
        deletes: list[bytes] = []
        for key, value in self._store.scan(*schema.DROPPED):
            if self._size <= size and key[1:] >= oldest.to_bytes(8, "big"):
                break
            if self._store.get_many([_release_key(key[1:])]) == [None]:
                self._size -= len(value)
                deletes += _keys(schema.decode_number(value), key[1:])
        self._store.write([], deletes)


def basis_of(original: StoredPage) -> bytes:
    """Return bytes that change with the text of *original* and with what its items contain; empty if unknown.

    Times would not do: a clock may be set back.
    """
    content = original.item_content
    if content is None or not content.digest:
        return b""
    return sha256(original.content + original.exact_digest + content.digest).digest()[:_BASIS_BYTES]


def _item_key(key: bytes) -> bytes:
    return schema.DROPPED[0] + key


def _page_key(number: int, key: bytes) -> bytes:
    return schema.DROPPED_OF_PAGES[0] + schema.encode_number(number) + key


def _release_key(key: bytes) -> bytes:
    return schema.RELEASES[0] + key


def _keys(number: int, key: bytes) -> list[bytes]:
    return [_item_key(key), _page_key(number, key), _release_key(key)]


def _decoded(key: bytes, value: bytes) -> DroppedItem:
    packed = bounded.unpacked(value[_HEAD:], _MAX_BYTES)
    return schema.decode(DroppedItem, packed, _MAX_BYTES)._replace(key=key)
