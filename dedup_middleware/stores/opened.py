"""Shares a store that is open in this process among its openers, who take turns.

Errors of engines become errors of ours here, and nowhere else. Forked children are refused.
"""

from __future__ import annotations

import ctypes
import os
import threading
from contextlib import suppress
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from dedup_middleware.errors import DedupError, StoreAwayError, StoreError, StoreLockedError
from dedup_middleware.stores import refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import ExitStack

    from typing_extensions import ParamSpec

    from dedup_middleware.stores.base import Header, Store

    _P = ParamSpec("_P")

_T = TypeVar("_T")

# Pairs that a scan reads under one hold of the guard: enough to make its cost vanish, few enough that large values do
# not pile up.
_SCAN_STEP = 64


class Shared:
    """A store with what all its openers in this process share."""

    def __init__(self, store: Store, header: Header, undo: ExitStack) -> None:
        """Take over *store*; *undo* closes it and releases its lock."""
        self.store = store
        self.header = header
        self.undo = undo
        self.openers = 0
        self.failure: StoreError | None = None
        """What every call raises once a write has failed, the server is away or the store is closed: open it again."""
        # One thread may take it again, inside a transaction.
        self.guard = threading.RLock()
        self._syncing = threading.Lock()
        self._pid = os.getpid()
        # What the current transaction has written; `None` for what it has deleted.
        self._pending: dict[bytes, bytes | None] | None = None

    def check_process(self) -> None:
        """Raise ``StoreError`` in a forked child: before it takes the guard, which the parent may have held."""
        if os.getpid() != self._pid:
            raise StoreError(
                f"the store {self.store.uri} was opened by the parent of this process, and only the parent may use it: "
                "open a store of its own after the fork, or start the process by spawn"
            )

    def call(self, action: str, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return what *function* of the engine returns; raise its errors as ``StoreError``.

        After a failed write every call fails until the store is opened again: LevelDB was seen to go on, acknowledge
        100 more batches, and have none of them after reopening.
        """
        self._check()
        try:
            return function(*args, **kwargs)
        except Exception as error:
            ours = isinstance(error, DedupError)
            refusal = error if ours else self.store.refusal(self.store.uri, action, error) or error
            if isinstance(refusal, StoreAwayError):
                self.failure = refusal
            # Who waits for a lock in vain has begun nothing.
            elif action == "write" and not isinstance(refusal, StoreLockedError):
                self.failure = (
                    refusal
                    if isinstance(refusal, StoreError)
                    else refusals.failed(self.store.uri, "use", "an earlier write failed; open it again")
                )
            if refusal is error:
                raise
            raise refusal from error

    def _check(self) -> None:
        if self.failure is not None:
            raise type(self.failure)(str(self.failure)) from self.failure

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """See :meth:`OpenStore.get_many`."""
        pending = self._pending or {}
        unwritten = [key for key in keys if key not in pending]
        values = self.call("read", self.store.get_many, unwritten) if unwritten else []
        if len(values) == len(keys):
            return values
        found = pending | dict(zip(unwritten, values, strict=True))
        return [found[key] for key in keys]

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See :meth:`OpenStore.scan`."""
        pairs = self.call("read", self.store.scan, start, stop)
        written = {key: value for key, value in (self._pending or {}).items() if start <= key < stop}
        if not written:
            return pairs
        unwritten = (pair for pair in pairs if pair[0] not in written)
        merged: Iterable[tuple[bytes, bytes | None]] = merge(unwritten, sorted(written.items()))
        return ((key, value) for key, value in merged if value is not None)

    def write(self, puts: list[tuple[bytes, bytes]], deletes: list[bytes], *, sync: bool = False) -> None:
        """See :meth:`OpenStore.write`."""
        if self._pending is None:
            self.call("write", self.store.write, puts, deletes, sync=sync)
        else:
            self._check()
            self._pending |= {**dict.fromkeys(deletes), **dict(puts)}

    def transaction(self, work: Callable[[], _T]) -> _T:
        """See :meth:`OpenStore.transaction`."""
        if self._pending is not None:
            return work()
        while True:
            self.call("write", self.store.begin)
            pending: dict[bytes, bytes | None] = {}
            self._pending = pending
            try:
                result = work()
            except BaseException as error:
                if not self._rolled_back() and isinstance(error, Exception):
                    continue
                raise
            finally:
                self._pending = None
            puts = [(key, value) for key, value in pending.items() if value is not None]
            deletes = [key for key, value in pending.items() if value is None]
            if self.call("write", self.store.commit, puts, deletes):
                return result

    def _rolled_back(self) -> bool:
        """Roll back; return ``False`` if the transaction failed on outdated data, and may be tried again."""
        if isinstance(self.failure, StoreAwayError):
            return True
        with suppress(Exception):
            return self.store.rollback() or self.failure is not None
        return True

    def sync(self) -> None:
        """Return when the medium has all batches that are written by now."""
        with self._syncing:
            self.call("write", self.store.sync)

    def close(self) -> None:
        """Close the store, when no call is under way: closing a LevelDB under a read crashes the process."""
        with self.guard, self._syncing:
            self.failure = refusals.closed(self.store.uri)
            self.undo.close()

    def leave_to_parent(self) -> None:
        """Keep what is open from being closed for the rest of this process, a forked child.

        When it ends, Python would destroy the handles: LevelDB then waits for a thread that the child does not have,
        SQLite moves and removes the parent's files, and older versions of filelock unlock the parent's lock.
        """
        # At its end the interpreter spares an object that has a reference of no original.
        if hasattr(ctypes, "pythonapi"):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))


class OpenStore:
    """One opener's handle of an open store, see `open_store`; each opener closes its own.

    Openers may be in different threads; one ``OpenStore`` serves one thread at a time, except :meth:`sync`. Every
    method raises :class:`~dedup_middleware.errors.StoreError` when the medium fails, the store is closed, or in a
    forked child. After a failed write every call fails until the store is opened again.
    """

    def __init__(self, shared: Shared, *, created: bool, leave: Callable[[], None]) -> None:
        """Join *shared*; *leave* is called once, on close."""
        self.uri = shared.store.uri
        self.header = shared.header
        self.created = created
        """Whether this opener has created the store."""
        self.caution = shared.store.caution
        """A condition of its durability that could not be examined, in one line; usually empty."""
        self.worker = shared.store.worker
        """8 bytes that identify this process among the workers of a shared store; else empty."""
        self.in_process = shared
        """What its openers in this process share; other things that they share may hang on it."""
        self._leave: Callable[[], None] | None = leave

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, in order; ``None`` for one that is absent. Some µs a key, or a round trip."""
        shared = self._live()
        with shared.guard:
            return shared.get_many([*keys])

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs with ``start <= key < stop`` in key order.

        What is written meanwhile may be among them or not.
        """
        shared = self._live()
        with shared.guard:
            pairs = shared.scan(start, stop)
        return self._steps(pairs)

    def _steps(self, pairs: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        while True:
            shared = self._live()
            with shared.guard:
                step = shared.call("read", lambda: list(islice(pairs, _SCAN_STEP)))
            if not step:
                return
            yield from step

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = (), *, sync: bool = False) -> None:
        """Apply all deletes, then all puts, or nothing; with *sync*, return only when the medium has them.

        A batch without *sync* survives the process, not a power failure. In a transaction, *sync* does nothing.
        """
        shared = self._live()
        # Before the guard is held: an iterable may itself read from the store.
        puts, deletes = list(puts), list(deletes)
        with shared.guard:
            shared.write(puts, deletes, sync=sync)

    def transaction(self, work: Callable[[], _T]) -> _T:
        """Return what *work* returns; no other process writes between what it reads and what it writes.

        Its writes are one batch, applied when *work* returns and not at all if it raises; its reads include them.
        In a store that processes share, *work* may be called more than once. A nested transaction is a part of the
        outer one.
        """
        shared = self._live()
        with shared.guard:
            return shared.transaction(work)

    def sync(self) -> None:
        """Return when the medium has all batches that are written by now. Any thread may call it."""
        self._live().sync()

    def bulk_load(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        """Write very many *pairs*, in ascending order of their keys, all of them absent; other openers wait meanwhile.

        1 to 3 µs a pair. Interrupted, it may have written some of them.
        """
        shared = self._live()
        with shared.guard:
            shared.call("write", shared.store.bulk_load, iter(pairs))

    def compact(self) -> None:
        """Reclaim the space of deleted pairs; :class:`StoreError` where the store cannot. Rewrites all of it."""
        shared = self._live()
        with shared.guard:
            shared.call("compact", shared.store.compact)

    def close(self) -> None:
        """Close it; the last opener of the process closes the store. A second call does nothing."""
        self.in_process.check_process()
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()

    @property
    def closed(self) -> bool:
        """Whether this opener has closed it."""
        return self._leave is None

    # --- where other processes have it open, too

    @property
    def shared(self) -> OpenStore | None:
        """The store, if other processes may have it open too, as its *workers*; else ``None``."""
        return self if self.worker else None

    def is_at_work(self, worker: bytes) -> bool:
        """Return whether *worker* has the store open; after ``False`` it never has again."""
        shared = self._live()
        with shared.guard:
            return shared.call("read", shared.store.is_at_work, worker)

    def changes_of_others(self) -> int:
        """Return a number that is another one whenever another process has written in between; 0 if none can."""
        shared = self._live()
        with shared.guard:
            return shared.call("read", shared.store.changes_of_others)

    def require_unchanged(self) -> None:
        """Let the current transaction commit only if no other process has written since it began."""
        self._live().store.require_unchanged()

    def _live(self) -> Shared:
        self.in_process.check_process()
        if self._leave is None:
            raise refusals.closed(self.uri)
        return self.in_process
