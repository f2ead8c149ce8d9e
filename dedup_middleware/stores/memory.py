"""A store in memory: for tests, trials and crawls whose memory may end with them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from dedup_middleware.stores import refusals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


# Of CPython 3.11, measured.
_OVERHEAD = 130


class MemoryStore:
    """A :class:`~dedup_middleware.stores.protocol.Store` that ends with its ``close()``; *sync* means nothing to it."""

    uri = "memory:"

    def __init__(self, room: int = sys.maxsize) -> None:
        """Make an empty store; each one is its own. Once its pairs take more than *room* bytes, it forgets them all."""
        self._pairs: SortedDict[bytes, bytes] | None = SortedDict()
        self._room = room
        self._used = 0

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """See Store; O(1) a key."""
        pairs = self._live()
        return [pairs.get(key) for key in keys]

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See Store; copies the range's references, O(log n + length of the range)."""
        pairs = self._live()
        keys = pairs.irange(start, stop, inclusive=(True, False))
        return iter([(key, pairs[key]) for key in keys])

    def write(
        self,
        puts: Iterable[tuple[bytes, bytes]],
        deletes: Iterable[bytes] = (),
        *,
        sync: bool = False,  # noqa: ARG002 - nothing here outlives the process
    ) -> None:
        """See Store; O(log n) a key."""
        pairs = self._live()
        # Both are read to their end first: an iterable that raises must leave the store as it was.
        added, removed = dict(puts), list(deletes)
        for key in removed:
            self._used -= _size(key, pairs.pop(key, None))
        for key, value in added.items():
            self._used += _size(key, value) - _size(key, pairs.get(key))
        pairs.update(added)
        if self._used > self._room:
            self.close()
            raise refusals.full(self.uri, self._room)

    def close(self) -> None:
        """Forget everything."""
        self._pairs = None

    def _live(self) -> SortedDict[bytes, bytes]:
        if self._pairs is None:
            raise refusals.closed(self.uri)
        return self._pairs


def _size(key: bytes, value: bytes | None) -> int:
    """Return the bytes that a pair takes, about: two objects and their places in a dict and a sorted list."""
    return 0 if value is None else len(key) + len(value) + _OVERHEAD
