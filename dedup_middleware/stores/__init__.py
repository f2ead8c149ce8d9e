"""Opens, finds, measures and removes stores: sorted bytes → bytes, chosen by a URI.

``leveldb:PATH``, ``rocksdb:PATH`` and ``sqlite:PATH`` keep their pairs on a disk, ``redis://HOST`` on a server,
``memory:`` until they are closed. Another package adds a store by an entry point of the group
``dedup_middleware.stores``, named as the scheme of its URIs, that leads to a module with three functions of a URI:
``open_store`` returns a :class:`~dedup_middleware.stores.base.Store`, ``store_exists`` whether one is there, and
``remove_store`` removes it and returns whether it was there. What a scheme needs is imported when it is used.
"""

from __future__ import annotations

import os
import re
import threading
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dedup_middleware.common import permissions
from dedup_middleware.common.registry import Registry
from dedup_middleware.errors import ConfigError, EngineMissingError, StoreAwayError
from dedup_middleware.stores import refusals
from dedup_middleware.stores.base import HEADER_KEY, Header, read_header
from dedup_middleware.stores.engines import ENGINES, LAST_RESORT, MEMORY, SERVERS, forms
from dedup_middleware.stores.files import DATABASE, Place, Workers, held, kind_of, options_of, resolved
from dedup_middleware.stores.memory import MemoryStore
from dedup_middleware.stores.opened import OpenStore, Shared, overlaid

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dedup_middleware.stores.base import Store

__all__ = ["OpenStore", "open_store", "overlaid", "store_exists"]

#: Stores that are not on a disk of this machine: on a server, or of other packages.
STORES = Registry("dedup_middleware.stores", dict.fromkeys(SERVERS, "dedup_middleware.stores.redis"))

# --- URIs


def is_scheme(name: str) -> bool:
    """Return whether the URIs of some stores begin with *name* and a colon."""
    return name in (*ENGINES, MEMORY.rstrip(":")) or name in STORES


def is_server(scheme: str) -> bool:
    """Return whether the stores of this *scheme* are not on a disk of this machine."""
    return scheme in STORES


def parse_uri(uri: str) -> tuple[str, str]:
    """Return scheme and path of *uri*, the path absolute and without options; ``ConfigError`` if it is not valid."""
    scheme, colon, path = uri.partition(":")
    if uri == MEMORY:
        return scheme, path
    if not colon or scheme == "memory" or not is_scheme(scheme):
        # In a URL, any part but its beginning may be a password.
        shown = f"{'' if '@' in scheme else scheme}:…" if re.search("//|[@?]", uri) else uri
        raise ConfigError(f"DEDUP_STORE={shown!r} is not a valid store URI", f"use {_allowed()}")
    if scheme in SERVERS:
        _module(scheme).address(uri)
    return scheme, str(Place.of(uri).path) if scheme in ENGINES else path


def _allowed() -> str:
    theirs = "".join(f", {name}:…" for name in STORES.names() if name not in SERVERS)
    return ", ".join([*forms(), *(f"{name}://HOST" for name in SERVERS)]) + f" or {MEMORY}{theirs}"


def _place(uri: str) -> Place | None:
    """Return where on a disk the store at *uri* is; ``None`` for a store elsewhere."""
    return Place.of(uri) if parse_uri(uri)[0] in ENGINES else None


def resolved_uri(uri: str) -> str:
    """Return *uri* with an absolute path: it names the same store in any folder."""
    scheme, path = parse_uri(uri)
    return f"{scheme}:{path}{options_of(uri)}" if scheme in ENGINES else uri


def uri_at(path: str) -> str:
    """Return the URI of the store at *path*, of its own kind; where nothing is, of a new one of the default kind."""
    kind = None
    with suppress(OSError):
        kind = kind_of(resolved(path.removesuffix(options_of(path))))
    return resolved_uri(f"{kind or default_backend()}:{path}")


def default_backend() -> str:
    """Return the scheme of the default store: the first whose library can be imported."""
    for scheme, engine in ENGINES.items():
        with suppress(ImportError):
            import_module(engine.library)
            return scheme
    return LAST_RESORT


def _module(scheme: str) -> Any:
    """Return the module that opens stores of this *scheme*; ``EngineMissingError`` where it cannot be imported."""
    try:
        if scheme not in ENGINES:
            return STORES.load(scheme)
        # By name and each time: whether it is there must not depend on an earlier import of our module.
        import_module(ENGINES[scheme].library)
        return import_module(f"dedup_middleware.stores.{scheme}")
    except ImportError as error:
        remedy = '`pip install "dedup-middleware[redis]"`' if scheme in SERVERS else f"`pip install {error.name}`"
        raise EngineMissingError(
            f"a store {scheme}:… cannot be opened on this Python ({error})",
            f"{remedy}, or set DEDUP_STORE={default_backend()}:PATH",
        ) from error


def _elsewhere(uri: str) -> Any:
    """Return the module that has stores as that at *uri*, which is not on a disk."""
    return _module(uri.partition(":")[0])


# --- opening: openers of one process that name the same store share it

_open: dict[Hashable, Shared] = {}
# One guard for opening and the last close: neither may overtake the other.
_guard = threading.Lock()


def _after_fork() -> None:
    """Start afresh in a forked child: nothing is open, and the guard is free, even if the parent held it."""
    global _guard  # noqa: PLW0603 - a lock that another thread held at the fork can only be replaced
    for shared in _open.values():
        shared.leave_to_parent()
    _open.clear()
    _guard = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def open_store(
    uri: str, *, fingerprint_scheme: str | None, who: str = "a program", room: int | None = None
) -> OpenStore:
    """Open the store at *uri*, or create it where nothing is; never write to foreign files.

    *fingerprint_scheme* names how fingerprints are made; a store of another scheme is refused. ``None`` takes a store
    of any, and creates none. *who* is shown to those who find the store in use. *room* limits the bytes of a store
    in memory. Openers in one process that name the same store share it; ``memory:`` is a new store each time. Raises
    ``ConfigError`` for the URI, ``StoreLockedError``, ``StoreCorruptError``, ``StoreVersionError``, and ``StoreError``
    for what the system refuses.
    """
    place = _place(uri)
    name: Hashable = object() if uri == MEMORY else uri if place is None else place.lock
    with _guard:
        shared, created = _open.get(name), False
        # One that is away is not shared any more: its openers close it, each when it finds out.
        if shared is None or isinstance(shared.failure, StoreAwayError):
            if fingerprint_scheme is None and not _exists(uri, place):
                raise refusals.absent(uri)
            with ExitStack() as undo:
                store = _opened(uri, place, who, room, undo)
                shared, created = _with_header(store, fingerprint_scheme, undo)
            _open[name] = shared
        elif place is not None and shared.store.uri != place.uri:
            # The same file, as a store that is shared and as one that is not.
            raise refusals.locked(place.uri)
        else:
            shared.header.check_scheme(fingerprint_scheme, shared.store.uri)
        shared.openers += 1
    return OpenStore(shared, created=created, leave=partial(_leave, name, shared))


def _opened(uri: str, place: Place | None, who: str, room: int | None, undo: ExitStack) -> Store:
    """Return the store at *uri*, opened here; *undo* closes it."""
    store: Store
    if place is not None:
        store = _open_on_disk(place, who, undo)
    elif uri == MEMORY:
        store = MemoryStore(room=room)
    else:
        named, failed = refusals.named(uri), lambda uri, action, error: refusals.failed(uri, action, repr(error))
        with refusals.translated(named, "open", failed):
            store = _elsewhere(uri).open_store(uri)
    undo.callback(store.close)
    return store


def _open_on_disk(place: Place, who: str, undo: ExitStack) -> Store:
    engine = _module(place.scheme).ENGINE
    with refusals.translated(place.uri, "open", engine.refusal), ExitStack() as until_open:
        # Another process may be making a shared store: its file is whole when the lock is free.
        if not (place.is_shared and place.lock.exists()):
            place.exists()
        permissions.make_folder(place.lock.parent)
        # A shared store is locked while it is opened; then each worker has a lock of its own.
        lock = held(place.lock, place.uri, who, is_shared=place.is_shared)
        (until_open if place.is_shared else undo).enter_context(lock)
        if place.is_shared:
            place.exists()
        undo.callback(permissions.tighten_within, place.path / DATABASE)
        workers = [Workers(place.lock)] if place.is_shared else []
        for each in workers:
            each.join()
            undo.callback(each.leave)
        store: Store = engine(place.uri, place.database(), place.memory, *workers)
    return store


def _with_header(store: Store, fingerprint_scheme: str | None, undo: ExitStack) -> tuple[Shared, bool]:
    """Return what the openers of *store* share, the last of whom closes it by *undo*; and whether the store is new."""
    shared = Shared(store)
    opener = OpenStore(shared, created=True, leave=lambda: None)

    def find_header() -> bool:
        header = shared.call("open", read_header, store, fingerprint_scheme)
        if is_new := header is None:
            if fingerprint_scheme is None:
                # A creation was killed before it wrote anything.
                raise refusals.absent(store.uri)
            header = Header.new(fingerprint_scheme)
            opener.write([(HEADER_KEY, header.encode())])
        shared.header = header
        return is_new

    if created := opener.transaction(find_header):
        opener.sync()
    shared.undo = undo.pop_all()
    return shared, created


def _leave(name: Hashable, shared: Shared) -> None:
    with _guard:
        shared.openers -= 1
        if shared.openers == 0:
            if _open.get(name) is shared:
                del _open[name]
            shared.close()


# --- stores that are not open


def store_exists(uri: str) -> bool:
    """Return whether a store is at *uri*, whole or damaged; neither opens nor locks a store on a disk.

    ``StoreCorruptError`` if something else is there, ``StoreError`` where that cannot be found out.
    """
    with _guard:
        return _exists(uri, _place(uri))


def _exists(uri: str, place: Place | None) -> bool:
    if place is None:
        return uri != MEMORY and bool(_elsewhere(uri).store_exists(uri))
    # Not if this process has it open: closing any handle of a file drops the process's POSIX locks on it, those of
    # SQLite too (sqlite.org/howtocorrupt.html, 2.2).
    with refusals.translated(place.uri, "read"):
        return place.lock in _open or place.exists()


def size_of_store(uri: str) -> int | None:
    """Return the bytes of the files of the store at *uri*, which exists; ``None`` if it is not on a disk."""
    place = _place(uri)
    if place is None:
        return None
    with refusals.translated(place.uri, "read"):
        return place.size()


def destroy_store(uri: str) -> bool:
    """Remove the store at *uri*, even a damaged one, and only its own files; return whether there was one.

    Raises ``StoreLockedError`` if it is open anywhere, ``StoreCorruptError`` if what is there does not have our marker.
    """
    place = _place(uri)
    name: Hashable = uri if place is None else place.lock
    with _guard:
        if name in _open:
            raise refusals.locked(uri)
        if place is None:
            return uri != MEMORY and bool(_elsewhere(uri).remove_store(uri))
        if not _exists(uri, place):
            return False
        with refusals.translated(place.uri, "remove"), held(place.lock, place.uri, "scrapy dedup store reset"):
            place.remove()
    return True
