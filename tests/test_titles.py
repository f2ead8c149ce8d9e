"""What a page is called, and what of that is its own."""

from __future__ import annotations

import pytest
from dedup_middleware.checks.pair import OTHER_TITLES, SiteNames
from hypothesis import example, given
from hypothesis import strategies as st

from dedup_middleware.model import PageFeatures
from dedup_middleware.text.titles import own_parts, parts, shared_terms


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Council decides on the bypass | The Harbour", ["Council decides on the bypass", "The Harbour"]),
        ("标题很长_新闻频道_某网", ["标题很长", "新闻频道", "某网"]),
        ("Home » News - The Harbour", ["Home", "News", "The Harbour"]),
        ("A-level results: a record", ["A-level results: a record"]),
        ("", []),
        (" | ", []),
    ],
)
def test_parts_of_a_title(title: str, expected: list[str]) -> None:
    assert [*parts(title)] == expected


@pytest.mark.parametrize(
    ("page", "original", "text", "own"),
    [
        ("Stoneware mug, red", "Stoneware mug, blue", [], ["Stoneware mug, red"]),
        ("First snow", "First snow | The Harbour", [], []),
        ("First snow | The Harbour", "First snow", ["Snow fell.", "The Harbour"], []),
        ("First snow | The Harbour", "First snow", [], ["The Harbour"]),
        ("Brief: a fire", "The whole day", ["A storm.", "Brief: a fire", "It burned."], []),
        ("NASDAQ planning $100m-share sale", "Nasdaq planning $100m share sale", [], []),
        ("羣衆線上“出題”", "群众线上“出题”", [], []),
        ("Microsoft releases patches today", "Microsoft releases bumper patches today", [], []),
        ("Pump hums - Page 3", "Pump hums - Page 2", [], []),
    ],
)
def test_what_only_the_page_is_called(page: str, original: str, text: list[str], own: list[str]) -> None:
    assert own_parts(PageFeatures(page), PageFeatures(original), lambda: text) == own


def test_terms_are_shared_by_weight_and_in_the_text_too() -> None:
    original = PageFeatures("The last quince")
    assert shared_terms(["The gardener's knee"], original, lambda: ["It was his knee."]) == pytest.approx(7 / 16)
    assert shared_terms(["停电的晚上"], PageFeatures("旧书摊"), lambda: ["那个停电的晚上"]) == 1.0
    assert shared_terms([], original, list) == 1.0


@given(st.text())
@example("禅|寺")
def test_a_page_is_called_what_it_is_called(title: str) -> None:
    features = PageFeatures(title)
    assert own_parts(features, features, list) == []
    assert shared_terms(parts(title), features, list) == 1.0


class TestSiteNames:
    def test_what_stands_beside_other_titles_is_the_sites(self) -> None:
        names = SiteNames()
        for number in range(OTHER_TITLES):
            assert not names.has("host", "The Harbour")
            names.note("host", f"Story {number} | The Harbour")
            names.note("host", f"Story {number} | The Harbour")
        assert names.has("host", "The Harbour")
        assert not names.has("host", "Story 1")
        assert not names.has("other", "The Harbour")

    def test_it_forgets(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dedup_middleware.checks.pair._MAX_PARTS", 10)
        names = SiteNames()
        for number in range(100):
            names.note("host", f"Story {number} | The Harbour")
        assert names.has("host", "The Harbour")
        for number in range(10):
            names.note("other", f"Story {number} | The Quay")
        assert not names.has("host", "The Harbour")
