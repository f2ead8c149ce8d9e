"""What a page is called, and how two titles differ."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prose import story

from dedup_middleware import Deduplicator
from dedup_middleware.checks.naming import name_of, title_edits
from dedup_middleware.checks.table import Kind
from dedup_middleware.text.titles import parts


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
def test_parts_of_a_title(title, expected):
    assert [*parts(title)] == expected


@pytest.mark.parametrize(
    ("title", "host", "expected"),
    [
        ("First snow in the valley | The Harbour", "harbour.example", "First snow in the valley"),
        ("First snow in the valley | The Harbour", "quay.example", "First snow in the valley | The Harbour"),
        ("Nurse – Leeds", "", "Nurse | Leeds"),
        ("Harbour First snow", "", "First snow"),
    ],
)
def test_the_names_of_a_site_are_no_part_of_it(title, host, expected):
    sites = {"harbour"} if title.startswith("Harbour") else set()
    assert name_of(title, set().__contains__, sites.__contains__, host) == expected


@pytest.mark.parametrize(
    ("name", "other", "kinds"),
    [
        ("Stoneware mug, red", "Stoneware mug, blue", [Kind.TITLE]),
        ("Form of the programme (lot A)", "Form of the programme", [Kind.TITLE]),
        ("Form of the programme 2024", "Form of the programme", [Kind.TITLE]),
        ("Grade A+", "Grade A", [Kind.TITLE]),
        ("Nurse Leeds", "Nurse York", [Kind.TITLE]),
        ("Nurse | Leeds", "Nurse", [Kind.TITLE_WORDS]),
        ("Microsoft releases bumper patches today", "Microsoft releases patches today", [Kind.TITLE_WORDS]),
        ("Microsoft releases patches today", "Microsoft releases bumper patches today", []),
        ("NASDAQ planning $100m-share sale", "Nasdaq planning $100m share sale", []),
        ("羣衆線上“出題”", "群众线上“出题”", []),
        (
            "Council says no to the new bypass of the town",
            "Four years of work begin at the old bridge",
            [Kind.HEADLINE],
        ),
        ("Brief: a fire", "The whole day", [Kind.TITLE]),
    ],
)
def test_how_two_titles_differ(name, other, kinds):
    assert [edit.kind for edit in title_edits(name, [other])] == kinds


def test_another_title_is_shown_as_it_is_written():
    """Also a word of it that a site is called by: the name of a town."""
    with Deduplicator() as dedup:
        for n, name in enumerate(("First", "Second", "Third", "Fourth", "Fifth", "Sixth")):
            dedup.add(f"http://a.example/{n}", article(name, story(n), site="Wend Courier"))
        dedup.add("http://a.example/bridge", article("Old bridge closes for nine weeks", story(9), site="Wend Courier"))
        found = dedup.add("http://b.example/1", article("Bridge over the Wend to close", story(9), site="Partner News"))
    assert found.reason == "other_title"
    assert found.difference[-1] == "Bridge over the Wend to close (not Old bridge closes for nine weeks)"


def article(title, text, *, site):
    return f"<title>{title} | {site}</title><h1>{title}</h1>{''.join(f'<p>{each}</p>' for each in text)}"


@given(st.text())
@example("禅|寺")
def test_a_page_is_called_what_it_is_called(title):
    assert title_edits(title, [title]) == []
