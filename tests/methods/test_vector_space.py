"""Cosines of words and of characters."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.fingerprints.method import Text, WeightedSet, method, packed, unpacked
from dedup_middleware.methods.vector_space import CharacterVectors, WordVectors


def text(*paragraphs: str) -> Text:
    return Text(paragraphs)


def print_of(made: WordVectors | CharacterVectors, *paragraphs: str) -> WeightedSet:
    found = made.fingerprint(text(*paragraphs))
    assert found is not None
    return found


def cosine(made: WordVectors | CharacterVectors, new: str, old: str) -> float:
    return made.score(print_of(made, new), print_of(made, old))


def test_the_cosine_of_characters_is_that_of_how_often_each_occurs() -> None:
    # (2, 1, 0) and (1, 2, 2).
    assert cosine(CharacterVectors(), "海海山", "山海天，天山") == pytest.approx(4 / (math.sqrt(5) * 3))


def test_characters_in_another_order_are_alike_and_other_characters_are_not() -> None:
    assert cosine(CharacterVectors(), "狗咬人", "人咬狗") == pytest.approx(1)
    assert cosine(CharacterVectors(), "狗咬人", "猫抓鼠") == 0


def test_where_words_have_spaces_a_word_is_one_character() -> None:
    assert cosine(CharacterVectors(), "ferry boat", "boat ferry") == pytest.approx(1)
    assert cosine(CharacterVectors(), "tide", "edit") == 0


def test_unfitted_all_words_weigh_the_same() -> None:
    # (2, 1, 0) and (1, 2, 2).
    made = WordVectors()
    assert cosine(made, "ferry ferry boat", "boat ferry boat goat goat") == pytest.approx(4 / (math.sqrt(5) * 3))


def test_stop_words_have_no_dimension() -> None:
    made = WordVectors()
    assert print_of(made, "the ferry and the boat") == print_of(made, "ferry, boat")
    assert made.fingerprint(text("and the", "but not 的")) is None
    assert CharacterVectors().fingerprint(text("and the")) is not None


CORPUS = (text("ferry rust"), text("ferry goat"), text("ferry snow"), text("ferry goat ferry"))


def test_a_word_weighs_its_count_times_the_logarithm_of_how_rare_it_is() -> None:
    made = WordVectors()
    made.fit(CORPUS)
    # "ferry" stands in all four texts, "goat" in two, "rust" in one, and so does what is unknown.
    weights = [made.fingerprint(text(words)) for words in ("ferry", "goat", "rust", "unheard", "goat goat goat")]
    assert [next(iter(found.weights.values())) for found in weights if found] == pytest.approx(
        [math.log(5 / 4), math.log(5 / 2), math.log(5), math.log(5), 3 * math.log(5 / 2)]
    )


def test_rare_words_in_common_tell_more_than_frequent_ones() -> None:
    made = WordVectors()
    made.fit(CORPUS)
    assert cosine(made, "ferry rust", "goat rust") > 0.5 > cosine(made, "ferry rust", "ferry snow")


def test_texts_are_looked_up_by_their_rarest_words() -> None:
    frequent = " ".join(f"frequent{n}" for n in range(20))
    made = WordVectors(threshold=0.01)
    made.fit([text(frequent), text(frequent, "rust"), text(frequent)])
    (rust,) = print_of(made, "rust").weights
    assert next(iter(made.keys(print_of(made, frequent, "rust")))) == rust


def test_texts_are_looked_up_by_stop_words_last() -> None:
    made = CharacterVectors(threshold=0.01)
    stop, telling = print_of(made, "的了和是在也都").weights, print_of(made, "山海天河雨雪风").weights
    assert set(list(made.keys(WeightedSet({**stop, **telling})))[:7]) == set(telling)


def test_of_ten_equal_dimensions_two_are_looked_up_at_nine_tenths() -> None:
    # Those left have a length of √0.8, too little; nine would have √0.9.
    assert len(list(CharacterVectors().keys(WeightedSet({bytes([n] * 8): 3.0 for n in range(10)})))) == 2


def test_what_words_have_been_learned_another_one_knows() -> None:
    made, other = WordVectors(), WordVectors()
    made.fit(CORPUS)
    other.recall(made.learned())
    assert other.fingerprint(CORPUS[1]) == made.fingerprint(CORPUS[1]) != WordVectors().fingerprint(CORPUS[1])


@pytest.mark.parametrize("garbage", [b"", b"garbage", WordVectors().learned()[:-3]])
def test_garbage_is_no_frequencies(garbage: bytes) -> None:
    with pytest.raises(UnreadableError, match="frequencies of words cannot be read"):
        WordVectors().recall(garbage)


VECTORS = st.dictionaries(st.integers(0, 12).map(lambda n: bytes([n] * 8)), st.floats(0.25, 50), min_size=1)


@given(new=VECTORS, old=VECTORS, threshold=st.sampled_from([0.01, 0.3, 0.6, 0.9]))
def test_texts_that_are_alike_are_found_by_a_key(
    new: dict[bytes, float], old: dict[bytes, float], threshold: float
) -> None:
    made = CharacterVectors(threshold=threshold)
    one, other = WeightedSet(new), WeightedSet(old)
    if made.is_alike(one, other):
        assert set(made.keys(one)) & set(made.keys(other))


@given(VECTORS, st.floats(0.9, 1.1))
def test_the_length_of_a_vector_does_not_matter_nor_do_the_bits_that_stores_keep(
    weights: dict[bytes, float], factor: float
) -> None:
    made = CharacterVectors(threshold=1)
    one = WeightedSet(weights)
    longer = unpacked(packed(WeightedSet({name: weight * factor for name, weight in weights.items()})))
    assert made.is_alike(one, longer)
    assert set(made.keys(one)) & set(made.keys(longer))


@pytest.mark.parametrize("choice", ["vectors:threshold=0", "characters:threshold=1.5", "vectors:threshold=nan"])
def test_an_option_out_of_its_range_is_one_line(choice: str) -> None:
    with pytest.raises(ConfigError, match=r"^threshold = "):
        method(choice)
