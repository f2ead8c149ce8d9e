"""Nothing within the distance is missed, and nothing beyond it is found: against comparing all, on every store."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from engines import ENGINES, need
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dedup_middleware.errors import StoreVersionError, UnreadableError
from dedup_middleware.index import codec
from dedup_middleware.index.hamming import LIST_LIMIT, MAX_DISTANCE, HammingIndex
from dedup_middleware.stores import open_store
from dedup_middleware.stores.layout import HEADER_KEY
from dedup_middleware.stores.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dedup_middleware.stores.protocol import Store

Pairs = set[tuple[int, int]]

NUMBERS = st.integers(1, 5) | st.integers(1, 2**40 - 1)


@st.composite
def near_bits(draw: st.DrawFn) -> int:
    """Bits around a few centres, so that distances of 0 to 20 are common; all zeros and all ones are two of them."""
    bits: int = draw(st.sampled_from([0, 2**128 - 1, 0x0123456789ABCDEF << 40]))
    for flipped in draw(st.lists(st.integers(0, 127), max_size=10)):
        bits ^= 1 << flipped
    return bits


BITS = near_bits() | st.integers(0, 2**128 - 1)
PAIRS = st.sets(st.tuples(BITS, NUMBERS), max_size=30)


def by_comparing_all(stored: Pairs, bits: int, k: int) -> list[tuple[int, int]]:
    return sorted((number, d) for other, number in stored if (d := (other ^ bits).bit_count()) <= k)


def keys(store: Store) -> dict[bytes, bytes]:
    return {key: value for key, value in store.scan(b"\x01", b"\xff") if key != b"h"}


@pytest.fixture(params=["memory", *ENGINES, "sqlite"])
def new_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Store]]:
    """Return a function that empties the one store of the test: to open a new one each time is slow."""
    need(request.param)
    path = "" if request.param == "memory" else tmp_path_factory.mktemp("hamming") / "store"
    store = open_store(f"{request.param}:{path}", fingerprint_scheme="test")

    def emptied() -> Store:
        store.write([], [key for key, _ in store.scan(b"\x01", b"\xff")])
        return store

    yield emptied
    store.close()


on_a_shared_store = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("k", range(MAX_DISTANCE + 1))
@given(stored=PAIRS, bits=BITS)
@settings(max_examples=30, deadline=None)
def test_a_search_finds_what_comparing_all_finds(k: int, stored: Pairs, bits: int) -> None:
    index = HammingIndex(MemoryStore(), k)
    index._store.write(*index.changes(added=stored))
    found = list(index.search(bits))
    assert sorted(found) == by_comparing_all(stored, bits, k)
    assert [d for _, d in found] == sorted(d for _, d in found), "nearest first"


@pytest.mark.parametrize("k", [0, 1, 3, 5, 10])
@on_a_shared_store
@given(steps=st.lists(st.tuples(PAIRS, PAIRS), max_size=6), bits=st.lists(BITS, max_size=4))
def test_additions_and_removals_leave_what_they_say(
    new_store: Callable[[], Store], k: int, steps: list[tuple[Pairs, Pairs]], bits: list[int]
) -> None:
    store = new_store()
    index = HammingIndex(store, k)
    stored: Pairs = set()
    for added, removed in steps:
        store.write(*index.changes(added, removed | set(itertools.islice(stored, 5))))
        stored = stored - removed - set(itertools.islice(stored, 5)) | added
        for sought in [*bits, *(b for b, _ in itertools.islice(stored, 3))]:
            assert sorted(HammingIndex(store, k).search(sought)) == by_comparing_all(stored, sought, k)
    store.write(*index.changes(removed=stored))
    assert keys(store) == {}, "what nobody holds leaves no keys"


@pytest.mark.parametrize("k", range(MAX_DISTANCE + 1))
def test_every_bit_of_every_block_is_looked_at(k: int) -> None:
    index = HammingIndex(MemoryStore(), k)
    rng = random.Random(k)
    bits = rng.getrandbits(128)
    index.add(bits, 1)
    for _ in range(200):
        flips = rng.sample(range(128), k + 1)
        at_k = bits ^ sum(1 << flip for flip in flips[:k])
        assert list(index.search(at_k)) == [(1, k)]
        assert list(index.search(at_k ^ 1 << flips[k])) == []
    for flip in range(128):
        assert list(index.search(bits ^ 1 << flip)) == ([(1, 1)] if k else [])


@settings(max_examples=20, deadline=None)
@given(removed=st.sets(st.integers(0, 3 * LIST_LIMIT - 1)), again=st.sets(st.integers(0, 3 * LIST_LIMIT - 1)))
def test_a_value_that_many_bits_share_is_bounded_and_misses_nothing(removed: set[int], again: set[int]) -> None:
    index = HammingIndex(MemoryStore(), 3)
    # Three of the four blocks are zero in all of them.
    crowd = {(i * 0x9E3779B1 % 2**32, i + 1) for i in range(3 * LIST_LIMIT)}
    for pair in sorted(crowd):
        puts, _ = index.changes(added=[pair])
        assert sum(len(key) + len(value) for key, value in puts) < 4 * (16 * LIST_LIMIT + 40)
        index._store.write(puts)
    stored = set(crowd)
    for change, indices in ((index.remove, removed), (index.add, again)):
        for bits, number in [pair for pair in crowd if pair[1] - 1 in indices]:
            change(bits, number)
        touched = {pair for pair in crowd if pair[1] - 1 in indices}
        stored = stored - touched if change == index.remove else stored | touched
    for bits, _ in crowd:
        assert sorted(index.search(bits)) == by_comparing_all(stored, bits, 3)


def test_in_a_crowd_a_search_may_be_bounded_and_finds_the_same_bits_all_the_same() -> None:
    store = MemoryStore()
    crowd = {(i, i + 1) for i in range(2 * LIST_LIMIT)}
    alone = (2**128 - 1, 1)
    exact, bounded = HammingIndex(store, 3), HammingIndex(store, 3, crowd=10)
    for pair in sorted(crowd | {alone}):
        store.write(*exact.changes(added=[pair]))
    for bits, number in crowd:
        found = list(bounded.search(bits))
        assert found[0] == (number, 0)
        assert set(found) <= set(exact.search(bits))
    assert len(list(bounded.search(2 * LIST_LIMIT - 1))) < len(list(exact.search(2 * LIST_LIMIT - 1)))
    assert list(bounded.search(2**128 - 8)) == [(1, 3)], "those out of the crowd are not missed"


def test_boilerplate_stands_in_the_lists_once() -> None:
    store = MemoryStore()
    index = HammingIndex(store, 3)
    for number in range(1, 1001):
        index.add(7, number)
    assert Counter(key[:2] for key in keys(store)) == {b"hb": 4, b"hn": 1000}
    assert list(itertools.islice(index.search(6), 3)) == [(1, 1), (2, 1), (3, 1)], "and a reader may stop"
    for number in range(1, 1000):
        index.remove(7, number)
    assert list(index.search(7)) == [(1000, 0)]


def test_adding_twice_and_removing_what_is_not_there_change_nothing() -> None:
    store = MemoryStore()
    index = HammingIndex(store, 3)
    index.add(7, 1)
    once = keys(store)
    index.add(7, 1)
    index.remove(7, 2)
    index.remove(8, 1)
    assert keys(store) == once


def test_a_pair_both_added_and_removed_is_stored() -> None:
    store = MemoryStore()
    index = HammingIndex(store, 3)
    for _ in range(2):
        store.write(*index.changes(added=[(7, 1)], removed=[(7, 1), (7, 2)]))
        assert list(index.search(7)) == [(1, 0)]


def test_keys_never_meet_those_of_pages_and_clauses() -> None:
    puts, _ = HammingIndex(MemoryStore(), 3).changes(added=[(7, 1)])
    others = {
        codec.clause_key(b"h" * 8),
        codec.identity_key(b"h" * 16),
        codec.page_key(1),
        codec.text_key(1),
        codec.NEXT_PLACE_KEY,
        HEADER_KEY,
    }
    assert {key[:1] for key, _ in puts} == {b"h"}
    assert b"h" not in {key[:1] for key in others}


def test_a_store_that_was_split_otherwise_is_refused_instead_of_missing() -> None:
    store = MemoryStore()
    HammingIndex(store, 3).add(7, 1)
    assert list(HammingIndex(store, 3).search(7)) == [(1, 0)]
    said = r"into 4 blocks, and distance 10 needs 6: .*`scrapy dedup reset -s DEDUP_STORE=memory:`"
    with pytest.raises(StoreVersionError, match=said):
        HammingIndex(store, 10)


def test_from_five_on_the_distance_may_be_changed() -> None:
    store = MemoryStore()
    HammingIndex(store, 5).add(0, 1)
    assert list(HammingIndex(store, 5).search(0xFF)) == []
    assert list(HammingIndex(store, 10).search(0xFF)) == [(1, 8)]


@pytest.mark.parametrize("k", [-1, MAX_DISTANCE + 1])
def test_a_distance_that_cannot_be_searched_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match=f"distance of {k} cannot be searched: allowed are 0 to {MAX_DISTANCE}"):
        HammingIndex(MemoryStore(), k)


@pytest.mark.parametrize("pair", [(-1, 1), (2**128, 1), (7, -1), (7, 2**56)])
def test_what_does_not_fit_is_refused_and_nothing_is_written(pair: tuple[int, int]) -> None:
    store = MemoryStore()
    with pytest.raises(OverflowError):
        HammingIndex(store, 3).add(*pair)
    assert keys(store) == {}


@pytest.mark.parametrize("damage", [b"x", b"+" * 15, b"x" * 17, b"x" * 31])
def test_garbage_is_no_list(damage: bytes) -> None:
    store = MemoryStore()
    index = HammingIndex(store, 3)
    index.add(7, 1)
    store.write([(key, damage) for key in keys(store) if key.startswith(b"hb")])
    with pytest.raises(UnreadableError, match="bytes long"):
        index.search(7)
