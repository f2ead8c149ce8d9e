"""A store whose database is a folder: what is there, how it is made, tried out and removed, whatever engine it has.

PATH is a folder of ours: ``DEDUP`` (see :mod:`~dedup_middleware.stores.marker`), ``watermark`` (see
:mod:`~dedup_middleware.stores.watermark`), ``lock`` (held by :mod:`~dedup_middleware.stores.disk`), and ``db/``, the
database itself.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from dedup_middleware import permissions
from dedup_middleware.stores import marker, refusals
from dedup_middleware.stores.disk import HOLDER_SUFFIX, Found
from dedup_middleware.stores.folder_store import DB, LOADING, TRIAL
from dedup_middleware.stores.watermark import DRAFT_SUFFIX, Watermark

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from dedup_middleware.stores.folder_store import FolderStore
    from dedup_middleware.stores.protocol import Store

# Up to this size, 110 000 pages or 1.4 s, all is read when the store is opened; beyond, rot is noticed when it is read.
VERIFIED_BYTES = 256 * 2**20

_TABLES = frozenset({".ldb", ".sst"})
_LOCK = "lock"
_WATERMARK = "watermark"


class Engine(Protocol):
    """What the module of an engine offers."""

    SCHEME: str
    """What the URIs of its stores begin with."""

    def open_database(self, path: Path, mark: Watermark, memory: int, *, create: bool = False) -> FolderStore:
        """Open the database of the store at *path*; without *create* it must be there. About *memory* bytes are its."""

    def on_trial(self, path: Path, mark: Watermark) -> AbstractContextManager[FolderStore]:
        """Return a context with the database to look at, of which nothing is changed; ``StoreCorruptError`` for gaps.

        Opening may change files even where it fails, or where we refuse afterwards.
        """


class FolderBackend:
    """A :class:`~dedup_middleware.stores.disk.Backend` for the folders of one engine."""

    OPTIONS = ""

    def __init__(self, engine: Engine) -> None:
        self.SCHEME = engine.SCHEME
        self.OPTIONS = ""
        self._engine = engine

    def probe(self, path: Path) -> Found:
        """Return what is at *path*, by our marker; never writes."""
        try:
            names = {entry.name for entry in path.iterdir()}
        except FileNotFoundError:
            return Found.NOTHING
        except NotADirectoryError:
            # Either the path is a file, or one of its parents is: then nothing is here, and creating it will fail.
            return Found.FOREIGN if path.exists() else Found.NOTHING
        # What is left by a creation that did not come as far as the marker, and by remove().
        if names <= {_LOCK, _LOCK + HOLDER_SUFFIX, _LOCK + HOLDER_SUFFIX + DRAFT_SUFFIX, marker.DRAFT}:
            return Found.NOTHING
        return Found.OURS if marker.is_ours(path, self.SCHEME) else Found.FOREIGN

    def lock_path(self, path: Path) -> Path:
        """Return the path of the file to lock for the store at *path*."""
        return path / _LOCK

    def watermark_path(self, path: Path) -> Path:
        """Return the path of the watermark of the store at *path*."""
        return path / _WATERMARK

    def known_ids(self, path: Path) -> set[bytes]:
        """Return the ids that the files beside the database give the store, which may be damaged."""
        ids = set()
        with suppress(ValueError):
            ids.add(marker.read(path, self.SCHEME).store_id)
        with suppress(ValueError):
            ids.add(Watermark.load(self.watermark_path(path))[0].store_id)
        return ids

    def connect(
        self, path: Path, seed: tuple[bytes, bytes], check: Callable[[Store], None], memory: int
    ) -> tuple[FolderStore, bool]:
        """Open the store at *path*, or create it with the pair *seed* in it; return it and whether it was created.

        The marker says "unfinished" until *seed* is on the medium, so a creation that was killed is taken up again, and
        any other store without ``CURRENT`` is damaged: an engine alone would begin an empty database there, unasked.
        """
        uri = f"{self.SCHEME}:{path}"
        mark = Watermark.create(self.watermark_path(path))
        if marker.is_ours(path, self.SCHEME):
            with refusals.of_value(uri):
                said = marker.read(path, self.SCHEME)
            if said.layout != marker.LAYOUT:
                raise refusals.other_schema(uri, said.layout, marker.LAYOUT)
            mark = Watermark(self.watermark_path(path), said.store_id)
            if said.finished:
                self._try_out(path, mark, check)
                return self._engine.open_database(path, mark, memory), False
        return self._create(path, mark, seed, memory), True

    def _create(self, path: Path, mark: Watermark, seed: tuple[bytes, bytes], memory: int) -> FolderStore:
        marker.write(path, self.SCHEME, store_id=mark.store_id, finished=False)
        permissions.make_folder(path / DB)
        store = self._engine.open_database(path, mark, memory, create=True)
        try:
            # A header that is there already may have hashed something: when the power fails, the marker's last change
            # can be lost although later batches were not.
            if store.get_many([seed[0]]) == [None]:
                store.write([seed, *mark.pairs()])
            store.write([], sync=True)
            mark.check(store)
            marker.write(path, self.SCHEME, store_id=mark.store_id, finished=True)
        except BaseException:
            store.close()
            raise
        return store

    def _try_out(self, path: Path, mark: Watermark, check: Callable[[Store], None]) -> None:
        with self._engine.on_trial(path, mark) as store:
            mark.check(store)
            check(store)
            if sum(file.stat().st_size for file in (path / DB).iterdir() if file.suffix in _TABLES) <= VERIFIED_BYTES:
                store.verify()

    def files(self, path: Path) -> list[Path]:
        """Return what is ours, folders and files."""
        return [path, *(path / name for name in (_LOCK, marker.NAME, _WATERMARK, DB)), *(path / DB).iterdir()]

    def remove(self, path: Path) -> None:
        """Remove the store's files, the marker last: what is left by an interruption is still recognisably ours.

        The folder and its lock file stay: unlinking a lock splits those who wait for it from those who come later.
        """
        for folder in (DB, TRIAL, LOADING):
            with suppress(FileNotFoundError):
                shutil.rmtree(path / folder)
        for name in (_WATERMARK, _WATERMARK + DRAFT_SUFFIX, marker.DRAFT, marker.NAME):
            (path / name).unlink(missing_ok=True)


def content_files(path: Path) -> list[Path]:
    """Return the files that hold the content of the store at *path*: not the engine's lock and diary."""
    with suppress(FileNotFoundError):
        return [file for file in (path / DB).iterdir() if file.is_file() and not file.name.startswith("LO")]
    return []
