"""How RocksDB is set up: tables with filters, and bounded memory."""

import random
import re

import pytest

from dedup_middleware.stores import open_store

pytest.importorskip("rocksdict")


def test_tables_that_are_made_after_the_store_was_opened_again_have_filters(tmp_path):
    """Without them each key that is absent, nine of ten that a page asks for, costs a block of a table."""
    chance, filters = random.Random(1), []
    for _ in range(3):
        store = open_store(f"rocksdb:{tmp_path / 'store'}", fingerprint_scheme="x")
        store.write([(b"k" + chance.randbytes(6), b"value") for _ in range(1_000)])
        store.compact()
        database = store.in_process.store._db
        described = database.property_value("rocksdb.aggregated-table-properties")
        filters.append(int(re.search(r"filter block size=(\d+)", described)[1]))
        above = [database.property_value(f"rocksdb.num-files-at-level{level}") for level in range(6)]
        assert above == ["0"] * 6, "what is compacted lies in one layer"
        store.close()
    assert all(size > 1_000 * number for number, size in enumerate(filters, 1))


def test_caches_take_no_more_than_they_are_given(tmp_path):
    store = open_store(f"rocksdb:{tmp_path / 'store'}?memory=8MB", fingerprint_scheme="x")
    for _ in range(800):
        store.write([(b"k" + random.randbytes(6), random.randbytes(400)) for _ in range(50)])
    for _ in store.scan(b"k", b"l"):
        pass
    store.get_many([b"k" + random.randbytes(6) for _ in range(5_000)])
    database = store.in_process.store._db
    held = [database.property_int_value(f"rocksdb.{of}") for of in ("block-cache-usage", "estimate-table-readers-mem")]
    assert 0 < sum(held) <= 8_000_000
    assert database.property_int_value("rocksdb.cur-size-all-mem-tables") <= 8_000_000
    store.close()
