"""Every store is a sorted dict of bytes: one suite for all of them."""

from __future__ import annotations

import sys
import tempfile
import threading
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from beside import shared_uri
from engines import ENGINES, need
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from dedup_middleware.errors import StoreError
from dedup_middleware.stores import medium, open_store, redis_memory
from dedup_middleware.stores.layout import HEADER_KEY
from dedup_middleware.stores.overlay import overlaid
from dedup_middleware.stores.protocol import Store

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    Hold = Callable[[str], AbstractContextManager[subprocess.Popen[str]]]

SCHEME = "test-scheme"
KINDS = [*ENGINES, "sqlite", "memory", "redis"]
LOWEST, HIGHEST = b"\x01", b"\xff" * 9

# Few different keys, so that batches meet; the awkward ones are those that text-minded or signed order would misplace.
KEYS = st.sampled_from([b"\x01", b"\x01\x00", b"\x7f", b"\x80", b"a", b"aa", b"b", b"\xff", b"\xff\xff"]) | st.binary(
    min_size=1, max_size=3
).filter(lambda key: key > b"\x00\xff")
# Some longer than what is remembered.
VALUES = st.binary(max_size=20) | st.binary(min_size=60, max_size=70)
PUTS = st.lists(st.tuples(KEYS, VALUES), max_size=8)


def uri_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """Return the URI of a new store of this *kind*."""
    if kind == "redis":
        return shared_uri(kind, folder, request)
    return "memory:" if kind == "memory" else f"{kind}:{folder / 'store'}"


class _Machine(RuleBasedStateMachine):
    backend: str
    uri_in: Callable[[Path], str]

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        try:
            self.uri = type(self).uri_in(Path(self.folder.name))
            self.store = open_store(self.uri, fingerprint_scheme=SCHEME)
        except BaseException:
            # Where there is no server, the test is skipped here.
            self.folder.cleanup()
            raise
        self.model: dict[bytes, bytes] = {}
        self.scans: list[tuple[Iterator[tuple[bytes, bytes]], list[tuple[bytes, bytes]]]] = []

    def _expected(self, start: bytes, stop: bytes) -> list[tuple[bytes, bytes]]:
        return sorted((key, value) for key, value in self.model.items() if start <= key < stop)

    @rule(puts=PUTS, deletes=st.lists(KEYS, max_size=4), sync=st.booleans())
    def write(self, puts: list[tuple[bytes, bytes]], deletes: list[bytes], *, sync: bool) -> None:
        self.store.write(iter(puts), iter(deletes), sync=sync)
        for key in deletes:
            self.model.pop(key, None)
        self.model.update(puts)

    @rule(puts=PUTS)
    def load(self, puts: list[tuple[bytes, bytes]]) -> None:
        added = {key: value for key, value in puts if key not in self.model}
        self.store.load(sorted(added.items()))
        self.model.update(added)

    @rule()
    def merge(self) -> None:
        self.store.merge()

    @rule(puts=PUTS, deletes=st.lists(KEYS, max_size=4))
    def write_that_fails_half_way(self, puts: list[tuple[bytes, bytes]], deletes: list[bytes]) -> None:
        def failing() -> Iterator[tuple[bytes, bytes]]:
            yield from puts
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            self.store.write(failing(), deletes)

    @rule(keys=st.lists(KEYS, max_size=8))
    def get(self, keys: list[bytes]) -> None:
        assert self.store.get_many(keys) == [self.model.get(key) for key in keys]

    @rule(start=KEYS, stop=KEYS)
    def scan(self, start: bytes, stop: bytes) -> None:
        assert list(self.store.scan(start, stop)) == self._expected(start, stop)

    @rule(start=KEYS, stop=KEYS, steps=st.integers(0, 2))
    def begin_scan(self, start: bytes, stop: bytes, steps: int) -> None:
        scan, expected = self.store.scan(start, stop), self._expected(start, stop)
        assert list(islice(scan, steps)) == expected[:steps]
        # One that has come to its end need not notice the close().
        if steps <= len(expected):
            self.scans.append((scan, expected[steps:]))

    @precondition(lambda self: self.scans)
    @rule()
    def end_scan(self) -> None:
        scan, expected = self.scans.pop()
        assert list(scan) == expected

    @precondition(lambda self: self.backend != "memory")
    @rule()
    def reopen(self) -> None:
        header = self.store.header
        self.store.close()
        for scan, _ in self.scans:
            with pytest.raises(StoreError):
                list(scan)
        self.scans.clear()
        self.store = open_store(self.uri, fingerprint_scheme=SCHEME)
        assert not self.store.created
        assert self.store.header == header

    @invariant()
    def holds_what_was_written(self) -> None:
        assert list(self.store.scan(LOWEST, HIGHEST)) == self._expected(LOWEST, HIGHEST)

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


@pytest.mark.parametrize("name", KINDS)
def test_behaves_as_a_sorted_dict(name: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr(medium, "_REMEMBERED", 4)
    monkeypatch.setattr(redis_memory, "_REMEMBERED", 4)
    need(name)

    def uri_in(folder: Path) -> str:
        return uri_of(name, folder, request)

    machine = type("Machine", (_Machine,), {"backend": name, "uri_in": staticmethod(uri_in)})
    run_state_machine_as_test(machine, settings=settings(max_examples=20, stateful_step_count=25, deadline=None))


class _OverlaidMachine(_Machine):
    """The store of a dry run, over one in which something is already."""

    backend = "memory"
    uri_in = staticmethod(lambda folder: f"sqlite:{folder / 'store'}")

    def __init__(self) -> None:
        super().__init__()
        self.below = self.store
        self.before = {b"\x7f": b"1", b"a": b"2", b"aa": b"3", b"b": b"", b"\xff": b"="}
        self.below.write(self.before.items())
        self.model = dict(self.before)
        self.store = overlaid(self.below, sys.maxsize)

    @invariant()
    def leaves_the_store_below_as_it_is(self) -> None:
        assert dict(self.below.scan(LOWEST, HIGHEST)) == self.before


def test_an_overlay_behaves_so_too() -> None:
    run_state_machine_as_test(
        _OverlaidMachine, settings=settings(max_examples=20, stateful_step_count=25, deadline=None)
    )


def test_an_overlay_takes_so_much_memory_and_no_more(tmp_path: Path) -> None:
    store = overlaid(open_store(f"sqlite:{tmp_path / 'store'}", fingerprint_scheme=SCHEME), 10_000)
    with pytest.raises(StoreError, match="memory"):
        store.write((b"%03d" % number, b"v" * 100) for number in range(500))
    store.close()


@pytest.fixture(params=KINDS)
def any_uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    need(request.param)
    return uri_of(request.param, tmp_path, request)


def test_open_store_is_a_store(any_uri: str) -> None:
    store = open_store(any_uri, fingerprint_scheme=SCHEME)
    assert isinstance(store, Store)
    assert store.created
    assert store.uri == any_uri
    store.close()


def test_closed_store_refuses_everything(any_uri: str) -> None:
    store = open_store(any_uri, fingerprint_scheme=SCHEME)
    store.write([(b"a", b"1"), (b"b", b"2")])
    scan = store.scan(b"a", b"z")
    store.close()
    store.close()
    for call in (
        lambda: store.get_many([b"a"]),
        lambda: store.scan(b"a", b"z"),
        lambda: list(scan),
        lambda: store.write([(b"a", b"1")]),
        lambda: store.write([], sync=True),
    ):
        with pytest.raises(StoreError, match="is closed"):
            call()


def test_puts_may_read_the_store_they_go_to(any_uri: str) -> None:
    store = open_store(any_uri, fingerprint_scheme=SCHEME)
    store.write([(b"a", b"1")])
    store.write((b"copy", value) for value in store.get_many([b"a"]) if value is not None)
    store.write((key + key, value) for key, value in store.scan(b"a", b"b"))
    assert store.get_many([b"copy", b"aa"]) == [b"1", b"1"]
    store.close()


def test_large_values(any_uri: str) -> None:
    store = open_store(any_uri, fingerprint_scheme=SCHEME)
    pairs = [(b"%03d" % number, bytes([number]) * 300_000) for number in range(100)]
    store.write(pairs)
    assert store.get_many([key for key, _ in pairs]) == [value for _, value in pairs]
    assert list(store.scan(b"0", b"9")) == pairs
    store.close()


def test_scan_left_alone_does_no_harm(any_uri: str) -> None:
    store = open_store(any_uri, fingerprint_scheme=SCHEME)
    store.write((b"%03d" % number, b"v") for number in range(500))
    store.scan(b"0", b"9")
    next(store.scan(b"0", b"9"))
    kept = store.scan(b"0", b"9")
    next(kept)
    store.write([], [b"%03d" % number for number in range(500)])
    assert sum(1 for _ in kept) == 499
    store.close()


def test_header_lies_before_every_range(uri: str) -> None:
    store = open_store(uri, fingerprint_scheme=SCHEME)
    assert store.get_many([HEADER_KEY]) == [store.header.encode()]
    assert list(store.scan(LOWEST, HIGHEST)) == []
    store.close()


def test_memory_stores_are_apart() -> None:
    one, other = (open_store("memory:", fingerprint_scheme=SCHEME) for _ in range(2))
    one.write([(b"a", b"1")])
    assert other.get_many([b"a"]) == [None]
    assert one.header.key != other.header.key
    one.close()
    other.close()


def test_openers_of_one_process_share(uri: str, path: Path) -> None:
    first = open_store(uri, fingerprint_scheme=SCHEME)
    link = path.with_name("link")
    link.symlink_to(path)
    second = open_store(uri.replace(str(path), str(link)), fingerprint_scheme=SCHEME)
    assert (first.created, second.created) == (True, False)
    assert first.header == second.header
    first.write([(b"a", b"1")])
    first.close()
    assert second.get_many([b"a"]) == [b"1"]
    second.close()
    assert open_and_close(uri) is False


def test_last_close_may_come_from_another_thread(uri: str, hold: Hold) -> None:
    store = open_store(uri, fingerprint_scheme=SCHEME)
    closing = threading.Thread(target=store.close)
    closing.start()
    closing.join()
    with hold(uri):
        pass


def test_threads_take_turns(uri: str) -> None:
    """Two openers in two threads, one closing while the other works: nothing is lost, nothing crashes."""
    stores = [open_store(uri, fingerprint_scheme=SCHEME) for _ in range(2)]

    def work(number: int) -> None:
        for step in range(200):
            key = b"%d:%03d" % (number, step)
            stores[number].write([(key, key)])
            assert stores[number].get_many([key]) == [key]
            assert sum(1 for _ in stores[number].scan(b"%d:" % number, b"%d;" % number)) == step + 1
        stores[number].close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = open_store(uri, fingerprint_scheme=SCHEME)
    assert sum(1 for _ in store.scan(b"0", b"9")) == 400
    store.close()


def test_batches_survive_the_death_of_the_process(uri: str, hold: Hold) -> None:
    with hold(uri) as process:
        process.kill()
        process.wait()
        store = open_store(uri, fingerprint_scheme=SCHEME)
        assert store.get_many([b"held"]) == [b"1"]
        store.close()


def open_and_close(uri: str) -> bool:
    store = open_store(uri, fingerprint_scheme=SCHEME)
    store.close()
    return store.created
