"""Long sentences, among pages of about one length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import story

from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints.method import Print, Text, packed, unpacked
from dedup_middleware.methods.length_classes import LengthClasses, length_class
from dedup_middleware.methods.long_sentences import sentence_hash


def of(letters: int, method: LengthClasses) -> Print:
    """Return the fingerprint of a text of so many letters that has one key sentence, the same in all."""
    sentence = "theferryislateagain"
    made = method.fingerprint(Text((sentence, *["well"] * ((letters - len(sentence)) // 4))))
    assert made is not None
    return made


def test_a_class_reaches_from_one_power_to_the_next() -> None:
    assert [length_class(n, 2) for n in (1, 2, 3, 4, 7, 8, 1023, 1024)] == [1, 2, 2, 3, 3, 4, 10, 11]
    assert [length_class(n, 10) for n in (1, 9, 11, 99)] == [1, 1, 2, 2]


@pytest.mark.parametrize(("other", "score"), [(131, 1), (255, 1), (259, 1), (507, 1), (515, 0), (67, 1), (59, 0)])
def test_only_texts_of_one_class_or_the_next_are_compared(other: int, score: float) -> None:
    method = LengthClasses()
    assert method.score(of(other, method), of(131, method)) == score
    assert method.score(of(131, method), of(other, method)) == score


def test_the_next_class_can_be_left_out() -> None:
    method = LengthClasses(neighbours=False)
    assert method.score(of(255, method), of(131, method)) == 1
    assert method.score(of(259, method), of(131, method)) == 0


@given(st.integers(20, 3000), st.integers(20, 3000), st.booleans(), st.floats(1.01, 10))
def test_what_is_compared_is_found_and_nothing_else(one: int, other: int, neighbours: bool, ratio: float) -> None:  # noqa: FBT001
    method = LengthClasses(ratio=ratio, neighbours=neighbours)
    ours, theirs = of(one, method), of(other, method)
    assert bool({*method.keys(ours)} & {*method.keys(theirs)}) == method.is_alike(ours, theirs)


def test_the_class_is_no_sentence() -> None:
    method = LengthClasses(threshold=0.01)
    one, other = (method.fingerprint(Text(tuple(story(number)))) for number in (1, 2))
    assert one is not None
    assert other is not None
    assert method.score(one, other) == 0
    assert not {*method.keys(one)} & {*method.keys(other)}
    assert method.score(one, unpacked(packed(one))) == 1


def test_only_the_longest_sentences_are_key() -> None:
    made = LengthClasses(most=1).fingerprint(Text(("The ferry is late, and nobody knows why it is.",)))
    assert made is not None
    assert [*LengthClasses(neighbours=False).keys(made)] == [
        length_class(36, 2).to_bytes(4, "big") + sentence_hash("andnobodyknowswhyitis")
    ]


def test_a_text_without_a_key_sentence_has_no_fingerprint() -> None:
    assert LengthClasses().fingerprint(Text(("He came. He saw.",))) is None


@pytest.mark.parametrize("wrong", [{"ratio": 1}, {"least": 0}, {"most": 0}, {"threshold": 0}, {"threshold": 1.1}])
def test_what_an_option_cannot_be(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        LengthClasses(**wrong)
