from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.fingerprints.method import Bits, Text
from dedup_middleware.methods.charikar import hash_of
from dedup_middleware.methods.e_simhash import ESimHash, entropy
from dedup_middleware.methods.learned import packed_before

CORPUS = [Text((line,)) for line in ("red boat sails", "blue boat sails", "green boat sails", "grey boat sails")]


def bits_of(method: ESimHash, text: str) -> int:
    made = method.fingerprint(Text((text,)))
    assert isinstance(made, Bits)
    return made.values[0]


def test_a_word_alone_has_its_hash_and_its_place_by_exclusive_or() -> None:
    assert bits_of(ESimHash(), "boat") == hash_of("boat", 64) ^ 0
    # Of three words of one weight, two decide.
    one, two, three = hash_of("red", 64), hash_of("boat", 64) ^ 1, hash_of("sails", 64) ^ 2
    assert bits_of(ESimHash(), "red boat sails") == one & two | one & three | two & three


def test_stop_words_have_no_place() -> None:
    assert bits_of(ESimHash(), "The red boat was sails") == bits_of(ESimHash(), "red boat sails")


def test_places_touch_only_as_many_bits_as_their_numbers_have() -> None:
    words = [f"word{n}" for n in range(40)]
    one, moved = (bits_of(ESimHash(), " ".join(order)) for order in (words, reversed(words)))
    assert 0 < one ^ moved < 64


def test_the_places_of_a_word_share_its_weight() -> None:
    made = ESimHash()
    assert made.weights(["boat", "boat", "sails"]) == pytest.approx({"boat": 2 * math.log(2), "sails": math.log(2)})
    # Three parts of one weight each: none has more to say than the others.
    one, two, three = hash_of("boat", 64), hash_of("boat", 64) ^ 1, hash_of("sails", 64) ^ 2
    assert bits_of(made, "boat boat sails") == one & two | one & three | two & three


def test_a_word_between_many_others_weighs_more() -> None:
    made = ESimHash()
    made.fit(CORPUS)
    # Four words stand before "boat", as often each: 2 bits; one after it: 0 bits. The mean is 1.
    idf = math.log(1 + 4 / 4)
    assert made.weights(["boat", "sails"]) == pytest.approx({"boat": idf * (1 + 1), "sails": idf})


def test_an_unknown_word_keeps_its_tf_idf() -> None:
    made = ESimHash()
    made.fit(CORPUS)
    assert made.weights(["yawl"]) == pytest.approx({"yawl": math.log(1 + 4)})


@given(st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_entropy_is_greatest_where_all_neighbours_are_as_common(counts: list[int]) -> None:
    made = entropy(Counter({str(n): count for n, count in enumerate(counts)}))
    assert -1e-9 <= made <= math.log2(len(counts)) + 1e-9
    assert entropy(Counter({str(n): 3 for n in range(len(counts))})) == pytest.approx(math.log2(len(counts)))


def test_what_is_learned_comes_back() -> None:
    made, other = ESimHash(), ESimHash()
    made.fit(CORPUS)
    other.recall(made.learned())
    words = ["red", "boat", "sails", "yawl"]
    assert other.weights(words) == made.weights(words)
    assert other.learned() == made.learned()


@pytest.mark.parametrize(
    "learned",
    [
        b"",
        b"garbage",
        ESimHash().learned()[:-3],
        ESimHash().learned()[:4],
        packed_before(b"", {}),
        packed_before(b"", []),
        packed_before(ESimHash().learned(), {"boat": "much"}),
    ],
)
def test_what_nobody_has_learned_cannot_be_recalled(learned: bytes) -> None:
    with pytest.raises(UnreadableError):
        ESimHash().recall(learned)


@pytest.mark.parametrize("options", [{"bits": 4}, {"bits": 129}, {"distance": -1}, {"distance": 33}])
def test_options_that_make_no_sense_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        ESimHash(**options)


def test_options_set_size_and_distance() -> None:
    assert ESimHash(bits=128, distance=3).threshold == 1 - 3 / 128
    assert ESimHash().threshold == 1 - 10 / 64


def test_a_text_of_stop_words_has_no_bits() -> None:
    assert ESimHash().fingerprint(Text(("The of and",))) is None
