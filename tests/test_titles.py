"""What a page is called, what of that is its own, and how it differs from what another one is called."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from library import page_of

from dedup_middleware.checks.naming import name_of, title_edits
from dedup_middleware.checks.table import Kind
from dedup_middleware.index import shown
from dedup_middleware.model import PageFeatures
from dedup_middleware.text.titles import parts


def never(_: str) -> bool:
    return False


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
    ("title", "other", "kinds"),
    [
        ("Stoneware mug, red", "Stoneware mug, blue", [Kind.TITLE]),
        ("Stoneware mug, 2 litres", "Stoneware mug", [Kind.TITLE]),
        ("Lot B", "Lot A", [Kind.TITLE]),
        ("printf(3)", "printf(1)", [Kind.TITLE]),
        ("The bridge is not open", "The bridge is open", [Kind.TITLE]),
        ("The bridge is open", "The bridge is not open", [Kind.TITLE]),
        ("Grade A+ eggs", "Grade A eggs", [Kind.TITLE]),
        ("Tides", "Winds", [Kind.TITLE]),
        ("First snow", "First snow | The Harbour", []),
        ("First snow | The Harbour", "First snow", [Kind.TITLE_WORDS]),
        ("Microsoft releases bumper patches today", "Microsoft releases patches today", [Kind.TITLE_WORDS]),
        ("Microsoft releases patches today", "Microsoft releases bumper patches today", []),
        ("The council rebuilds the old grain store", "Why the harbour pays for a roof", [Kind.HEADLINE]),
        ("NASDAQ planning $100m-share sale", "Nasdaq planning $100m share sale", []),
        ("羣衆線上“出題”", "群众线上“出题”", []),
        ("Pump hums - Page 3", "Pump hums - Page 2", []),
    ],
)
def test_how_a_title_differs_from_another_one(title: str, other: str, kinds: list[Kind]) -> None:
    here, there = (name_of(each, "", never) for each in (title, other))
    assert [edit.kind for edit in title_edits(here, [there])] == kinds


def test_a_title_is_compared_with_the_one_that_is_most_like_it() -> None:
    others = ["The harbour", "Stoneware mug, blue", "Nothing of the kind"]
    assert [edit[1:3] for edit in title_edits("Stoneware mug, red", others)] == [("red", "blue")]
    assert title_edits("Stoneware mug, red", [*others, "Stoneware mug, red"]) == []


@pytest.mark.parametrize(
    ("title", "host", "name"),
    [
        ("First snow | The Harbour Times", "www.harbourtimes.example", "First snow"),
        ("First snow | The Quay Times", "www.harbourtimes.example", "First snow The Quay Times"),
        ("First snow | Weekly", "a.example", "First snow"),
        ("First snow (print version)", "a.example", "First snow"),
        ("Weekly", "a.example", ""),
    ],
)
def test_what_of_a_title_is_the_pages_own(title: str, host: str, name: str) -> None:
    assert name_of(title, "", lambda word: word == "weekly", host) == name


@given(st.text())
@example("禅|寺")
def test_a_page_is_called_what_it_is_called(title: str) -> None:
    name = name_of(title, "", never)
    assert title_edits(name, [name]) == []


class TestSiteNames:
    """Of a host, by what its pages have shown."""

    @staticmethod
    def after(*titles: str, texts: int = 100) -> dict[bytes, tuple[int, int]]:
        found: dict[bytes, tuple[int, int]] = {}
        for number, title in enumerate(titles):
            page = page_of(str(number), [number % texts])
            found = {**shown.updated(found, replace(page, features=PageFeatures(title)))}
        return found

    def test_what_stands_in_most_titles_is_the_sites(self) -> None:
        titles = [f"Story {name} | The Harbour" for name in ("one", "two", "three", "four", "five", "six")]
        assert not shown.has_word(self.after(*titles[: shown.SEVERAL - 1]), "harbour")
        found = self.after(*titles)
        assert shown.has_word(found, "harbour")
        assert shown.is_frame_part(found, "The Harbour")
        assert not shown.has_word(found, "two")
        assert not shown.is_frame_part(found, "Story two")

    def test_what_stands_over_one_text_is_no_frame(self) -> None:
        assert not shown.is_frame_part(self.after(*["Lot B | The Harbour"] * 9, texts=1), "Lot B")

    def test_it_counts_so_many_pages_and_no_more(self) -> None:
        titles = [f"Story {number} | The Harbour" for number in range(shown.COUNTED_PAGES)]
        found = self.after(*titles, *["The Quay"] * 9)
        assert found[shown.PAGES][0] == shown.COUNTED_PAGES
        assert shown.has_word(found, "harbour")
        assert not shown.has_word(found, "quay")
        assert len(shown.encode(found)) <= 8 * shown.MAX_SHOWN
