"""Keeps the overrides: pairs of pages that a person has marked as different."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec

from dedup_middleware.index import schema
from dedup_middleware.model import now

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from dedup_middleware.model import StoredPage
    from dedup_middleware.stores import OpenStore


_Identities = Annotated[tuple[schema.Identity, ...], msgspec.Meta(min_length=1)]


class Override(NamedTuple):
    """Two pages that a person has marked as different."""

    url: str
    original_url: str
    time: str
    """When: ISO 8601, UTC, to the second."""
    identities: _Identities
    original_identities: _Identities
    item_keys: tuple[str, ...] = ()
    """Those of the dropped items of the page that were to be released, as records show them."""

    @classmethod
    def of(cls, page: StoredPage, original: StoredPage, item_keys: Iterable[str] = ()) -> Override:
        """Return the override, made now, for *page* and the *original* that it was a duplicate of."""
        urls = schema.whole(page.url), schema.whole(original.url)
        return cls(*urls, now(), page.identities, original.identities, tuple(map(schema.whole, item_keys)))

    @property
    def key(self) -> bytes:
        """Its key in a store."""
        return schema.OVERRIDES[0] + self.identities[0] + self.original_identities[0]

    def encode(self) -> tuple[bytes, bytes]:
        """Return its pair in a store."""
        return self.key, schema.encode(self)


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
    return (schema.decode(Override, value) for _, value in store.scan(*schema.OVERRIDES))
