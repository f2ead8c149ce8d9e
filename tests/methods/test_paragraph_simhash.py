"""A SimHash for each paragraph."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import story, zh_story

from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.fingerprints.method import Bits, Text
from dedup_middleware.methods.paragraph_simhash import (
    JOINED,
    MOST_PARAGRAPHS,
    PROMINENT,
    ParagraphSimHash,
    heaviest,
    in_lists,
    paragraphs_of,
    sentence_weight,
    simhash,
)


def bits(text: Text, **options: object) -> Bits:
    made = ParagraphSimHash(**options).fingerprint(text)  # type: ignore[arg-type]
    assert isinstance(made, Bits)
    return made


# --- sentences


def test_of_weights_of_80_70_65_and_60_percent_the_first_two_are_chosen() -> None:
    assert heaviest([0.8, 0.7, 0.65, 0.6], 2) == [0, 1]


def test_the_chosen_keep_their_order_and_of_equals_the_first_is_chosen() -> None:
    assert heaviest([0.1, 0.5, 0.9, 0.5], 2) == [1, 2]
    assert heaviest([0.5], 2) == [0]


def test_length_relevance_and_place_weigh_3_4_and_3_tenths() -> None:
    parts = [sentence_weight(1, 0, 0), sentence_weight(0, 1, 0), sentence_weight(0, 0, 1)]
    assert parts == [0.3, 0.4, 0.3]
    assert sentence_weight(1, 1, 1) == pytest.approx(1)


FIRST = "The harbour was quiet this morning."
MIDDLE = "Some gulls were sitting on the wall."
FERRY = "One ferry left its pier in the fog again."
LAST = "It rained after noon today."


def test_the_first_and_the_last_sentence_are_the_feature_where_none_says_more() -> None:
    whole = bits(Text((f"{FIRST} {MIDDLE} {LAST}", story(1)[0])))
    assert whole.values[0] == bits(Text((f"{FIRST} {LAST}", story(1)[0])), distance=0).values[0]


def test_a_sentence_on_the_topic_takes_the_place_of_the_first_or_last() -> None:
    other = "Somewhere else entirely, people were asleep."
    chosen = [
        bits(Text((other, f"{FIRST} {FERRY} {LAST}"), title), sentences=1).values[1] for title in ("", "ferry " * 50)
    ]
    assert chosen == [bits(Text((other, sentence)), sentences=1).values[1] for sentence in (FIRST, FERRY)]


def test_a_sentence_of_fewer_than_20_characters_tells_nothing() -> None:
    assert ParagraphSimHash().fingerprint(Text(("Nineteen letters on.", "No."))) is not None
    assert ParagraphSimHash().fingerprint(Text(("Nineteen letters o.", "No."))) is None
    assert ParagraphSimHash(least=3).fingerprint(Text(("Nineteen letters o.", "No."))) is not None
    with_caption = Text((story(1)[0], "By our staff.", story(1)[1]))
    assert len(bits(with_caption).values) == 2


# --- paragraphs


def test_paragraphs_are_those_of_the_tags() -> None:
    assert [paragraph for paragraph, _ in paragraphs_of(Text(("One\nand.", "Two.")))] == ["One\nand.", "Two."]


def test_a_single_paragraph_is_cut_by_its_lines() -> None:
    assert [paragraph for paragraph, _ in paragraphs_of(Text(("One and.\n\nTwo.\n",)))] == ["One and.", "Two."]


def test_a_single_line_is_cut_between_sentences() -> None:
    line = " ".join(story(1))
    cut = [paragraph for paragraph, _ in paragraphs_of(Text((line,)))]
    assert " ".join(cut) == line
    assert len(cut) > 2
    assert all(len(paragraph) >= JOINED for paragraph in cut[:-1])
    assert all(paragraph.endswith(".") for paragraph in cut)


def test_the_first_paragraph_and_those_under_a_heading_stand_out() -> None:
    text = Text(("a", "b", "c", "d"), elements=("main/p", "main/h2", "main/p", "main/p"))
    assert [prominence for _, prominence in paragraphs_of(text)] == [PROMINENT, 1, PROMINENT, 1]
    assert [prominence for _, prominence in paragraphs_of(text._replace(elements=()))] == [PROMINENT, 1, 1, 1]


def test_an_item_weighs_by_the_type_of_its_list_and_half_as_much_more_on_each_level_below() -> None:
    paths = ["main/p", "main/ol/li", "ul/li/p", "ul/li/ol/li", "ol/li/ol/li/ul/li"]
    assert [in_lists(path) for path in paths] == [1, 1.25, 1.125, 1.125, 1 + 0.125 / 4]


def test_what_stands_out_makes_other_bits_of_its_paragraph_and_of_no_other() -> None:
    told = tuple(story(1))
    plain, headed = bits(Text(told, elements=("p",) * 6)), bits(Text(told, elements=("p", "p", "h2", "p", "p", "p")))
    assert [a != b for a, b in zip(plain.values, headed.values, strict=True)] == [False] * 3 + [True] + [False] * 2


def test_paragraphs_after_a_thousand_are_left_out() -> None:
    text = Text(tuple(f"This is line {n} of a very long page." for n in range(MOST_PARAGRAPHS + 5)))
    assert len(bits(text).values) == MOST_PARAGRAPHS


# --- bits


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(1, 10**9)), max_size=20))
def test_a_bit_is_set_where_more_than_half_of_the_weight_has_it(pairs: list[tuple[int, int]]) -> None:
    sums = [sum(weight if value >> n & 1 else -weight for value, weight in pairs) for n in range(64)]
    assert simhash(pairs, 64) == sum(1 << n for n, votes in enumerate(sums) if votes > 0)


def test_the_hash_and_its_bits_can_be_chosen() -> None:
    text = Text(tuple(story(1)))
    made = {(size, name): bits(text, bits=size, hash=name) for size in (64, 128) for name in ("blake2b", "murmur3")}
    assert len({print_.values for print_ in made.values()}) == 4
    assert all(print_.size == size for (size, _), print_ in made.items())
    assert all(value.bit_length() <= size for (size, _), print_ in made.items() for value in print_.values)


# --- what is alike


def test_two_bits_are_within_a_distance_of_three() -> None:
    one, other = Bits((0b10101010,), 64), Bits((0b10001011,), 64)
    assert ParagraphSimHash(bits=64, distance=3).is_alike(one, other)
    assert ParagraphSimHash(bits=64, distance=2).is_alike(one, other)
    assert not ParagraphSimHash(bits=64, distance=1).is_alike(one, other)


def test_one_paragraph_too_far_or_too_many_is_enough() -> None:
    method = ParagraphSimHash(distance=3)
    page = Bits((0, 2**100 - 1), 128)
    assert method.is_alike(page, Bits((0b111, 2**100 - 1), 128))
    assert not method.is_alike(page, Bits((0b1111, 2**100 - 1), 128))
    assert not method.is_alike(page, Bits((0,), 128))


@pytest.mark.parametrize("ordered", [True, False])
def test_paragraphs_in_another_order_are_alike_only_without_order(ordered: bool) -> None:  # noqa: FBT001
    method = ParagraphSimHash(ordered=ordered, distance=3)
    told = zh_story(1)
    one, other = (method.fingerprint(Text(tuple(text))) for text in (told, [*told[:1], *told[:0:-1]]))
    assert one is not None
    assert other is not None
    assert method.is_alike(one, other) != ordered
    assert not method.is_alike(one, Bits(one.values[:-1], 128))  # type: ignore[union-attr]
    assert not method.is_alike(one, Bits((*one.values[:-1], one.values[-1] ^ 15), 128))  # type: ignore[union-attr]


values = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4)


@given(values, st.lists(st.sets(st.integers(0, 63), max_size=3), min_size=4, max_size=4), st.booleans(), st.randoms())
def test_what_is_alike_has_a_key_in_common(old: list[int], flips, ordered: bool, chance) -> None:  # noqa: FBT001
    method = ParagraphSimHash(bits=64, distance=3, ordered=ordered)
    new = [value ^ sum(1 << n for n in places) for value, places in zip(old, flips, strict=False)]
    if not ordered:
        chance.shuffle(new)
    one, other = Bits(tuple(new), 64), Bits(tuple(old), 64)
    assert method.is_alike(one, other)
    assert {*method.keys(one)} & {*method.keys(other)}


def test_a_common_word_weighs_less_once_it_is_known() -> None:
    method = ParagraphSimHash()
    text = Text(tuple(story(1)))
    before = method.fingerprint(text)
    method.fit([Text(tuple(story(number))) for number in range(20)])
    assert method.fingerprint(text) != before
    other = ParagraphSimHash()
    other.recall(method.learned())
    assert other.fingerprint(text) == method.fingerprint(text)


def test_what_was_not_learned_cannot_be_recalled() -> None:
    with pytest.raises(UnreadableError):
        ParagraphSimHash().recall(b"no frequencies")


@pytest.mark.parametrize(
    "wrong", [{"bits": 96}, {"distance": 128}, {"least": 0}, {"sentences": 0}, {"hash": "md5"}, {"distance": -1}]
)
def test_what_an_option_cannot_be(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        ParagraphSimHash(**wrong)  # type: ignore[arg-type]


def test_stories_that_share_no_sentence_are_far_apart() -> None:
    method = ParagraphSimHash()
    prints = [bits(Text(tuple(zh_story(number)))) for number in range(5)]
    assert all(method.score(one, other) < 0.75 for one, other in pairwise(prints))
