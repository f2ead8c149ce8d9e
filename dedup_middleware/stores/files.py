"""Finds, recognises, locks, measures and removes the files of stores on disk."""

from __future__ import annotations

import json
import os
import platform
import re
import secrets
import shutil
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from filelock import FileLock, Timeout

from dedup_middleware.common import permissions
from dedup_middleware.common.bounded import loads
from dedup_middleware.common.plain_files import open_file
from dedup_middleware.errors import ConfigError, StoreCorruptError
from dedup_middleware.model import now
from dedup_middleware.stores import refusals
from dedup_middleware.stores.engines import ENGINES

if TYPE_CHECKING:
    from collections.abc import Iterator

_MARKER, DATABASE, _LOCK = "DEDUP", "db", "lock"
#: What is beside a lock: the file that names its holder, and the folder of the workers' locks.
HOLDER_SUFFIX, WORKERS_SUFFIX = ".holder", ".workers"
#: The suffixes of the files of a store that is one file, and of all that are beside it.
OF_ONE_FILE = "", "-wal", "-shm", "-journal"
BESIDE = *OF_ONE_FILE, *(f".lock{suffix}" for suffix in ("", HOLDER_SUFFIX, WORKERS_SUFFIX))
_KIND = "dedup-middleware {} store"
_MAX_MARKER_BYTES = 1024
# Files with these suffixes hold what was written. Without CURRENT, engines would begin an empty database over them.
_CURRENT, _CONTENTS = "CURRENT", (".ldb", ".sst", ".log")

# Of a SQLite file: sqlite.org/fileformat2.html, 1.3.
_MAGIC, _ID_OFFSET = b"SQLite format 3\x00", 68
#: "DDUP" in ASCII; `file` and every SQLite tool show it.
APPLICATION_ID = 0x44445550

# The limits of the option; SQLite cannot count further.
_MEMORY_RANGE = (10**6, 2**47)
_SIZE = re.compile(r"([0-9]{1,15})(KB|MB|GB)?", re.IGNORECASE | re.ASCII)
_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
# Text behind the last folder that begins as options do is options, or mistyped ones, and never meant as a file's name.
_OPTIONS = re.compile(r"\?[^/]*\Z")
# No file system needs control characters and line ends, and a message with a path must stay one line.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\x85\ud800-\udbff\u2028\u2029]")


@dataclass(frozen=True)
class Place:
    """Where a store on a disk is, and how it is opened."""

    scheme: str
    path: Path
    """Absolute and without symbolic links: a store has one name."""
    memory: int
    """Bytes for the caches and buffers of the engine."""
    is_shared: bool = False

    @classmethod
    def of(cls, uri: str) -> Place:
        """Return the place in *uri*; ``ConfigError`` if *uri* is not valid."""
        scheme, _, rest = uri.partition(":")
        query = options_of(rest)
        path = rest.removesuffix(query)
        # A question mark alone is a mistake, too.
        options = dict(parse_qsl(query[1:] or query, keep_blank_values=True))
        memory = _size(options.pop("memory", f"{ENGINES[scheme].memory}"))
        is_shared = not ENGINES[scheme].is_folder and options == {"shared": "1"}
        why = _why_no_path(path, query)
        if not why and (memory is None or (options and not is_shared)):
            why = "the options are memory=SIZE, such as 128MB, and for sqlite shared=1"
        if why or memory is None:
            # What is no path may be a URL with a password.
            shown = f"{scheme}:…" if "@" in uri else uri
            raise ConfigError(f"DEDUP_STORE={shown!r} is not valid, {why}", f"write {scheme}:PATH")
        return cls(scheme, resolved(path), is_shared=is_shared, memory=memory)

    @property
    def uri(self) -> str:
        return f"{self.scheme}:{self.path}{'?shared=1' if self.is_shared else ''}"

    @property
    def is_folder(self) -> bool:
        return ENGINES[self.scheme].is_folder

    @property
    def lock(self) -> Path:
        return self.path / _LOCK if self.is_folder else self._beside(".lock")

    def exists(self) -> bool:
        """Return whether a store is there, whole or damaged; ``StoreCorruptError`` for anything else. Never writes."""
        kind = kind_of(self.path)
        if kind is None and not self._is_vacant():
            raise refusals.foreign(self.uri)
        if kind not in (None, self.scheme):
            raise StoreCorruptError(
                f"{self.path} is not a {self.scheme} store but a {kind} store, and was left untouched",
                f"set DEDUP_STORE to {kind}:{self.path}, or to another path",
            )
        return kind is not None

    def _is_vacant(self) -> bool:
        """Return whether a store may be created here: nothing is here, or what a creation or a removal has left."""
        path, log = self.path, self._beside("-wal")
        if self.is_folder:
            left = {_LOCK, _LOCK + HOLDER_SUFFIX, _LOCK + WORKERS_SUFFIX}
            return not path.exists() or (path.is_dir() and {file.name for file in path.iterdir()} <= left)
        if path.exists() and not (path.is_file() and not path.stat().st_size):
            return False
        # SQLite would delete the log of an empty file, and with it batches that are nowhere else.
        if log.exists() and log.stat().st_size:
            raise refusals.corrupt(self.uri, "its database is missing")
        return True

    def database(self) -> Path:
        """Return what an engine is to open; a folder gets our marker.

        ``StoreCorruptError`` if the engine would begin an empty database in the place of a damaged one.
        """
        if not self.is_folder:
            return self.path
        marker, database = self.path / _MARKER, self.path / DATABASE
        if not marker.exists():
            permissions.make_file(marker)
            with open_file(marker, "w", encoding="ascii") as file:
                file.write(json.dumps({"kind": _KIND.format(self.scheme)}))
        permissions.make_folder(database)
        modes = {file: file.stat() for file in database.iterdir()}
        for file, status in modes.items():
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                # An engine would wait for the other end of a pipe.
                raise refusals.corrupt(self.uri, f"{DATABASE}/{file.name} is not a file")
        contents = [file for file, status in modes.items() if file.suffix in _CONTENTS and status.st_size]
        if contents and not (database / _CURRENT).exists():
            raise refusals.corrupt(self.uri, f"{DATABASE}/{_CURRENT} is missing")
        return database

    def size(self) -> int:
        files = self.path.rglob("*") if self.is_folder else map(self._beside, OF_ONE_FILE)
        return sum(file.stat().st_size for file in files if file.is_file())

    def remove(self) -> None:
        """Remove it, the marked file last: what an interruption leaves is still recognised.

        The lock file stays: unlinking a lock splits those who wait for it from those who come later.
        """
        if self.is_folder:
            with suppress(FileNotFoundError):
                shutil.rmtree(self.path / DATABASE)
            (self.path / _MARKER).unlink(missing_ok=True)
        else:
            for suffix in reversed(OF_ONE_FILE):
                self._beside(suffix).unlink(missing_ok=True)
        Workers(self.lock).remove()

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(self.path.name + suffix)


def _why_no_path(path: str, query: str) -> str:
    """Return why *path* cannot be the path in a URI, before *query*; empty if it can."""
    if not path.strip():
        return "the path is missing"
    if path.startswith("//"):
        # Elsewhere sqlite:///x is relative and sqlite:////x absolute; guessing would create folders at the root.
        return "the path follows the colon without //"
    return "the path has control characters" if _UNPRINTABLE.search(path + query) else ""


def _size(text: str) -> int | None:
    """Return the bytes that *text*, such as 128MB, stands for; ``None`` if it is not valid."""
    found = _SIZE.fullmatch(text)
    size = int(found[1]) * _UNITS[(found[2] or "").upper()] if found else 0
    return size if _MEMORY_RANGE[0] <= size < _MEMORY_RANGE[1] else None


def options_of(path: str) -> str:
    """Return the options that *path* ends in, with their question mark; empty if it has no options."""
    found = _OPTIONS.search(path)
    return found[0] if found else ""


def resolved(path: str) -> Path:
    """Return *path* absolute and without symbolic links."""
    # Not Path.resolve(): before Python 3.13 it raises RuntimeError for a loop of links.
    return Path(os.path.realpath(path))


def kind_of(path: Path) -> str | None:
    """Return the scheme of the store at *path*; ``None`` if nothing there has our marker."""
    file = path / _MARKER if path.is_dir() else path
    if not file.is_file():
        return None
    with open_file(file) as opened:
        # A foreign file may be of any size. SQLite itself would change one.
        start = opened.read(_MAX_MARKER_BYTES)
    if start.startswith(_MAGIC):
        return "sqlite" if start[_ID_OFFSET : _ID_OFFSET + 4] == APPLICATION_ID.to_bytes(4, "big") else None
    with suppress(ValueError, AttributeError):
        kind = loads(start).get("kind")
        return next((name for name, each in ENGINES.items() if each.is_folder and kind == _KIND.format(name)), None)
    return None


# --- locks

_WORKER_BYTES = 8
_MAX_HOLDER_BYTES = 4096
# How the name of a holder begins: "process 1234 on host (spider news, since 2025-01-01T10:00:00+00:00)".
_HOLDER, _COMMAND = "process ", "scrapy dedup "
_WORKERS_LOCK = re.compile(rf"[0-9a-f]{{{2 * _WORKER_BYTES}}}\.lock")
# Seconds for which those who share a store wait while others open it.
_PATIENCE = 10.0


def holder_in(path: Path) -> str:
    """Return what the file *path*, beside a lock, names as its holder; empty if it is missing or not valid.

    For messages only: the lock decides.
    """
    with suppress(OSError, ValueError), open_file(path) as file:
        name: str = file.read(_MAX_HOLDER_BYTES).decode("utf8")
        return name if name.startswith(_HOLDER) and name.isprintable() else ""
    return ""


def is_command(holder: str) -> bool:
    """Return whether a *holder* ends in a moment: a command, not a crawl."""
    return f"({_COMMAND}" in holder


@contextmanager
def held(path: Path, uri: str, who: str, *, is_shared: bool = False) -> Iterator[None]:
    """Hold the lock file *path* of the store at *uri* in the name of *who*.

    With *is_shared*, wait for others who hold it in order to share.

    ``StoreLockedError`` if another process holds it, or shares the store that this one wants for itself.
    """
    names = path.with_name(path.name + HOLDER_SUFFIX)
    # A lock is an empty file, which locking may make empty again.
    if os.path.lexists(path) and (not path.is_file() or path.stat().st_size):
        raise refusals.no_path(uri, f"{path} is not a lock of ours")
    lock = _lock(path)
    try:
        lock.acquire(timeout=_PATIENCE if is_shared else 0)
    except Timeout:
        raise refusals.locked(uri, holder_in(names)) from None
    except NotImplementedError as error:  # older versions of filelock, where the system has no flock
        raise refusals.failed(uri, "lock", str(error)) from error
    try:
        if not is_shared and Workers(path).prune():
            raise refusals.locked(uri)
        # Without a name where something else is there, or the disk is full.
        with suppress(OSError), permissions.replaced(names, lambda start: start.startswith(_HOLDER.encode())) as file:
            file.write(f"{_HOLDER}{os.getpid()} on {platform.node()} ({who}, since {now()})".encode("utf8", "replace"))
        yield
    finally:
        if holder_in(names):
            with suppress(OSError):
                names.unlink()
        lock.release()


class Workers:
    """The processes that share the store with the lock file *path*: each holds the lock of a file of its own."""

    def __init__(self, path: Path) -> None:
        self._folder = path.with_name(path.name + WORKERS_SUFFIX)
        self._own: FileLock | None = None
        self.worker = b""
        """The name of this process, once it is one of them."""

    def join(self) -> None:
        permissions.make_folder(self._folder)
        self.prune()
        self.worker = secrets.token_bytes(_WORKER_BYTES)
        self._own = _lock(self._path(self.worker))
        self._own.acquire()

    def leave(self) -> None:
        if self._own is not None:
            self._own.release()
            self._own = None
            self._path(self.worker).unlink(missing_ok=True)

    def is_at_work(self, worker: bytes) -> bool:
        if worker == self.worker:
            return self._own is not None
        return self._path(worker).exists() and _is_held(self._path(worker))

    def prune(self) -> bool:
        """Remove the files of those that have ended; return whether any is left. Call it under the store's lock."""
        for path in self._locks():
            if not _is_held(path):
                path.unlink(missing_ok=True)
        return bool(self._locks())

    def remove(self) -> None:
        """Remove the folder, unless files are left in it."""
        with suppress(OSError):
            self._folder.rmdir()

    def _locks(self) -> list[Path]:
        files = self._folder.glob("*.lock")
        return [f for f in files if _WORKERS_LOCK.fullmatch(f.name) and f.is_file() and not f.stat().st_size]

    def _path(self, worker: bytes) -> Path:
        return self._folder / f"{worker.hex()}.lock"


def _lock(path: Path) -> FileLock:
    # thread_local=False: the last close may come from another thread than the opening.
    return FileLock(path, timeout=0, mode=permissions.FILE_MODE, thread_local=False)


def _is_held(path: Path) -> bool:
    """Return whether another process holds the lock *path*; one that tries it at this moment counts, too."""
    lock = _lock(path)
    try:
        lock.acquire()
    except Timeout:
        return True
    lock.release()
    return False
