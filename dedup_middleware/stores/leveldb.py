"""Keeps a store in LevelDB, by plyvel."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import plyvel

from dedup_middleware.stores import refusals
from dedup_middleware.stores.base import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dedup_middleware.errors import StoreError

# Nine of ten gets find nothing, and the Bloom filters answer those from memory: 1.3 bytes a key.
_BLOOM_BITS = 10
# LevelDB's own 2 MB are 700 tables at a million pages. With larger ones single compactions, and so the worst stalls,
# are longer: see docs/benchmarks/measurements.md.
_TABLE_BYTES = 8 * 2**20
# Beyond so many tables LevelDB reads filters and indexes again at every get. It needs few descriptors: the first 1 000
# tables are mapped, and of the others it holds no more open than a fifth of what the process may (util/env_posix.cc).
_OPEN_TABLES = 10_000
# How plyvel reports a table that was cut, which is read from before its beginning, and one that is gone.
_DAMAGED_TABLE = (".ldb: Invalid argument", ".ldb: No such file")


class LevelDBStore(Store):
    """A store in the LevelDB in *folder*, of the store at *uri*.

    It takes up to a second to open (LevelDB replays its last 32 MB). A sync covers the batches of the present log; when
    the power fails, one before that may still be lost with all that follow it.
    """

    def __init__(self, uri: str, folder: Path, memory: int) -> None:
        """Open it, or create it where nothing is; about *memory* bytes are for its cache and two buffers."""
        self.uri = uri
        self._db = plyvel.DB(
            os.fsencode(folder),
            create_if_missing=True,
            paranoid_checks=True,
            bloom_filter_bits=_BLOOM_BITS,
            lru_cache_size=memory // 2,
            write_buffer_size=memory // 4,
            max_file_size=_TABLE_BYTES,
            max_open_files=_OPEN_TABLES,
        )

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        # A damaged block must not pass for an original's text. Costs nothing measurable: cached blocks are not checked.
        return [*map(partial(self._db.get, verify_checksums=True), keys)]

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See Store; LevelDB's iterators are snapshots. A scan does not push the gets' blocks out of the cache."""
        pairs: Iterator[tuple[bytes, bytes]] = self._db.iterator(
            start=start, stop=stop, verify_checksums=True, fill_cache=False
        )
        return pairs

    def write(self, puts: list[tuple[bytes, bytes]], deletes: list[bytes], *, sync: bool = False) -> None:
        with self._db.write_batch(transaction=True, sync=sync) as batch:
            for key in deletes:
                batch.delete(key)
            for key, value in puts:
                batch.put(key, value)

    def close(self) -> None:
        self._db.close()

    def compact(self) -> None:
        """See Store; some 30 MB/s, and at most the size of the tables in room."""
        # Without both ends plyvel takes an empty range.
        self._db.compact_range(start=b"\x00", stop=b"\xff" * 64)

    @classmethod
    def refusal(cls, uri: str, action: str, error: Exception) -> StoreError | None:
        if not isinstance(error, plyvel.Error):
            return super().refusal(uri, action, error)
        detail = error.args[0].decode(errors="replace") if error.args else type(error).__name__
        if isinstance(error, plyvel.CorruptionError) or detail.endswith(_DAMAGED_TABLE):
            return refusals.corrupt(uri, detail)
        # Our own lock was free, so another program has opened the database by itself.
        return refusals.locked(uri) if detail.startswith("IO error: lock ") else refusals.failed(uri, action, detail)


ENGINE = LevelDBStore
