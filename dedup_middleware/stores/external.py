"""Stores of other packages: what they must do, and how they are opened.

A package adds one by an entry point of the group ``dedup_middleware.stores``; its name is the scheme of the URIs. It
only maps bytes to bytes: whose store it is, which schema it has and who of a process shares it is seen to here.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Protocol, TypeVar

from dedup_middleware.errors import DedupError
from dedup_middleware.stores import refusals, schema, sharing
from dedup_middleware.stores.layout import HEADER_KEY
from dedup_middleware.stores.opened import Medium
from dedup_middleware.stores.protocol import CompactableStore, SharedStore
from dedup_middleware.stores.schema import Age
from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dedup_middleware.stores.opened import OpenStore
    from dedup_middleware.stores.protocol import Store
    from dedup_middleware.stores.schema import Migrations

    _T = TypeVar("_T")


class StoreBackend(Protocol):
    """What an entry point leads to: a module, or an object, with three functions.

    *path* is what follows the scheme and its colon. They raise :class:`StoreError` for what a user can mend, with what,
    where and the remedy, and no secret that *path* may hold.
    """

    def open(self, path: str) -> Store:
        """Open the store at *path*, or make an empty one; ``StoreLockedError`` if another process uses it alone.

        What it returns may be a :class:`SharedStore`.
        """

    def exists(self, path: str) -> bool:
        """Tell whether there is one, without opening or locking it."""

    def remove(self, path: str) -> bool:
        """Remove it; return whether there was one."""


def open_shared(
    backend: StoreBackend, uri: str, path: str, fingerprint_scheme: str | None, migrations: Migrations
) -> OpenStore:
    """Open or create the store at *path*, or join those of this process that have it open."""
    with sharing.guarded():
        return sharing.join(
            uri, fingerprint_scheme, lambda: _open_medium(backend, uri, path, fingerprint_scheme, migrations)
        )


def _open_medium(
    backend: StoreBackend, uri: str, path: str, fingerprint_scheme: str | None, migrations: Migrations
) -> tuple[Medium, Age]:
    if fingerprint_scheme is None and not backend.exists(path):
        raise refusals.absent(uri)
    with ExitStack() as undo:
        opened = _opened(backend, uri, path)
        store = _GuardedShared(opened, uri) if isinstance(opened, SharedStore) else _Guarded(opened, uri)
        undo.callback(store.close)
        created = store.atomically(partial(_create_if_empty, store, fingerprint_scheme))
        schema.check(store, fingerprint_scheme, migrations)
        header, migrated_from = schema.migrate(store, migrations)
        return Medium(store, header, undo.pop_all()), Age(created, migrated_from)


def _create_if_empty(store: _Guarded, fingerprint_scheme: str | None) -> bool:
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
    """A store of another package: whatever it raises is a :class:`StoreError`, and what it returns is looked at."""

    def __init__(self, store: Store, uri: str) -> None:
        self.uri = uri
        self._store = store

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        with _refusing(self.uri, "read"):
            values = self._store.get_many(keys)
            if len(values) != len(keys) or not all(isinstance(value, (bytes, NoneType)) for value in values):
                raise TypeError("get_many must return bytes or None for each key")
            return values

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        with _refusing(self.uri, "read"):
            for key, value in self._store.scan(start, stop):
                if not start <= key < stop or not isinstance(value, bytes):
                    raise ValueError(f"scan must return pairs of bytes from {start!r} on and before {stop!r}")
                yield key, value

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = (), *, sync: bool = False) -> None:
        with _refusing(self.uri, "write"):
            self._store.write(puts, deletes, sync=sync)

    def atomically(self, work: Callable[[], _T]) -> _T:
        return work()

    def compact(self) -> None:
        if not isinstance(self._store, CompactableStore):
            raise refusals.not_compactable(without_secrets(self.uri, redact=False))
        with _refusing(self.uri, "compact"):
            self._store.compact()

    def close(self) -> None:
        with _refusing(self.uri, "close"):
            self._store.close()


class _GuardedShared(_Guarded):
    """One that several processes have open at once."""

    def __init__(self, store: SharedStore, uri: str) -> None:
        super().__init__(store, uri)
        self._shared = store
        self.worker = store.worker

    def atomically(self, work: Callable[[], _T]) -> _T:
        with _refusing(self.uri, "write"):
            return self._shared.atomically(work)

    def changes_of_others(self) -> int:
        with _refusing(self.uri, "read"):
            return self._shared.changes_of_others()

    def is_at_work(self, worker: bytes) -> bool:
        with _refusing(self.uri, "read"):
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
