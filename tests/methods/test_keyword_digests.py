from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints.method import Digest, Text, WeightedSet, packed, unpacked
from dedup_middleware.methods.keyword_digests import KeywordDigests, summary_of

if TYPE_CHECKING:
    from dedup_middleware.fingerprints.method import Print

PAGE = {"ferry": 9, "tide": 7, "pilot": 5, "rope": 4}
#: The rope is told of more often than the pilot.
OTHER_ORDER = {**PAGE, "rope": 6}
OTHER_WEIGHTS = {"ferry": 90, "tide": 7, "pilot": 5, "rope": 4}
OTHER_WORD = {**PAGE, "walrus": 3}


def told(counts: dict[str, int]) -> Text:
    return Text(tuple(word for word, count in counts.items() for _ in range(count)))


def print_of(method: KeywordDigests, text: Text) -> Print:
    made = method.fingerprint(text)
    assert made is not None
    return made


def alike(method: KeywordDigests, one: Text, other: Text) -> bool:
    return method.is_alike(print_of(method, one), print_of(method, other))


@pytest.mark.parametrize(("variant", "borne"), [(2, ["weights"]), (3, ["order", "weights"]), (4, []), (5, ["order"])])
def test_what_the_variants_of_keywords_bear(variant: int, borne: list[str]) -> None:
    method = KeywordDigests(variant=variant)
    others = {"order": OTHER_ORDER, "weights": OTHER_WEIGHTS, "word": OTHER_WORD}
    assert [name for name, other in others.items() if alike(method, told(PAGE), told(other))] == borne


def test_the_fifth_is_used_if_none_is_named() -> None:
    assert KeywordDigests().fingerprint(told(PAGE)) == KeywordDigests(variant=5).fingerprint(told(PAGE))


def test_the_first_compares_descriptions() -> None:
    one, other = Text(("Of ferries.",), description="On Boats"), Text(("Of tides.",), description="on boats.")
    assert alike(KeywordDigests(variant=1), one, other)
    assert not alike(KeywordDigests(variant=1), one, Text(("Of ferries.",), description="On ships"))


def test_the_first_compares_512_bytes_of_text_where_there_is_no_description() -> None:
    long = "一" * 170 + "二"
    assert len(summary_of(Text((long,)))) == 512
    assert alike(KeywordDigests(variant=1), Text((long, "end")), Text((long + "三四五",)))
    assert not alike(KeywordDigests(variant=1), Text((long,)), Text(("三" + long,)))
    assert len(summary_of(Text(("a. " * 600,)))) == 512


def test_a_page_without_words_has_no_fingerprint() -> None:
    assert [KeywordDigests(variant=n).fingerprint(Text(("!",))) for n in range(1, 6)] == [None] * 5


def test_the_difference_is_that_of_the_vectors_of_weights() -> None:
    method = KeywordDigests(difference=0.2)
    one, other = print_of(method, told({"ferry": 3, "tide": 1})), print_of(method, told({"ferry": 2, "tide": 2}))
    apart, together = 0.25**2 + 0.25**2, 0.75**2 + 0.25**2 + 0.5**2 + 0.5**2
    assert method.score(one, other) == pytest.approx(1 - apart / together)
    assert method.is_alike(one, other)
    assert not KeywordDigests(difference=0.1).is_alike(one, other)


def test_a_page_that_says_all_twice_has_the_same_weights() -> None:
    twice = told({word: 2 * count for word, count in PAGE.items()})
    assert alike(KeywordDigests(difference=0), told(PAGE), twice)


def test_only_the_first_keywords_count() -> None:
    assert alike(KeywordDigests(keywords=4), told(PAGE), told(OTHER_WORD))
    many = {f"word{n}": 30 - n for n in range(12)}
    assert alike(KeywordDigests(variant=3), told(many), told({**many, "word11": 1}))
    assert not alike(KeywordDigests(variant=3), told(many), told({**many, "word0": 1}))


def test_keywords_that_are_alike_are_looked_up_by_one_key() -> None:
    method = KeywordDigests()
    (one,), (other,) = (method.keys(print_of(method, told(counts))) for counts in (PAGE, OTHER_ORDER))
    assert one == other


@pytest.mark.parametrize(
    "options", [{"variant": 0}, {"variant": 6}, {"keywords": 0}, {"difference": -0.1}, {"difference": 1.1}]
)
def test_options_that_cannot_be_are_mistakes(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        KeywordDigests(**options)


def test_fingerprints_of_two_kinds_are_not_alike() -> None:
    assert KeywordDigests().score(WeightedSet({}), WeightedSet({})) == 0
    assert KeywordDigests().score(Digest(b"1"), WeightedSet({b"12345678": 1.0})) == 0


_COUNTS = st.fixed_dictionaries({word: st.integers(1, 50) for word in PAGE})


@settings(max_examples=50)
@given(_COUNTS, _COUNTS)
def test_likeness_is_mutual_within_bounds_and_the_same_from_a_store(one: dict[str, int], other: dict[str, int]) -> None:
    method = KeywordDigests()
    new, old = print_of(method, told(one)), print_of(method, told(other))
    score = method.score(new, old)
    assert 0 <= score <= 1
    assert method.score(old, new) == pytest.approx(score)
    assert method.score(new, unpacked(packed(old))) == pytest.approx(score, abs=1e-6)
