"""``destroy_store`` removes what bears our marker and nothing else."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from dedup_middleware.errors import StoreCorruptError, StoreLockedError
from dedup_middleware.stores import destroy_store, open_store, store_exists

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    Hold = Callable[[str], AbstractContextManager[subprocess.Popen[str]]]

SCHEME = "test-scheme"


def fill(uri: str) -> None:
    store = open_store(uri, fingerprint_scheme=SCHEME)
    store.write([(b"a", b"1")])
    store.close()


def test_nothing_there(uri: str) -> None:
    assert destroy_store(uri) is False
    assert destroy_store("memory:") is False
    assert store_exists("memory:") is False


def test_store_is_removed_and_can_be_created_anew(uri: str) -> None:
    fill(uri)
    assert store_exists(uri)
    assert destroy_store(uri) is True
    assert not store_exists(uri)
    assert destroy_store(uri) is False
    store = open_store(uri, fingerprint_scheme="another-scheme")
    assert store.created
    assert store.get_many([b"a"]) == [None]
    store.close()


def test_only_an_empty_lock_file_is_left(uri: str, path: Path) -> None:
    fill(uri)
    destroy_store(uri)
    left = [file for file in path.parent.rglob("*") if file.is_file()]
    assert [file.stat().st_size for file in left] == [0]
    assert "lock" in left[0].name


def test_live_store_is_refused(uri: str, path: Path, hold: Hold) -> None:
    with hold(uri):
        with pytest.raises(StoreLockedError, match=str(path)):
            destroy_store(uri)
        assert store_exists(uri)


def test_store_open_in_this_process_is_refused(uri: str) -> None:
    store = open_store(uri, fingerprint_scheme=SCHEME)
    assert store_exists(uri)
    with pytest.raises(StoreLockedError):
        destroy_store(uri)
    store.write([(b"a", b"1")])
    assert store.get_many([b"a"]) == [b"1"]
    store.close()


def test_damaged_database_is_removed(engine: str, path: Path) -> None:
    uri = f"{engine}:{path}"
    fill(uri)
    (path / "db" / "CURRENT").unlink()
    (path / "notes.txt").write_text("mine")
    assert destroy_store(uri) is True
    assert (path / "notes.txt").read_text() == "mine"


def test_damaged_sqlite_is_removed(path: Path) -> None:
    uri = f"sqlite:{path}"
    fill(uri)
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 5000)
    for suffix in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).write_bytes(b"noise")
    assert destroy_store(uri) is True
    assert [file.name for file in path.parent.iterdir()] == ["store.lock"]


def test_strangers_are_left_alone(uri: str, path: Path, contents: Callable[[Path], object]) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE thesis (chapter)")
    db.close()
    before = contents(path)
    with pytest.raises(StoreCorruptError, match=str(path)):
        destroy_store(uri)
    assert contents(path) == before


def test_folder_of_a_stranger_is_left_alone(uri: str, path: Path) -> None:
    path.mkdir()
    (path / "thesis.txt").write_text("ten years of work")
    with pytest.raises(StoreCorruptError):
        destroy_store(uri)
    assert [file.name for file in path.iterdir()] == ["thesis.txt"]
