"""Overrides: pairs of pages that a person has marked as different. Neither is a duplicate of the other again.

All of them are in memory: there are as many as a person has cared to write, and most stores have none.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dedup_middleware import times
from dedup_middleware.errors import UnreadableError
from dedup_middleware.index import schema

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from dedup_middleware.model import StoredPage
    from dedup_middleware.stores import OpenStore

# Of a value: far more than two URLs and some identities take.
_MAX_BYTES = 2**20


class Override(NamedTuple):
    """Two pages that a person has marked as different."""

    url: str
    original_url: str
    time: str
    """When: ISO 8601, UTC, to the second."""
    identities: tuple[bytes, ...]
    original_identities: tuple[bytes, ...]

    @classmethod
    def of(cls, page: StoredPage, original: StoredPage) -> Override:
        """Return the override, made now, for *page* and the *original* that it was a duplicate of."""
        return cls(page.url, original.url, times.now(), page.identities, original.identities)

    @property
    def key(self) -> bytes:
        """Its key in a store."""
        return schema.override_key(self.identities[0], self.original_identities[0])

    def encode(self) -> tuple[bytes, bytes]:
        """Return the pair of a store."""
        return self.key, msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, value: bytes) -> Override:
        """Return the override that *value* encodes; :class:`UnreadableError`."""
        try:
            if len(value) > _MAX_BYTES:
                raise UnreadableError("an override has too long a value")
            override = msgspec.msgpack.decode(value, type=Override)
        except ValueError as error:
            raise UnreadableError("an override cannot be read") from error
        if not override.identities or not override.original_identities:
            raise UnreadableError("an override cannot be read: a page has no identity")
        return override


class Overrides:
    """The overrides in a store, as they were when it was opened."""

    def __init__(self, store: OpenStore) -> None:
        self._apart: defaultdict[bytes, set[bytes]] = defaultdict(set)
        for each in read_overrides(store):
            for identity in each.identities:
                self._apart[identity].update(each.original_identities)
            for identity in each.original_identities:
                self._apart[identity].update(each.identities)

    def mark(self, page: Collection[bytes], other: Collection[bytes]) -> bool:
        """Return whether the pages with these identities are marked as different. O(identities)."""
        return bool(self._apart) and any(not self._apart[i].isdisjoint(other) for i in page if i in self._apart)


def read_overrides(store: OpenStore) -> Iterator[Override]:
    """Yield the overrides in *store*; :class:`UnreadableError` for one that cannot be read."""
    return (Override.decode(value) for _, value in store.scan(*schema.OVERRIDES))
