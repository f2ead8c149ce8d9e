"""A store that several processes have open at once: each sees what the others write, and nothing comes in between."""

from __future__ import annotations

import subprocess
import sys

import pytest
from beside import KINDS, beside
from beside import shared_uri as uri_of
from crawling import environment
from engines import need
from local_site import wait_until

from dedup_middleware.errors import StoreError, StoreLockedError
from dedup_middleware.stores import destroy_store, files, open_store, sqlite, store_exists

SCHEME = "test-scheme"


@pytest.fixture
def shared_uri(tmp_path):
    return f"sqlite:{tmp_path / 'store'}?shared=1"


@pytest.fixture(params=KINDS)
def uri(request, tmp_path):
    need(request.param)
    return uri_of(request.param, tmp_path, request)


_COUNTER = """
import sys
from dedup_middleware.stores import open_store
store = open_store(sys.argv[1], fingerprint_scheme="test-scheme")
def work():
    (value,) = store.get_many([b"count"])
    store.write([(b"count", b"%d" % (int(value or 0) + 1))])
for _ in range(100):
    store.transaction(work)
store.close()
"""


def test_what_processes_count_together_is_counted_once_each(uri):
    command = [sys.executable, "-c", _COUNTER, uri]
    processes = [subprocess.Popen(command, env=environment()) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    store = open_store(uri, fingerprint_scheme=SCHEME)
    assert store.get_many([b"count"]) == [b"300"]
    store.close()


def test_a_file_that_another_process_is_making_is_not_foreign(tmp_path, monkeypatch):
    """Of processes that began at once, one found the file half made, and its crawl would have dropped nothing."""
    path = tmp_path / "store"
    path.with_name("store.lock").touch()
    path.write_bytes(b"the first half of a header")

    def held_once_it_is_made(*arguments, **options):
        path.unlink()
        return files.held(*arguments, **options)

    monkeypatch.setattr("dedup_middleware.stores.held", held_once_it_is_made)
    open_store(f"sqlite:{path}?shared=1", fingerprint_scheme=SCHEME).close()


def test_what_others_have_written_is_noticed(pair):
    one, other = pair
    one.write([(b"mine", b"1")])
    before = one.changes_of_others()
    one.write([(b"mine", b"2")])
    assert one.transaction(one.changes_of_others) == one.changes_of_others() == before
    other.write([(b"k", b"1")])
    assert one.get_many([b"k"]) == [b"1"]
    assert one.changes_of_others() != before


def test_a_worker_is_at_work_until_it_closes_the_store(pair, monkeypatch):
    one, other = pair
    if one.uri.startswith("redis"):
        monkeypatch.setattr("dedup_middleware.stores.redis._ALIVE", 0)
    assert len({one.worker, other.worker}) == 2
    assert one.is_at_work(one.worker)
    assert one.is_at_work(other.worker)
    other.write([(b"k", b"1")])
    other.close()
    assert not one.is_at_work(other.worker)


def test_a_worker_is_at_work_until_its_process_ends(uri, hold, monkeypatch):
    monkeypatch.setenv("LEASE", "1")
    store = open_store(uri, fingerprint_scheme=SCHEME)
    with hold(uri) as process:
        # It has written its name.
        (value,) = store.get_many([b"held"])
        assert value is not None
        assert store.is_at_work(value)
        with pytest.raises(StoreLockedError):
            destroy_store(uri)
        process.kill()
        process.wait()
        store.close()
        store = open_store(uri, fingerprint_scheme=SCHEME)
        wait_until(lambda: not store.is_at_work(value))
    store.close()
    assert destroy_store(uri)
    assert not store_exists(uri)


def test_nobody_has_it_alone_while_others_share_it(shared_uri, hold):
    alone = shared_uri.removesuffix("?shared=1")
    with hold(shared_uri) as process:
        with pytest.raises(StoreLockedError, match="in use by another crawl or program"):
            open_store(alone, fingerprint_scheme=SCHEME)
        with pytest.raises(StoreLockedError):
            destroy_store(shared_uri)
        process.kill()
        process.wait()
    store = open_store(alone, fingerprint_scheme=SCHEME)
    assert store.get_many([b"held"]) != [None]
    assert not store.worker
    store.close()


def test_one_process_has_it_either_alone_or_shared(shared_uri):
    alone = shared_uri.removesuffix("?shared=1")
    for first, second in ((alone, shared_uri), (shared_uri, alone)):
        store = open_store(first, fingerprint_scheme=SCHEME)
        with pytest.raises(StoreLockedError):
            open_store(second, fingerprint_scheme=SCHEME)
        assert store.get_many([b"k"]) == [None]
        store.close()


def test_who_waits_in_vain_for_another_to_write_is_refused(shared_uri, monkeypatch):
    monkeypatch.setattr(sqlite, "_PATIENCE_WITH_WORKERS", 0.05)
    one, other = open_store(shared_uri, fingerprint_scheme=SCHEME), beside(shared_uri, SCHEME)

    def work():
        one.write([(b"k", b"1")])
        with pytest.raises(StoreError, match="is in use by another crawl or program"):
            other.write([(b"k", b"2")])

    one.transaction(work)
    assert other.get_many([b"k"]) == [b"1"]
    one.close()
    other.close()
