"""What ``open_store`` returns: one opener's share of an open store."""

from __future__ import annotations

import ctypes
import os
import threading
from itertools import count, islice
from typing import TYPE_CHECKING, TypeVar

from dedup_middleware.stores import refusals
from dedup_middleware.stores.protocol import BulkStore, CompactableStore, DeferringStore, SharedStore
from dedup_middleware.stores.syncing import nothing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import ExitStack

    from dedup_middleware.stores.layout import Header
    from dedup_middleware.stores.protocol import Store

    _T = TypeVar("_T")

# Pairs that a scan takes under one hold of the guard: enough to make the guard's cost vanish, few enough that pairs
# of some hundred kilobytes do not pile up.
_SCAN_STEP = 64
# A page is looked up when it is judged, and again when it is kept: what forty pages have asked for, twice, 0.5 MB. Only
# what is short is remembered: posting lists, numbers, and that there is nothing.
_REMEMBERED, _SHORT = 2_048, 64
# Pairs of a load that a store takes in one batch, where it cannot take all of them at once.
_LOADED_AT_ONCE = 10_000


class _Forks:
    """How many forks have led to this process. To ask the system for its number takes 3 µs on some virtual machines."""

    passed = 0

    @classmethod
    def note(cls) -> None:
        cls.passed += 1


# Not on Windows, where nothing forks.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Forks.note)


class Medium:
    """An open store and all that must be undone with it; its openers take turns by *guard*."""

    def __init__(self, store: Store, header: Header, undo: ExitStack, *, remembers: bool = True) -> None:
        """Take over *store*; *undo* closes it and lets go of its lock. One in memory need not be remembered."""
        self.store = store
        self._remembers = remembers
        self.header = header
        self.shared = store if isinstance(store, SharedStore) else None
        """The store, if other processes may have it open too."""
        # One thread may take it again, inside `OpenStore.atomically`.
        self.guard = threading.RLock()
        self.openers = 0
        # What was asked for lately, in two generations; written through.
        self._young: dict[bytes, bytes | None] = {}
        self._old: dict[bytes, bytes | None] = {}
        self._changes_of_others = 0
        self._undo = undo
        self._forks = _Forks.passed

    def check_process(self) -> None:
        """Raise ``StoreError`` in a forked child: what it has of the store is its parent's. 0.1 µs.

        Before the guard is taken: another thread of the parent may have held it during the fork.
        """
        if _Forks.passed != self._forks:
            raise refusals.inherited(self.store.uri)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """See Store; what was asked for lately is at hand: 0.2 µs a key. Under the guard."""
        if not self._remembers:
            return self.store.get_many(keys)
        self.changes_of_others()
        young, old = self._young, self._old
        missing = [key for key in keys if key not in young and key not in old]
        if not missing:
            return [young[key] if key in young else old[key] for key in keys]
        values = self.store.get_many(missing)
        found = dict(zip(missing, values, strict=True))
        if len(young) > _REMEMBERED:
            self._young, self._old = {}, young
        self._young.update({key: value for key, value in found.items() if value is None or len(value) <= _SHORT})
        if len(values) == len(keys):
            return values
        return [found[key] if key in found else young[key] if key in young else old[key] for key in keys]

    def changes_of_others(self) -> int:
        """See SharedStore; what is at hand of before is forgotten. Always 0 where there are no others."""
        if self.shared is not None and (changes := self.shared.changes_of_others()) != self._changes_of_others:
            self._changes_of_others = changes
            self._forget()
        return self._changes_of_others

    def _forget(self) -> None:
        self._young, self._old = {}, {}

    def atomically(self, work: Callable[[], _T]) -> _T:
        """See SharedStore; where there are no others, it is enough to hold the guard. Under it."""
        if self.shared is None:
            return work()

        runs = count()

        def fresh() -> _T:
            # What was read the first time may have been written there, which came to nothing.
            if next(runs):
                self._forget()
            return work()

        try:
            return self.shared.atomically(fresh)
        except BaseException:
            self._forget()
            raise

    def write(self, puts: list[tuple[bytes, bytes]], deletes: list[bytes], *, sync: bool) -> None:
        """See Store. Under the guard."""
        try:
            self.store.write(puts, deletes, sync=sync)
        except BaseException:
            # Whether it is written, nobody knows: the store is asked, and refuses.
            self._forget()
            raise
        changes = [*((key, None) for key in deletes), *puts]
        for key, value in changes:
            self._old.pop(key, None)
            if key in self._young:
                if value is not None and len(value) > _SHORT:
                    del self._young[key]
                else:
                    self._young[key] = value

    def load(self, pairs: Iterator[tuple[bytes, bytes]]) -> None:
        """Write *pairs*, whose keys ascend and none of which is there. Under the guard."""
        self._forget()
        load(self.store, pairs)

    def leave_to_parent(self) -> None:
        """Never let go of what is open, for the rest of this process, a forked child.

        When it ends, Python would destroy the handles: LevelDB then waits for a thread that the child does not have,
        SQLite moves and removes the parent's files, and older versions of filelock unlock the parent's lock.
        """
        # An object that the end of the interpreter spares is one with a reference that nobody holds.
        if hasattr(ctypes, "pythonapi"):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def close(self) -> None:
        """Close the store, when no call is under way: closing a LevelDB under a read crashes the process."""
        with self.guard:
            self._undo.close()


def load(store: Store, pairs: Iterator[tuple[bytes, bytes]]) -> None:
    """Let *store* have *pairs*, whose keys ascend and none of which is there; in batches, unless it is a BulkStore."""
    if isinstance(store, BulkStore):
        store.load(pairs)
        return
    while batch := list(islice(pairs, _LOADED_AT_ONCE)):
        store.write(batch)


class OpenStore:
    """A `Store` with its header. Several may share a medium, each closes its own.

    Openers that share one may be in different threads; one ``OpenStore`` still serves one thread at a time. In a forked
    child every call is a ``StoreError``; the parent's store is not touched.
    """

    def __init__(
        self, medium: Medium, *, created: bool, leave: Callable[[], None], migrated_from: int | None = None
    ) -> None:
        """Join *medium*; *leave* is called once, on close."""
        self.uri = medium.store.uri
        self.header = medium.header
        self.created = created
        self.migrated_from = migrated_from
        """The older schema that the store had before it was opened; ``None`` if it had today's."""
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
