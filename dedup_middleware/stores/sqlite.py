"""A store in one SQLite file: where plyvel has no wheel, and for those who like a single file.

PATH is the database, with ``PATH-wal`` and ``PATH-shm`` beside it while it is open; the lock is ``PATH.lock``, and
``PATH.watermark`` is a :mod:`~dedup_middleware.stores.watermark`, for SQLite passes over a WAL that was cut or is gone.
"""

from __future__ import annotations

import stat
from contextlib import closing, suppress
from typing import TYPE_CHECKING, TypeVar

from dedup_middleware import permissions
from dedup_middleware.stores import refusals
from dedup_middleware.stores.disk import Found
from dedup_middleware.stores.sqlite_store import APPLICATION_ID, SQLiteStore
from dedup_middleware.stores.watermark import DRAFT_SUFFIX, Watermark

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dedup_middleware.stores.protocol import Store

    _S = TypeVar("_S", bound=SQLiteStore)

# Where they lie in the file: sqlite.org/fileformat2.html, 1.3.
_MAGIC = b"SQLite format 3\x00"
_APPLICATION_ID_OFFSET = 68
_FILE_HEADER_BYTES = 100

# Up to this size, 40 000 pages or 1.6 s, all is read when the store is opened; beyond, rot is noticed when it is read.
VERIFIED_BYTES = 256 * 2**20

SCHEME = "sqlite"
OPTIONS = ""
_WATERMARK = ".watermark"


def probe(path: Path) -> Found:
    """Return what is at *path*, by the application id; never writes, and never lets SQLite touch a stranger's file."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        status = None
    if status is None or (stat.S_ISREG(status.st_mode) and status.st_size == 0):
        return _without_database(path)
    if not stat.S_ISREG(status.st_mode):
        return Found.FOREIGN
    with path.open("rb") as file:
        start = file.read(_FILE_HEADER_BYTES)
    application_id = int.from_bytes(start[_APPLICATION_ID_OFFSET : _APPLICATION_ID_OFFSET + 4], "big")
    return Found.OURS if start.startswith(_MAGIC) and application_id == APPLICATION_ID else Found.FOREIGN


def _without_database(path: Path) -> Found:
    # SQLite deletes the WAL of an empty file, and with it the batches that are nowhere else.
    if _beside(path, "-wal").exists():
        return Found.FOREIGN
    if not watermark_path(path).exists():
        return Found.NOTHING
    try:
        _, number = Watermark.load(watermark_path(path))
    except ValueError:
        return Found.FOREIGN
    # 0: a creation was killed, or nothing was ever written.
    return Found.OURS if number else Found.NOTHING


def lock_path(path: Path) -> Path:
    """Return the path of the file to lock for the store at *path*."""
    return _beside(path, ".lock")


def watermark_path(path: Path) -> Path:
    """Return the path of the watermark of the store at *path*."""
    return _beside(path, _WATERMARK)


def known_ids(path: Path) -> set[bytes]:
    """Return the ids that the files beside the database give the store, which may be damaged."""
    with suppress(ValueError):
        return {Watermark.load(watermark_path(path))[0].store_id}
    return set()


def connect(
    path: Path, seed: tuple[bytes, bytes], check: Callable[[Store], None], memory: int
) -> tuple[SQLiteStore, bool]:
    """Open the store at *path*, or create it with the pair *seed* in it; return it and whether it was created."""
    return connect_as(SQLiteStore, path, seed, check, memory)


def connect_as(
    kind: type[_S], path: Path, seed: tuple[bytes, bytes], check: Callable[[Store], None], memory: int
) -> tuple[_S, bool]:
    """Do as :func:`connect`, and open it as a store of this *kind*."""
    if probe(path) is Found.OURS:
        with refusals.of_value(f"{SCHEME}:{path}"):
            mark, _ = Watermark.load(watermark_path(path))
        if not path.exists() or not path.stat().st_size:
            raise refusals.corrupt(f"{SCHEME}:{path}", "its database is missing")
        # A creation was killed, and the journal leads back to before it.
        if not _beside(path, "-journal").exists():
            _try_out(path, mark, check)
    else:
        mark = Watermark.create(watermark_path(path))
        mark.advance(0)
    # SQLite opens a file that it may only read without a word; this fails now and not at the first page.
    permissions.make_file(path)
    path.open("ab").close()
    store = kind(path, mark)
    try:
        created = store.create([seed, *mark.pairs()])
        store.tune(memory)
    except BaseException:
        store.close()
        raise
    return store, created


def _try_out(path: Path, mark: Watermark, check: Callable[[Store], None]) -> None:
    """Look at the database through a connection that may not write; one that may would empty the WAL on closing."""
    # It makes both where they are not, and leaves them behind, empty of content.
    made = [file for file in (_beside(path, "-shm"), _beside(path, "-wal")) if not file.exists()]
    try:
        with closing(SQLiteStore(path, mark, read_only=True)) as store:
            mark.check(store)
            check(store)
            if path.stat().st_size <= VERIFIED_BYTES:
                store.verify()
    finally:
        for file in made:
            file.unlink(missing_ok=True)


def files(path: Path) -> list[Path]:
    """Return what is ours."""
    beside = (_beside(path, suffix) for suffix in ("", "-wal", "-shm", ".lock", _WATERMARK))
    return [file for file in beside if file.exists()]


def remove(path: Path) -> None:
    """Remove the store's files, the marked ones last: what is left by an interruption is still recognisably ours.

    The lock file stays: unlinking a lock splits those who wait for it from those who come later.
    """
    for suffix in ("-wal", "-shm", "-journal", _WATERMARK + DRAFT_SUFFIX, "", _WATERMARK):
        _beside(path, suffix).unlink(missing_ok=True)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
