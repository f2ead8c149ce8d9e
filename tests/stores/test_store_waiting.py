"""A store whose disk is waited for elsewhere: what is safe when, whatever the order in which disks answer."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from engines import ENGINES, need

from dedup_middleware.errors import StoreCorruptError, StoreError
from dedup_middleware.stores import open_store, sqlite_checkpoints
from dedup_middleware.stores.protocol import DeferringStore
from dedup_middleware.stores.watermark import Watermark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dedup_middleware.stores import OpenStore

SCHEME = "test-scheme"


class Kind(NamedTuple):
    """A kind of store: its scheme and options, and in the folder that it lies in, its log and its watermark."""

    scheme: str
    options: str
    log: str
    watermark: str

    def opened(self, folder: Path) -> OpenStore:
        return open_store(f"{self.scheme}:{folder / 'store'}{self.options}", fingerprint_scheme=SCHEME)

    def newest_log(self, folder: Path) -> Path:
        return max(folder.glob(self.log))

    def number(self, folder: Path) -> int:
        return Watermark.load(folder / self.watermark)[1]


KINDS = {
    **{engine: Kind(engine, "", "store/db/*.log", "store/watermark") for engine in ENGINES},
    "sqlite": Kind("sqlite", "", "store-wal", "store.watermark"),
    "shared": Kind("sqlite", "?shared=1", "store-wal", "store.watermark"),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    need(request.param)
    return KINDS[request.param]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "at").mkdir()
    return tmp_path / "at"


@pytest.fixture
def store(kind: Kind, folder: Path) -> Iterator[OpenStore]:
    store = kind.opened(folder)
    yield store
    if not store.closed:
        store.close()


@pytest.fixture
def syncing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Path], None]], None]:
    """Return a function: from now on, what is synced is shown to somebody first."""
    sync = os.fsync

    def watched(watch: Callable[[Path], None]) -> None:
        def synced(descriptor: int) -> None:
            watch(Path(f"/proc/self/fd/{descriptor}").readlink())
            sync(descriptor)

        monkeypatch.setattr(os, "fsync", synced)

    return watched


def test_the_number_is_raised_when_the_log_is_on_its_disk_and_not_before(
    kind: Kind, folder: Path, store: OpenStore, syncing: Callable[[Callable[[Path], None]], None]
) -> None:
    store.write([(b"a", b"1"), (b"b", b"1")])
    before = kind.number(folder)
    seen: list[tuple[Path, int]] = []
    syncing(lambda file: seen.append((file, kind.number(folder))))
    wait = store.write_through([b"a"])
    assert seen == []
    wait()
    assert seen[0] == (kind.newest_log(folder), before)
    assert {told for _, told in seen} == {before}
    assert kind.number(folder) == before + 1
    store.close()
    store = kind.opened(folder)
    assert store.get_many([b"a", b"b"]) == [None, b"1"]
    store.close()


def test_what_was_waited_for_is_missed_where_a_power_failure_takes_it(
    kind: Kind, folder: Path, store: OpenStore, tmp_path: Path
) -> None:
    store.write([(b"a", b"1")], sync=True)
    log = kind.newest_log(folder)
    safe = log.stat().st_size
    wait = store.write_through([b"a"])
    for turn, is_whole in enumerate((True, False)):
        left = tmp_path / f"left{turn}"
        shutil.copytree(folder, left)
        os.truncate(left / log.relative_to(folder), safe)
        if is_whole:
            # Nobody was told that it is safe.
            after = kind.opened(left)
            assert after.get_many([b"a"]) == [b"1"]
            after.close()
            wait()
        else:
            with pytest.raises(StoreCorruptError, match="its newest 1 synced batches are missing"):
                kind.opened(left)


def test_waits_that_are_over_in_another_order(kind: Kind, folder: Path, store: OpenStore) -> None:
    first, second = store.write_through([]), store.write_through([])
    store.write([(b"a", b"1")], sync=True)
    reached = kind.number(folder)
    second()
    first()
    assert kind.number(folder) == reached
    store.close()
    kind.opened(folder).close()


def test_one_that_is_over_when_the_store_is_closed(kind: Kind, folder: Path, store: OpenStore) -> None:
    store.write([(b"a", b"1")])
    wait = store.write_through([])
    store.close()
    wait()
    kind.opened(folder).close()


def test_logs_that_were_whole_when_they_were_synced_are_not_synced_again(
    folder: Path, syncing: Callable[[Callable[[Path], None]], None]
) -> None:
    need("rocksdb")
    # The parts of its write buffer, each with a log, take a quarter of a megabyte.
    store = open_store(f"rocksdb:{folder / 'store'}", fingerprint_scheme=SCHEME, memory=16 * 2**20)
    seen: list[Path] = []
    syncing(seen.append)
    logs = []
    for turn in range(3):
        for number in range(turn * 1_000, turn * 1_000 + 1_000):
            store.write([(b"%06d" % number, os.urandom(1_000))])
        before = {*(folder / "store" / "db").glob("*.log")}
        store.write_through([b"a"])()
        logs.append([file for file in seen if file.suffix == ".log"])
        seen.clear()
        # Whatever was written since is in these.
        assert {*logs[-1]} == {log for log in before if not turn or log >= max(logs[-2])}
    assert [len(synced) > 2 for synced in logs] == [True, True, True]
    store.close()


@pytest.mark.parametrize("broken", ["log", "folder", "*watermark*.tmp"])
def test_a_disk_that_fails_fails_the_store(
    kind: Kind, folder: Path, store: OpenStore, broken: str, syncing: Callable[[Callable[[Path], None]], None]
) -> None:
    wait = store.write_through([])
    log = kind.newest_log(folder)
    bad = {"log": log.name, "folder": log.parent.name}.get(broken, broken)

    def fail(file: Path) -> None:
        if file.match(bad):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    syncing(fail)
    with pytest.raises(StoreError, match="Input/output error"):
        wait()
    with pytest.raises(StoreError, match="an earlier write failed"):
        store.write([(b"a", b"1")])
    store.close()


def test_of_other_stores_nothing_is_left_to_wait_for() -> None:
    store = open_store("memory:", fingerprint_scheme=SCHEME)
    assert not isinstance(store.medium.store, DeferringStore)
    store.write([(b"a", b"1")])
    store.write_through([b"a"])()
    assert store.get_many([b"a"]) == [None]
    store.close()


@pytest.mark.parametrize("kind", [KINDS["sqlite"], KINDS["shared"]], ids=["sqlite", "shared"])
class TestCheckpoints:
    """What is in the log of a SQLite database gets into its file while others write, and nobody waits for that."""

    @pytest.fixture
    def store(self, kind: Kind, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenStore]:
        monkeypatch.setattr(sqlite_checkpoints, "ROWS", 50)
        store = kind.opened(folder)
        yield store
        store.close()

    @staticmethod
    def write(store: OpenStore, first: int, rows: int = 50) -> None:
        store.write([(b"%06d" % number, bytes(200)) for number in range(first, first + rows)])

    def test_it_begins_anew_when_all_is_in_the_file(self, store: OpenStore, folder: Path) -> None:
        sizes = []
        for turn in range(20):
            self.write(store, 50 * turn)
            store.medium.store._checkpoints.finish()  # type: ignore[attr-defined] # when the thread has had its time
            sizes.append((folder / "store-wal").stat().st_size)
        # A batch or two, and not twenty.
        assert max(sizes) < 2 * sizes[1]
        # All but what came last is in the file by itself.
        shutil.copy(folder / "store", folder / "alone")
        alone = sqlite3.connect(folder / "alone")
        ((rows,),) = alone.execute("SELECT count(*) FROM pairs WHERE length(key) = 6")
        alone.close()
        assert rows == 1_000

    def test_while_somebody_reads_it_grows_and_all_that_is_written_is_there(
        self, store: OpenStore, folder: Path
    ) -> None:
        self.write(store, 0)
        scan = store.medium.store.scan(b"0", b"1")
        assert next(scan) == (b"000000", bytes(200))
        for turn in range(1, 20):
            self.write(store, 50 * turn)
        assert (folder / "store-wal").stat().st_size > 19 * 50 * 200
        # It is of its time.
        assert sum(1 for _ in scan) == 49
        assert sum(1 for _ in store.scan(b"0", b"1")) == 1_000

    def test_one_that_grows_and_grows_is_waited_for(
        self, store: OpenStore, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite_checkpoints, "LONGEST_LOG", 100)
        checkpoints = store.medium.store._checkpoints  # type: ignore[attr-defined]
        for turn in range(20):
            self.write(store, 50 * turn)
            checkpoints.finish()
            if turn < 10:
                # Each time, somebody has written meanwhile.
                checkpoints._log = (folder / "store-wal").stat().st_size // 4096
        longest = (folder / "store-wal").stat().st_size
        assert longest < 2 * 100 * 4096
        assert sum(1 for _ in store.scan(b"0", b"1")) == 1_000

    def test_where_no_thread_can_make_one_the_writer_does(
        self, store: OpenStore, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse() -> sqlite3.Connection:
            raise sqlite3.OperationalError("unable to open database file")

        checkpoints = store.medium.store._checkpoints  # type: ignore[attr-defined]
        monkeypatch.setattr(checkpoints, "_connect", refuse)
        sizes = []
        for turn in range(20):
            self.write(store, 50 * turn)
            checkpoints.finish()
            sizes.append((folder / "store-wal").stat().st_size)
        # Two or three batches, and not twenty.
        assert max(sizes) < 3 * sizes[1]
        assert sum(1 for _ in store.scan(b"0", b"1")) == 1_000
