"""Finds, recognises, measures and removes the files of stores on disk.

A folder (LevelDB, RocksDB) has ``DEDUP``, the marker; ``lock``; and ``db/``, the database. A file (SQLite) is the
database, with an application id; beside it are ``-wal``, ``-shm`` and ``.lock``. Nothing here changes foreign files.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dedup_middleware import permissions
from dedup_middleware.bounded import loads
from dedup_middleware.stores import refusals
from dedup_middleware.stores.locks import HOLDER_SUFFIX, WORKERS_SUFFIX

_MARKER, _DB, _LOCK = "DEDUP", "db", "lock"
_KIND = "dedup-middleware {} store"
_MAX_MARKER_BYTES = 1024
# Without the first, engines would begin an empty database in the place of what is in the others.
_CURRENT, _CONTENTS = "CURRENT", (".ldb", ".sst", ".log")

# Of a file of SQLite: sqlite.org/fileformat2.html, 1.3.
_MAGIC, _ID_OFFSET = b"SQLite format 3\x00", 68
#: "DDUP" in ASCII; `file` and every SQLite tool show it.
APPLICATION_ID = 0x44445550


@dataclass(frozen=True)
class Place:
    """Where a store on a disk is."""

    scheme: str
    path: Path
    """Absolute and without symbolic links: one store has one name."""
    is_shared: bool = False

    @property
    def uri(self) -> str:
        """The URI of the store."""
        return f"{self.scheme}:{self.path}{'?shared=1' if self.is_shared else ''}"

    @property
    def is_folder(self) -> bool:
        """Whether the store is a folder."""
        return self.scheme != "sqlite"

    @property
    def lock(self) -> Path:
        """The file to lock."""
        return self.path / _LOCK if self.is_folder else self._beside(".lock")

    def exists(self) -> bool:
        """Return whether a store is there, whole or damaged; ``StoreCorruptError`` for anything else. Never writes."""
        if self._is_vacant():
            return False
        kind = _kind_of(self.path)
        if kind is None:
            raise refusals.foreign(self.uri)
        if kind != self.scheme:
            raise refusals.of_another_kind(self.uri, kind)
        return True

    def _is_vacant(self) -> bool:
        """Return whether a store may be created here: nothing is here, or what a creation or a removal has left."""
        try:
            status = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            status = None
        if self.is_folder:
            left = {_LOCK, _LOCK + HOLDER_SUFFIX, _LOCK + WORKERS_SUFFIX}
            # Where one of its parents is a file, nothing is here, and creating it will fail.
            return status is None or (
                stat.S_ISDIR(status.st_mode) and {file.name for file in self.path.iterdir()} <= left
            )
        if status is not None and (not stat.S_ISREG(status.st_mode) or status.st_size):
            return False
        # SQLite would delete the log of an empty file, and with it what is nowhere else.
        log = self._beside("-wal")
        if log.exists() and log.stat().st_size:
            raise refusals.corrupt(self.uri, "its database is missing")
        return True

    def database(self) -> Path:
        """Return what an engine is to open; a folder gets our marker.

        ``StoreCorruptError`` if the engine would begin an empty database in the place of one that is damaged.
        """
        if not self.is_folder:
            return self.path
        marker, database = self.path / _MARKER, self.path / _DB
        if not marker.exists():
            permissions.make_file(marker)
            marker.write_text(json.dumps({"kind": _KIND.format(self.scheme)}), encoding="ascii")
        permissions.make_folder(database)
        contents = [file for file in database.iterdir() if file.suffix in _CONTENTS and file.stat().st_size]
        if contents and not (database / _CURRENT).exists():
            raise refusals.corrupt(self.uri, f"{_DB}/{_CURRENT} is missing")
        return database

    def tighten(self) -> None:
        """Make the files private that an engine has made for everybody."""
        if self.is_folder:
            permissions.tighten_within(self.path / _DB)

    def size(self) -> int:
        """Return the bytes of its files."""
        files = self.path.rglob("*") if self.is_folder else map(self._beside, ("", "-wal", "-shm"))
        return sum(file.stat().st_size for file in files if file.is_file())

    def remove(self) -> None:
        """Remove it, the marked file last: what is left by an interruption is still recognised.

        The lock file stays: unlinking a lock splits those who wait for it from those who come later.
        """
        if self.is_folder:
            for folder in (_DB, f"{_DB}.loading"):
                with suppress(FileNotFoundError):
                    shutil.rmtree(self.path / folder)
            (self.path / _MARKER).unlink(missing_ok=True)
        else:
            for suffix in ("-wal", "-shm", "-journal", ""):
                self._beside(suffix).unlink(missing_ok=True)

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(self.path.name + suffix)


def resolved(path: str) -> Path:
    """Return *path* absolute and without symbolic links."""
    # Not Path.resolve(): before Python 3.13 it raises RuntimeError for a loop of links.
    return Path(os.path.realpath(path))


def _kind_of(path: Path) -> str | None:
    """Return the scheme of the store at *path*; ``None`` if it does not have our marker."""
    file = path / _MARKER if path.is_dir() else path
    if not file.is_file():
        return None
    with file.open("rb") as opened:
        # A foreign file may be of any size. SQLite itself would change one.
        start = opened.read(_MAX_MARKER_BYTES)
    if start.startswith(_MAGIC):
        return "sqlite" if start[_ID_OFFSET : _ID_OFFSET + 4] == APPLICATION_ID.to_bytes(4, "big") else None
    with suppress(ValueError, AttributeError):
        kind = loads(start).get("kind")
        return next((scheme for scheme in ("leveldb", "rocksdb") if kind == _KIND.format(scheme)), None)
    return None
