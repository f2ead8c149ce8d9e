"""Pairs of pages that a person has told apart: neither is ever a duplicate of the other again.

All of them are in memory, for there are as many as somebody has cared to correct: hundreds, and most stores have none.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware import times
from dedup_middleware.errors import UnreadableError
from dedup_middleware.index import codec
from dedup_middleware.stores import refusals

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage
    from dedup_middleware.stores.protocol import Store


class Correction(NamedTuple):
    """What a person has said of two pages."""

    url: str
    owner_url: str
    time: str
    """When: ISO 8601, UTC, to the second."""
    identities: tuple[bytes, ...]
    owner_identities: tuple[bytes, ...]

    @property
    def key(self) -> bytes:
        """That of the store."""
        return codec.correction_key(self.identities[0], self.owner_identities[0])


class Corrections:
    """The corrections in a store, as they were when it was opened."""

    def __init__(self, store: Store) -> None:
        self._apart: defaultdict[bytes, set[bytes]] = defaultdict(set)
        for each in read_corrections(store):
            self.note(each)

    def note(self, correction: Correction) -> None:
        """Note one more."""
        for identity in correction.identities:
            self._apart[identity].update(correction.owner_identities)
        for identity in correction.owner_identities:
            self._apart[identity].update(correction.identities)

    def tell_apart(self, page: Collection[bytes], other: Collection[bytes]) -> bool:
        """Tell whether the pages with these identities were told apart. O(identities)."""
        return bool(self._apart) and any(not self._apart[i].isdisjoint(other) for i in page if i in self._apart)


def correct(index: Index, page: StoredPage, *, owns: bool) -> None:
    """Never let *page*, a duplicate, repeat its owner again, nor that one it. One synced batch.

    With *owns* it was delivered by other means, and owns its text from now on.
    """
    index.atomically(partial(_correct, index, page, owns=owns))


def _correct(index: Index, page: StoredPage, *, owns: bool) -> None:
    owner = None if page.owner is None else index.page(page.owner)
    batch = index.batch()
    if owner is not None:
        told = correction(page, owner)
        batch.puts.append(encoded(told))
        index.corrections.note(told)
    if owns and page.owner is not None:
        # Whatever feeds there are, who asked for it has got it.
        delivery = replace(page.delivery, feeds=None)
        stored = replace(page, owner=None, owner_digest=b"", score=0.0, delivery=delivery)
        with refusals.of_value(index.store.uri, UnreadableError):
            batch.replace([page], page.number, stored)
        batch.put_page(stored, None)
        batch.deletes.append(codec.request_key(page.number))
    batch.write(sync=True)
    index.touch([page])


def forget(index: Index, told: Iterable[Correction]) -> None:
    """Let these pages be judged as any others, from the next crawl on. One synced batch."""
    index.store.write([], [each.key for each in told], sync=True)


def correction(page: StoredPage, owner: StoredPage) -> Correction:
    """Return what says, from now on, that *page* is no duplicate of *owner*."""
    now = times.now()
    return Correction(page.url, owner.url, now, page.identities, owner.identities)


def encoded(told: Correction) -> tuple[bytes, bytes]:
    """Return the pair that a store keeps of a correction."""
    *texts, identities, owner_identities = told
    value = [*texts, [i.hex() for i in identities], [i.hex() for i in owner_identities]]
    return told.key, json.dumps(value).encode()


def decoded(value: bytes) -> Correction:
    """Return what :func:`encoded` made *value* of; :class:`UnreadableError`."""
    try:
        url, owner_url, time, *identities = json.loads(value)
        (page, owner) = (tuple(map(bytes.fromhex, each)) for each in identities)
    except (ValueError, TypeError) as error:
        raise UnreadableError(f"a correction cannot be read: {error}") from error
    if not page or not owner:
        raise UnreadableError("a correction cannot be read: it is of no page")
    return Correction(str(url), str(owner_url), str(time), page, owner)


def read_corrections(store: Store) -> Iterator[Correction]:
    """Yield the corrections in *store*; :class:`UnreadableError` for one that cannot be read."""
    return (decoded(value) for _, value in store.scan(*codec.CORRECTIONS))
