from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.fingerprints.method import Bits, Text
from dedup_middleware.methods.charikar import Charikar, hash_of, signs, simhash_of, tf_idf
from dedup_middleware.methods.wording import DocumentFrequencies

LINE = "Fishermen repaired nets beside the quiet harbour while gulls circled above wooden boats waiting patiently."
vectors = st.lists(
    st.tuples(st.integers(0, 255), st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda w: round(w * 8) / 8)),
    max_size=30,
)


def test_one_word_of_weight_a_half_adds_it_where_its_bit_is_1_and_takes_it_where_0() -> None:
    assert f"{signs([(0b1010, 0.5)], 4):04b}" == "1010"


def test_two_of_eight_bits_differ() -> None:
    method = Charikar(bits=8, distance=2)
    one, other = Bits((0b10101010,), 8), Bits((0b10001011,), 8)
    assert method.score(one, other) == 1 - 2 / 8
    assert method.is_alike(one, other)
    assert not Charikar(bits=8, distance=1).is_alike(one, other)


def test_a_sum_of_0_is_no_bit() -> None:
    assert signs([(0b1010, 0.1), (0b0101, 0.1)], 4) == 0
    assert signs([(0b1010, 0.1), (0b1010, -0.1)], 4) == 0
    assert signs([], 4) == 0


def test_the_heavier_word_decides_where_two_differ() -> None:
    assert signs([(0b1100, 2.0), (0b1010, 1.5)], 4) == 0b1100


@given(vectors)
def test_a_bit_is_set_where_the_sum_of_the_signs_is_above_0(pairs: list[tuple[int, float]]) -> None:
    made = signs(pairs, 8)
    total = math.fsum(abs(weight) for _, weight in pairs)
    for bit in range(8):
        column = math.fsum(weight if ones >> bit & 1 else -weight for ones, weight in pairs)
        # Nearer to 0 than this, rounding may decide.
        if abs(column) > total * 2**-30 * len(pairs):
            assert made >> bit & 1 == (column > 0)


@given(vectors, st.randoms(use_true_random=False), st.integers(-20, 20))
def test_neither_order_nor_a_power_of_two_changes_a_bit(pairs: list[tuple[int, float]], chance, power: int) -> None:
    mixed = [(ones, math.ldexp(weight, power)) for ones, weight in pairs]
    chance.shuffle(mixed)
    assert signs(mixed, 8) == signs(pairs, 8)


def test_a_single_word_has_the_bits_of_its_hash() -> None:
    for bits in (24, 64, 128):
        assert simhash_of({"ferry": 0.3}, bits) == hash_of("ferry", bits) < 1 << bits


def test_tf_idf_counts_a_word_and_the_texts_without_it() -> None:
    frequencies = DocumentFrequencies()
    frequencies.fit([["boat", "net"], ["boat"], ["boat", "gull"], ["gull"]])
    weights = tf_idf(["boat", "gull", "gull", "pier"], frequencies)
    assert weights == pytest.approx({"boat": math.log(1 + 4 / 3), "gull": 2 * math.log(3), "pier": math.log(5)})


def test_order_of_words_means_nothing() -> None:
    made = Charikar()
    assert made.fingerprint(Text((" ".join(reversed(LINE.split())),))) == made.fingerprint(Text((LINE,)))


def test_the_rarer_of_two_words_decides() -> None:
    made = Charikar()
    made.fit([Text((f"Harbour number{n}",)) for n in range(5)])
    assert made.fingerprint(Text(("Harbour gulls harbour",))) == Bits((hash_of("gulls", 64),), 64)
    assert Charikar().fingerprint(Text(("Harbour gulls harbour",))) == Bits((hash_of("harbour", 64),), 64)


def test_options_set_size_and_distance() -> None:
    one = Charikar(bits=128, distance=10)
    assert one.threshold == 1 - 10 / 128
    made = one.fingerprint(Text((LINE,)))
    assert isinstance(made, Bits)
    assert made.size == 128
    assert made.values[0] >> 64


@pytest.mark.parametrize("options", [{"bits": 4}, {"bits": 129}, {"distance": -1}, {"distance": 33}])
def test_options_that_make_no_sense_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        Charikar(**options)


@pytest.mark.parametrize("text", [Text(()), Text(("The of and",)), Text(("…!?",))])
def test_a_text_of_stop_words_has_no_bits(text: Text) -> None:
    assert Charikar().fingerprint(text) is None


def test_what_nobody_has_learned_cannot_be_recalled() -> None:
    with pytest.raises(UnreadableError):
        Charikar().recall(b"garbage")
