"""The store: sorted bytes → bytes, chosen by a URI.

``leveldb:PATH``, ``rocksdb:PATH`` and ``sqlite:PATH`` keep what they know from crawl to crawl, ``redis://HOST`` on a
server, ``memory:`` until it is closed; other packages add more.
Law of this floor: it knows bytes, and nothing of pages; what a name opens is imported when it is opened.
"""

from __future__ import annotations

import importlib
import re
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from dedup_middleware.errors import ConfigError
from dedup_middleware.registry import Registry
from dedup_middleware.stores import disk, external, redis_address
from dedup_middleware.stores.holder import Holder
from dedup_middleware.stores.layout import Header
from dedup_middleware.stores.medium import Medium
from dedup_middleware.stores.opened import OpenStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.stores.external import StoreBackend

__all__ = [
    "ON_DISK",
    "OpenStore",
    "can_open",
    "default_backend",
    "destroy_store",
    "open_store",
    "parse_uri",
    "resolved_uri",
    "size_of_store",
    "store_exists",
]

_MEMORY = "memory"
_ALLOWED = "leveldb:PATH, rocksdb:PATH, sqlite:PATH, sqlite:PATH?shared=1, redis://HOST, rediss://HOST or memory:"
_SHARED = "?shared=1"
# What looks like one: a file of that name is never what was meant.
_OPTION = re.compile(r"\?[^/]*\Z")
# Controls and line ends: no file system needs them, and a message with a path must stay one line.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\x85\ud800-\udbff\u2028\u2029]")


def _leveldb() -> disk.Backend:
    # By name and each time: whether plyvel is there must not depend on who imported our module before.
    importlib.import_module("plyvel")
    from dedup_middleware.stores import leveldb  # noqa: PLC0415 - plyvel has wheels for few platforms

    return leveldb.BACKEND


def _rocksdb() -> disk.Backend:
    importlib.import_module("rocksdict")
    from dedup_middleware.stores import rocksdb  # noqa: PLC0415 - rocksdict has wheels for many platforms, not for all

    return rocksdb.BACKEND


def _sqlite() -> disk.Backend:
    from dedup_middleware.stores import sqlite  # noqa: PLC0415 - a Python may be built without sqlite3

    return sqlite


_ON_DISK: dict[str, Callable[[], disk.Backend]] = {"leveldb": _leveldb, "rocksdb": _rocksdb, "sqlite": _sqlite}
#: The schemes of the stores on disk, the best for a crawl first.
ON_DISK = tuple(_ON_DISK)
_REMEDIES = {"leveldb": "`pip install plyvel`", "rocksdb": "`pip install rocksdict`"}
_SERVERS = {"redis": "PLAIN", "rediss": "ENCRYPTED"}
#: Those that are not on a disk of this machine: on a server, or of other packages.
STORES = Registry(
    "dedup_middleware.stores", {name: f"dedup_middleware.stores.redis:{which}" for name, which in _SERVERS.items()}
)


def parse_uri(uri: str) -> tuple[str, str]:
    """Return scheme and path of *uri*; the path of ``memory:`` is empty. ``ConfigError`` if it cannot be a store's."""
    scheme, colon, path = uri.partition(":")
    if _is_shared_file(uri):
        path = path.removesuffix(_SHARED)
    if not colon or not (scheme in (*_ON_DISK, _MEMORY) or scheme in STORES):
        # A URI such as redis://:password@host must not put its password into a log.
        shown = re.sub(r"//[^/]*@", "//…@", uri)
        more = "".join(f", {name}:…" for name in STORES.names() if name not in STORES.ours)
        raise ConfigError(f"DEDUP_STORE={shown!r} names no store of this version: allowed are {_ALLOWED}{more}")
    if scheme == _MEMORY:
        if path:
            raise ConfigError(f"DEDUP_STORE={uri!r}: a store in memory has no path; write memory:")
    elif scheme in _SERVERS:
        redis_address.address(scheme, path)
    elif not path.strip():
        raise ConfigError(f"DEDUP_STORE={uri!r} has no path: write {scheme}:PATH")
    elif path.startswith("//") and scheme in _ON_DISK:
        # Elsewhere sqlite:///x is relative and sqlite:////x absolute; guessing would create folders at the root.
        raise ConfigError(f"DEDUP_STORE={uri!r}: the path follows the colon without //; write {scheme}:PATH")
    elif _UNPRINTABLE.search(path):
        raise ConfigError(f"DEDUP_STORE={uri!r}: the path has control characters; write {scheme}:PATH without them")
    elif scheme in _ON_DISK and (option := _OPTION.search(path)):
        raise ConfigError(
            f"DEDUP_STORE={uri!r}: {option[0]!r} is no option of {scheme}:PATH; of stores on disk, only "
            f"sqlite:PATH{_SHARED} has one"
        )
    return scheme, path


def _is_shared_file(uri: str) -> bool:
    """Tell whether the store at *uri* is one file that may be open in several processes at once."""
    return uri.startswith("sqlite:") and uri.endswith(_SHARED)


def _backend(uri: str) -> disk.Backend:
    """Return the module behind the *uri* of a store on disk; ``ConfigError`` where it cannot be imported."""
    backend = backend_of(parse_uri(uri)[0])
    if not _is_shared_file(uri):
        return backend
    from dedup_middleware.stores import sqlite_shared  # noqa: PLC0415 - as sqlite, which could be imported

    return sqlite_shared


def backend_of(scheme: str) -> disk.Backend:
    """Return the module behind *scheme*, of a store on disk; ``ConfigError`` where it cannot be imported."""
    if scheme not in _ON_DISK:
        raise ConfigError(f"a store {scheme}:… has no files to mend; its own server or package can")
    try:
        return _ON_DISK[scheme]()
    except ImportError as error:
        instead = f"{_REMEDIES[scheme]}, or set DEDUP_STORE={default_backend()}:PATH" if scheme in _REMEDIES else ""
        message = f"DEDUP_STORE={scheme}:… cannot be opened on this Python ({error}): {instead or 'use memory:'}"
        raise ConfigError(message) from error


def open_store(
    uri: str,
    *,
    fingerprint_scheme: str | None,
    holder: Holder | None = None,
    room: int = sys.maxsize,
    memory: int | None = None,
) -> OpenStore:
    """Open the store at *uri*, or create it where nothing is; what is damaged or not ours is never written to.

    *fingerprint_scheme* names how fingerprints are made; a store made with another is refused. ``None`` takes a store
    made with any, and creates none. *holder* is what others are told who find the store in use. A store of another
    schema is refused. *room* is how many bytes a store in memory may
    take, *memory* what the caches and buffers of one on disk take, 128 MB without it. Openers in one process that name
    the same path share it, ``memory:`` is a new store each time. Raises
    ``ConfigError`` for the URI, ``StoreLockedError``, ``StoreCorruptError``, ``StoreVersionError``, and ``StoreError``
    for what the system refuses.
    A LevelDB takes up to a second to open (it replays its last 32 MB); of its tables it maps the first thousand into
    memory, and holds 58 MB of filters and indexes for each million pages beyond those, some eight million.
    """
    scheme, path = parse_uri(uri)
    if scheme not in (*_ON_DISK, _MEMORY):
        return external.open_shared(_external(scheme), uri, path, fingerprint_scheme, ours=scheme in STORES.ours)
    if scheme != _MEMORY:
        holder = holder or Holder.this_process("a program")
        opening = disk.Opening(fingerprint_scheme, holder, memory or disk.MEMORY)
        return disk.open_shared(_backend(uri), disk.resolved(path), opening)
    from dedup_middleware.stores.memory import MemoryStore  # noqa: PLC0415 - as the others

    undo = ExitStack()
    store = MemoryStore(room)
    undo.callback(store.close)
    medium = Medium(store, Header.new(fingerprint_scheme or ""), undo, remembers=False)
    return OpenStore(medium, created=True, leave=medium.close)


def resolved_uri(uri: str) -> str:
    """Return *uri* with an absolute path: it names the same store in any folder."""
    scheme, path = parse_uri(uri)
    return f"{scheme}:{disk.resolved(path)}{_SHARED * _is_shared_file(uri)}" if scheme in _ON_DISK else uri


def can_open(scheme: str) -> bool:
    """Tell whether stores on disk of this *scheme* can be opened on this Python; imports what opens them."""
    try:
        _ON_DISK[scheme]()
    except ImportError:
        return False
    return True


def default_backend() -> str:
    """Return the scheme of the default store: ``leveldb`` where plyvel can be imported, ``rocksdb``, or ``sqlite``."""
    return next(filter(can_open, ON_DISK), "sqlite")


def store_exists(uri: str) -> bool:
    """Return whether a store is at *uri*, whole or damaged; opens and locks nothing.

    ``StoreCorruptError`` if something else is there, ``StoreError`` where that cannot be told.
    """
    scheme, path = parse_uri(uri)
    if scheme in _ON_DISK:
        return disk.exists(backend_of(scheme), disk.resolved(path))
    return scheme != _MEMORY and _external(scheme).exists(path)


def size_of_store(uri: str) -> int | None:
    """Return how many bytes the files of the store at *uri*, which is there, have; ``None`` where it has none."""
    scheme, path = parse_uri(uri)
    return disk.size(backend_of(scheme), disk.resolved(path)) if scheme in _ON_DISK else None


def destroy_store(uri: str) -> bool:
    """Remove the store at *uri*, even a damaged one, and only its own files; return whether there was one.

    Raises ``StoreLockedError`` if it is open anywhere, ``StoreCorruptError`` if what is there does not bear our marker.
    """
    scheme, path = parse_uri(uri)
    if scheme in _ON_DISK:
        return disk.destroy(backend_of(scheme), disk.resolved(path))
    return scheme != _MEMORY and external.destroy(_external(scheme), uri, path)


def _external(scheme: str) -> StoreBackend:
    try:
        backend: StoreBackend = STORES.load(scheme)
    except ImportError as error:
        raise ConfigError(
            f"DEDUP_STORE={scheme}:… cannot be opened on this Python ({error}): "
            f'`pip install "dedup-middleware[redis]"`, or set DEDUP_STORE={default_backend()}:PATH'
        ) from error
    return backend
