"""Stores of other packages: what they must do, and how they are opened.

A package adds one by an entry point of the group ``dedup_middleware.stores``; its name is the scheme of the URIs. It
only maps bytes to bytes: whose store it is, which schema it has and who of a process shares it is seen to here.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Protocol, TypeVar

from dedup_middleware.errors import DedupError, StoreAwayError
from dedup_middleware.stores import refusals, schema, sharing
from dedup_middleware.stores.layout import HEADER_KEY
from dedup_middleware.stores.medium import Medium, load
from dedup_middleware.stores.protocol import CompactableStore, DeferringStore, SharedStore
from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dedup_middleware.stores.opened import OpenStore
    from dedup_middleware.stores.protocol import Store

    _T = TypeVar("_T")


class StoreBackend(Protocol):
    """What an entry point leads to: a module, or an object, with three functions.

    *path* is what follows the scheme and its colon. They raise :class:`StoreError` for what a user can mend, with what,
    where and the remedy, and no secret that *path* may hold; :class:`StoreAwayError` where a server cannot be reached.
    """

    def open(self, path: str) -> Store:
        """Open the store at *path*, or make an empty one; ``StoreLockedError`` if another process uses it alone.

        What it returns may be a :class:`SharedStore`. After a :class:`StoreAwayError` it is opened again, by another
        thread than the one that uses it.
        """

    def exists(self, path: str) -> bool:
        """Tell whether there is one, without opening or locking it."""

    def remove(self, path: str) -> bool:
        """Remove it; return whether there was one."""


def open_shared(backend: StoreBackend, uri: str, path: str, fingerprint_scheme: str | None, *, ours: bool) -> OpenStore:
    """Open or create the store at *path*, or join those of this process that have it open.

    One of *ours* raises nothing but what it should, and remembers for itself what it was asked for.
    """
    with sharing.guarded():
        return sharing.join(
            uri, fingerprint_scheme, lambda: open_medium(backend, uri, path, fingerprint_scheme, ours=ours)
        )


def open_medium(
    backend: StoreBackend, uri: str, path: str, fingerprint_scheme: str | None, *, ours: bool
) -> tuple[Medium, bool]:
    """Open or create the store at *path*; return it, and whether it is new."""
    if fingerprint_scheme is None and not backend.exists(path):
        raise refusals.absent(uri)
    with ExitStack() as undo:
        store = _opened(backend, uri, path)
        if not ours:
            store = _GuardedShared(store, uri) if isinstance(store, SharedStore) else _Guarded(store, uri)
        undo.callback(store.close)
        create = partial(_create_if_empty, store, fingerprint_scheme)
        created = store.atomically(create) if isinstance(store, SharedStore) else create()
        header = schema.check(store, fingerprint_scheme)
        return Medium(store, header, undo.pop_all(), remembers=not ours), created


def _create_if_empty(store: Store, fingerprint_scheme: str | None) -> bool:
    """Make *store* one of ours if nothing is in it; return whether that was so."""
    if store.get_many([HEADER_KEY]) != [None]:
        return False
    if fingerprint_scheme is None or next(iter(store.scan(b"", b"\xff" * 64)), None) is not None:
        raise refusals.foreign(store.uri)
    store.write([schema.new_header(fingerprint_scheme)], sync=True)
    return True


def _opened(backend: StoreBackend, uri: str, path: str) -> Store:
    with _refusing(uri, "open"):
        return backend.open(path)


class _Guarded:
    """A store of another package: whatever it raises is a :class:`StoreError`, and what it returns is looked at.

    It is a :class:`RemoteStore`.
    """

    def __init__(self, store: Store, uri: str) -> None:
        self.uri = uri
        self._store = store
        self._away: StoreAwayError | None = None
        if isinstance(store, DeferringStore):
            # What makes it one, too.
            self.begin_sync = partial(self._begin_sync, store)

    @property
    def is_away(self) -> bool:
        return self._away is not None

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        with self._refusing("read"):
            values = self._store.get_many(keys)
            if len(values) != len(keys) or not all(isinstance(value, (bytes, NoneType)) for value in values):
                raise TypeError("get_many must return bytes or None for each key")
            return values

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        with self._refusing("read"):
            for key, value in self._store.scan(start, stop):
                if not start <= key < stop or not isinstance(value, bytes):
                    raise ValueError(f"scan must return pairs of bytes from {start!r} on and before {stop!r}")
                yield key, value

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = (), *, sync: bool = False) -> None:
        with self._refusing("write"):
            self._store.write(puts, deletes, sync=sync)

    def _begin_sync(self, store: DeferringStore) -> Callable[[], None]:
        with self._refusing("write"):
            return partial(self._wait, store.begin_sync())

    def _wait(self, wait: Callable[[], None]) -> None:
        with self._refusing("write"):
            wait()

    def load(self, pairs: Iterator[tuple[bytes, bytes]]) -> None:
        with self._refusing("write"):
            load(self._store, pairs)

    def compact(self) -> None:
        if not isinstance(self._store, CompactableStore):
            raise refusals.not_compactable(without_secrets(self.uri, redact=False))
        with self._refusing("compact"):
            self._store.compact()

    def close(self) -> None:
        # A server that is away has let go of whatever it had open, or will.
        with suppress(StoreAwayError), _refusing(self.uri, "close"):
            self._store.close()

    @contextmanager
    def _refusing(self, action: str) -> Iterator[None]:
        if self._away is not None:
            raise StoreAwayError(str(self._away)) from self._away
        try:
            with _refusing(self.uri, action):
                yield
        except StoreAwayError as error:
            self._away = error
            raise


class _GuardedShared(_Guarded):
    """One that several processes have open at once."""

    def __init__(self, store: SharedStore, uri: str) -> None:
        super().__init__(store, uri)
        self._shared = store
        self.worker = store.worker

    def atomically(self, work: Callable[[], _T]) -> _T:
        with self._refusing("write"):
            return self._shared.atomically(work)

    def changes_of_others(self) -> int:
        with self._refusing("read"):
            return self._shared.changes_of_others()

    def is_at_work(self, worker: bytes) -> bool:
        with self._refusing("read"):
            return self._shared.is_at_work(worker)


@contextmanager
def _refusing(uri: str, action: str) -> Iterator[None]:
    try:
        yield
    except DedupError:
        raise
    except Exception as error:
        raise refusals.failed(without_secrets(uri, redact=False), action, repr(error)) from error


def destroy(backend: StoreBackend, uri: str, path: str) -> bool:
    """Remove the store at *path*; return whether there was one."""
    with sharing.guarded():
        if sharing.is_open(uri):
            raise refusals.locked(uri)
        return backend.remove(path)
