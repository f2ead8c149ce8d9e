"""The kinds of fingerprints: how they compare, where they are looked up, how they are stored, how methods are named."""

import struct

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.methods.method import (
    FEATURE_BYTES,
    METHODS,
    Bits,
    Digest,
    Method,
    WeightedSet,
    bits_alike,
    blocks,
    distance_of,
    feature,
    jaccard,
    least_score,
    method,
    packed,
    unpacked,
)

SIZES = st.sampled_from([1, 7, 8, 32, 64, 128])
FEATURES = st.integers(0, 30).map(lambda n: n.to_bytes(FEATURE_BYTES, "big"))
WEIGHTS = st.floats(0.125, 1000, width=32)
SETS = st.dictionaries(FEATURES, WEIGHTS, max_size=12).map(WeightedSet)
DIGESTS = st.binary(max_size=40).map(Digest)


@st.composite
def bits(draw):
    size = draw(SIZES)
    return Bits(tuple(draw(st.lists(st.integers(0, (1 << size) - 1), max_size=5))), size)


@st.composite
def bits_within_a_distance(draw):
    """Return two fingerprints of which each paragraph differs in a distance of bits at most, and that distance."""
    size = draw(SIZES)
    distance = draw(st.integers(0, min(size, 12)))
    one = draw(st.lists(st.integers(0, (1 << size) - 1), min_size=1, max_size=4))
    flips = st.sets(st.integers(0, size - 1), max_size=distance).map(lambda places: sum(1 << at for at in places))
    return Bits(tuple(one), size), Bits(tuple(value ^ draw(flips) for value in one), size), distance


class Titles(Method):
    """A method of any threshold, with an option of each type."""

    def __init__(self, *, threshold=1.0, bits=64, unit="word", stop_words=True):
        self.threshold = threshold
        self.options = (threshold, bits, unit, stop_words)

    def fingerprint(self, text):
        return Digest(text.title.encode())


# --- comparison


@given(bits(), bits())
def test_bits_compare_by_the_paragraphs_that_differ_most(one, other):
    assert 0 <= bits_alike(one, other) <= 1
    assert bits_alike(one, other) == bits_alike(other, one)
    assert bits_alike(one, one) == (1 if one.values else 0)
    assert (bits_alike(one, other) == 1) == (one == other and one.values != ())
    if one.size == other.size and len(one.values) == len(other.values) != 0:
        pairs = zip(one.values, other.values, strict=True)
        assert bits_alike(one, other) == min(bits_alike(Bits((a,), one.size), Bits((b,), one.size)) for a, b in pairs)
    assert bits_alike(Bits((0b1111_0000, 0), 8), Bits((0b0111_0000, 0b11), 8)) == 0.75


@given(SETS, SETS)
def test_sets_compare_by_the_smaller_weights_over_the_larger(one, other):
    assert 0 <= jaccard(one, other) <= 1 + 1e-9
    assert jaccard(one, other) == pytest.approx(jaccard(other, one))
    assert jaccard(one, one) == pytest.approx(1 if one.weights else 0)
    assert (jaccard(one, other) == 0) == one.weights.keys().isdisjoint(other.weights)
    a, b, c = (feature(name) for name in "abc")
    assert jaccard(WeightedSet({a: 3, b: 1}), WeightedSet({a: 1, c: 4})) == pytest.approx(1 / (3 + 1 + 4))


@given(SIZES, st.data())
def test_a_distance_and_its_score_are_the_same_bound(size, data):
    distance = data.draw(st.integers(0, size))
    assert distance_of(least_score(distance, size), size) == distance
    for differing in range(distance, min(distance + 2, size + 1)):
        made = Bits(((1 << differing) - 1,), size)
        assert Titles(threshold=least_score(distance, size)).is_alike(made, Bits((0,), size)) == (differing == distance)


# --- looking up


@given(bits_within_a_distance())
def test_bits_within_the_distance_have_a_block_of_each_paragraph_in_common(case):
    one, other, distance = case
    assume(distance < one.size)
    shared = {*blocks(one, distance)} & {*blocks(other, distance)}
    assert {struct.unpack_from(">H", key)[0] for key in shared} == {*range(len(one.values))}
    made = Titles(threshold=least_score(distance, one.size))
    assert made.is_alike(one, other)
    assert {*made.keys(one)} & {*made.keys(other)}


@given(SETS, SETS)
def test_sets_that_have_anything_in_common_share_a_key(one, other):
    made = Titles(threshold=0.01)
    assert made.is_alike(one, other) <= bool({*made.keys(one)} & {*made.keys(other)})
    assert list(made.keys(Digest(b"ferry"))) == [b"ferry"]


# --- in stores


@given(st.one_of(DIGESTS, bits(), SETS))
def test_what_is_packed_comes_back(made):
    assert unpacked(packed(made)) == made
    if isinstance(made, WeightedSet):
        assert packed(made) == packed(WeightedSet(dict(reversed(made.weights.items()))))


@pytest.mark.parametrize(
    "garbage", [b"", b"x", b"b", b"b\x00", b"b\x00\x00", b"b\x00\x00\x01", b"s\x01", b"s" + bytes(13)]
)
def test_other_bytes_are_unreadable(garbage):
    with pytest.raises(UnreadableError, match="a fingerprint cannot be read"):
        unpacked(garbage)


# --- options


@pytest.mark.parametrize(
    ("choice", "options"),
    [
        ("titles", (1.0, 64, "word", True)),
        ("titles:", (1.0, 64, "word", True)),
        ("titles:bits=-1,threshold=1e-3,unit=a:b=c,stop_words=False", (0.001, -1, "a:b=c", False)),
        ("titles: bits = 8 , unit = a line ,", (1.0, 8, "a line", True)),
        ("titles:unit=,bits=1,bits=2", (1.0, 2, "", True)),
    ],
)
def test_a_method_is_named_with_options_or_without(choice, options, monkeypatch):
    monkeypatch.setitem(METHODS.ours, "titles", f"{__name__}:Titles")
    made = method(choice)
    assert made.options == options
    assert [type(value) for value in made.options] == [float, int, str, bool]


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("nothing", "'nothing' is not one of"),
        ("titles:colour=red", "has no option 'colour'. It has threshold, bits, unit, stop_words"),
        ("titles:=1", "has no option ''"),
        ("titles:bits", "takes a whole number for bits, not ''"),
        ("titles:bits=1.5", "takes a whole number for bits, not '1.5'"),
        ("titles:threshold=half", "takes a number for threshold, not 'half'"),
        ("titles:stop_words=1", "takes true or false for stop_words, not '1'"),
    ],
)
def test_a_choice_that_cannot_be_read_is_one_line(choice, said, monkeypatch):
    monkeypatch.setitem(METHODS.ours, "titles", f"{__name__}:Titles")
    with pytest.raises(ConfigError, match=said):
        method(choice)
