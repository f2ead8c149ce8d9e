"""A store whose disk is waited for elsewhere: what is safe when, whatever the order in which disks answer."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dedup_middleware.errors import StoreCorruptError, StoreError
from dedup_middleware.stores import open_store
from dedup_middleware.stores.protocol import DeferringStore
from dedup_middleware.stores.watermark import Watermark

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.stores import OpenStore

SCHEME = "test-scheme"


def opened(uri: str) -> OpenStore:
    return open_store(uri, fingerprint_scheme=SCHEME)


def number(path: Path) -> int:
    return Watermark.load(path / "watermark")[1]


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
    engine: str, path: Path, syncing: Callable[[Callable[[Path], None]], None]
) -> None:
    store = opened(f"{engine}:{path}")
    store.write([(b"a", b"1"), (b"b", b"1")])
    before = number(path)
    seen: list[tuple[str, int]] = []
    syncing(lambda file: seen.append((file.suffix, number(path))))
    wait = store.write_through([b"a"])
    assert seen == []
    wait()
    assert seen[0] == (".log", before)
    assert {told for _, told in seen} == {before}
    assert number(path) == before + 1
    store.close()
    store = opened(f"{engine}:{path}")
    assert store.get_many([b"a", b"b"]) == [None, b"1"]
    store.close()


def test_what_was_waited_for_is_missed_where_a_power_failure_takes_it(engine: str, path: Path, tmp_path: Path) -> None:
    store = opened(f"{engine}:{path}")
    store.write([(b"a", b"1")], sync=True)
    log = max((path / "db").glob("*.log")).relative_to(path)
    safe = (path / log).stat().st_size
    wait = store.write_through([b"a"])
    for turn, is_whole in enumerate((True, False)):
        left = tmp_path / f"left{turn}"
        shutil.copytree(path, left)
        os.truncate(left / log, safe)
        if is_whole:
            # Nobody was told that it is safe.
            after = opened(f"{engine}:{left}")
            assert after.get_many([b"a"]) == [b"1"]
            after.close()
            wait()
        else:
            with pytest.raises(StoreCorruptError, match="its newest 1 synced batches are missing"):
                opened(f"{engine}:{left}")
    store.close()


def test_waits_that_are_over_in_another_order(engine: str, path: Path) -> None:
    store = opened(f"{engine}:{path}")
    first, second = store.write_through([]), store.write_through([])
    store.write([(b"a", b"1")], sync=True)
    reached = number(path)
    second()
    first()
    assert number(path) == reached
    store.close()
    opened(f"{engine}:{path}").close()


def test_one_that_is_over_when_the_store_is_closed(engine: str, path: Path) -> None:
    store = opened(f"{engine}:{path}")
    store.write([(b"a", b"1")])
    wait = store.write_through([])
    store.close()
    wait()
    opened(f"{engine}:{path}").close()


@pytest.mark.parametrize("broken", ["*.log", "db", "watermark.tmp"])
def test_a_disk_that_fails_fails_the_store(
    engine: str, path: Path, broken: str, syncing: Callable[[Callable[[Path], None]], None]
) -> None:
    store = opened(f"{engine}:{path}")
    wait = store.write_through([])

    def fail(file: Path) -> None:
        if file.match(broken):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    syncing(fail)
    with pytest.raises(StoreError, match="Input/output error"):
        wait()
    with pytest.raises(StoreError, match="an earlier write failed"):
        store.write([(b"a", b"1")])
    store.close()


@pytest.mark.parametrize("scheme", ["memory:", "sqlite:"])
def test_of_other_stores_nothing_is_left_to_wait_for(scheme: str, path: Path) -> None:
    store = opened(f"{scheme}{path if scheme == 'sqlite:' else ''}")
    assert not isinstance(store.medium.store, DeferringStore)
    store.write([(b"a", b"1")])
    store.write_through([b"a"])()
    assert store.get_many([b"a"]) == [None]
    store.close()
