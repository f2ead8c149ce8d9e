from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints.method import Digest, Text
from dedup_middleware.methods.near_pages import NearPages


def words_of(**counts: int) -> list[str]:
    return [word for word, count in counts.items() for _ in range(count)]


@pytest.mark.parametrize(("count", "taken"), [(19, 0), (20, 10), (39, 10), (40, 20), (41, 20), (1000, 500)])
def test_the_number_of_words_is_rounded_down_to_steps(count: int, taken: int) -> None:
    assert NearPages().taken(count) == taken


@pytest.mark.parametrize(
    ("percentage", "sum_interval", "taken"), [(1, 1, 100), (0.29, 1, 29), (0.7, 30, 60), (0.9, 1000, 0)]
)
def test_both_parameters_are_options(percentage: float, sum_interval: int, taken: int) -> None:
    assert NearPages(percentage=percentage, sum_interval=sum_interval).taken(100) == taken


def test_the_most_frequent_are_chosen_and_descend_by_character() -> None:
    words = words_of(alga=3, cable=1, buoy=9, deck=2, eel=1, fog=1)
    assert NearPages(sum_interval=1).chosen(words) == ["deck", "buoy", "alga"]


def test_of_equally_frequent_words_the_last_by_character_are_chosen() -> None:
    assert NearPages(sum_interval=1).chosen(words_of(cable=1, alga=1, eel=1, buoy=1)) == ["eel", "cable"]


def test_the_fingerprint_is_the_md5_of_the_words() -> None:
    text = Text(("Buoy! The buoy, a cable; fog.",))
    assert NearPages(sum_interval=1, percentage=0.7).fingerprint(text) == Digest(hashlib.md5(b"fog buoy").digest())


def test_rare_words_may_come_and_go_and_change_places() -> None:
    frequent, rare = [f"often{n}" for n in range(10)], [f"seldom{n}" for n in range(12)]
    one = Text((" ".join(frequent), " ".join(rare), " ".join(frequent)))
    other = Text((" ".join(rare[2:]), " ".join(reversed(frequent)), " ".join(frequent), "Never!"))
    assert NearPages().fingerprint(one) == NearPages().fingerprint(other)
    assert NearPages().fingerprint(one) != NearPages().fingerprint(Text((*other.paragraphs, "seldom7 " * 5)))


def test_a_text_of_too_few_words_has_no_fingerprint() -> None:
    text = Text((" ".join(f"word{n}" for n in range(19)),))
    assert NearPages().fingerprint(text) is None
    assert NearPages(sum_interval=9).fingerprint(text) is not None


@pytest.mark.parametrize(
    "options", [{"percentage": 0}, {"percentage": 1.1}, {"sum_interval": 0}, {"sum_interval": 1001}]
)
def test_options_that_cannot_be_are_mistakes(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        NearPages(**options)


@given(st.integers(0, 10_000), st.integers(1, 100), st.integers(1, 1000))
def test_what_is_taken_is_the_largest_multiple_within_the_share(count: int, percent: int, sum_interval: int) -> None:
    taken = NearPages(percentage=percent / 100, sum_interval=sum_interval).taken(count)
    assert taken % sum_interval == 0
    assert 100 * taken <= count * percent < 100 * (taken + sum_interval)
