from __future__ import annotations

import pytest

from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints.method import Digest, Text
from dedup_middleware.methods.top_words import TopWords


def told(**counts: int) -> Text:
    return Text(tuple(word for word, count in counts.items() for _ in range(count)))


def test_the_digest_of_the_worked_example() -> None:
    text = told(网页=12, 搜索=10, 引擎=7, 算法=6)
    assert TopWords().fingerprint(text) == Digest(bytes.fromhex("a7eb9d92a83cf438881915e0bc2df70b"))


def test_rarer_words_the_order_and_stop_words_do_not_count() -> None:
    one = told(ferry=5, tide=4, pilot=3, rope=2)
    assert TopWords().fingerprint(one) == TopWords().fingerprint(told(the=9, pilot=3, walrus=1, tide=4, ferry=5))


def test_counts_do() -> None:
    assert TopWords().fingerprint(told(ferry=5, tide=4)) != TopWords().fingerprint(told(ferry=6, tide=4))


def test_ties_are_by_word() -> None:
    assert TopWords(words=1).fingerprint(told(tide=2, ferry=2)) == TopWords().fingerprint(told(ferry=2))


def test_how_many_words_is_an_option() -> None:
    one, other = told(ferry=5, tide=4, pilot=3, rope=2), told(ferry=5, tide=4, pilot=3, sail=2)
    assert TopWords(words=3).fingerprint(one) == TopWords(words=3).fingerprint(other)
    assert TopWords(words=4).fingerprint(one) != TopWords(words=4).fingerprint(other)


@pytest.mark.parametrize("words", [0, 1001])
def test_no_words_or_too_many_are_a_mistake(words: int) -> None:
    with pytest.raises(ConfigError, match=f"words = {words}"):
        TopWords(words=words)


def test_a_text_of_stop_words_has_no_fingerprint() -> None:
    assert TopWords().fingerprint(told(the=3, 的=2)) is None
