"""An open store as its openers share it: who may use it, what was asked for lately, and how it is filled at once."""

from __future__ import annotations

import ctypes
import os
import threading
from contextlib import suppress
from itertools import count, islice
from typing import TYPE_CHECKING, TypeVar

from dedup_middleware.stores import refusals
from dedup_middleware.stores.protocol import BulkStore, SharedStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import ExitStack

    from dedup_middleware.stores.layout import Header
    from dedup_middleware.stores.protocol import Store

    _T = TypeVar("_T")

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
        with suppress(KeyError):
            return [*map(young.__getitem__, keys)]
        if young.keys().isdisjoint(keys) and old.keys().isdisjoint(keys):
            values = self.store.get_many(keys)
            self._remember(keys, values)
            return values
        missing = [key for key in keys if key not in young and key not in old]
        if not missing:
            return [young[key] if key in young else old[key] for key in keys]
        values = self.store.get_many(missing)
        found = dict(zip(missing, values, strict=True))
        self._remember(missing, values)
        return [found[key] if key in found else young[key] if key in young else old[key] for key in keys]

    def _remember(self, keys: Sequence[bytes], values: Sequence[bytes | None]) -> None:
        self._grow_old()
        pairs: Iterable[tuple[bytes, bytes | None]] = zip(keys, values, strict=True)
        if max(map(len, filter(None, values)), default=0) > _SHORT:
            pairs = ((key, value) for key, value in pairs if value is None or len(value) <= _SHORT)
        self._young.update(pairs)

    def _grow_old(self) -> None:
        if len(self._young) > _REMEMBERED:
            self._young, self._old = {}, self._young

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
        if not self._remembers:
            return
        written: dict[bytes, bytes | None] = dict.fromkeys(deletes)
        written.update(puts)
        for key in self._old.keys() & written.keys():
            del self._old[key]
        self._young.update(written)
        for key in [key for key, value in puts if len(value) > _SHORT]:
            self._young.pop(key, None)
        self._grow_old()

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
