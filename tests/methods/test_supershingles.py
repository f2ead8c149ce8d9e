"""Hashes of several shingles at once."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints.method import Text, WeightedSet, method
from dedup_middleware.methods.shingling import Shingles
from dedup_middleware.methods.supershingles import Fetterly, SuperShingles

ALPHABET = "".join(map(chr, range(0x4E00, 0x4E00 + 2000)))
WORDS = [f"word{n}" for n in range(400)]


def print_of(made: SuperShingles | Fetterly, text: str) -> WeightedSet:
    found = made.fingerprint(Text((text,)))
    assert found is not None
    return found


def supershingles(numbers: list[int]) -> WeightedSet:
    """Return six of Fetterly's, with these values at their places."""
    return WeightedSet({bytes([place, *[value] * 7]): 1.0 for place, value in enumerate(numbers)})


def test_of_a_sample_of_n_shingles_there_are_as_many_supershingles_as_runs() -> None:
    every = Shingles().fingerprint(Text((ALPHABET[:900],)))
    assert every is not None
    sampled = sum(int.from_bytes(name, "big") % 4 == 0 for name in every.weights)
    assert len(print_of(SuperShingles(), ALPHABET[:900]).weights) == sampled - 13
    assert len(print_of(SuperShingles(modulus=1, span=2), ALPHABET[:900]).weights) == len(every.weights) - 1


def test_a_short_text_has_no_supershingle() -> None:
    assert SuperShingles().fingerprint(Text((ALPHABET[:17],))) is None
    assert SuperShingles(modulus=1).fingerprint(Text((ALPHABET[:17],))) is None
    # 18 characters are 14 shingles, and these are one supershingle.
    assert len(print_of(SuperShingles(modulus=1), ALPHABET[:18]).weights) == 1


def test_one_supershingle_in_common_is_enough() -> None:
    made = SuperShingles()
    page = ALPHABET[:900]
    edited = page[:450] + "改" + page[450:]
    new, old = print_of(made, edited), print_of(made, page)
    assert new != old
    assert made.score(new, old) == 1
    assert made.is_alike(new, old)


def test_half_of_a_text_is_not_alike_to_the_whole() -> None:
    made = SuperShingles()
    assert not made.is_alike(print_of(made, ALPHABET[:450]), print_of(made, ALPHABET[:900]))


@pytest.mark.parametrize(("in_common", "score"), [(0, 0), (1, 0.25), (3, 0.75), (4, 1), (9, 1)])
def test_so_many_supershingles_must_be_in_common_as_are_asked_for(in_common: int, score: float) -> None:
    made = SuperShingles(shared=4)
    new = WeightedSet({bytes([n] * 8): 1.0 for n in range(10)})
    old = WeightedSet({bytes([n] * 8): 1.0 for n in range(10 - in_common, 20 - in_common)})
    assert made.score(new, old) == score
    assert made.is_alike(new, old) == (score == 1)


def test_a_text_with_fewer_supershingles_than_are_asked_for_has_no_fingerprint() -> None:
    assert SuperShingles(modulus=1, shared=3).fingerprint(Text((ALPHABET[:19],))) is None
    assert SuperShingles(modulus=1, shared=2).fingerprint(Text((ALPHABET[:19],))) is not None


def test_fetterly_has_six_supershingles_each_with_its_place() -> None:
    made = print_of(Fetterly(), " ".join(WORDS))
    assert sorted(name[0] for name in made.weights) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("equal", "alike"), [(0, False), (1, False), (2, True), (6, True)])
def test_two_equal_supershingles_of_six_are_alike(equal: int, alike: bool) -> None:  # noqa: FBT001
    made = Fetterly()
    new, old = supershingles([1] * 6), supershingles([1] * equal + [2] * (6 - equal))
    assert made.score(new, old) == pytest.approx(equal / 6)
    assert made.is_alike(new, old) is alike
    assert bool(set(made.keys(new)) & set(made.keys(old))) is alike


def test_supershingles_at_other_places_are_not_equal() -> None:
    assert Fetterly().score(supershingles([1, 2, 3, 4, 5, 6]), supershingles([2, 3, 4, 5, 6, 1])) == 0


def test_a_word_replaced_on_a_page_leaves_two_supershingles_equal_and_a_new_half_does_not() -> None:
    made = Fetterly()
    page = print_of(made, " ".join(WORDS))
    assert made.is_alike(print_of(made, " ".join([*WORDS[:200], "other", *WORDS[201:]])), page)
    assert not made.is_alike(print_of(made, " ".join([*WORDS[:200], *(f"new{n}" for n in range(200))])), page)


def test_fetterly_goes_by_the_order_of_words() -> None:
    made = Fetterly()
    assert made.score(print_of(made, " ".join(WORDS)), print_of(made, " ".join(reversed(WORDS)))) == 0


@given(st.lists(st.integers(1, 2), min_size=6, max_size=6), st.integers(1, 6))
def test_texts_that_are_alike_and_no_others_are_found_by_a_key(values: list[int], equal: int) -> None:
    made = Fetterly(equal=equal)
    new, old = supershingles(values), supershingles([1] * 6)
    assert bool(set(made.keys(new)) & set(made.keys(old))) == made.is_alike(new, old) == (values.count(1) >= equal)


def test_fetterly_looks_up_fifteen_pairs() -> None:
    keys = list(Fetterly().keys(supershingles([1] * 6)))
    assert len(set(keys)) == len(keys) == len([*combinations(range(6), 2)]) == 15


@pytest.mark.parametrize(
    "choice",
    [
        "supershingles:k=0",
        "supershingles:unit=letters",
        "supershingles:modulus=0",
        "supershingles:span=0",
        "supershingles:shared=0",
        "fetterly:k=0",
        "fetterly:equal=7",
    ],
)
def test_an_option_out_of_its_range_is_one_line(choice: str) -> None:
    option = choice.partition(":")[2].partition("=")[0]
    with pytest.raises(ConfigError, match=f"^{option} = "):
        method(choice)
