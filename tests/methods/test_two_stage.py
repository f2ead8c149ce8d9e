"""Which pages come into one group, and which of a group are told apart again."""

from __future__ import annotations

import pytest

from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints.method import Text, WeightedSet
from dedup_middleware.methods.two_stage import TwoStage, content

BODY = ("The ferry stops. The ferry was old, and the harbour is far.", "Nobody repairs the ferry.")
PAGE = Text(BODY, "The ferry stops", "https://one.example/ferry")
AGAIN = PAGE._replace(url="https://other.example/7")
RENAMED = AGAIN._replace(title="No boat on Monday")
# The words that are most frequent stay.
EDITED = AGAIN._replace(paragraphs=(*BODY[:1], "Nobody repairs this ferry."))


def made(method: TwoStage, text: Text) -> WeightedSet:
    found = method.fingerprint(text)
    assert found is not None
    return found


def score(method: TwoStage, new: Text, old: Text = PAGE) -> float:
    return method.score(made(method, new), made(method, old))


def test_pages_of_one_content_and_one_title_are_duplicates() -> None:
    assert score(TwoStage(), AGAIN) == 3 / 4
    assert TwoStage().is_alike(made(TwoStage(), AGAIN), made(TwoStage(), PAGE))


def test_pages_of_one_content_under_another_title_are_told_apart_by_the_second_stage() -> None:
    assert score(TwoStage(), RENAMED) == 2 / 4
    assert not TwoStage().is_alike(made(TwoStage(), RENAMED), made(TwoStage(), PAGE))
    assert TwoStage().is_alike(made(TwoStage(), RENAMED._replace(url=PAGE.url)), made(TwoStage(), PAGE))


def test_pages_of_other_content_are_different_however_many_features_are_equal() -> None:
    method = TwoStage(equal=1)
    assert score(method, EDITED._replace(url=PAGE.url)) == 0
    assert set(method.keys(made(method, EDITED))).isdisjoint(method.keys(made(method, PAGE)))


def test_a_coarser_first_stage_brings_an_edited_page_into_the_group() -> None:
    method = TwoStage(first="keywords", equal=2)
    assert score(method, EDITED) == 2 / 4
    assert method.is_alike(made(method, EDITED), made(method, PAGE))
    assert not method.is_alike(made(method, EDITED._replace(title="No boat")), made(method, PAGE))


def test_keywords_are_the_most_frequent_words_in_no_order() -> None:
    method = TwoStage(first="keywords", equal=1, keywords=2)
    one = Text(("goat goat ferry ferry garden",))
    assert score(method, Text(("ferry ferry and a boat, goat goat",)), one) > 0
    assert score(method, Text(("boat boat boat, goat goat, a ferry",)), one) == 0


def test_only_the_group_is_looked_up() -> None:
    method = TwoStage()
    assert len(list(method.keys(made(method, PAGE)))) == 1
    assert list(method.keys(made(method, PAGE))) == list(method.keys(made(method, RENAMED)))


def test_the_same_words_in_two_features_are_not_one_feature() -> None:
    same = Text(("ferry",), "ferry", "ferry")
    assert len(made(TwoStage(first="keywords"), same).weights) == 5


def test_case_width_and_space_do_not_matter() -> None:
    assert content(Text(("Ｔhe  Ferry\n", " stops"))) == "the ferry stops"
    assert score(TwoStage(), AGAIN._replace(title=" the FERRY  stops")) == 3 / 4


def test_a_page_with_nothing_to_group_it_by_has_no_fingerprint() -> None:
    assert TwoStage().fingerprint(Text((), "Title", "https://one.example/")) is None
    assert TwoStage().fingerprint(Text(("of the",))) is not None
    assert TwoStage(first="keywords").fingerprint(Text(("of the",))) is None


def test_options_that_cannot_work_are_refused() -> None:
    with pytest.raises(ConfigError, match="first = 'title' is none of 'content', 'keywords'"):
        TwoStage(first="title")
    for options in ({"equal": 0}, {"equal": 5}, {"keywords": 0}):
        with pytest.raises(ConfigError, match="is not between"):
            TwoStage(**options)  # type: ignore[arg-type]
