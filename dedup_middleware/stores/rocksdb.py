"""RocksDB as the engine of a store in a folder, see :mod:`~dedup_middleware.stores.folder`."""

from __future__ import annotations

import shutil
import sys
from contextlib import closing, contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING
from weakref import WeakSet

from rocksdict import (
    AccessType,
    BottommostLevelCompaction,
    CompactOptions,
    IngestExternalFileOptions,
    Rdict,
    RdictIter,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from dedup_middleware import permissions
from dedup_middleware.errors import StoreError
from dedup_middleware.stores import refusals
from dedup_middleware.stores.folder import FolderBackend
from dedup_middleware.stores.folder_store import DB, LOADING, TRIAL_MEMORY, FolderStore
from dedup_middleware.stores.log_files import check_batches, first_operation, numbered_logs
from dedup_middleware.stores.rocksdb_options import opened, options, options_of_all_tables, write_table
from dedup_middleware.stores.rocksdb_refusals import refusal_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from dedup_middleware.stores.watermark import Watermark

SCHEME = "rocksdb"
# Without the first no database can be opened; the second rocksdict would write anew.
_NEEDED = ("CURRENT", "rocksdict-config.json")


class RocksDBStore(FolderStore):
    """A :class:`FolderStore` on a RocksDB.

    *sync* covers its own batch and all before it.
    """

    def __init__(
        self, path: Path, mark: Watermark, memory: int = TRIAL_MEMORY, *, create: bool = False, is_trial: bool = False
    ) -> None:
        """Open the RocksDB in ``path/db``; without *create* it must be there. On trial it is opened to be read only."""
        super().__init__(f"{SCHEME}:{path}", path / DB, mark, is_trial=is_trial)
        self._scans = WeakSet[_Scan]()
        with self.refusing("open"):
            self._db = self._opened(memory, create=create)

    def _opened(self, memory: int, *, create: bool) -> Rdict:
        if self._is_trial:
            access = AccessType.read_only(error_if_log_file_exist=False)
            return opened(self._folder, options(memory, create=create), access)
        how = options_of_all_tables(self._folder, memory, create=create)
        return opened(self._folder, how, AccessType.read_write())

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """See Store; checksums of blocks that are read are checked."""
        db = self._live()
        with self.refusing("read"):
            values: list[bytes | None] = db.get(list(keys))  # type: ignore[assignment] # a list for a list
        return values

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See Store; RocksDB's iterators are snapshots. A scan does not push the gets' blocks out of the cache."""
        db = self._live()
        with self.refusing("read"):
            scan = _Scan(self, iterator(db, start), stop)
        self._scans.add(scan)
        return scan

    def verify(self) -> None:
        """Read everything; ``StoreCorruptError`` if a block is rotten."""
        db = self._live()
        with self.refusing("read"):
            place = iterator(db, b"")
            try:
                while place.valid():
                    place.next()
                place.status()
            finally:
                # An error that somebody keeps would keep it, and the database open.
                del place

    def compact(self) -> None:
        """See CompactableStore; RocksDB merges all tables beside them: at most their size in room."""
        db = self._live()
        whole = CompactOptions()
        # The lowest level too, where what was removed lies.
        whole.set_bottommost_level_compaction(BottommostLevelCompaction.force_optimized())
        with self.refusing("compact"):
            db.flush()
            db.compact_range(None, None, whole)

    def merge(self) -> None:
        """See LayeredStore; ten million pages that were just imported take three minutes, in threads of RocksDB's."""
        db = self._live()
        with self.refusing("compact"):
            db.flush()
            db.compact_range(None, None)

    def load(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        """See BulkStore; they are written as tables, beside the others, and then belong to them at one stroke."""
        db, folder = self._live(), self._folder.with_name(LOADING)
        rest = iter(pairs)
        with self.refusing("write"), refusals.of_os(self.uri, "write"):
            with suppress(FileNotFoundError):
                shutil.rmtree(folder)
            permissions.make_folder(folder)
            tables: list[str] = []
            while first := next(rest, None):
                tables.append(str(folder / f"{len(tables)}.sst"))
                write_table(tables[-1], chain([first], rest))
            if tables:
                how = IngestExternalFileOptions()
                how.set_move_files(True)
                db.ingest_external_file(tables, how)
            shutil.rmtree(folder)

    def _apply(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes], *, sync: bool) -> None:
        batch, how = WriteBatch(raw_mode=True), WriteOptions()
        for key in deletes:
            batch.delete(key)
        for key, value in puts:
            batch.put(key, value)
        how.sync = sync
        self._db.write(batch, how)

    def _release(self) -> None:
        # RocksDB is closed when the last of its iterators is gone.
        for scan in self._scans:
            scan.place = None
        # What cannot become a table now is in the log, and becomes one when the store is opened again.
        with suppress(StoreError), self.refusing("close"):
            self._db.close()
        # It stays open where that has failed.
        del self._db

    def _live(self) -> Rdict:
        self.check_live()
        return self._db

    def _refusal(self, action: str, error: Exception) -> StoreError | None:
        return refusal_of(self.uri, action, error)


class _Scan:
    """A scan under way, which the end of its store takes the iterator from."""

    def __init__(self, store: RocksDBStore, place: RdictIter, stop: bytes) -> None:
        # It has no other name: an error that somebody keeps would keep it too, and the database open.
        self.place: RdictIter | None = place
        self._store = store
        self._stop = stop

    def __iter__(self) -> _Scan:
        return self

    def __next__(self) -> tuple[bytes, bytes]:
        self._store.check_live()
        if self.place is None:
            raise StopIteration
        with self._store.refusing("read"):
            pair = pair_at(self.place, self._stop)
        if pair is None:
            self.place = None
            raise StopIteration
        return pair


def iterator(db: Rdict, start: bytes) -> RdictIter:
    """Return an iterator, a snapshot, that stands at the first key from *start* on.

    It has no end: one of rocksdict does not keep alive the bound that it was given, and RocksDB would go on reading it.
    """
    how = ReadOptions()
    how.fill_cache(False)  # type: ignore[call-arg]  # noqa: FBT003 - its stub has forgotten the argument
    place = db.iter(how)
    place.seek(start)
    return place


def pair_at(place: RdictIter, stop: bytes) -> tuple[bytes, bytes] | None:
    """Return the pair at *place*, and step on; ``None`` if its key is not before *stop*, or none is left.

    An iterator that meets rot ends as at the end of all keys, which is why ``Rdict.items()`` will not do.
    """
    if not place.valid():
        place.status()
        return None
    key = place.key()
    if key >= stop:
        return None
    pair = key, place.value()
    place.next()
    return pair


open_database = RocksDBStore


@contextmanager
def on_trial(path: Path, mark: Watermark) -> Iterator[RocksDBStore]:
    """See Engine. RocksDB opened to be read only writes nothing, and rocksdict only what is missing."""
    with refusals.of_value(f"{SCHEME}:{path}"):
        for name in _NEEDED:
            if not (path / DB / name).is_file():
                raise ValueError(f"{DB}/{name} is missing")
    with closing(RocksDBStore(path, mark, is_trial=True)) as store:
        with refusals.of_value(store.uri):
            _check_logs(path / DB, _operations_in_tables(path, store.uri))
        yield store


def _check_logs(folder: Path, sequence: int) -> None:
    """Raise ``ValueError`` if a batch is missing that came after operation *sequence*, or one between two of a log.

    RocksDB passes over a log that is gone, or zeroed where a record begins; and where the end of the manifest is cut
    off, it takes the state of some time ago for the present one.
    """
    logs = list(numbered_logs(folder).values())
    if not logs:
        raise ValueError(f"the log in {folder.name} is missing")
    starts = [first_operation(log) for log in logs]
    # What logs before this one hold is in tables already. They are removed in any order.
    needed = max((at for at, start in enumerate(starts) if start is not None and start <= sequence + 1), default=0)
    for log in logs[:needed]:
        check_batches([log], sys.maxsize)
    check_batches(logs[needed:], sequence)


def _operations_in_tables(path: Path, uri: str) -> int:
    """Return the number of the newest operation that the manifest knows of: RocksDB is shown a folder without logs."""
    alone = options(TRIAL_MEMORY, create=False)
    alone.set_wal_dir(str(path))
    try:
        db = opened(path / DB, alone, AccessType.read_only(error_if_log_file_exist=False))
    except Exception as error:
        raise refusal_of(uri, "open", error) or error from error
    try:
        return db.latest_sequence_number()
    finally:
        db.close()


BACKEND = FolderBackend(sys.modules[__name__])
