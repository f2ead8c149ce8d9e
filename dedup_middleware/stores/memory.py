"""Stores in memory: one that ends with its crawl, and one over another store, for dry runs."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from heapq import merge
from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from dedup_middleware.errors import StoreError
from dedup_middleware.stores.base import Store
from dedup_middleware.stores.opened import OpenStore, Shared

if TYPE_CHECKING:
    from collections.abc import Iterator

# Of two objects and their places in a dict and a sorted list: CPython 3.11, measured.
_OVERHEAD = 130


class MemoryStore(Store):
    """A store that ends with its ``close()``; *sync* means nothing to it."""

    uri = "memory:"

    def __init__(self, room: int = sys.maxsize) -> None:
        """Make an empty store; each one is its own. Once its pairs take more than *room* bytes, it refuses to write."""
        self._pairs: SortedDict[bytes, bytes] = SortedDict()
        self._room = room
        self._used = 0

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """See Store; O(1) a key."""
        return [*map(self._pairs.get, keys)]

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See Store; copies the range's references, O(log n + length of the range)."""
        pairs = self._pairs
        return iter([(key, pairs[key]) for key in pairs.irange(start, stop, inclusive=(True, False))])

    def write(self, puts: list[tuple[bytes, bytes]], deletes: list[bytes], *, sync: bool = False) -> None:  # noqa: ARG002
        """See Store; O(log n) a key."""
        pairs = self._pairs
        for key in deletes:
            self._used -= _size(key, pairs.pop(key, None))
        for key, value in puts:
            self._used += _size(key, value) - _size(key, pairs.get(key))
            pairs[key] = value
        if self._used > self._room:
            self.close()
            limit = f"{self._room / 2**20:.0f} MB"
            raise StoreError(f"the store {self.uri} has grown beyond {limit}: name one on a disk in DEDUP_STORE")

    def close(self) -> None:
        """Forget everything."""
        self._pairs = SortedDict()


def _size(key: bytes, value: bytes | None) -> int:
    return 0 if value is None else len(key) + len(value) + _OVERHEAD


def overlaid(below: OpenStore, room: int) -> OpenStore:
    """Return a store that reads *below* and writes to memory, *room* bytes at most, for a dry run.

    Closing it closes *below*. In one that processes share, it reads what others write, and they read nothing of it.
    """
    undo = ExitStack()
    store = OverlayStore(below, room)
    undo.callback(store.close)
    shared = Shared(store, below.header, undo)
    return OpenStore(shared, created=below.created, leave=shared.close)


class OverlayStore(Store):
    """A store over another one, which it never writes to. What a transaction has written stays if it fails."""

    def __init__(self, below: OpenStore, room: int) -> None:
        self.uri = below.uri
        self.caution = below.caution
        self.worker = below.worker
        self._below = below
        # What was put, and what was deleted; they have no key in common.
        self._puts = MemoryStore(room)
        self._deleted: set[bytes] = set()

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """See Store; reads below what has not changed."""
        values = self._puts.get_many(keys)
        below = [k for k, value in zip(keys, values, strict=True) if value is None and k not in self._deleted]
        found = dict(zip(below, self._below.get_many(below), strict=True)) if below else {}
        return [found.get(key) if value is None else value for key, value in zip(keys, values, strict=True)]

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See Store; copies the changes in the range."""
        puts = dict(self._puts.scan(start, stop))
        hidden = puts.keys() | {key for key in self._deleted if start <= key < stop}
        return merge(puts.items(), (pair for pair in self._below.scan(start, stop) if pair[0] not in hidden))

    def write(self, puts: list[tuple[bytes, bytes]], deletes: list[bytes], *, sync: bool = False) -> None:
        self._puts.write(puts, deletes, sync=sync)
        self._deleted.update(deletes)
        self._deleted.difference_update(key for key, _ in puts)

    def close(self) -> None:
        """Forget the changes and close the store below."""
        self._puts.close()
        self._below.close()

    def changes_of_others(self) -> int:
        return self._below.changes_of_others()

    def is_at_work(self, worker: bytes) -> bool:
        return self._below.is_at_work(worker)
