"""Extraction from pages that are no news article: recognised by their shape, without the names of elements."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import story

from dedup_middleware.extraction import extract_paragraphs, extract_text

MENU = "".join(f'<li><a href="/s{i}">Section number {i}</a></li>' for i in range(12))


def page(main):
    return (
        f"<html><head><title>A page</title></head><body><nav><ul>{MENU}</ul></nav><h1>A page</h1>{main}"
        f"<footer><p>All rights reserved, and the publisher answers for its own pages only.</p></footer></body></html>"
    )


def text(number, count=3):
    """Return *count* paragraphs that no other *number* has."""
    return story(1000 + number, count)


def in_tags(paragraphs):
    return "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)


# --- one text in several places


def test_sections_of_a_page_builder():
    texts = [text(number) for number in range(5)]
    rows = "".join(
        f"<div class='row row_{i}'><div class='column-{i}'><h2>Part {i}</h2><div class='module text_{i}'>{in_tags(t)}"
        "</div></div></div>"
        for i, t in enumerate(texts)
    )
    found = extract_paragraphs(page(f"<div class='builder'>{rows}</div>"))
    assert [line for line in found if not line.startswith("Part")] == [*chain(*texts)]


# --- sections of one document

NAME = "mend - repair a list of tools"
LONG = text(1, 8)
CODE = "mend [-a | --all] FILE"
SHORT_SECTIONS = {
    "NAME": NAME,
    "SYNOPSIS": CODE,
    "OPTIONS": "",
    "EXAMPLES": "Run it on the list of a workshop.",
    "AUTHOR": "J. Roe",
}


def section(heading, body, marks="class=part"):
    return f"<div {marks}><h2>{heading}</h2><div class=body>{body}</div></div>"


def manual(marks="class=part"):
    bodies = {heading: f"<pre>{line}</pre>" for heading, line in SHORT_SECTIONS.items()}
    options = "".join(f"<dt>--option-{number}</dt><dd><p>{line}</p></dd>" for number, line in enumerate(LONG))
    return "".join(section(name, body, marks) for name, body in (bodies | {"OPTIONS": f"<dl>{options}</dl>"}).items())


def test_short_sections_around_the_longest_are_text_first_and_last():
    found = extract_paragraphs(page(f"<div id=content>{manual()}</div>"))
    assert found[:4] == ["NAME", NAME, "SYNOPSIS", CODE]
    assert found[-4:] == ["EXAMPLES", SHORT_SECTIONS["EXAMPLES"], "AUTHOR", "J. Roe"]
    assert set(LONG) < set(found)


def test_a_table_above_a_document_is_none_of_it():
    versions = "".join(f"<tr><td>Version {number}.0 of the day</td></tr>" for number in range(9))
    html = page(f"<div><table class=head>{versions}</table><div id=content>{manual()}</div></div>")
    assert extract_paragraphs(html)[0] == "NAME"


def test_the_title_of_a_document_is_no_line_of_it():
    assert extract_paragraphs(page(f"<div id=content><h1>mend</h1>{manual()}</div>"))[0] == "NAME"


def test_the_name_of_a_section_is_that_of_its_subject():
    sections = manual() + section("Comments", "<p>Write them behind a sign of their own.</p>", "class=part id=comments")
    assert "Write them behind a sign of their own." in extract_paragraphs(page(f"<div id=content>{sections}</div>"))


def test_columns_without_a_class_are_no_sections():
    column = section("Near you", "<p>Make a tour of the old town.</p><p>Breathe easier by the sea.</p>", "")
    html = page(f"<div><div><h2>Today</h2><div>{in_tags(LONG)}</div></div>{column}</div>")
    assert extract_paragraphs(html) == LONG


def test_teasers_are_no_sections():
    teasers = "".join(
        section(f"<a href=/{i}>Story {i} of this day</a>", f"<p>It has begun, {i} say.</p>") for i in range(5)
    )
    html = page(f"<div>{section('Today', in_tags(LONG))}{teasers}</div>")
    assert extract_paragraphs(html) == LONG


# --- what calls itself the main text, in another that does


def test_the_readme_in_the_main_element_of_its_page():
    files = (
        "<h2>Files</h2><p>Choose the file for your machine; if you are not sure which, read about packages first.</p>"
    )
    readme = "<p>It mends tools, and lists of tools.</p><h2>Use</h2><p>Give it a file, and wait for it to end.</p>"
    html = page(f"<main><div><main>{readme}</main></div><div>{files}<p>Sent in the year of the flood.</p></div></main>")
    assert extract_paragraphs(html) == [
        *["It mends tools, and lists of tools.", "Use", "Give it a file, and wait for it to end."]
    ]


def test_texts_of_teasers_leave_the_name_to_the_main_element():
    teasers = "".join(
        f"<div><h3><a href=/{i}>Story {i} of this day</a></h3><div class=article-text><p>{line[:150]}</p></div></div>"
        for i, line in enumerate(text(2, 10))
    )
    html = page(f"<main><div class=story>{in_tags(LONG)}</div><div>{teasers}</div></main>")
    assert extract_paragraphs(html) == LONG


def test_a_notice_longer_than_the_text_under_the_title():
    told = [
        "The evening of songs is put off to next week, same hour and place, because of the heavy rain.",
        "Those who have signed up need not do so again; if you cannot come then, please tell us.",
    ]
    notice = [
        "This is a preview; scan the code to follow this account, swipe up to read the next, touch to read the source.",
        "Scan to open this page with all of its services. Got it, cancel, allow. Like, like no more.",
        "Leave a word, share it with friends, keep it for later, let it float, report it to the makers of it.",
        "If you like it, tap twice; if you tap twice again, you do not like it any more.",
    ]
    article = f"<div><h1>No songs tonight</h1><div class=content>{in_tags(told)}</div></div>"
    assert extract_paragraphs(f"<html><body>{article}<div id=tags>{in_tags(notice)}</div></body></html>") == told


# --- threads


@pytest.mark.parametrize("name", ["comment", "reply", "post response"])
def test_the_replies_of_a_thread_are_text(name):
    first, *replies = (text(number) for number in range(5))
    answers = "".join(f"<li class='{name}'><div class='body'>{in_tags(reply)}</div></li>" for reply in replies)
    thread = (
        f"<div class='thread'><div class='first'><div class='body'>{in_tags(first)}</div></div><ul>{answers}</ul></div>"
    )
    found = extract_paragraphs(page(thread))
    assert found == [*chain(first, *replies)]


@pytest.mark.parametrize("name", ["comment", "reply", "post response"])
def test_the_comments_below_an_article_are_none(name):
    told, *opinions = (text(number) for number in range(5))
    comments = "".join(f"<li class='{name}'><div class='said'>{in_tags(opinion)}</div></li>" for opinion in opinions)
    html = page(f"<div class='main'><div class='story'>{in_tags(told)}</div><ul class='comments'>{comments}</ul></div>")
    assert extract_paragraphs(html) == told


# --- soup, wrappers, tabs


def test_a_button_that_is_never_closed():
    assert extract_paragraphs(page(f"<button class='go'><div>{in_tags(text(1))}</div>")) == text(1)


@pytest.mark.parametrize("name", ["ad", "tag", "sidebar", "lightbox", "paywall", "share", "video"])
def test_the_name_of_a_wrapper_is_no_verdict_on_what_it_holds(name):
    html = page(
        f"<div class='story'>{in_tags(text(1))}<div class='{name}'>{in_tags(text(2))}</div>{in_tags(text(3))}</div>"
    )
    assert extract_paragraphs(html) == text(1) + text(2) + text(3)


def test_tabs_that_are_not_shown_yet_are_text_beside_the_one_that_is():
    tabs = "".join(f"<div class='tab hidden'>{in_tags(text(i))}</div>" for i in (2, 3))
    assert extract_paragraphs(page(f"<div class='tabs'>{in_tags(text(1))}{tabs}</div>")) == text(1) + text(2) + text(3)


def test_what_is_shown_is_the_text_however_much_is_hidden_elsewhere():
    guide = "".join(in_tags(text(number)) for number in range(10, 40))
    html = page(f"<div class='guide w-condition-invisible'>{guide}</div><div class='story'>{in_tags(text(1))}</div>")
    assert extract_paragraphs(html) == text(1)


@pytest.mark.parametrize(
    "main",
    [f"<pre>{LONG[0]}\n\n{LONG[1]}</pre>", "<p>A stub: nobody has written more of it yet, but they may, one day.</p>"],
)
def test_an_aside_of_the_page_is_none_of_its_text_however_little_there_is(main):
    aside = f"<aside>{in_tags(text(3, 8))}</aside>"
    assert not {*text(3, 8)} & {*extract_paragraphs(page(main + aside))}


def test_an_aside_in_a_section_is_about_its_text():
    annotated = f"<article>{in_tags(LONG)}<aside>{in_tags(text(3, 4))}</aside></article>"
    assert extract_paragraphs(page(annotated)) == [*LONG, *text(3, 4)]


def test_a_page_that_has_nothing_but_an_aside_has_its_text():
    assert extract_paragraphs(page(f"<aside>{in_tags(LONG)}</aside>")) == LONG


def test_a_sentence_in_large_letters_is_text():
    (long,) = text(9, 1)
    assert long in extract_paragraphs(page(f"<div>{in_tags(text(1))}<h2>{long}</h2>{in_tags(text(2))}</div>"))


# --- pages without a text


PIECES = [
    *["<p>", "</p>", "<div class=ad>", "</div>", "<button>", "<noscript>", "<a href=/x>", "</a>", "<a href='#'>"],
    *["Words, and more of them. ", "x", " ", "<li hidden>", "<form>", "<h2>"],
]


@given(st.lists(st.sampled_from(PIECES), max_size=60))
def test_whatever_it_is_the_share_is_one(pieces):
    found = extract_text("".join(pieces))
    assert 0 <= found.share <= 1
    assert all(line.strip() for line in found.paragraphs)
    assert found.is_main_text or found.share == 0
