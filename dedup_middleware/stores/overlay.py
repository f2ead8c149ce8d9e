"""Keeps all changes to a store in memory, so that a dry run leaves the store as it is."""

from __future__ import annotations

from contextlib import ExitStack
from heapq import merge
from typing import TYPE_CHECKING, TypeVar

from dedup_middleware.stores.medium import Medium
from dedup_middleware.stores.memory import MemoryStore
from dedup_middleware.stores.opened import OpenStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dedup_middleware.stores.protocol import SharedStore

_T = TypeVar("_T")

# How a change is kept: this byte and the value, or nothing for a key that was deleted.
_PUT, _DELETED = b"=", b""


def overlaid(below: OpenStore, room: int) -> OpenStore:
    """Return a store that reads *below* and writes to memory, *room* bytes at most. Closing it closes *below*."""
    shared = below.shared
    store = OverlayStore(below, room) if shared is None else SharedOverlayStore(below, room, shared)
    undo = ExitStack()
    undo.callback(store.close)
    medium = Medium(store, below.header, undo, remembers=False)
    return OpenStore(medium, created=below.created, leave=medium.close)


class OverlayStore:
    """A :class:`~dedup_middleware.stores.protocol.Store` over another one, which it never writes to."""

    def __init__(self, below: OpenStore, room: int) -> None:
        self.uri = below.uri
        self.caution = below.caution
        self._below = below
        self._changes = MemoryStore(room)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """See Store; what was not changed is read below."""
        changes = self._changes.get_many(keys)
        unchanged = [key for key, change in zip(keys, changes, strict=True) if change is None]
        values = iter(self._below.get_many(unchanged) if unchanged else ())
        return [next(values) if change is None else _value(change) for change in changes]

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See Store; copies the changes in the range."""
        changes = dict(self._changes.scan(start, stop))
        put = [(key, value) for key, change in changes.items() if (value := _value(change)) is not None]
        below = self._below.scan(start, stop)
        return merge(put, (pair for pair in below if pair[0] not in changes))

    def write(
        self,
        puts: Iterable[tuple[bytes, bytes]],
        deletes: Iterable[bytes] = (),
        *,
        sync: bool = False,  # noqa: ARG002 - nothing here outlives the process
    ) -> None:
        """See Store."""
        changes = dict.fromkeys(deletes, _DELETED) | {key: _PUT + value for key, value in puts}
        self._changes.write(changes.items())

    def close(self) -> None:
        """Forget the changes and close the store below."""
        self._changes.close()
        self._below.close()


class SharedOverlayStore(OverlayStore):
    """One over a `SharedStore`: it reads what other workers write, and they read nothing of it."""

    def __init__(self, below: OpenStore, room: int, shared: SharedStore) -> None:
        super().__init__(below, room)
        self._shared = shared
        self.worker = shared.worker

    def atomically(self, work: Callable[[], _T]) -> _T:
        """See SharedStore. No other worker writes to the memory of this process."""
        return work()

    def changes_of_others(self) -> int:
        """See SharedStore."""
        return self._below.changes_of_others()

    def is_at_work(self, worker: bytes) -> bool:
        """See SharedStore."""
        return self._shared.is_at_work(worker)


def _value(change: bytes) -> bytes | None:
    return None if change == _DELETED else change.removeprefix(_PUT)
