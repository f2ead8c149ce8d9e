"""LevelDB as the engine of a store in a folder, see :mod:`~dedup_middleware.stores.folder`.

While a store is opened, a clone of its database is in ``db.trial/``.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

import plyvel

from dedup_middleware.stores import leveldb_files, refusals
from dedup_middleware.stores.clones import clone
from dedup_middleware.stores.folder import FolderBackend
from dedup_middleware.stores.folder_store import BUFFER_SHARE, CACHE_SHARE, DB, TRIAL, TRIAL_MEMORY, FolderStore
from dedup_middleware.stores.leveldb_refusals import refusal_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from dedup_middleware.errors import StoreError
    from dedup_middleware.stores.watermark import Watermark

# Nine of ten gets find nothing, and the Bloom filters answer those from memory: 1.3 bytes a key. Blocks that are read
# lie scattered: at a million pages 8, 32 and 128 MB of cache were equally fast, and the system caches files.
BLOOM_BITS = 10
# LevelDB's own 2 MB are 700 tables at a million pages. With larger ones single compactions, and so the worst stalls,
# are longer: see docs/measurements.md.
TABLE_BYTES = 8 * 2**20
# Beyond so many tables LevelDB reads filters and indexes anew at every get: forty took 2.6 ms instead of 0.07, with its
# own 1 000. It needs few descriptors: the first 1 000 tables are mapped, and of the others LevelDB holds no more open
# than a fifth of what the process may have (its util/env_posix.cc).
OPEN_TABLES = 10_000

SCHEME = "leveldb"


class LevelDBStore(FolderStore):
    """A :class:`FolderStore` on a LevelDB.

    *sync* covers its own batch, 7 ms with the watermark's syncs where it was 4: an earlier batch without it may still
    be lost when the power fails (not when the process dies).
    """

    def __init__(
        self, path: Path, mark: Watermark, memory: int = TRIAL_MEMORY, *, create: bool = False, is_trial: bool = False
    ) -> None:
        """Open the LevelDB in ``path/db``, or the clone of it; without *create* it must be there."""
        super().__init__(f"{SCHEME}:{path}", path / (TRIAL if is_trial else DB), mark, is_trial=is_trial)
        with self.refusing("open"):
            self._db = plyvel.DB(
                os.fsencode(self._folder),
                create_if_missing=create,
                paranoid_checks=True,
                bloom_filter_bits=BLOOM_BITS,
                lru_cache_size=int(memory * CACHE_SHARE),
                write_buffer_size=int(memory * BUFFER_SHARE),
                max_file_size=TABLE_BYTES,
                max_open_files=OPEN_TABLES,
            )

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """See Store; 2 to 7 µs a key when the files are warm."""
        get = self._live().get
        with self.refusing("read"):
            # A rotten block must not pass for an owner's text. Costs nothing measurable: cached blocks are not checked.
            return [get(key, verify_checksums=True) for key in keys]

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See Store; LevelDB's iterators are snapshots. A scan does not push the gets' blocks out of the cache."""
        db = self._live()
        with self.refusing("read"):
            pairs = db.iterator(start=start, stop=stop, verify_checksums=True, fill_cache=False)
        return self._rows(pairs)

    def _rows(self, pairs: plyvel.Iterator) -> Iterator[tuple[bytes, bytes]]:
        with pairs, self.refusing("read"):
            while True:
                self._live()
                pair = next(pairs, None)
                if pair is None:
                    return
                yield pair

    def _apply(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes], *, sync: bool) -> None:
        # Without transaction=True plyvel writes the half-filled batch when an iterable raises.
        with self._db.write_batch(transaction=True, sync=sync) as batch:
            for key in deletes:
                batch.delete(key)
            for key, value in puts:
                batch.put(key, value)

    def _release(self) -> None:
        self._db.close()

    def verify(self) -> None:
        """Read everything; ``StoreCorruptError`` if a block is rotten. About 190 MB/s."""
        db = self._live()
        with self.refusing("read"), db.iterator(include_value=False, verify_checksums=True, fill_cache=False) as keys:
            for _ in keys:
                pass

    def compact(self) -> None:
        """See CompactableStore; LevelDB merges all tables, some 30 MB/s, beside them: at most their size in room."""
        db = self._live()
        with self.refusing("compact"):
            # Without both ends plyvel takes an empty range.
            db.compact_range(start=b"\x00", stop=b"\xff" * 64)

    def merge(self) -> None:
        """See LayeredStore; LevelDB merges all or nothing."""
        self.compact()

    def _live(self) -> plyvel.DB:
        self.check_live()
        return self._db

    def _refusal(self, action: str, error: Exception) -> StoreError | None:
        return refusal_of(self.uri, action, error) if isinstance(error, plyvel.Error) else None


open_database = LevelDBStore


@contextmanager
def on_trial(path: Path, mark: Watermark) -> Iterator[LevelDBStore]:
    """See Engine. The clone's files are links: LevelDB never changes a file that counts, it only removes its name."""
    with refusals.of_value(f"{SCHEME}:{path}"):
        files = leveldb_files.checked(path / DB)
    trial = path / TRIAL
    with suppress(FileNotFoundError):
        shutil.rmtree(trial)
    try:
        clone(files, trial)
        with closing(LevelDBStore(path, mark, is_trial=True)) as store:
            yield store
    finally:
        shutil.rmtree(trial)


BACKEND = FolderBackend(sys.modules[__name__])
