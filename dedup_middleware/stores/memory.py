"""Keeps pairs in memory: a store of its own, or the changes to another store that are not written to it (yet)."""

from __future__ import annotations

from heapq import merge
from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from dedup_middleware.errors import StoreError
from dedup_middleware.stores.base import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

# Bytes of two objects and their places in a dict and a sorted list: CPython 3.11, measured.
_OVERHEAD = 130


class MemoryStore(Store):
    """A store that ends with its ``close()``; *sync* does nothing.

    Over another store, it reads that store too, and keeps what is written to itself: for dry runs and transactions.
    """

    uri = "memory:"

    def __init__(self, below: Store | None = None, *, room: int | None = None) -> None:
        """Make an empty store, or one over *below*. Once its pairs take more than *room* bytes, writing fails."""
        self.changes: dict[bytes, bytes | None] = {}
        """What was written, sorted since the first scan; ``None`` for what was deleted from the store below."""
        self._below = below
        self._room = room
        self._used = 0
        if below is not None:
            self.uri, self.caution, self.worker = below.uri, below.caution, below.worker

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        changes = self.changes
        if self._below is None:
            return [*map(changes.get, keys)]
        unchanged = [key for key in keys if key not in changes]
        values = self._below.get_many(unchanged) if unchanged else []
        if len(values) == len(keys):
            return values
        found = dict(zip(unchanged, values, strict=True))
        return [changes[key] if key in changes else found[key] for key in keys]

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See Store; copies the range's references, O(log n + length of the range)."""
        # Most transactions do not scan.
        self.changes = changes = self.changes if isinstance(self.changes, SortedDict) else SortedDict(self.changes)
        changed = {key: changes[key] for key in changes.irange(start, stop, inclusive=(True, False))}
        written = ((key, value) for key, value in changed.items() if value is not None)
        if self._below is None:
            return written
        below = self._below.scan(start, stop)
        return merge((pair for pair in below if pair[0] not in changed), written) if changed else below

    def write(self, puts: list[tuple[bytes, bytes]], deletes: list[bytes], *, sync: bool = False) -> None:  # noqa: ARG002
        changes = self.changes
        written = {**dict.fromkeys(deletes), **dict(puts)}
        if self._room is not None:
            self._used += sum(_size(key, value) - _size(key, changes.get(key)) for key, value in written.items())
        changes.update(written)
        if self._below is None:
            for key, value in written.items():
                if value is None:
                    del changes[key]
        if self._room is not None and self._used > self._room:
            self.close()
            raise StoreError(
                f"the store {self.uri} takes more than {self._room / 2**20:.0f} MB of memory",
                "set DEDUP_STORE to a store on a disk",
            )

    def close(self) -> None:
        """Forget what was written; the store below stays open."""
        self.changes = {}

    def changes_of_others(self) -> int:
        return 0 if self._below is None else self._below.changes_of_others()

    def is_at_work(self, worker: bytes) -> bool:
        return worker == self.worker if self._below is None else self._below.is_at_work(worker)


def _size(key: bytes, value: bytes | None) -> int:
    return 0 if value is None else len(key) + len(value) + _OVERHEAD
