"""What ``open_store`` returns: one opener's share of an open store."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from dedup_middleware.stores import refusals
from dedup_middleware.stores.protocol import CompactableStore, DeferringStore, LayeredStore
from dedup_middleware.stores.syncing import nothing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dedup_middleware.stores.medium import Medium
    from dedup_middleware.stores.protocol import SharedStore, Store

    _T = TypeVar("_T")

# Pairs that a scan takes under one hold of the guard: enough to make the guard's cost vanish, few enough that pairs
# of some hundred kilobytes do not pile up.
_SCAN_STEP = 64


class OpenStore:
    """A `Store` with its header. Several may share a medium, each closes its own.

    Openers that share one may be in different threads; one ``OpenStore`` still serves one thread at a time. In a forked
    child every call is a ``StoreError``; the parent's store is not touched.
    """

    def __init__(self, medium: Medium, *, created: bool, leave: Callable[[], None]) -> None:
        """Join *medium*; *leave* is called once, on close."""
        self.uri = medium.store.uri
        self.header = medium.header
        self.created = created
        self.caution: str = getattr(medium.store, "caution", "")
        """What must be so of where it is, and could not be seen, in one line; empty where there is nothing."""
        self.medium = medium
        """What its openers share; whatever else they must share may hang on it."""
        self._leave: Callable[[], None] | None = leave

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """See Store."""
        self.medium.check_process()
        with self.medium.guard:
            self._live()
            return self.medium.get_many(keys)

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See Store."""
        self.medium.check_process()
        with self.medium.guard:
            pairs = self._live().scan(start, stop)
        return self._steps(pairs)

    def _steps(self, pairs: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        while True:
            self.medium.check_process()
            with self.medium.guard:
                self._live()
                step = list(islice(pairs, _SCAN_STEP))
            if not step:
                return
            yield from step

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = (), *, sync: bool = False) -> None:
        """See Store."""
        self.medium.check_process()
        # Before the guard is held: an iterable may itself read from the store.
        puts, deletes = list(puts), list(deletes)
        with self.medium.guard:
            self._live()
            self.medium.write(puts, deletes, sync=sync)

    def write_through(self, deletes: Iterable[bytes]) -> Callable[[], None]:
        """Write as with *sync*; return what waits until that is on the medium, to be called once, in any thread.

        It has nothing left to do where the store cannot be waited for elsewhere, see DeferringStore.
        """
        store = self.medium.store
        self.write([], deletes, sync=not isinstance(store, DeferringStore))
        if not isinstance(store, DeferringStore):
            return nothing
        with self.medium.guard:
            return store.begin_sync()

    def load(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        """Write very many *pairs*, whose keys ascend and none of which is there; others wait meanwhile.

        1 to 3 µs a pair. A load that was cut off may have left some of them.
        """
        self.medium.check_process()
        with self.medium.guard:
            self._live()
            self.medium.load(iter(pairs))

    def atomically(self, work: Callable[[], _T]) -> _T:
        """Call *work*, which nobody else's writes come in between; see SharedStore, which other stores are not.

        There each batch is still applied for itself.
        """
        self.medium.check_process()
        with self.medium.guard:
            self._live()
            return self.medium.atomically(work)

    @property
    def shared(self) -> SharedStore | None:
        """What workers share, where they do; ``None`` where this process is alone with the store."""
        return self.medium.shared

    def changes_of_others(self) -> int:
        """See SharedStore; always 0 where there are no others."""
        self.medium.check_process()
        with self.medium.guard:
            self._live()
            return self.medium.changes_of_others()

    def merge(self) -> None:
        """See LayeredStore; others have nothing to merge."""
        self.medium.check_process()
        with self.medium.guard:
            store = self._live()
            if isinstance(store, LayeredStore):
                store.merge()

    def compact(self) -> None:
        """See CompactableStore; :class:`StoreError` where the store cannot."""
        self.medium.check_process()
        with self.medium.guard:
            store = self._live()
            if not isinstance(store, CompactableStore):
                raise refusals.not_compactable(self.uri)
            store.compact()

    def close(self) -> None:
        """See Store; the last opener closes the medium."""
        self.medium.check_process()
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()

    @property
    def closed(self) -> bool:
        """Whether this opener has closed it."""
        return self._leave is None

    def _live(self) -> Store:
        if self._leave is None:
            raise refusals.closed(self.uri)
        return self.medium.store
