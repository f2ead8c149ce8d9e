"""What one room may expect of another.

Law of this file: a store knows only bytes. Nothing here knows pages, clauses or Scrapy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dedup_middleware.errors import DedupError
    from dedup_middleware.takingback import TakenBack


@runtime_checkable
class Store(Protocol):
    """A sorted map of bytes to bytes, written in atomic batches.

    Keys and values are at most a few hundred kilobytes; keys are never empty. Keys sort bytewise. One thread at a time.
    Every method raises :class:`~dedup_middleware.errors.StoreError` when the medium fails or the store is closed.
    """

    uri: str
    """The URI that opens this store again."""

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, in order; ``None`` for one that is absent. O(len(keys) · log n)."""

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs with ``start <= key < stop`` in key order, as they were when ``scan`` was called."""

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = (), *, sync: bool = False) -> None:
        """Apply all deletes, then all puts, or nothing; with *sync*, return only when they are on the medium.

        A batch without *sync* survives the process, not a power failure; a later *sync* does not speak for it. After
        a write that failed, a store may refuse everything until it is opened again.
        """

    def close(self) -> None:
        """Release the store; scans under way end with a ``StoreError``. A second call does nothing."""


class Listener(Protocol):
    """Who hears what happens in a crawl, tells a person, and does what only the glue can."""

    def count(self, name: str, amount: int = 1) -> None:
        """Add to the stat ``dedup/NAME``."""

    def failed(self, error: DedupError) -> None:
        """Note that the store, the log or a feed has failed: from now on nothing is dropped. Once a crawl."""

    def one_owner(self, host: str, owner: str, repeats: int, pages: int) -> None:
        """Note that *repeats* of the *pages* of *host*, most of them, repeat the page *owner*. Once a host."""

    def field_that_keeps(self, field: str, kept: int, pages: int) -> None:
        """Note that *field* of items alone kept nearly all of the *pages* whose text is in the store. Once a field."""

    def taken_back(self, taken: Sequence[TakenBack]) -> None:
        """Request once more what was dropped for a template. Once a template, and again for pages dropped meanwhile."""

    def tag_refused(self, kind: type) -> None:
        """Note that items of this class take no tag. Once a class."""
