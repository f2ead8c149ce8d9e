"""A store in a LevelDB folder.

PATH is a folder of ours: ``DEDUP`` (see :mod:`~dedup_middleware.stores.marker`), ``watermark`` (see
:mod:`~dedup_middleware.stores.watermark`), ``lock`` (held by :mod:`~dedup_middleware.stores.disk`), ``db/``, the
LevelDB itself, and while it is opened ``db.trial/``.
"""

from __future__ import annotations

import os
import shutil
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

import plyvel

from dedup_middleware import permissions
from dedup_middleware.errors import StoreError
from dedup_middleware.stores import leveldb_files, marker, refusals
from dedup_middleware.stores.clones import clone
from dedup_middleware.stores.disk import HOLDER_SUFFIX, Found
from dedup_middleware.stores.layout import HEADER_KEY, ID_KEY, WATERMARK_KEY, decode_watermark, encode_watermark
from dedup_middleware.stores.leveldb_refusals import DB, TRIAL, refusal_of
from dedup_middleware.stores.watermark import DRAFT_SUFFIX, Watermark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from dedup_middleware.stores.protocol import Store

# Nine of ten gets find nothing, and the Bloom filters answer those from memory: 1.3 bytes a key. Blocks that are read
# lie scattered: at a million pages 8, 32 and 128 MB of cache were equally fast, and the system caches files.
BLOOM_BITS = 10
CACHE_BYTES = 32 * 2**20
WRITE_BUFFER_BYTES = 32 * 2**20
# LevelDB's own 2 MB are 700 tables at a million pages. With larger ones single compactions, and so the worst stalls,
# are longer: see docs/measurements.md.
TABLE_BYTES = 8 * 2**20
# Beyond so many tables LevelDB reads filters and indexes anew at every get: forty took 2.6 ms instead of 0.07, with its
# own 1 000. It needs few descriptors: the first 1 000 tables are mapped, and of the others LevelDB holds no more open
# than a fifth of what the process may have (its util/env_posix.cc).
OPEN_TABLES = 10_000

# Up to this size, 110 000 pages or 1.4 s, all is read when the store is opened; beyond, rot is noticed when it is read.
VERIFIED_BYTES = 256 * 2**20

SCHEME = "leveldb"
OPTIONS = ""
_OWN_KEYS = (HEADER_KEY, ID_KEY, WATERMARK_KEY)
_LOCK = "lock"
_WATERMARK = "watermark"


class LevelDBStore:
    """A :class:`~dedup_middleware.stores.protocol.Store` on the LevelDB in ``PATH/db``.

    *sync* covers its own batch: an earlier batch without it may still be lost when the power fails (not when the
    process dies). After a failed write the store refuses everything until it is opened again: LevelDB was seen to go
    on, acknowledge 100 more batches, and have none of them after reopening.
    """

    def __init__(self, path: Path, mark: Watermark, *, folder: str = DB, create: bool = False) -> None:
        """Open the LevelDB ``path/folder``; without *create* it must be there. Synced batches raise *mark*."""
        self.uri = _uri(path)
        self._path = path
        self._folder = path / folder
        self._mark = mark
        self._unsynced = False
        self._write_failed = False
        with self._refusing("open"):
            self._db = plyvel.DB(
                os.fsencode(self._folder),
                create_if_missing=create,
                paranoid_checks=True,
                bloom_filter_bits=BLOOM_BITS,
                lru_cache_size=CACHE_BYTES,
                write_buffer_size=WRITE_BUFFER_BYTES,
                max_file_size=TABLE_BYTES,
                max_open_files=OPEN_TABLES,
            )

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """See Store; 2 to 7 µs a key when the files are warm."""
        get = self._live().get
        try:
            # A rotten block must not pass for an owner's text. Costs nothing measurable: cached blocks are not checked.
            return [get(key, verify_checksums=True) for key in keys]
        except plyvel.Error as error:
            raise refusal_of(self.uri, "read", error) from error

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See Store; LevelDB's iterators are snapshots. A scan does not push the gets' blocks out of the cache."""
        db = self._live()
        with self._refusing("read"):
            pairs = db.iterator(start=start, stop=stop, verify_checksums=True, fill_cache=False)
        return self._rows(pairs)

    def _rows(self, pairs: plyvel.Iterator) -> Iterator[tuple[bytes, bytes]]:
        with pairs, self._refusing("read"):
            while True:
                self._live()
                pair = next(pairs, None)
                if pair is None:
                    return
                yield pair

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = (), *, sync: bool = False) -> None:
        """See Store; one LevelDB batch. With *sync* the watermark is raised: 7 ms where it was 4."""
        db = self._live()
        # Without transaction=True plyvel writes the half-filled batch when an iterable raises.
        with self._refusing("write"), db.write_batch(transaction=True, sync=sync) as batch:
            if sync:
                header, store_id, number = (db.get(key, b"", verify_checksums=True) for key in _OWN_KEYS)
                # In every log: one of another store is noticed, and the loss of an old table does not take the header.
                batch.put(HEADER_KEY, header)
                batch.put(ID_KEY, store_id)
            for key in deletes:
                batch.delete(key)
            for key, value in puts:
                batch.put(key, value)
            if sync:
                following = decode_watermark(number) + 1
                batch.put(WATERMARK_KEY, encode_watermark(following))
        self._unsynced = not sync
        if sync:
            self._raise_mark(following)

    def _raise_mark(self, number: int) -> None:
        try:
            with refusals.of_os(self.uri, "write"):
                self._mark.advance(number)
        except StoreError:
            self._write_failed = True
            raise

    def close(self) -> None:
        """See Store; ends scans that are under way. Syncs first what was not, so that no cut of it goes unnoticed."""
        if self._unsynced and not self._write_failed and not self._db.closed:
            # The batches are written all the same; they only survive less.
            with suppress(StoreError):
                self.write([], sync=True)
        self._db.close()
        if self._folder.name == DB:
            # LevelDB makes its files for everybody. Those of a trial are links to these.
            permissions.tighten_within(self._folder)

    def verify(self) -> None:
        """Read everything; ``StoreCorruptError`` if a block is rotten. About 190 MB/s."""
        db = self._live()
        with self._refusing("read"), db.iterator(include_value=False, verify_checksums=True, fill_cache=False) as keys:
            for _ in keys:
                pass

    def compact(self) -> None:
        """See CompactableStore; LevelDB merges all tables, some 30 MB/s, beside them: at most their size in room."""
        db = self._live()
        with self._refusing("compact"):
            # Without both ends plyvel takes an empty range.
            db.compact_range(start=b"\x00", stop=b"\xff" * 64)

    def _live(self) -> plyvel.DB:
        if self._db.closed:
            raise refusals.closed(self.uri)
        if self._write_failed:
            raise refusals.failed(self.uri, "use", "an earlier write failed; open it again")
        return self._db

    @contextmanager
    def _refusing(self, action: str) -> Iterator[None]:
        try:
            yield
        except plyvel.Error as error:
            self._write_failed |= action == "write"
            raise refusal_of(self.uri, action, error) from error


def _uri(path: Path) -> str:
    return f"{SCHEME}:{path}"


def probe(path: Path) -> Found:
    """Return what is at *path*, by our marker; never writes."""
    try:
        names = {entry.name for entry in path.iterdir()}
    except FileNotFoundError:
        return Found.NOTHING
    except NotADirectoryError:
        # Either the path is a file, or one of its parents is: then there is nothing here, and creating it will fail.
        return Found.FOREIGN if path.exists() else Found.NOTHING
    # What is left by a creation that did not come as far as the marker, and by remove().
    if names <= {_LOCK, _LOCK + HOLDER_SUFFIX, _LOCK + HOLDER_SUFFIX + DRAFT_SUFFIX, marker.DRAFT}:
        return Found.NOTHING
    return Found.OURS if marker.is_ours(path) else Found.FOREIGN


def lock_path(path: Path) -> Path:
    """Return the path of the file to lock for the store at *path*."""
    return path / _LOCK


def watermark_path(path: Path) -> Path:
    """Return the path of the watermark of the store at *path*."""
    return path / _WATERMARK


def known_ids(path: Path) -> set[bytes]:
    """Return the ids that the files beside the database give the store, which may be damaged."""
    ids = set()
    with suppress(ValueError):
        ids.add(marker.read(path).store_id)
    with suppress(ValueError):
        ids.add(Watermark.load(watermark_path(path))[0].store_id)
    return ids


def connect(path: Path, seed: tuple[bytes, bytes], check: Callable[[Store], None]) -> tuple[LevelDBStore, bool]:
    """Open the store at *path*, or create it with the pair *seed* in it; return it and whether it was created.

    The marker says "unfinished" until *seed* is on the medium, so a creation that was killed is taken up again, and
    any other store without ``CURRENT`` is damaged: LevelDB alone would begin an empty database there and say nothing.
    """
    mark = Watermark.create(watermark_path(path))
    if marker.is_ours(path):
        with refusals.of_value(_uri(path)):
            said = marker.read(path)
        if said.layout != marker.LAYOUT:
            raise refusals.other_schema(_uri(path), said.layout, marker.LAYOUT)
        mark = Watermark(watermark_path(path), said.store_id)
        if said.finished:
            _try_out(path, mark, check)
            return LevelDBStore(path, mark), False
    return _create(path, mark, seed), True


def _create(path: Path, mark: Watermark, seed: tuple[bytes, bytes]) -> LevelDBStore:
    marker.write(path, store_id=mark.store_id, finished=False)
    permissions.make_folder(path / DB)
    store = LevelDBStore(path, mark, create=True)
    try:
        # A header that is there already may have hashed something: when the power fails, the marker's last change
        # can be lost although later batches were not.
        if store.get_many([seed[0]]) == [None]:
            store.write([seed, *mark.pairs()])
        store.write([], sync=True)
        mark.check(store)
        marker.write(path, store_id=mark.store_id, finished=True)
    except BaseException:
        store.close()
        raise
    return store


def _try_out(path: Path, mark: Watermark, check: Callable[[Store], None]) -> None:
    """Open a clone of the database and look at it: opening changes files even where it fails, or we refuse afterwards.

    Its files are links to the same ones: LevelDB never changes a file that it finds, it only removes its name.
    """
    with refusals.of_value(_uri(path)):
        leveldb_files.check(path / DB)
    trial = path / TRIAL
    with suppress(FileNotFoundError):
        shutil.rmtree(trial)
    try:
        size = clone(path / DB, trial)
        with closing(LevelDBStore(path, mark, folder=TRIAL)) as store:
            mark.check(store)
            check(store)
            if size <= VERIFIED_BYTES:
                store.verify()
    finally:
        shutil.rmtree(trial)


def files(path: Path) -> list[Path]:
    """Return what is ours, folders and files."""
    return [path, *(path / name for name in (_LOCK, marker.NAME, _WATERMARK, DB)), *(path / DB).iterdir()]


def remove(path: Path) -> None:
    """Remove the store's files, the marker last: what is left by an interruption is still recognisably ours.

    The folder and its lock file stay: unlinking a lock splits those who wait for it from those who come later.
    """
    for folder in (DB, TRIAL):
        with suppress(FileNotFoundError):
            shutil.rmtree(path / folder)
    for name in (_WATERMARK, _WATERMARK + DRAFT_SUFFIX, marker.DRAFT, marker.NAME):
        (path / name).unlink(missing_ok=True)
