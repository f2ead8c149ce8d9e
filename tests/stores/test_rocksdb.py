"""How RocksDB is set up: filters, caches, tables."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

import pytest

from dedup_middleware.stores import open_store

pytest.importorskip("rocksdict")


def test_tables_that_are_made_after_the_store_was_opened_again_have_filters(tmp_path: Path) -> None:
    """Without them each key that is absent, nine of ten that a page asks for, costs a block of a table."""
    chance, filters = random.Random(1), []
    for _ in range(3):
        store = open_store(f"rocksdb:{tmp_path / 'store'}", fingerprint_scheme="x")
        store.write([(b"k" + chance.randbytes(6), b"value") for _ in range(1_000)])
        store.compact()
        said = store.in_process.store._db.property_value("rocksdb.aggregated-table-properties")  # type: ignore[attr-defined]
        filters.append(int(re.search(r"filter block size=(\d+)", said)[1]))  # type: ignore[index]
        store.close()
    assert all(size > 1_000 * number for number, size in enumerate(filters, 1))


def test_what_is_compacted_lies_in_one_layer(tmp_path: Path) -> None:
    store = open_store(f"rocksdb:{tmp_path / 'store'}", fingerprint_scheme="x")
    database = store.in_process.store._db  # type: ignore[attr-defined]
    for _ in range(3):
        store.write([(b"k" + random.randbytes(6), b"value") for _ in range(1_000)])
        database.flush()
    assert database.property_value("rocksdb.num-files-at-level0") == "3"
    store.compact()
    above = [database.property_value(f"rocksdb.num-files-at-level{level}") for level in range(6)]
    assert (above, database.property_value("rocksdb.num-files-at-level6")) == (["0"] * 6, "1")
    store.close()


def test_caches_take_no_more_than_they_are_given(tmp_path: Path) -> None:
    store = open_store(f"rocksdb:{tmp_path / 'store'}", fingerprint_scheme="x", memory=2**23)
    for _ in range(800):
        store.write([(b"k" + random.randbytes(6), random.randbytes(400)) for _ in range(50)])
    for _ in store.scan(b"k", b"l"):
        pass
    store.get_many([b"k" + random.randbytes(6) for _ in range(5_000)])
    database = store.in_process.store._db  # type: ignore[attr-defined]
    held = [database.property_int_value(f"rocksdb.{of}") for of in ("block-cache-usage", "estimate-table-readers-mem")]
    assert 0 < sum(held) <= 2**23
    assert database.property_int_value("rocksdb.cur-size-all-mem-tables") <= 2**22
    store.close()


@pytest.mark.skipif(sys.platform != "linux", reason="there alone the system tells which files are mapped")
def test_no_page_waits_for_a_table_to_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dedup_middleware.stores.rocksdb._TABLE_BYTES", 50_000)
    uri, folder = f"rocksdb:{tmp_path / 'store'}", tmp_path / "store" / "db"
    store = open_store(uri, fingerprint_scheme="x")
    store.bulk_load((b"k%06d" % number, random.randbytes(50)) for number in range(40_000))
    store.close()
    store = open_store(uri, fingerprint_scheme="x")
    mapped = Path("/proc/self/maps").read_text()
    tables = [*folder.glob("*.sst")]
    # RocksDB opens sixteen in any case.
    assert len(tables) > 20
    assert all(str(table) in mapped for table in tables)
    store.close()
