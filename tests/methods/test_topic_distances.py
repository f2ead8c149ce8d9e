"""How positions count, which distances follow from them, and which texts repeat which."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints.method import Text, WeightedSet, packed, unpacked
from dedup_middleware.methods.topic_distances import (
    MAX_VECTORS,
    MAX_WORDS,
    TopicDistances,
    as_print,
    distances,
    positions,
)

TOPIC = ("郑州", "黄河", "游览区")
# The published positions, and the distances that follow from them by the definition.
PLACES = {
    "A": [[8, 73], [1, 13], [3, 15, 45, 80]],
    "B": [[23, 42, 89], [4, 57, 91, 124, 138], [140]],
    "C": [[32, 71], [73], [75]],
    "D": [[3], [9], [11, 40, 73]],
}
DISTANCES = {
    "A": [9, 21, 51, 86, 15, 7, 37, 72, 74, 86, 116, 151, 70, 62, 92, 127],
    "B": [155, 117, 117, 117, 117, 174, 98, 98, 98, 98, 221, 115, 51, 51, 51],
    "C": [43, 4],
    "D": [8, 37, 70],
}
# With the misprints.
PRINTED = DISTANCES | {
    "A": [9, 21, 51, 86, 15, 7, 37, 73, 74, 86, 116, 151, 70, 62, 92, 127],
    "B": [155, 115, 117, 107, 117, 174, 98, 98, 98, 98, 221, 115, 51, 51],
}


def numbers(found: WeightedSet | None) -> set[int]:
    assert found is not None
    return {int.from_bytes(name[4:], "big") for name in found.weights}


def units(text: str) -> list[str]:
    """Return the characters of *text*, its numbers and words marked by spaces."""
    return text.split()


@pytest.mark.parametrize("name", PLACES)
def test_the_published_positions_have_the_published_distances(name: str) -> None:
    assert distances(PLACES[name]) == DISTANCES[name]


@pytest.mark.parametrize("lists", [DISTANCES, PRINTED], ids=["defined", "printed"])
def test_text_d_repeats_text_a_and_no_other_repeats_another(lists: dict[str, list[int]]) -> None:
    method = TopicDistances(topic=" ".join(TOPIC))
    prints = {name: as_print(TOPIC, each) for name, each in lists.items()}
    pairs = itertools.permutations("ABCD", 2)
    assert [new + old for new, old in pairs if method.is_alike(prints[new], prints[old])] == ["DA"]


def test_with_every_occurrence_in_the_published_texts_text_c_repeats_text_a_too() -> None:
    counted = DISTANCES | {
        "A": distances([[8, 82], [1, 14, 28], [3, 16, 45, 89]]),
        "D": distances([[3, 75], [9, 23], [11, 40, 82]]),
    }
    method = TopicDistances(topic=" ".join(TOPIC))
    prints = {name: as_print(TOPIC, found) for name, found in counted.items()}
    pairs = [pair for pair in itertools.permutations("ABCD", 2) if method.is_alike(*map(prints.__getitem__, pair))]
    assert pairs == [("C", "A"), ("D", "A")]


def test_the_score_is_the_share_of_the_new_distances_that_agree() -> None:
    method = TopicDistances(topic="a b")
    old = as_print("ab", [10, 50])
    assert method.score(as_print("ab", [10, 14, 15, 46, 55]), old) == pytest.approx(3 / 5)
    assert method.score(old, as_print("ab", [10, 14, 15, 46, 55])) == 1


def test_marks_and_numbers_are_one_position_each() -> None:
    text = Text(("渡船，28.64元。港口",))
    # One for each of: 渡 船 , 28.64 元 。 港.
    assert numbers(TopicDistances(topic="渡船 港口").fingerprint(text)) == {7 - 1}


def test_words_of_other_scripts_are_one_position_each_and_found_whole() -> None:
    text = Text(("Ferries, a ferry", "and the harbour."))
    # One for each of: Ferries , a ferry and the harbour.
    assert numbers(TopicDistances(topic="ferry HARBOUR").fingerprint(text)) == {7 - 4}
    assert TopicDistances(topic="ferr harbour").fingerprint(text) is None


def test_positions_count_from_one_and_may_overlap() -> None:
    assert positions(["渡船", "渡船站", "船站"], units("新 渡 船 站 , 渡 船")) == [[2, 6], [2], [3]]


def test_a_word_that_does_not_occur_is_left_out_of_the_vectors() -> None:
    text = Text(("渡船停在港口",))
    assert numbers(TopicDistances(topic="渡船 山羊 港口").fingerprint(text)) == {4}


def test_fewer_than_two_words_in_the_text_are_no_fingerprint() -> None:
    assert TopicDistances(topic="渡船 山羊").fingerprint(Text(("渡船停在港口",))) is None
    assert TopicDistances().fingerprint(Text(("渡船停在港口",))) is None


def test_without_a_topic_the_words_of_the_title_are_it_and_stop_words_only_if_needed() -> None:
    body = ("The ferry is late, for the harbour is closed",)
    method = TopicDistances()
    assert method.fingerprint(Text(body, "The ferry and the harbour")) == as_print(["ferry", "harbour"], [6])
    assert method.fingerprint(Text(body, "The goat is late")) == as_print(
        ["the", "goat", "is", "late"], distances([[1, 7], [3, 9], [4]])
    )


def test_texts_under_different_titles_are_different_though_their_distances_agree() -> None:
    method = TopicDistances()
    new = method.fingerprint(Text(("A ferry in the harbour",), "Ferry, harbour"))
    old = method.fingerprint(Text(("A goat in the garden",), "Goat, garden"))
    assert numbers(new) == numbers(old)
    assert new is not None
    assert old is not None
    assert method.score(new, old) == 0


def test_the_interval_is_an_option() -> None:
    new, old = as_print(TOPIC, [10]), as_print(TOPIC, [13])
    for a, b, alike in ((1, 4, True), (1, 2, False), (3, 3, True), (4, 9, False)):
        assert TopicDistances(topic="x y", a=a, b=b).is_alike(new, old) is alike
    assert TopicDistances(topic="x y", a=4, b=9).is_alike(new, new)


@pytest.mark.parametrize("options", [{"topic": "渡船"}, {"a": 0}, {"a": 5}, {"b": 0}, {"b": 10_001}])
def test_options_that_cannot_work_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=r"^(topic|a|b) = "):
        TopicDistances(**options)  # type: ignore[arg-type]


def test_a_hostile_text_has_a_bounded_number_of_vectors() -> None:
    topic = [f"w{chr(97 + n)}" for n in range(20)]
    found = TopicDistances(topic=" ".join(topic)).fingerprint(Text((" ".join(topic * 1000),)))
    assert found is not None
    assert 1 <= len(found.weights) <= MAX_VECTORS
    # One vector only, for two positions of each word would make 2 ** 16.
    assert found == as_print(topic[:MAX_WORDS], [MAX_WORDS - 1])


@given(st.lists(st.lists(st.integers(1, 10_000), min_size=1, max_size=40), min_size=2, max_size=16))
def test_however_many_positions_there_are_the_vectors_are_bounded(places: list[list[int]]) -> None:
    assert 1 <= len(distances(places)) <= MAX_VECTORS


@given(
    st.sets(st.integers(0, 300), min_size=1, max_size=8), st.sets(st.integers(0, 300), max_size=8), st.integers(1, 9)
)
def test_texts_that_are_alike_share_a_key_and_survive_the_store(new: set[int], more: set[int], b: int) -> None:
    method = TopicDistances(topic="x y", b=b)
    nearby = as_print("xy", {number + number % (b + 1) for number in new} | more)
    made = as_print("xy", new)
    assert method.is_alike(made, nearby)
    assert set(method.keys(made)) & set(method.keys(nearby))
    assert method.is_alike(unpacked(packed(made)), unpacked(packed(nearby)))
