from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prose import story, zh_story

from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints.method import Bits, Text, WeightedSet
from dedup_middleware.methods.segments import Segments, cut
from dedup_middleware.text.clauses import reduced

TEN = [f"Sentence {letter * 8} of ten." for letter in "abcdefghij"]


def text_of(sentences: list[str]) -> Text:
    return Text((" ".join(sentences),))


def alike(segments: Segments, one: list[str], other: list[str]) -> bool:
    first, second = segments.fingerprint(text_of(one)), segments.fingerprint(text_of(other))
    assert first is not None
    assert second is not None
    return segments.is_alike(first, second)


def test_six_of_ten_segments_must_be_equal() -> None:
    others = [[s.replace("Sentence", "Sequence") for s in TEN[:changed]] + TEN[changed:] for changed in range(11)]
    assert [n for n, other in enumerate(others) if alike(Segments(), TEN, other)] == [0, 1, 2, 3, 4]


def test_how_many_are_equal_is_the_score() -> None:
    one, other = (Segments().fingerprint(text_of(s)) for s in (TEN, TEN[:7] + [s + " No!" for s in TEN[7:]]))
    assert Segments().score(one, other) == pytest.approx(0.7)


def test_both_numbers_are_options() -> None:
    other = [*TEN[:8], "Sequence iiiiiiii of ten.", "Sequence jjjjjjjj of ten."]
    assert alike(Segments(segments=10, equal=8), TEN, other)
    assert not alike(Segments(segments=10, equal=9), TEN, other)
    assert [len(cut(text_of(TEN), count)) for count in (1, 2, 5, 10)] == [1, 2, 5, 10]


def test_a_segment_may_stand_anywhere() -> None:
    assert alike(Segments(segments=10, equal=10), TEN, TEN[5:] + TEN[:5])


def test_case_and_marks_do_not_count() -> None:
    assert alike(Segments(segments=10, equal=10), TEN, [s.upper().replace(".", "!") for s in TEN])


@pytest.mark.parametrize("tell", [story, zh_story])
def test_a_word_more_leaves_a_text_alike(tell) -> None:
    text = Text(tuple(tell(1)))
    longer = Text((text.paragraphs[0][:-1] + " 又及 walrus" + text.paragraphs[0][-1:], *text.paragraphs[1:]))
    assert cut(text, 10) != cut(longer, 10)
    method = Segments()
    assert method.is_alike(method.fingerprint(text), method.fingerprint(longer))


def test_a_text_of_two_sentences_has_two_segments() -> None:
    assert len(cut(text_of(TEN[:2]), 10)) == 2
    assert not alike(Segments(), TEN[:2], TEN[1:3])


@pytest.mark.parametrize(("segments", "equal"), [(0, 1), (1001, 6), (10, 0), (10, 11)])
def test_numbers_that_cannot_be_are_mistakes(segments: int, equal: int) -> None:
    with pytest.raises(ConfigError):
        Segments(segments=segments, equal=equal)


def test_another_kind_of_fingerprint_is_not_alike() -> None:
    assert Segments().score(WeightedSet({}), WeightedSet({})) == 0
    assert Segments().score(Bits((1,), 8), Bits((1,), 8)) == 0


@settings(max_examples=50)
@given(st.lists(st.text("ab 。.!市\ud800", max_size=12), max_size=8), st.integers(1, 12))
def test_the_segments_are_the_text(paragraphs: list[str], count: int) -> None:
    segments = cut(Text(tuple(paragraphs)), count)
    assert "".join(segments) == "".join(reduced("\n".join(paragraphs)).split("\n"))
    assert len(segments) <= count
    assert all(segments)
