"""Damage of every kind to every file: the short form of ``benchmarks/damage.py``, and what its tables do not tell."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from benchmarks.damage import OUTCOMES, campaign, fill, record_ends
from engines import ENGINES, need

from dedup_middleware.errors import StoreCorruptError, StoreError, StoreLockedError
from dedup_middleware.fingerprints import ClauseFingerprinter
from dedup_middleware.index import consistency
from dedup_middleware.index.opening import index_of
from dedup_middleware.stores import disk, folder, open_store, sqlite
from dedup_middleware.stores.layout import HEADER_KEY, ID_KEY, WATERMARK_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

SCHEME = "test-scheme"


@pytest.fixture(autouse=True)
def _limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (folder, sqlite):
        monkeypatch.setattr(module, "VERIFIED_BYTES", module.VERIFIED_BYTES)
    monkeypatch.setattr(disk, "MEMORY", disk.MEMORY)


def test_no_damage_goes_unnoticed_and_no_refusal_changes_anything(backend: str, tmp_path: Path) -> None:
    # The large sample is run by hand.
    results = campaign(backend, 2 if backend == "sqlite" else 1, tmp_path, repair=True, pages=40)
    assert {name: why for name, outcomes in results.items() for why in outcomes if why not in OUTCOMES} == {}
    total = sum(results.values(), start=type(results["header: overwritten"])())
    # Were nothing damaged, or nothing repaired, all would be well too.
    assert total["refused at open"] > 30
    assert total["repaired"] > 15


def refused(uri: str) -> str:
    with pytest.raises(StoreCorruptError) as caught:
        open_store(uri, fingerprint_scheme=SCHEME)
    return str(caught.value)


@pytest.fixture
def synced(uri: str) -> Iterator[Callable[[int], None]]:
    """Return a function that writes a synced batch into the store, which stays open."""
    store = open_store(uri, fingerprint_scheme=SCHEME)
    yield lambda number: store.write([(b"%d" % number, b"v")], sync=True)
    store.close()


def test_a_log_without_its_newest_synced_batches_is_refused_with_their_number(
    backend: str, path: Path, synced: Callable[[int], None], tmp_path: Path
) -> None:
    for number in range(5):
        synced(number)
    left = tmp_path / "left" / "store"
    left.parent.mkdir()
    if backend in ENGINES:
        shutil.copytree(path, left)
        log = max((left / "db").glob("*.log"))
        os.truncate(log, record_ends(log.read_bytes())[-3])
        assert "its newest 2 synced batches are missing" in refused(f"{backend}:{left}")
    else:
        for file in path.parent.glob("store*"):
            shutil.copy(file, left.parent)
        os.truncate(left.with_name("store-wal"), 0)
        assert "synced batches are missing" in refused(f"sqlite:{left}")


def test_a_refusal_leaves_files_alone_that_an_interrupted_merge_has_left(
    engine: str, path: Path, tmp_path: Path
) -> None:
    store = open_store(f"{engine}:{path}", fingerprint_scheme=SCHEME)
    for number in range(5):
        store.write([(b"%d" % number, b"v")], sync=True)
    left = tmp_path / "left"
    shutil.copytree(path, left)
    store.close()
    log = max((left / "db").glob("*.log"))
    os.truncate(log, record_ends(log.read_bytes())[-3])
    for number in range(100):
        # The engine gives one of these numbers to the next table that it makes.
        for ending in ("ldb", "sst"):
            if not (orphan := left / "db" / f"{number:06}.{ending}").exists():
                orphan.write_bytes(b"what a merge had made of other tables")
    before = {file: file.read_bytes() for file in (left / "db").iterdir()}
    assert "synced batches are missing" in refused(f"{engine}:{left}")
    assert {file: file.read_bytes() for file in (left / "db").iterdir()} == before


def test_a_power_failure_takes_newest_batches_that_were_not_synced_and_no_others(
    engine: str, path: Path, tmp_path: Path
) -> None:
    """Of what was not synced the medium may hold any beginning."""
    store = open_store(f"{engine}:{path}", fingerprint_scheme=SCHEME)
    store.write([(b"synced", b"1")], sync=True)
    log = max((path / "db").glob("*.log")).relative_to(path)
    safe = (path / log).stat().st_size
    keys = [b"%02d" % number for number in range(20)]
    for key in keys:
        store.write([(key, key * 50)])
    held_at_most = []
    for cut in range(safe, (path / log).stat().st_size + 1, 301):
        left = tmp_path / "left"
        shutil.copytree(path, left)
        os.truncate(left / log, cut)
        after = open_store(f"{engine}:{left}", fingerprint_scheme=SCHEME)
        assert after.get_many([b"synced"]) == [b"1"]
        held = [key for key, _ in after.scan(b"0", b":")]
        assert held == keys[: len(held)]
        held_at_most.append(len(held))
        after.close()
        shutil.rmtree(left)
    store.close()
    assert held_at_most[0] == 0
    assert held_at_most[-1] > 15


@pytest.mark.parametrize("kept", [1, 3])
def test_a_gap_in_the_log_is_refused(engine: str, path: Path, tmp_path: Path, kept: int) -> None:
    """Zeros from one record's beginning on, or records gone: both engines alone would pass over them."""
    store = open_store(f"{engine}:{path}", fingerprint_scheme=SCHEME)
    for number in range(6):
        store.write([(b"%d" % number, b"v" * 100)])
    left = tmp_path / "left"
    shutil.copytree(path, left)
    store.close()
    log = max((left / "db").glob("*.log"))
    data = log.read_bytes()
    ends = record_ends(data)
    start, stop = ends[-6], ends[-6 + kept]
    log.write_bytes(data[:start] + data[stop:])
    assert "missing" in refused(f"{engine}:{left}")
    log.write_bytes(data[:start] + bytes(stop - start) + data[stop:])
    assert "zeros" in refused(f"{engine}:{left}")


def test_a_database_that_is_ahead_of_its_watermark_is_whole(uri: str, path: Path) -> None:
    """The process died between the two."""
    store = open_store(uri, fingerprint_scheme=SCHEME)
    mark = path / "watermark" if path.is_dir() else path.with_name("store.watermark")
    before = mark.read_bytes()
    store.write([(b"a", b"1")], sync=True)
    store.close()
    assert mark.read_bytes() != before
    mark.write_bytes(before)
    store = open_store(uri, fingerprint_scheme=SCHEME)
    assert store.get_many([b"a"]) == [b"1"]
    store.close()


def test_unsynced_batches_leave_the_watermark_alone_until_the_store_is_closed(uri: str, path: Path) -> None:
    store = open_store(uri, fingerprint_scheme=SCHEME)
    mark = path / "watermark" if path.is_dir() else path.with_name("store.watermark")
    before = mark.read_bytes()
    store.write([(b"a", b"1")])
    assert mark.read_bytes() == before
    store.close()
    assert mark.read_bytes() != before


def test_what_a_store_says_of_itself_meets_no_scan(uri: str) -> None:
    store = open_store(uri, fingerprint_scheme=SCHEME)
    store.write([(b"\x01", b"1")], sync=True)
    assert [key for key, _ in store.scan(b"\x01", b"\xff")] == [b"\x01"]
    assert [key for key, _ in store.scan(b"", b"\xff")] == [HEADER_KEY, ID_KEY, WATERMARK_KEY, b"\x01"]
    store.close()


def test_a_watermark_that_cannot_be_raised_is_a_failed_write(uri: str, path: Path) -> None:
    """Nothing is lost by it: the batch is there, and the number is raised by the next one."""
    store = open_store(uri, fingerprint_scheme=SCHEME)
    mark = path / "watermark" if path.is_dir() else path.with_name("store.watermark")
    blocked = mark.with_name(mark.name + ".tmp")
    blocked.mkdir()
    with pytest.raises(StoreError, match="cannot write"):
        store.write([(b"a", b"1")], sync=True)
    store.close()
    blocked.rmdir()
    store = open_store(uri, fingerprint_scheme=SCHEME)
    assert store.get_many([b"a"]) == [b"1"]
    store.write([(b"b", b"1")], sync=True)
    store.close()
    open_store(uri, fingerprint_scheme=SCHEME).close()


def test_links_that_cannot_be_made_are_copies(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("leveldb")
    uri = f"leveldb:{path}"
    store = open_store(uri, fingerprint_scheme=SCHEME)
    store.write([(b"a", b"1")])
    store.close()

    def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(type(path), "hardlink_to", refuse)
    store = open_store(uri, fingerprint_scheme=SCHEME)
    assert store.get_many([b"a"]) == [b"1"]
    store.close()
    assert not (path / "db.trial").exists()


def test_a_trial_that_was_killed_leaves_no_trace(path: Path) -> None:
    need("leveldb")
    open_store(f"leveldb:{path}", fingerprint_scheme=SCHEME).close()
    (path / "db.trial").mkdir()
    (path / "db.trial" / "CURRENT").write_text("half")
    open_store(f"leveldb:{path}", fingerprint_scheme=SCHEME).close()
    assert not (path / "db.trial").exists()


def test_a_repaired_copy_can_be_crawled_with(backend: str, tmp_path: Path) -> None:
    filled = fill(backend, tmp_path / "filled", pages=30, killed=False)
    mark = filled.folder / ("store/watermark" if backend in ENGINES else "store.watermark")
    mark.unlink()
    if backend in ENGINES:
        # What somebody has put aside there is none of the database's.
        (filled.folder / "store" / "db" / "000004-copy.log").write_bytes(b"a copy")
    report = consistency.repair(filled.uri)
    assert report["copy"] == f"{filled.uri}.repaired"
    assert report["batches_missing"] is None
    assert not any(report["left_out"].values())
    store = open_store(report["copy"], fingerprint_scheme=ClauseFingerprinter.scheme)
    index = index_of(store, common=3, text_limit=20_000)
    assert all(index.text(page.number) for page in index.pages())
    assert {key: store.get_many([key])[0] for key in filled.history[-1]} == filled.history[-1]
    store.close()
    assert consistency.repair(filled.uri)["copy"] == f"{filled.uri}.repaired-2"


def test_repair_leaves_out_what_does_not_hold_together(tmp_path: Path) -> None:
    """A page without its text, one that is gone, one that cannot be read: nothing may be dropped in their favour."""
    filled = fill("sqlite", tmp_path / "filled", pages=30, killed=False)
    store = open_store(filled.uri, fingerprint_scheme=ClauseFingerprinter.scheme)
    pages = [key for key, _ in store.scan(b"p", b"q")]
    texts = [b"t" + key[1:] for key in pages]
    store.write([(pages[2], b"garbage"), (texts[3], b"garbage"), (b"n", bytes(7))], [texts[0], pages[1]])
    store.close()
    report = consistency.repair(filled.uri)
    assert report["kept"] == {"owners": len(pages) - 4, "duplicates": 0}
    assert report["left_out"]["pages"] == 3
    assert report["left_out"]["pages that are named and missing"] == 4
    assert report["left_out"]["identities"] == 4
    assert report["left_out"]["texts"] == 3
    assert report["left_out"]["postings"] > 40
    text = consistency.repair_text(report)
    assert "pages that are named and missing" in text
    copy = open_store(report["copy"], fingerprint_scheme=ClauseFingerprinter.scheme)
    assert [key for key, _ in copy.scan(b"p", b"q")] == pages[4:]
    assert copy.get_many([b"n"]) == [(int.from_bytes(pages[-1][1:6], "big") + 1).to_bytes(7, "big")]
    copy.close()


def test_repair_refuses_what_is_open_absent_foreign_or_without_room(
    uri: str,
    path: Path,
    hold: Callable[[str], AbstractContextManager[object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        consistency.repair(uri)
    with pytest.raises(StoreError, match="there is no store"):
        consistency.repair("memory:")
    with hold(uri), pytest.raises(StoreLockedError):
        consistency.repair(uri)
    store = open_store(uri, fingerprint_scheme=SCHEME)
    with pytest.raises(StoreLockedError):
        consistency.repair(uri)
    store.close()
    usage = shutil.disk_usage(path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10))
    with pytest.raises(StoreError, match="make room"):
        consistency.repair(uri)
    scheme, _, _ = uri.partition(":")
    thesis = path.with_name("thesis")
    thesis.write_text("ten years of work")
    with pytest.raises(StoreCorruptError, match="untouched"):
        consistency.repair(f"{scheme}:{thesis}")
    assert not [entry for entry in path.parent.iterdir() if "repaired" in entry.name or "thesis." in entry.name]
