"""Extraction from pages that are no news article: recognised by their shape, without the names of elements."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import story

from dedup_middleware.extraction import extract_paragraphs, extract_text

MENU = "".join(f'<li><a href="/s{i}">Section number {i}</a></li>' for i in range(12))


def page(main: str) -> str:
    return (
        f"<html><head><title>A page</title></head><body><nav><ul>{MENU}</ul></nav><h1>A page</h1>{main}"
        f"<footer><p>All rights reserved, and the publisher answers for its own pages only.</p></footer></body></html>"
    )


def text(number: int, count: int = 3) -> list[str]:
    """Return *count* paragraphs that no other *number* has."""
    return story(1000 + number, count)


def in_tags(paragraphs: list[str]) -> str:
    return "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)


# --- one text in several places


def test_sections_of_a_page_builder() -> None:
    texts = [text(number) for number in range(5)]
    rows = "".join(
        f"<div class='row row_{i}'><div class='column-{i}'><h2>Part {i}</h2><div class='module text_{i}'>{in_tags(t)}"
        "</div></div></div>"
        for i, t in enumerate(texts)
    )
    found = extract_paragraphs(page(f"<div class='builder'>{rows}</div>"))
    assert [line for line in found if not line.startswith("Part")] == [*chain(*texts)]


# --- threads


@pytest.mark.parametrize("name", ["comment", "reply", "post response"])
def test_the_replies_of_a_thread_are_text(name: str) -> None:
    first, *replies = (text(number) for number in range(5))
    answers = "".join(f"<li class='{name}'><div class='body'>{in_tags(reply)}</div></li>" for reply in replies)
    thread = (
        f"<div class='thread'><div class='first'><div class='body'>{in_tags(first)}</div></div><ul>{answers}</ul></div>"
    )
    found = extract_paragraphs(page(thread))
    assert found == [*chain(first, *replies)]


@pytest.mark.parametrize("name", ["comment", "reply", "post response"])
def test_the_comments_below_an_article_are_none(name: str) -> None:
    told, *opinions = (text(number) for number in range(5))
    comments = "".join(f"<li class='{name}'><div class='said'>{in_tags(opinion)}</div></li>" for opinion in opinions)
    html = page(f"<div class='main'><div class='story'>{in_tags(told)}</div><ul class='comments'>{comments}</ul></div>")
    assert extract_paragraphs(html) == told


# --- soup, wrappers, tabs


def test_a_button_that_is_never_closed() -> None:
    assert extract_paragraphs(page(f"<button class='go'><div>{in_tags(text(1))}</div>")) == text(1)


@pytest.mark.parametrize("name", ["ad", "tag", "sidebar", "lightbox", "paywall", "share", "video"])
def test_the_name_of_a_wrapper_is_no_verdict_on_what_it_holds(name: str) -> None:
    html = page(
        f"<div class='story'>{in_tags(text(1))}<div class='{name}'>{in_tags(text(2))}</div>{in_tags(text(3))}</div>"
    )
    assert extract_paragraphs(html) == text(1) + text(2) + text(3)


def test_tabs_that_are_not_shown_yet_are_text_beside_the_one_that_is() -> None:
    tabs = "".join(f"<div class='tab hidden'>{in_tags(text(i))}</div>" for i in (2, 3))
    assert extract_paragraphs(page(f"<div class='tabs'>{in_tags(text(1))}{tabs}</div>")) == text(1) + text(2) + text(3)


def test_what_is_shown_is_the_text_however_much_is_hidden_elsewhere() -> None:
    guide = "".join(in_tags(text(number)) for number in range(10, 40))
    html = page(f"<div class='guide w-condition-invisible'>{guide}</div><div class='story'>{in_tags(text(1))}</div>")
    assert extract_paragraphs(html) == text(1)


def test_a_sentence_in_large_letters_is_text() -> None:
    (long,) = text(9, 1)
    assert long in extract_paragraphs(page(f"<div>{in_tags(text(1))}<h2>{long}</h2>{in_tags(text(2))}</div>"))


# --- pages without a text


PIECES = [
    *["<p>", "</p>", "<div class=ad>", "</div>", "<button>", "<noscript>", "<a href=/x>", "</a>", "<a href='#'>"],
    *["Words, and more of them. ", "x", " ", "<li hidden>", "<form>", "<h2>"],
]


@given(st.lists(st.sampled_from(PIECES), max_size=60))
def test_whatever_it_is_the_share_is_one(pieces: list[str]) -> None:
    found = extract_text("".join(pieces))
    assert 0 <= found.share <= 1
    assert all(line.strip() for line in found.paragraphs)
    assert found.is_main_text or found.share == 0
