"""Keeps a store in RocksDB, by rocksdict."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    BottommostLevelCompaction,
    Cache,
    CompactOptions,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from dedup_middleware.stores import refusals
from dedup_middleware.stores.base import Store

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from rocksdict import RdictIter

    from dedup_middleware.errors import StoreError

# Chosen by measurement: docs/benchmarks/measurements.md.

# Nine of ten gets find nothing, and Bloom filters answer those: 1.3 bytes a key, read where the system has mapped their
# tables, so they are not memory of the process.
_BLOOM_BITS = 10
# 35 tables at ten million pages; with 64 MB it was 133, and a page's reads took a fifth more. Merging needs up to 3 GB.
_TABLE_BYTES = 256 * 2**20
# Share of the write buffer for a filter of its keys: an absent key takes 0.3 µs instead of 2.9.
_BUFFERED_BLOOM = 0.1

# rocksdict raises bare exceptions: how those that report damage begin, and what they contain if nothing is damaged.
_DAMAGED = ("Corruption:", "Invalid argument:", "IO error: No such file or directory:")
_OF_THE_SYSTEM = ("Too many open files", "Permission denied", "Cannot allocate memory", "No space left on device")


class RocksDBStore(Store):
    """A store in the RocksDB in *folder*, of the store at *uri*. A sync covers all batches before it."""

    def __init__(self, uri: str, folder: Path, memory: int) -> None:
        """Open it, or create it where nothing is; about *memory* bytes are for its cache and its buffers."""
        self.uri = uri
        self._scans = WeakSet[Any]()
        how = _options(memory)
        # With its column family named, or rocksdict gives that one the options in the newest OPTIONS file instead; and
        # as they are written there, tables have no Bloom filters.
        self._db = Rdict(str(folder), how, column_families={"default": how}, access_type=AccessType.read_write())

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        values: list[bytes | None] = self._db.get(keys)  # type: ignore[arg-type,assignment] # a list for a list
        return values

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See Store; RocksDB's iterators are snapshots. A scan does not push the gets' blocks out of the cache."""
        how = ReadOptions()
        how.fill_cache(False)  # type: ignore[call-arg]  # noqa: FBT003 - its stub has forgotten the argument
        # Without an end: rocksdict does not keep alive the bound that it was given, which RocksDB goes on reading.
        place = self._db.iter(how)
        place.seek(start)
        # An error that is kept would keep the iterator, and the database open.
        pairs = _pairs([place], stop)
        del place
        self._scans.add(pairs)
        return pairs

    def write(self, puts: list[tuple[bytes, bytes]], deletes: list[bytes], *, sync: bool = False) -> None:
        batch, how = WriteBatch(raw_mode=True), WriteOptions()
        for key in deletes:
            batch.delete(key)
        for key, value in puts:
            batch.put(key, value)
        how.sync = sync
        self._db.write(batch, how)

    def compact(self) -> None:
        """See Store; at most the size of the tables in room."""
        whole = CompactOptions()
        # The lowest level too, where what was removed lies.
        whole.set_bottommost_level_compaction(BottommostLevelCompaction.force_optimized())
        self._db.flush()
        self._db.compact_range(None, None, whole)

    def close(self) -> None:
        # RocksDB is closed when the last of its iterators is gone.
        for scan in [*self._scans]:
            scan.close()
        # What cannot become a table now is in the log, and becomes one when the store is opened again.
        with suppress(Exception):
            self._db.close()
        # It stays open where that has failed.
        del self._db

    @classmethod
    def refusal(cls, uri: str, action: str, error: Exception) -> StoreError | None:
        if isinstance(error, UnicodeEncodeError):
            return refusals.no_path(uri, "RocksDB takes paths in UTF-8 only")
        if type(error) is not Exception:
            return super().refusal(uri, action, error)
        detail = str(error)
        is_damaged = detail.startswith(_DAMAGED) and not any(reason in detail for reason in _OF_THE_SYSTEM)
        # A table that was cut is mapped, or read, behind its end.
        if is_damaged or detail.endswith(".sst: Invalid argument"):
            return refusals.corrupt(uri, detail)
        # Our own lock was free, so another program has opened the database by itself.
        is_locked = "/LOCK:" in detail and "lock" in detail
        return refusals.locked(uri) if is_locked else refusals.failed(uri, action, detail)


def _pairs(places: list[RdictIter], stop: bytes) -> Generator[tuple[bytes, bytes], None, None]:
    """Yield the pairs before *stop*. An iterator ends at damage as at the end of all keys, and has a status."""
    try:
        while places[0].valid():
            key = places[0].key()
            if key >= stop:
                return
            yield key, places[0].value()
            places[0].next()
        places[0].status()
    finally:
        places.clear()


def _options(memory: int) -> Options:
    """Return the options of a database, for about *memory* bytes."""
    chosen = Options(raw_mode=True)
    chosen.create_if_missing(True)  # noqa: FBT003 - a name of RocksDB's
    # A log that a crash has cut is opened; a damaged one is refused. The default would open it as it was before the
    # damage, and forget what came after.
    chosen.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
    tables = BlockBasedOptions()
    tables.set_bloom_filter(_BLOOM_BITS, block_based=False)
    tables.set_block_cache(Cache(memory // 2))
    chosen.set_block_based_table_factory(tables)
    # There are two.
    chosen.set_write_buffer_size(memory // 4)
    chosen.set_memtable_whole_key_filtering(whole_key_filter=True)
    chosen.set_memtable_prefix_bloom_ratio(_BUFFERED_BLOOM)
    chosen.set_target_file_size_base(_TABLE_BYTES)
    chosen.set_allow_mmap_reads(is_enabled=True)
    # A fifth of a page's bytes less than without any; and where most of a store lies, and is seldom written, a tenth.
    chosen.set_compression_type(DBCompressionType.lz4())
    chosen.set_bottommost_compression_type(DBCompressionType.zstd())
    # The files named LOG, for people. By default there are a thousand.
    chosen.set_keep_log_file_num(1)
    # No thread that wakes up to write statistics into them.
    chosen.set_stats_dump_period_sec(0)
    chosen.set_stats_persist_period_sec(0)
    return chosen


ENGINE = RocksDBStore
