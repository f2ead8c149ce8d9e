"""Every store is a sorted dict of bytes: one suite for all of them."""

from __future__ import annotations

import sys
import tempfile
import threading
from itertools import islice
from pathlib import Path

import pytest
from beside import beside, shared_uri
from engines import ENGINES, need
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from nightly import tries

from dedup_middleware.errors import StoreError
from dedup_middleware.stores import open_store, overlaid
from dedup_middleware.stores.base import HEADER_KEY

SCHEME = "test-scheme"
SHARED = ("sqlite?shared=1", "redis")
KINDS = [*ENGINES, "sqlite", *SHARED, "memory", "overlay"]
LOWEST, HIGHEST = b"\x01", b"\xff" * 9

# Few different keys, so that batches meet. Among them those that text-minded or signed order would misplace, and such
# as a server has in buckets of their own.
KEYS = st.sampled_from(
    [
        *(b"\x01", b"\x01\x00", b"\x7f", b"\x80", b"a", b"aa", b"b", b"\xff", b"\xff\xff"),
        *(b"c", b"c12", b"c12\x0f5678", b"c12\x10678", b"c12\x1e", b"p\0\0\0\x01\x02", b"p\0\0\0\x02\x01\x02"),
    ]
) | st.binary(min_size=1, max_size=3).filter(lambda key: key > b"\x00\xff")
# Some longer than what a server's client remembers.
VALUES = st.binary(max_size=20) | st.binary(min_size=250, max_size=260)
PUTS = st.lists(st.tuples(KEYS, VALUES), max_size=8)
DELETES = st.lists(KEYS, max_size=4)
WHO = st.integers(0, 2)


def new_store(kind, folder, request):
    """Return a new store of this *kind*, open."""
    need(kind)
    if kind == "overlay":
        return overlaid(open_store(f"sqlite:{folder / 'store'}", fingerprint_scheme=SCHEME), sys.maxsize)
    if kind == "redis":
        uri = shared_uri(kind, folder, request)
    else:
        scheme, _, option = kind.partition("?")
        uri = "memory:" if kind == "memory" else f"{scheme}:{folder / 'store'}" + (option and f"?{option}")
    return open_store(uri, fingerprint_scheme=SCHEME)


def open_again(uri, scheme):
    return open_store(uri, fingerprint_scheme=scheme)


@pytest.fixture(params=KINDS)
def kind(request):
    return str(request.param)


@pytest.fixture
def store(kind, tmp_path, request):
    store = new_store(kind, tmp_path, request)
    yield store
    store.close()


class _Machine(RuleBasedStateMachine):
    """A store, or three workers on one that processes share, each in turn."""

    kind: str
    request: pytest.FixtureRequest

    def __init__(self):
        super().__init__()
        folder = tempfile.mkdtemp(dir=self.request.getfixturevalue("tmp_path"))
        self.stores = [new_store(self.kind, Path(folder), self.request)]
        if self.kind in SHARED:
            self.stores += [beside(self.stores[0].uri, SCHEME) for _ in range(2)]
        self.model = {}
        self.scans = []

    def _store(self, who):
        return self.stores[who % len(self.stores)]

    def _expected(self, start, stop):
        return sorted((key, value) for key, value in self.model.items() if start <= key < stop)

    def _apply(self, puts, deletes):
        for key in deletes:
            self.model.pop(key, None)
        self.model.update(puts)

    @rule(who=WHO, puts=PUTS, deletes=DELETES, sync=st.booleans())
    def write(self, who, puts, deletes, *, sync):
        self._store(who).write(iter(puts), iter(deletes), sync=sync)
        self._apply(puts, deletes)

    @rule(who=WHO, puts=PUTS, deletes=DELETES, keys=st.lists(KEYS, max_size=8), span=st.tuples(KEYS, KEYS))
    def write_in_a_transaction(self, who, puts, deletes, keys, span):
        store = self._store(who)

        def work():
            store.write([(key, b"before") for key in keys])
            self._apply([(key, b"before") for key in keys], [])
            before = store.scan(*span)
            expected = self._expected(*span)
            store.transaction(lambda: store.write(puts, deletes, sync=True))
            self._apply(puts, deletes)
            assert list(before) == expected
            assert list(store.scan(*span)) == self._expected(*span)
            assert store.get_many(keys) == [self.model.get(key) for key in keys]
            return 7

        assert store.transaction(work) == 7

    @rule(who=WHO, puts=PUTS, deletes=DELETES)
    def transaction_that_fails(self, who, puts, deletes):
        def work():
            self._store(who).write(puts, deletes)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            self._store(who).transaction(work)

    @precondition(lambda self: self.kind not in ("memory", "overlay", "redis"))
    @rule(who=WHO)
    def compact(self, who):
        # SQLite's VACUUM waits for readers.
        self.scans.clear()
        self._store(who).compact()

    @rule(who=WHO, puts=PUTS, deletes=DELETES)
    def write_that_fails_half_way(self, who, puts, deletes):
        def failing():
            yield from puts
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            self._store(who).write(failing(), deletes)

    @rule(who=WHO, keys=st.lists(KEYS, max_size=8))
    def get(self, who, keys):
        assert self._store(who).get_many(keys) == [self.model.get(key) for key in keys]

    @rule(who=WHO, start=KEYS, stop=KEYS)
    def scan(self, who, start, stop):
        assert list(self._store(who).scan(start, stop)) == self._expected(start, stop)

    @rule(who=WHO, start=KEYS, stop=KEYS, steps=st.integers(0, 2))
    def begin_scan(self, who, start, stop, steps):
        store, expected = self._store(who), self._expected(start, stop)
        scan = store.scan(start, stop)
        assert list(islice(scan, steps)) == expected[:steps]
        # A scan that has come to its end need not notice the close().
        if steps <= len(expected):
            self.scans.append((store, scan, expected[steps:]))

    @precondition(lambda self: self.scans)
    @rule()
    def end_scan(self):
        """What has not changed since the scan began is there, in order; of what has, some may be."""
        _, scan, expected = self.scans.pop()
        found = list(scan)
        assert found == sorted(dict(found).items())
        assert set(found) >= set(expected) & self.model.items()

    @precondition(lambda self: self.kind not in ("memory", "overlay"))
    @rule(who=WHO)
    def reopen(self, who):
        store, reopened = self._store(who), beside if self.kind in SHARED else open_again
        store.close()
        for _, scan, _ in (each for each in self.scans if each[0] is store):
            with pytest.raises(StoreError):
                list(scan)
        self.scans = [each for each in self.scans if each[0] is not store]
        self.stores[self.stores.index(store)] = again = reopened(store.uri, SCHEME)
        assert not again.created
        assert again.header == store.header

    @invariant()
    def each_holds_what_was_written(self):
        for store in self.stores:
            assert list(store.scan(LOWEST, HIGHEST)) == self._expected(LOWEST, HIGHEST)

    def teardown(self):
        for store in self.stores:
            store.close()


@pytest.mark.nightly
def test_behaves_as_a_sorted_dict(kind, request):
    machine = type("Machine", (_Machine,), {"kind": kind, "request": request})
    run_state_machine_as_test(machine, settings=settings(max_examples=tries(6, 200), stateful_step_count=25))


def test_closed_store_refuses_everything(store):
    store.write([(b"a", b"1"), (b"b", b"2")])
    scan = store.scan(b"a", b"z")
    store.close()
    store.close()
    assert store.closed
    for call in (
        lambda: store.get_many([b"a"]),
        lambda: store.scan(b"a", b"z"),
        lambda: list(scan),
        lambda: store.write([(b"a", b"1")]),
        lambda: store.transaction(lambda: None),
        store.sync,
        store.compact,
        store.changes_of_others,
    ):
        with pytest.raises(StoreError, match="is closed"):
            call()


def test_puts_may_read_the_store_they_go_to(store):
    store.write([(b"a", b"1")])
    store.write((b"copy", value) for value in store.get_many([b"a"]) if value is not None)
    store.write((key + key, value) for key, value in store.scan(b"a", b"b"))
    assert store.get_many([b"copy", b"aa"]) == [b"1", b"1"]


def test_many_pairs_and_large_values(store):
    pairs = [(b"%05d" % number, b"v" if number % 1_000 else bytes(300_000)) for number in range(25_000)]
    store.write(iter(pairs))
    assert list(store.scan(b"0", b"9")) == pairs
    store.write([], [key for key, _ in pairs])
    assert list(store.scan(b"0", b"9")) == []


def test_bugs_of_ours_pass_as_they_are(store, monkeypatch):
    def work():
        raise TypeError("a bug")

    with pytest.raises(TypeError, match="a bug"):
        store.transaction(work)
    monkeypatch.setattr(store.in_process.store, "get_many", lambda _: work())
    with pytest.raises(TypeError, match="a bug"):
        store.get_many([b"a"])


def test_after_a_failed_write_everything_is_refused(store, monkeypatch):
    def fail(*_, **__):
        raise OSError(5, "the medium")

    monkeypatch.setattr(store.in_process.store, "write", fail)
    with pytest.raises(StoreError, match="the medium") as caught:
        store.write([(b"a", b"1")])
    assert len(str(caught.value).splitlines()) == 1
    monkeypatch.undo()
    for call in (lambda: store.get_many([b"a"]), lambda: store.write([(b"a", b"1")]), store.sync):
        with pytest.raises(StoreError):
            call()


def test_the_header_lies_before_every_range(store):
    assert list(store.scan(LOWEST, HIGHEST)) == []
    assert store.get_many([HEADER_KEY]) == [store.header.encode()]


def test_memory_stores_are_apart():
    one, other = (open_store("memory:", fingerprint_scheme=SCHEME) for _ in range(2))
    one.write([(b"a", b"1")])
    assert other.get_many([b"a"]) == [None]
    assert one.header.key != other.header.key
    one.close()
    other.close()


def test_a_store_in_memory_takes_so_much_and_no_more(tmp_path):
    below = open_store(f"sqlite:{tmp_path / 'store'}", fingerprint_scheme=SCHEME)
    for store in (overlaid(below, 10_000), open_store("memory:", fingerprint_scheme=SCHEME, room=10_000)):
        store.write((b"%03d" % number, b"v" * 100) for number in range(40))
        store.write((b"%03d" % number, b"v" * 100) for number in range(40))
        with pytest.raises(StoreError, match="memory"):
            store.write((b"%03d" % number, b"v" * 100) for number in range(500))
        store.close()
    assert below.closed


def test_an_overlay_leaves_the_store_below_as_it_is(tmp_path):
    uri = f"sqlite:{tmp_path / 'store'}"
    before = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]
    below = open_store(uri, fingerprint_scheme=SCHEME)
    below.write(before)
    store = overlaid(below, sys.maxsize)
    store.write([(b"b", b"two"), (b"bb", b"4")], [b"c"])
    assert list(store.scan(b"a", b"d")) == [(b"a", b"1"), (b"b", b"two"), (b"bb", b"4")]
    assert store.get_many([b"a", b"b", b"c"]) == [b"1", b"two", None]
    assert list(below.scan(b"a", b"d")) == before
    store.close()


def test_what_was_read_lately_is_returned_as_it_is_now(store, kind, monkeypatch):
    reads = []
    get_many = type(store).get_many
    monkeypatch.setattr(type(store), "get_many", lambda self, keys: reads.extend(keys) or get_many(self, keys))
    monkeypatch.setattr("dedup_middleware.stores.opened._RECENT_KEYS", 3)
    other = store if kind in ("memory", "overlay") else open_store(store.uri, fingerprint_scheme=SCHEME)

    def fail():
        other.write([(b"a", b"lost")])
        assert store.get_recent([b"a"]) == [b"lost"]
        raise KeyboardInterrupt

    writes = [
        ([(b"a", b"1")], []),
        ([(b"b", b"2")], [b"a"]),
        ([(b"a", b"3")], [b"a", b"b"]),
        ([], [b"a"]),
        ([(b"a", b"5")], []),
    ]
    for puts, deletes in writes:
        for opener in (store, other):
            assert opener.get_recent([b"a", b"b"]) == opener.get_many([b"a", b"b"])
        other.write(puts, deletes)
        assert store.get_recent([b"a"]) == other.get_many([b"a"])
    if kind not in ("memory", "overlay", "redis", "sqlite?shared=1"):
        reads.clear()
        assert store.get_recent([b"a", b"b"]) == [b"5", None]
        assert reads == []
        assert store.get_recent([b"c", b"d", b"a"]) == [None, None, b"5"]
        assert store.get_recent([b"a", b"b"]) == [b"5", None]
        assert reads == [b"c", b"d", b"a"], "so many are remembered"
        with pytest.raises(KeyboardInterrupt):
            store.transaction(fail)
        assert store.get_recent([b"a"]) == [b"5"]
    other.close()


def test_a_large_value_is_not_remembered(store, monkeypatch):
    """A page can make values of half a megabyte: thousands of these would fill the memory."""
    reads: list[bytes] = []
    get_many = type(store).get_many
    monkeypatch.setattr(type(store), "get_many", lambda self, keys: reads.extend(keys) or get_many(self, keys))
    large = bytes(100_000)
    store.write([(b"a", b"1"), (b"b", large)])
    assert store.get_recent([b"a", b"b", b"b"]) == [b"1", large, large]
    store.write([(b"a", large)])
    reads.clear()
    assert store.get_recent([b"a", b"b"]) == [large, large]
    assert reads == [b"a", b"b"]


def test_openers_of_one_process_share(store, kind):
    if kind in ("memory", "overlay"):
        return
    other = open_store(store.uri, fingerprint_scheme=SCHEME)
    assert (store.created, other.created) == (True, False)
    assert (other.header, other.worker, other.in_process) == (store.header, store.worker, store.in_process)
    store.write([(b"a", b"1")])
    # From another thread than the opening.
    closing = threading.Thread(target=store.close)
    closing.start()
    closing.join()
    assert other.get_many([b"a"]) == [b"1"]
    other.close()
    again = open_store(store.uri, fingerprint_scheme=SCHEME)
    assert (again.created, again.header) == (False, store.header)
    again.close()


def test_closing_while_another_thread_works(kind, tmp_path, request):
    """Many times: the worker gets a clear error from the very call that comes too late."""
    for turn in range(10):
        folder = tmp_path / str(turn)
        folder.mkdir()
        store = new_store(kind, folder, request)
        store.write((b"%03d" % number, b"v" * 100) for number in range(300))
        ended = []
        # The third call of the work tells the other thread to close; from there on they race.
        busy = threading.Event()

        def work(store=store, ended=ended, busy=busy):
            try:
                while True:
                    store.get_many([b"%03d" % number for number in range(0, 300, 7)])
                    for _ in store.scan(b"0", b":"):
                        busy.set()
                    store.sync()
                    store.write([(b"more", b"1")])
            except StoreError as error:
                ended.append(str(error))

        worker = threading.Thread(target=work)
        worker.start()
        assert busy.wait(30)
        store.close()
        worker.join(30)
        assert not worker.is_alive()
        assert ["is closed" in text for text in ended] == [True], (turn, ended)
