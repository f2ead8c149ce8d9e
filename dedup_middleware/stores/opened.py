"""Shares a store that is open in this process among its openers, who take turns.

Errors of engines become errors of ours here.
"""

from __future__ import annotations

import ctypes
import threading
from contextlib import ExitStack, suppress
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from dedup_middleware.errors import StoreAwayError, StoreError, StoreLockedError
from dedup_middleware.stores import refusals
from dedup_middleware.stores.base import Store
from dedup_middleware.stores.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from typing_extensions import ParamSpec

    from dedup_middleware.stores.base import Header

    _P = ParamSpec("_P")

_T = TypeVar("_T")

# Pairs that a scan reads under one hold of the guard: its cost vanishes, and large values do not pile up.
_SCAN_STEP = 64
# Keys of which the values are remembered, those of some hundred news pages, 1 MB; and the bytes that a value may have.
_RECENT_KEYS, _RECENT_BYTES = 4_096, 8_192


class Shared:
    """A store with what all its openers in this process share."""

    header: Header

    def __init__(self, store: Store) -> None:
        self.store = store
        self.view = store
        """What openers read and write: in a transaction its changes, over the store; else the store."""
        self.recent: dict[bytes, bytes | None] = {}
        """What was read last where no other process writes; what is written since replaces it."""
        self.undo = ExitStack()
        """Closes the store and releases its lock."""
        self.openers = 0
        self.failure: StoreError | None = None
        """What every call raises once a write has failed, the server is away or the store is closed."""
        # One thread may take it again, inside a transaction.
        self.guard = threading.RLock()
        self.syncing = threading.Lock()

    def call(self, action: str, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return what *function* of the engine returns; raise its errors as ``StoreError``.

        After a failed write every call fails until the store is opened again: LevelDB was seen to acknowledge 100 more
        batches, and to have none of them after reopening.
        """
        if self.failure is not None:
            raise type(self.failure)(str(self.failure)) from self.failure
        try:
            with refusals.translated(self.store.uri, action, self.store.refusal):
                return function(*args, **kwargs)
        except Exception as error:
            # A process that waited for a lock in vain has begun nothing.
            if isinstance(error, StoreAwayError) or (action == "write" and not isinstance(error, StoreLockedError)):
                failed = refusals.failed(self.store.uri, "use", "an earlier write failed")
                self.failure = error if isinstance(error, StoreError) else failed
            raise

    def forget_large(self, pairs: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Forget those of these *pairs* whose values are too large to be remembered."""
        for key, value in pairs:
            if value is not None and len(value) > _RECENT_BYTES:
                self.recent.pop(key, None)

    def close(self) -> None:
        """Close the store, when no call is under way: closing a LevelDB under a read crashes the process."""
        with self.guard, self.syncing:
            self.failure = refusals.closed(self.store.uri)
            self.undo.close()

    def leave_to_parent(self) -> None:
        """Refuse every call in this process, a forked child, and keep what is open from being closed in it.

        When the child ends, Python would destroy the handles: LevelDB then waits for a thread that the child does not
        have, SQLite removes the parent's files, and older versions of filelock unlock the parent's lock.
        """
        self.failure = StoreError(
            f"the store {self.store.uri} was opened by the parent of this process, and only the parent may use it",
            "open a store after the fork, or start the process by spawn",
        )
        # Another thread of the parent may have held these.
        self.guard, self.syncing = threading.RLock(), threading.Lock()
        self._of_parent, self.undo = self.undo, ExitStack()
        # At its end the interpreter does not destroy an object that has a reference without an owner.
        if hasattr(ctypes, "pythonapi"):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))


class OpenStore(Store):
    """One opener's handle of an open store.

    Openers may be in different threads; one ``OpenStore`` serves one thread at a time, except :meth:`sync`. Every
    method raises :class:`~dedup_middleware.errors.StoreError` when the disk or server fails, when the store is closed,
    and in a forked child. After a failed write every call fails until the store is opened again.
    """

    def __init__(self, shared: Shared, *, created: bool, leave: Callable[[], None]) -> None:
        """Join *shared*; *leave* is called once, on close."""
        self.uri = shared.store.uri
        self.created = created
        """Whether this opener has created the store."""
        self.caution = shared.store.caution
        self.worker = shared.store.worker
        """The name of this process where other processes may have the store open, too; else empty."""
        self.in_process = shared
        """What its openers in this process share; other things that they share may hang on it."""
        self.guard = shared.guard
        """Their lock: none of them reads or writes while another holds it."""
        self._shared = shared
        self._leave: Callable[[], None] | None = leave

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        shared = self._shared
        with shared.guard:
            return shared.call("read", shared.view.get_many, [*keys])

    def get_recent(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return `get_many`, without reading again what this method has read lately."""
        shared = self._shared
        # A store in memory may lie over another one, which others write; and a transaction may come to nothing.
        is_plain = not self.worker and not isinstance(shared.view, MemoryStore) and shared.failure is None
        if not is_plain or len(keys) > _RECENT_KEYS:
            return self.get_many(keys) if keys else []
        with shared.guard:
            recent = shared.recent
            missing = [key for key in keys if key not in recent]
            read = [*zip(missing, self.get_many(missing), strict=True)] if missing else []
            recent.update(read)
            values = [recent[key] for key in keys]
            shared.forget_large(read)
            for key in [*islice(recent, max(0, len(recent) - _RECENT_KEYS))]:
                del recent[key]
            return values

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        shared = self._shared
        with shared.guard:
            pairs = shared.call("read", shared.view.scan, start, stop)
        return self._steps(pairs)

    def _steps(self, pairs: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        while step := self._call("read", lambda: list(islice(pairs, _SCAN_STEP))):
            yield from step

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = (), *, sync: bool = False) -> None:
        """See Store; in a transaction, *sync* does nothing."""
        shared = self._shared
        # Before the guard is held: an iterable may itself read from the store.
        puts, deletes = list(puts), list(deletes)
        with shared.guard:
            shared.call("write", shared.view.write, puts, deletes, sync=sync)
            if recent := shared.recent:
                recent.update(dict.fromkeys([key for key in deletes if key in recent]))
                again = [pair for pair in puts if pair[0] in recent]
                recent.update(again)
                shared.forget_large(again)

    def transaction(self, work: Callable[[], _T]) -> _T:
        """Return what *work* returns; no other process writes between what it reads and what it writes.

        Its writes are one batch, applied when *work* returns and not at all if it raises; its reads include them.
        In a store that processes share, *work* may be called more than once. A nested transaction is a part of the
        outer one.
        """
        shared = self._shared
        with shared.guard:
            if shared.view is not shared.store:
                return work()
            shared.recent.clear()
            while True:
                shared.call("write", shared.store.begin)
                shared.view = written = MemoryStore(shared.store)
                try:
                    result = work()
                except BaseException as error:
                    if not _rolled_back(shared) and isinstance(error, Exception):
                        continue
                    raise
                finally:
                    shared.view = shared.store
                puts = [(key, value) for key, value in written.changes.items() if value is not None]
                deletes = [key for key, value in written.changes.items() if value is None]
                if shared.call("write", shared.store.commit, puts, deletes):
                    return result

    def sync(self) -> None:
        shared = self._shared
        with shared.syncing:
            shared.call("write", shared.store.sync)

    def compact(self) -> None:
        self._call("compact", self._shared.store.compact)

    def _call(self, action: str, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        shared = self._shared
        with shared.guard:
            return shared.call(action, function, *args, **kwargs)

    def close(self) -> None:
        """Close it; the last opener of the process closes the store. A second call does nothing."""
        leave, self._leave = self._leave, None
        if leave is not None:
            self._shared = Shared(self.in_process.store)
            self._shared.failure = refusals.closed(self.uri)
            leave()

    @property
    def header(self) -> Header:
        return self.in_process.header

    @property
    def closed(self) -> bool:
        """Whether this opener has closed it."""
        return self._leave is None

    # --- where other processes have it open, too

    def is_at_work(self, worker: bytes) -> bool:
        return self._call("read", self._shared.store.is_at_work, worker)

    def changes_of_others(self) -> int:
        return self._call("read", self._shared.store.changes_of_others)

    def require_unchanged(self) -> None:
        self._shared.store.require_unchanged()


def _rolled_back(shared: Shared) -> bool:
    """Roll back; return ``False`` if the transaction failed on outdated data, and may be tried again."""
    if isinstance(shared.failure, StoreAwayError):
        return True
    with suppress(Exception):
        return shared.store.rollback() or shared.failure is not None
    return True


def overlaid(below: OpenStore, room: int) -> OpenStore:
    """Return a store that reads *below* and writes to memory, *room* bytes at most, for a dry run.

    Closing it closes *below*.
    """
    shared = Shared(MemoryStore(below, room=room))
    shared.undo.callback(below.close)
    shared.undo.callback(shared.store.close)
    shared.header = below.header
    return OpenStore(shared, created=below.created, leave=shared.close)
