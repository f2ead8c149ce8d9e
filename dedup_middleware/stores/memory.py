"""A store in memory: for tests, trials and crawls whose memory may end with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from dedup_middleware.stores import refusals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class MemoryStore:
    """A :class:`~dedup_middleware.protocols.Store` that ends with its ``close()``; *sync* means nothing to it."""

    uri = "memory:"

    def __init__(self) -> None:
        """Make an empty store; each one is its own."""
        self._pairs: SortedDict[bytes, bytes] | None = SortedDict()

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
            pairs.pop(key, None)
        pairs.update(added)

    def close(self) -> None:
        """Forget everything."""
        self._pairs = None

    def _live(self) -> SortedDict[bytes, bytes]:
        if self._pairs is None:
            raise refusals.closed(self.uri)
        return self._pairs
