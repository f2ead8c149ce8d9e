from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.fingerprints.method import Bits, Text
from dedup_middleware.methods import p_simhash
from dedup_middleware.methods.charikar import Charikar, hash_of
from dedup_middleware.methods.learned import packed_before
from dedup_middleware.methods.p_simhash import PSimHash, bdr, overlap, pbdr

# "red" goes with "boat", as often as "boat" is there but for one text; "gull" goes with neither.
CORPUS = [Text((line,)) for line in ("red boat", "red boat boat", "boat", "gull", "gull gull")]
each_reduction = pytest.mark.parametrize("reduce", [pbdr, bdr])
some_places = st.lists(st.integers(0, 10_000), unique=True, max_size=300)


def bits_of(method: PSimHash, text: str) -> int:
    made = method.fingerprint(Text((text,)))
    assert isinstance(made, Bits)
    return made.values[0]


def fitted(**options: float) -> PSimHash:
    made = PSimHash(**options)
    made.fit(CORPUS)
    return made


@each_reduction
def test_a_word_that_occurs_once_sets_one_bit_of_its_places(reduce) -> None:
    assert all(reduce([place], 64).bit_count() == 1 for place in range(200))
    assert len({reduce([place], 64) for place in range(200)}) > 32


@each_reduction
def test_no_place_sets_no_bit(reduce) -> None:
    assert reduce([], 64) == 0


@given(some_places)
def test_a_bit_is_set_if_more_places_than_the_mean_are_mapped_to_it(places: list[int]) -> None:
    counts = Counter(pbdr([place], 8) for place in places)
    assert pbdr(places, 8) == sum(bit for bit, count in counts.items() if count > len(places) / 8)


@given(some_places)
def test_a_bit_is_set_by_parity_if_an_odd_number_of_places_are_mapped_to_it(places: list[int]) -> None:
    made = 0
    for place in places:
        made ^= bdr([place], 8)
    assert bdr(places, 8) == made


def test_overlap_is_the_smaller_counts_by_the_larger() -> None:
    # min 1 + 2, max 3 + 2 + 4.
    assert overlap({0: 1, 1: 2}, {0: 3, 1: 2, 2: 4}) == overlap({0: 3, 1: 2, 2: 4}, {0: 1, 1: 2}) == 3 / 9
    assert overlap({0: 1}, {0: 1}) == 1
    assert overlap({0: 1}, {1: 1}) == overlap({}, {}) == overlap({}, {1: 1}) == 0


def test_a_word_that_goes_with_a_heavier_one_weighs_less() -> None:
    weights = fitted().j_tidf(["red", "red", "boat", "gull"])
    # Red is heavier: 2 x ln(1 + 5/2). With boat: min 1 + 1, max 1 + 2 + 1.
    assert weights["red"] == pytest.approx(2 * math.log(1 + 5 / 2))
    assert weights["boat"] == pytest.approx(math.log(1 + 5 / 3) * (1 - 2 / 4))
    assert weights["gull"] == pytest.approx(math.log(1 + 5 / 2))


def test_without_a_corpus_all_words_weigh_by_their_number() -> None:
    assert PSimHash().j_tidf(["red", "red", "boat"]) == pytest.approx({"red": 2 * math.log(2), "boat": math.log(2)})


def test_only_the_heaviest_words_count() -> None:
    heavy = " ".join(f"heavy{n} heavy{n}" for n in range(20))
    assert len(PSimHash().j_tidf(f"{heavy} light".split())) == 20
    assert bits_of(PSimHash(), heavy) == bits_of(PSimHash(), f"{heavy} light")
    assert bits_of(PSimHash(top=21), heavy) != bits_of(PSimHash(top=21), f"{heavy} light")


def test_of_a_word_alone_the_hash_decides_from_mu_a_half_on_and_below_its_place() -> None:
    for mu in (0.6, 1, 1.4, 1.5, 1.9):
        assert bits_of(PSimHash(mu=mu), "boat") == hash_of("boat", 64)
    assert bits_of(PSimHash(mu=0.4), "boat") == pbdr([0], 64)


def test_with_mu_1_it_is_simhash() -> None:
    said = "red boat sails past grey pier"
    made = Charikar().fingerprint(Text((said,)))
    assert made == PSimHash(mu=1).fingerprint(Text((said,)))


def test_places_are_subtracted_above_mu_1() -> None:
    # Two words of one weight: where their hashes differ, the sum is -0.5 x both signs of places: -1 each for all but
    # two bits of 64.
    one, two = hash_of("red", 64), hash_of("boat", 64)
    places = pbdr([0], 64) | pbdr([1], 64)
    made = bits_of(PSimHash(mu=1.5), "red boat")
    assert made == one & two | (one ^ two) & ~places


def test_where_words_stand_means_something_if_they_occur_often() -> None:
    one, other = "red boat " * 30 + "gull " * 60, "gull " * 60 + "boat red " * 30
    assert bits_of(PSimHash(), one) != bits_of(PSimHash(), other)
    assert bits_of(PSimHash(mu=1), one) == bits_of(PSimHash(mu=1), other)
    assert bits_of(PSimHash(), one) != bits_of(PSimHash(positions="bdr"), one)


def test_what_is_learned_comes_back() -> None:
    made, other = fitted(), PSimHash()
    other.recall(made.learned())
    words = ["red", "red", "boat", "gull", "pier"]
    assert other.j_tidf(words) == made.j_tidf(words)
    assert other.learned() == made.learned()


def test_co_occurrence_is_learned_from_so_many_texts(monkeypatch) -> None:
    monkeypatch.setattr(p_simhash, "MOST_TEXTS", 1)
    weights = fitted().j_tidf(["red", "red", "boat"])
    assert weights["boat"] == pytest.approx(math.log(1 + 5 / 3))


@pytest.mark.parametrize(
    "learned",
    [
        b"",
        b"garbage",
        PSimHash().learned()[:-3],
        PSimHash().learned()[:4],
        packed_before(b"", {}),
        packed_before(b"", []),
        packed_before(PSimHash().learned(), {"boat": [[1]]}),
    ],
)
def test_what_nobody_has_learned_cannot_be_recalled(learned: bytes) -> None:
    with pytest.raises(UnreadableError):
        PSimHash().recall(learned)


@pytest.mark.parametrize(
    "options",
    [{"bits": 4}, {"distance": 33}, {"top": 0}, {"top": 101}, {"mu": -0.1}, {"mu": 11}, {"positions": "mean"}],
)
def test_options_that_make_no_sense_are_refused(options) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        PSimHash(**options)


def test_options_set_the_distance() -> None:
    assert PSimHash().threshold == 1 - 10 / 64
    assert PSimHash(bits=128, distance=3).threshold == 1 - 3 / 128


def test_a_text_of_stop_words_has_no_bits() -> None:
    assert PSimHash().fingerprint(Text(("The of and",))) is None
