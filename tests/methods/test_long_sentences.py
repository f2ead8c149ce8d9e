"""Long sentences, as a set."""

from __future__ import annotations

from hashlib import md5

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import story, zh_story

from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints.method import Text, WeightedSet
from dedup_middleware.methods.long_sentences import LongSentences, longest, middle, sentences

# Parts of 2, 12 and 17 characters.
PARTS = ("傍晚", "老渔民把旧木船拖上了沙滩", "邻居们提着灯笼赶来看他修补漏水船底")
HASHES = [md5(part.encode(), usedforsecurity=False).digest()[:8] for part in PARTS]


def weights(text: Text, **options: float) -> dict[bytes, float]:
    made = LongSentences(**options).fingerprint(text)
    assert isinstance(made, WeightedSet)
    return dict(made.weights)


def test_of_parts_of_2_12_and_17_characters_the_last_two_are_long() -> None:
    assert [*map(len, PARTS)] == [2, 12, 17]
    text = Text((f"{PARTS[0]}，{PARTS[1]}，{PARTS[2]}。",))
    assert weights(text, trim=0) == {HASHES[1]: 1.0, HASHES[2]: 1.0}


def test_how_long_is_long_can_be_chosen() -> None:
    text = Text((f"{PARTS[0]}，{PARTS[1]}，{PARTS[2]}。",))
    assert weights(text, trim=0, least=2).keys() == {*HASHES}
    assert weights(text, trim=0, least=13).keys() == {HASHES[2]}
    assert LongSentences(trim=0, least=18).fingerprint(text) is None


def test_only_the_longest_are_kept() -> None:
    assert longest(["aaaa", "bb", "cccccc", "dddd"], 3, 2) == ["cccccc", "aaaa"]
    text = Text((f"{PARTS[0]}，{PARTS[1]}，{PARTS[2]}。",))
    assert weights(text, trim=0, most=1).keys() == {HASHES[2]}


def test_the_first_and_last_tenth_and_what_they_cut_through_are_left_out() -> None:
    tens = [str(n) * 10 for n in range(10)]
    assert middle(tens, 0.1) == tens[1:9]
    assert middle(tens, 0.11) == tens[2:8]
    assert middle(tens, 0) == tens


def test_a_line_at_either_end_does_not_matter() -> None:
    told = story(1)
    method = LongSentences()
    own, again = (
        method.fingerprint(Text(tuple(text))) for text in (told, ["Read in the Courier.", *told, "Well said!"])
    )
    assert own is not None
    assert again is not None
    assert method.score(again, own) > 0.8


def test_the_order_of_paragraphs_only_moves_the_cut() -> None:
    told = zh_story(1)
    one, other = (LongSentences(trim=0).fingerprint(Text(tuple(text))) for text in (told, told[::-1]))
    assert one == other


@given(st.lists(st.text("abcde ", max_size=30)), st.floats(0, 0.49))
def test_no_more_than_the_trim_and_two_broken_parts_is_left_out(parts: list[str], trim: float) -> None:
    kept = middle(parts, trim)
    total = sum(map(len, parts))
    assert sum(map(len, kept)) <= total * (1 - 2 * trim) + 1e-6
    assert sum(map(len, kept)) + 2 * max(map(len, parts), default=0) >= total * (1 - 2 * trim) - 1e-6


def test_letters_and_digits_alone_count() -> None:
    assert sentences(["The “Old” Ferry—now 40 years old"])[-1] == "now40yearsold"


@pytest.mark.parametrize("wrong", [{"trim": 0.5}, {"least": 0}, {"most": 0}, {"threshold": 0}, {"threshold": 1.1}])
def test_what_an_option_cannot_be(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        LongSentences(**wrong)
