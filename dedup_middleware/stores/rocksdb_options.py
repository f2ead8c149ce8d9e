"""How a RocksDB of ours is opened, and its tables are made. What was chosen by measurement: docs/measurements.md."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    SstFileWriter,
)

from dedup_middleware.stores.folder_store import BUFFER_SHARE, CACHE_SHARE, TRIAL_MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rocksdict import AccessType

# Nine of ten gets find nothing, and the Bloom filters answer those: 1.3 bytes a key, 50 a page. They, and the indexes,
# are read where the system has mapped their tables, so they are no memory of the process, however large a store is:
# forty keys that are absent take 30 µs at a million pages. Filters in parts, kept within the cache, take 130.
BLOOM_BITS = 10
# 35 tables at ten million pages. With 64 MB it was 133, and what a page asks for took a fifth more: where a key may be
# is looked for among all tables of a layer. RocksDB merges them in threads of its own, and needs their room meanwhile:
# of one and of those that it lies across in the layer below, some 3 GB where a store is larger than that.
TABLE_BYTES = 256 * 2**20
# That stay open, of a database that is only looked at, or has more than a process may have open: those are opened when
# they are first read.
_OPEN_TABLES = 8_192
# Parts of the write buffer, merged when they become a table: where a key goes in a part of 2 MB is found in the
# processor's cache. A page of 95 pairs takes 60 µs to write instead of 140. Half as many may fill up meanwhile.
BUFFER_PARTS = 16
# Of the write buffer, for a filter of its keys: one that is absent takes 0.3 µs instead of 2.9, one that is written 3.6
# instead of 2.5, and of the keys that a page asks for nine of ten are absent.
BUFFERED_BLOOM = 0.1
# A fifth of a page's bytes less than without any; and where most of a store lies, and is seldom written, another tenth.
COMPRESSION, LOWEST_COMPRESSION = DBCompressionType.lz4(), DBCompressionType.zstd()
# Its diary says what it did and when; 25 kB an opening.
_DIARIES, _DIARY_BYTES = 1, 2**20
# Pairs after which the size of a table is looked at that is being written.
_LOOKED_AT = 1_000


def options(memory: int, *, create: bool) -> Options:
    """Return how a database of ours is opened, for about *memory* bytes."""
    chosen = Options(raw_mode=True)
    chosen.create_if_missing(create)
    chosen.set_paranoid_checks(enabled=True)
    # A log that a crash has cut is opened; one that is rotten, at its end or before, is refused. The default would open
    # it as it was before the rot, and forget what came after.
    chosen.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
    chosen.set_block_based_table_factory(_tables(int(memory * CACHE_SHARE)))
    chosen.set_write_buffer_size(int(memory * BUFFER_SHARE) // BUFFER_PARTS)
    chosen.set_min_write_buffer_number_to_merge(BUFFER_PARTS)
    chosen.set_max_write_buffer_number(BUFFER_PARTS * 3 // 2)
    chosen.set_memtable_whole_key_filtering(whole_key_filter=True)
    chosen.set_memtable_prefix_bloom_ratio(BUFFERED_BLOOM)
    chosen.set_target_file_size_base(TABLE_BYTES)
    chosen.set_allow_mmap_reads(is_enabled=True)
    chosen.set_max_open_files(min(_OPEN_TABLES, _allowed()))
    chosen.set_compression_type(COMPRESSION)
    chosen.set_bottommost_compression_type(LOWEST_COMPRESSION)
    chosen.set_keep_log_file_num(_DIARIES)
    chosen.set_max_log_file_size(_DIARY_BYTES)
    # No thread that wakes up to write statistics.
    chosen.set_stats_dump_period_sec(0)
    chosen.set_stats_persist_period_sec(0)
    return chosen


def _tables(cache: int) -> BlockBasedOptions:
    tables = BlockBasedOptions()
    tables.set_bloom_filter(BLOOM_BITS, block_based=False)
    tables.set_block_cache(Cache(cache))
    return tables


def options_of_all_tables(folder: Path, memory: int, *, create: bool) -> Options:
    """Return how a database in *folder* is opened with all of its tables, if there is room for twice as many.

    RocksDB's threads do so in 0.25 s for ten million pages whose filters are in the system's cache. A table that is
    opened when it is first read holds its page up for 2 ms, and the first six pages of a crawl for 240.
    """
    chosen = options(memory, create=create)
    if 2 * sum(1 for _ in folder.glob("*.sst")) <= _allowed():
        chosen.set_max_open_files(-1)
    return chosen


def _allowed() -> int:
    """Return half of the files that this process may have open."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit  # noqa: PLC0415 - not on Windows
    except ImportError:
        return _OPEN_TABLES
    allowed, _ = getrlimit(RLIMIT_NOFILE)
    return sys.maxsize if allowed == RLIM_INFINITY else allowed // 2


def opened(folder: Path, how: Options, access: AccessType) -> Rdict:
    """Open the database in *folder*.

    With its column family named, or rocksdict gives that one the options in the newest ``OPTIONS`` file instead of
    ours; and as they are written there, tables have no Bloom filters.
    """
    return Rdict(str(folder), how, column_families={"default": how}, access_type=access)


def write_table(path: str, pairs: Iterable[tuple[bytes, bytes]]) -> None:
    """Write a table of the first of *pairs*, as many as make one of our size."""
    table = SstFileWriter(options(TRIAL_MEMORY, create=False))
    table.open(path)
    for count, (key, value) in enumerate(pairs, 1):
        table[key] = value
        if not count % _LOOKED_AT and table.file_size() >= TABLE_BYTES:
            break
    table.finish()
