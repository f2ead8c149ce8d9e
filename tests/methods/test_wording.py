"""Texts as words, which of them tell, and what a corpus tells of them."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_middleware.errors import UnreadableError
from dedup_middleware.fingerprints.method import Text
from dedup_middleware.methods.wording import STOP_WORDS, DocumentFrequencies, load_words, telling_words, whole, words
from dedup_middleware.text.clauses import folded

ANY_TEXT = st.text() | st.text(st.sampled_from("abB9東京市场ไทยカ ,.。\n\t\u200b\u0301\ud800"))
CORPORA = st.lists(st.lists(st.sampled_from(["ferry", "goat", "渡船", "港口", "\ud800"]), max_size=8), max_size=8)


@pytest.fixture(autouse=True, scope="module")
def _dictionary() -> None:
    pytest.importorskip("jieba")
    load_words()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The old ferry, and its Hull.", ["the", "old", "ferry", "and", "its", "hull"]),
        ("城里的老市场下个月关门。", ["城里", "的", "老", "市场", "下个月", "关门"]),
        ("老市場關門", ["老", "市场", "关门"]),
        ("ＦＥＲＲＹ 7路", ["ferry", "7", "路"]),
        ("2024年iPhone发布", ["2024", "年", "iphone", "发布"]),
        ("one\ntwo", ["one", "two"]),
        ("…!?。， 😀", []),
        ("", []),
    ],
)
def test_words_are_folded_and_in_order_without_marks(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(ANY_TEXT)
def test_words_have_no_marks_or_spaces_and_are_the_same_again(text: str) -> None:
    found = words(text)
    assert found == words(text)
    assert all(word and not any(c in " \n\t,.。" for c in word) for word in found)


@given(st.lists(st.sampled_from(["ferry", "goat", "harbour", "7", "the"])))
def test_words_of_spaced_scripts_come_back_as_they_were(given_words: list[str]) -> None:
    assert words(" ".join(given_words)) == given_words


@given(ANY_TEXT)
def test_telling_words_are_the_words_without_stop_words(text: str) -> None:
    telling = telling_words(text)
    assert STOP_WORDS.isdisjoint(telling)
    assert sorted([*telling, *(word for word in words(text) if word in STOP_WORDS)]) == sorted(words(text))


def test_stop_words_of_both_languages_are_left_out() -> None:
    assert telling_words("The ferry will not run again") == ["ferry", "run"]
    assert telling_words("渡船在港口，但是我们没有船票") == ["渡船", "港口", "船票"]


def test_stop_words_are_written_as_words_are_folded() -> None:
    assert all(word == folded(word) for word in STOP_WORDS)


def test_stop_words_are_what_texts_are_cut_into() -> None:
    assert [word for word in sorted(STOP_WORDS) if words(word) != [word]] == []


def test_a_whole_text_has_its_paragraphs_on_lines_of_their_own() -> None:
    assert whole(Text(("渡船，", "港口"), "title")) == "渡船，\n港口"
    assert words(whole(Text(("One fer", "ry")))) == ["one", "fer", "ry"]


# --- what a corpus tells


def test_a_word_counts_once_a_text() -> None:
    known = DocumentFrequencies()
    known.fit([["ferry", "ferry", "goat"], ["ferry"], [], ["harbour", "ferry", "goat"]])
    assert known.texts == 4
    assert [known[word] for word in ("ferry", "goat", "harbour", "never")] == [3, 2, 1, 1]


def test_unfitted_every_word_counts_as_one() -> None:
    known = DocumentFrequencies()
    assert known.texts == 0
    assert known["ferry"] == 1


@given(CORPORA)
def test_the_number_of_texts_with_a_word_is_known_and_at_least_one(corpus: list[list[str]]) -> None:
    known = DocumentFrequencies()
    known.fit(iter(corpus))
    assert known.texts == len(corpus)
    for word in ("ferry", "goat", "渡船", "港口", "\ud800"):
        assert known[word] == max(1, sum(word in text for text in corpus))


@given(CORPORA)
def test_what_was_learned_is_all_that_another_one_needs(corpus: list[list[str]]) -> None:
    known, other = DocumentFrequencies(), DocumentFrequencies()
    known.fit(corpus)
    other.recall(known.learned())
    assert other.texts == known.texts
    assert all(other[word] == known[word] for text in corpus for word in text)
    assert other.learned() == known.learned()


@given(CORPORA)
def test_the_order_of_the_texts_does_not_show_in_what_was_learned(corpus: list[list[str]]) -> None:
    one, other = DocumentFrequencies(), DocumentFrequencies()
    one.fit(corpus)
    other.fit(text[::-1] for text in reversed(corpus))
    assert one.learned() == other.learned()


def test_recalling_forgets_what_was_known_before() -> None:
    known = DocumentFrequencies()
    known.fit([["ferry"], ["ferry"]])
    known.recall(DocumentFrequencies().learned())
    assert (known.texts, known["ferry"]) == (0, 1)


@given(st.binary(max_size=40))
def test_garbage_is_unreadable(garbage: bytes) -> None:
    with pytest.raises(UnreadableError, match="the frequencies of words cannot be read"):
        DocumentFrequencies().recall(garbage)


@pytest.mark.parametrize(
    "said",
    [None, 7, "text", [], [1], [1, {}, 2], [None, {}], ["many", {}], [1, []], [1, None], [1, {"ferry": "many"}],
     [1, {"ferry": None}], {"texts": 1}],
    ids=json.dumps,
)  # fmt: skip
def test_other_json_is_unreadable_and_leaves_what_was_known(said: object) -> None:
    known = DocumentFrequencies()
    known.fit([["ferry"], ["ferry"]])
    with pytest.raises(UnreadableError, match="the frequencies of words cannot be read"):
        known.recall(zlib.compress(json.dumps(said).encode()))
    assert (known.texts, known["ferry"]) == (2, 2)


@pytest.mark.parametrize("said", [b"\xff\xfe", b"[1, {}", b"[1e999, {}]", b"[" * 100_000, b"[NaN, {}]"])
def test_what_is_no_json_is_unreadable(said: bytes) -> None:
    with pytest.raises(UnreadableError, match="the frequencies of words cannot be read"):
        DocumentFrequencies().recall(zlib.compress(said))
