"""The kinds of fingerprints: how they compare, where they are looked up, how they are stored, how methods are named."""

from __future__ import annotations

import struct
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.fingerprints.method import (
    FEATURE_BYTES,
    METHODS,
    Bits,
    Digest,
    Method,
    Print,
    Text,
    WeightedSet,
    bits_alike,
    blocks,
    distance_of,
    feature,
    jaccard,
    least_score,
    method,
    one_of,
    packed,
    unpacked,
    within,
)

SIZES = st.sampled_from([1, 7, 8, 32, 64, 128])
FEATURES = st.integers(0, 30).map(lambda n: n.to_bytes(FEATURE_BYTES, "big"))
WEIGHTS = st.floats(0.125, 1000, width=32)
SETS = st.dictionaries(FEATURES, WEIGHTS, max_size=12).map(WeightedSet)
DIGESTS = st.binary(max_size=40).map(Digest)


def values(size: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << size) - 1)


@st.composite
def bits(draw: st.DrawFn) -> Bits:
    size = draw(SIZES)
    return Bits(tuple(draw(st.lists(values(size), max_size=5))), size)


@st.composite
def bits_within_a_distance(draw: st.DrawFn) -> tuple[Bits, Bits, int]:
    """Return two fingerprints of which each paragraph differs in a distance of bits at most, and that distance."""
    size = draw(SIZES)
    distance = draw(st.integers(0, min(size, 12)))
    one = draw(st.lists(values(size), min_size=1, max_size=4))
    flips = st.sets(st.integers(0, size - 1), max_size=distance).map(lambda places: sum(1 << at for at in places))
    other = [value ^ draw(flips) for value in one]
    return Bits(tuple(one), size), Bits(tuple(other), size), distance


class Given(Method):
    """A method of any threshold."""

    def __init__(self, *, threshold: float = 1.0) -> None:
        self.threshold = threshold

    def fingerprint(self, text: Text) -> Digest:
        return Digest(text.title.encode())


# --- comparison


@given(bits(), bits())
def test_bits_compare_alike_in_both_directions_and_wholly_with_themselves(one: Bits, other: Bits) -> None:
    assert 0 <= bits_alike(one, other) <= 1
    assert bits_alike(one, other) == bits_alike(other, one)
    assert bits_alike(one, one) == (1 if one.values else 0)
    assert (bits_alike(one, other) == 1) == (one == other and one.values != ())


@given(bits_within_a_distance())
def test_the_paragraphs_that_differ_most_make_the_score(case: tuple[Bits, Bits, int]) -> None:
    one, other, _ = case
    each = [
        bits_alike(Bits((a,), one.size), Bits((b,), one.size)) for a, b in zip(one.values, other.values, strict=True)
    ]
    assert bits_alike(one, other) == min(each)


def test_a_bit_of_eight_is_an_eighth() -> None:
    assert bits_alike(Bits((0b1111_0000, 0), 8), Bits((0b0111_0000, 0b11), 8)) == 0.75
    assert bits_alike(Bits((1,), 8), Bits((1,), 16)) == 0
    assert bits_alike(Bits((1,), 8), Bits((1, 1), 8)) == 0
    assert bits_alike(Bits((), 8), Bits((), 8)) == 0


@given(SETS, SETS)
def test_sets_compare_alike_in_both_directions_and_wholly_with_themselves(one: WeightedSet, other: WeightedSet) -> None:
    assert 0 <= jaccard(one, other) <= 1 + 1e-9
    assert jaccard(one, other) == pytest.approx(jaccard(other, one))
    assert jaccard(one, one) == pytest.approx(1 if one.weights else 0)
    assert (jaccard(one, other) == 0) == one.weights.keys().isdisjoint(other.weights)


@given(st.sets(FEATURES), st.sets(FEATURES))
def test_with_equal_weights_the_score_of_sets_is_jaccards(one: set[bytes], other: set[bytes]) -> None:
    assume(one | other)
    score = jaccard(WeightedSet(dict.fromkeys(one, 2.0)), WeightedSet(dict.fromkeys(other, 2.0)))
    assert score == pytest.approx(len(one & other) / len(one | other))


def test_the_score_of_sets_is_the_smaller_weights_by_the_larger() -> None:
    a, b, c = (feature(name) for name in "abc")
    assert jaccard(WeightedSet({a: 3, b: 1}), WeightedSet({a: 1, c: 4})) == pytest.approx(1 / (3 + 1 + 4))


@given(st.one_of(DIGESTS, bits(), SETS), st.one_of(DIGESTS, bits(), SETS))
def test_fingerprints_of_different_kinds_have_nothing_in_common(one: Print, other: Print) -> None:
    assume(type(one) is not type(other))
    assert Given().score(one, other) == 0


def test_digests_are_equal_or_not() -> None:
    assert Given().score(Digest(b"ferry"), Digest(b"ferry")) == 1
    assert Given().score(Digest(b"ferry"), Digest(b"ferr")) == 0


@given(SIZES, st.data())
def test_a_distance_and_its_score_are_the_same_bound(size: int, data: st.DataObject) -> None:
    distance = data.draw(st.integers(0, size))
    assert distance_of(least_score(distance, size), size) == distance
    differing = Bits(((1 << distance) - 1,), size)
    assert Given(threshold=least_score(distance, size)).is_alike(differing, Bits((0,), size))
    if distance < size:
        farther = Bits(((1 << distance + 1) - 1,), size)
        assert not Given(threshold=least_score(distance, size)).is_alike(farther, Bits((0,), size))


# --- looking up


@given(bits_within_a_distance())
def test_bits_within_the_distance_have_a_block_of_each_paragraph_in_common(case: tuple[Bits, Bits, int]) -> None:
    one, other, distance = case
    if distance < one.size:
        for place in range(len(one.values)):
            shared = {*blocks(one, distance)} & {*blocks(other, distance)}
            assert any(struct.unpack_from(">H", key) == (place,) for key in shared)


@given(bits(), st.integers(0, 140))
def test_the_blocks_of_a_number_are_all_its_bits_once(one: Bits, distance: int) -> None:
    count = min(distance + 1, one.size)
    keys = list(blocks(one, distance))
    assert len(keys) == len(set(keys)) == count * len(one.values)
    edges = [Fraction(one.size * n, count).__floor__() for n in range(count + 1)]
    for place, value in enumerate(one.values):
        parts = [int.from_bytes(key[4:], "big") for key in keys[place * count : (place + 1) * count]]
        assert sum(part << start for part, (start, _) in zip(parts, pairwise(edges), strict=True)) == value
        assert all(part >> end - start == 0 for part, (start, end) in zip(parts, pairwise(edges), strict=True))


def test_equal_blocks_at_different_places_are_different_keys() -> None:
    assert len({*blocks(Bits((0, 0), 32), 3)}) == 8


@given(bits_within_a_distance())
def test_bits_that_are_alike_are_found_by_the_keys_of_a_method(case: tuple[Bits, Bits, int]) -> None:
    one, other, distance = case
    assume(distance < one.size)
    made = Given(threshold=least_score(distance, one.size))
    assert made.is_alike(one, other)
    assert {*made.keys(one)} & {*made.keys(other)}


@given(SETS, SETS)
def test_sets_that_have_anything_in_common_are_found_by_the_keys_of_a_method(
    one: WeightedSet, other: WeightedSet
) -> None:
    made = Given(threshold=0.01)
    assert made.is_alike(one, other) <= bool({*made.keys(one)} & {*made.keys(other)})
    assert list(made.keys(Digest(b"ferry"))) == [b"ferry"]


# --- in stores


@given(st.one_of(DIGESTS, bits(), SETS))
def test_what_is_packed_comes_back(made: Print) -> None:
    assert unpacked(packed(made)) == made


@given(st.dictionaries(FEATURES, WEIGHTS, min_size=2))
def test_the_order_of_a_set_does_not_show_in_the_store(weights: dict[bytes, float]) -> None:
    assert packed(WeightedSet(weights)) == packed(WeightedSet(dict(reversed(weights.items()))))


@given(st.floats(1e-6, 1e6))
def test_a_weight_has_32_bits_in_the_store(weight: float) -> None:
    back = unpacked(packed(WeightedSet({feature("ferry"): weight})))
    assert isinstance(back, WeightedSet)
    assert back.weights[feature("ferry")] == pytest.approx(weight, rel=1e-6)


@given(st.binary(max_size=60) | st.builds(bytes.__add__, st.sampled_from([b"d", b"b", b"s"]), st.binary(max_size=60)))
def test_garbage_is_unreadable_or_some_fingerprint(garbage: bytes) -> None:
    try:
        made = unpacked(garbage)
    except UnreadableError:
        return
    assert isinstance(made, (Digest, Bits, WeightedSet))


@pytest.mark.parametrize(
    "garbage", [b"", b"x", b"b", b"b\x00", b"b\x00\x00", b"b\x00\x00\x01", b"s\x01", b"s" + bytes(13)]
)
def test_what_no_fingerprint_packs_to_is_unreadable(garbage: bytes) -> None:
    with pytest.raises(UnreadableError, match="a fingerprint cannot be read"):
        unpacked(garbage)


# --- options


@pytest.mark.parametrize("half", ["\ud800", "\udfff ferry"])
def test_half_a_character_is_a_feature_too(half: str) -> None:
    assert len(feature(half)) == FEATURE_BYTES
    assert feature(half) != feature("ferry")


@given(st.floats(), st.floats(-10, 10), st.floats(-10, 10))
def test_an_option_is_within_its_bounds_or_refused(value: float, least: float, most: float) -> None:
    if least <= value <= most:
        assert within("size", value, least, most) == value
    else:
        with pytest.raises(ConfigError, match=r"^size = .* is not between"):
            within("size", value, least, most)


def test_an_option_is_one_of_its_values_or_refused() -> None:
    assert one_of("unit", "word", iter(["character", "word"])) == "word"
    with pytest.raises(ConfigError, match="unit = 'line' is none of 'character', 'word'"):
        one_of("unit", "line", ["character", "word"])


class Options(Given):
    """A method with an option of each type."""

    def __init__(self, *, bits: int = 64, share: float = 0.5, unit: str = "word", stop_words: bool = True) -> None:
        super().__init__()
        self.given = (bits, share, unit, stop_words)


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS.ours, "options", f"{__name__}:Options")


@pytest.mark.usefixtures("options")
@pytest.mark.parametrize(
    ("choice", "given"),
    [
        ("options", (64, 0.5, "word", True)),
        ("options:", (64, 0.5, "word", True)),
        ("options:bits=128", (128, 0.5, "word", True)),
        ("options:bits=-1,share=1e-3,unit=a:b=c,stop_words=False", (-1, 0.001, "a:b=c", False)),
        ("options: bits = 8 , unit = a line ,", (8, 0.5, "a line", True)),
        ("options:unit=", (64, 0.5, "", True)),
        ("options:bits=1,bits=2", (2, 0.5, "word", True)),
    ],
)
def test_a_method_is_named_with_options_or_without(choice: str, given: tuple[object, ...]) -> None:
    made = method(choice)
    assert isinstance(made, Given)
    assert made.given == given  # type: ignore[attr-defined]
    assert [type(value) for value in made.given] == [int, float, str, bool]  # type: ignore[attr-defined]


@pytest.mark.usefixtures("options")
@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("nothing", "'nothing' is none of"),
        ("", "'' is none of"),
        ("options:colour=red", "has no option 'colour'; it has bits, share, unit, stop_words"),
        ("options:=1", "has no option ''"),
        ("options:bits", "takes a whole number for bits, not ''"),
        ("options:bits=1.5", "takes a whole number for bits, not '1.5'"),
        ("options:bits=many", "takes a whole number for bits, not 'many'"),
        ("options:share=half", "takes a number for share, not 'half'"),
        ("options:stop_words=1", "takes true or false for stop_words, not '1'"),
    ],
)
def test_a_choice_that_cannot_be_read_says_why(choice: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        method(choice)
