"""What a store promises.

A store knows only bytes. Nothing here knows pages, clauses or Scrapy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

_T = TypeVar("_T")


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


@runtime_checkable
class CompactableStore(Store, Protocol):
    """A store that can give back the room of what was removed from it; one of another package need not be."""

    def compact(self) -> None:
        """Give back what room can be given back. Reads and writes all of it; a scan under way may be in its way."""


@runtime_checkable
class BulkStore(Store, Protocol):
    """A store that takes very many pairs at once faster than batch by batch; one of another package need not be."""

    def load(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        """Write *pairs*, whose keys ascend and none of which is there: all of them, or none. Nobody else writes."""


@runtime_checkable
class LayeredStore(Store, Protocol):
    """A store that keeps what is written in layers, and merges these in time; one of another package need not be."""

    def merge(self) -> None:
        """Merge them now, so that a get has as few to look in as can be. What is in its place is not read again."""


@runtime_checkable
class DeferringStore(Store, Protocol):
    """A store whose medium can be waited for elsewhere; one of another package need not be."""

    def begin_sync(self) -> Callable[[], None]:
        """Return what waits until all batches that are written by now are on the medium: to be called once, anywhere.

        It raises ``StoreError`` if the medium fails, and the store refuses everything from then on.
        """


@runtime_checkable
class RemoteStore(Store, Protocol):
    """A store whose server may be out of reach: what finds it so raises ``StoreAwayError``, and so does all after it.

    Others may have taken over meanwhile what its opener has open: it is to be opened again.
    """

    @property
    def is_away(self) -> bool:
        """Whether that has happened."""


@runtime_checkable
class SharedStore(Store, Protocol):
    """A store that several processes have open at once, its *workers*; one of another package need not be."""

    worker: bytes
    """8 bytes that name this process among them, until it closes the store or ends."""

    def atomically(self, work: Callable[[], _T]) -> _T:
        """Return what *work* returns; no other worker writes between what it reads and what it writes.

        It reads what it has written itself, and what it writes is applied as one batch when it returns, or not at all
        when it raises. One inside another is a part of that. *work* may be called more than once.
        """

    def changes_of_others(self) -> int:
        """Return a number that is another one whenever another worker has written in between."""

    def is_at_work(self, worker: bytes) -> bool:
        """Tell whether *worker* has the store open; one that has not any more never has again."""


@runtime_checkable
class FarStore(SharedStore, Protocol):
    """A store that is so far away that whoever knows what he will ask for says so first; few are.

    Between what a worker reads there and what it writes by that, others write.
    """

    def noting(self) -> AbstractContextManager[dict[bytes, bytes | None]]:
        """Note by key what :meth:`get_many` gives within the block, and maybe more; and whether anything is scanned."""

    def rests_on(self, reads: Mapping[bytes, bytes | None]) -> bool:
        """Let what is written rest on *reads*, too, noted before; tell whether all that may still be so.

        In :meth:`atomically`.
        """

    def add(self, key: bytes, amounts: Sequence[tuple[int, int, int]]) -> None:
        """Add to the numbers in the value of *key*; of workers who do, none is in another's way. In :meth:`atomically`.

        *amounts* are where in the value a number is, of how many bytes, big-endian, and what it grows by. None falls
        below 0. What the value does not have is left out.
        """

    def fetch(self, question: Question) -> None:
        """Have at hand, for some moments, what a *question* asks for. One round trip, from any thread."""


@runtime_checkable
class SendingStore(FarStore, Protocol):
    """A far store whose answers an event loop may wait for, where no thread need stand and wait."""

    def begin_fetch(self, question: Question) -> Arriving | None:
        """Do what :meth:`fetch` does, and do not wait; ``None`` where that must be called instead."""


class Question(NamedTuple):
    """What is going to be asked for: all these keys, and what those *named* and the *lists* lead to.

    The values of these two are numbers of seven bytes, of those *named* only the first. Of each of the *most* numbers
    that they have oftenest, those of the *named* before all others, it is what every byte of *kinds* leads to with the
    number behind it.
    """

    named: Sequence[bytes]
    lists: Sequence[bytes]
    others: Sequence[bytes]
    kinds: bytes
    most: int


class Arriving(Protocol):
    """What a server has been asked for, and what has come of it; for the thread that has asked."""

    timeout: float
    """Seconds after which it comes no more."""

    def fileno(self) -> int:
        """Return the descriptor that can be read when there is more."""

    @property
    def is_over(self) -> bool:
        """Whether it is all there, or never will be."""

    def receive(self) -> None:
        """Read what is there by now, of this and of all that comes by the same way."""

    def give_up(self) -> None:
        """Wait for it no longer, nor for whatever else is to come by the same way."""

    def end(self) -> bool:
        """Have at hand what has come; tell whether there is no more to ask, or `FarStore.fetch` may do better."""
