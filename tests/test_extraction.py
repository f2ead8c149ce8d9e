"""Extraction: what counts as main text, on little pages, and what it may cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from lxml import html as lxml_html
from parsel import Selector

from dedup_middleware.errors import ConfigError
from dedup_middleware.extraction import extract_paragraphs, extract_text, parse, texts_of
from dedup_middleware.extraction.blocks import plain_elements
from dedup_middleware.extraction.body import browser_tree

ENGLISH = [
    "The harbour council voted on Tuesday to rebuild the old ferry pier, which a storm had torn away two winters ago.",
    "Work begins in March, the mayor said, and will take about nine months; the ferries sail from the mill until then.",
    'Not everybody is pleased. "We asked for a bridge," said a baker on the far bank, "and we get planks again."',
    "The pier costs 4.2 million, half of it paid by the region, and it is meant to last for sixty years.",
]
CHINESE = [
    "港务委员会周二投票决定重建旧渡轮码头，两年前的冬天，一场暴风雨把它冲走了。",
    "市长表示，工程将于三月开始，大约需要九个月；在此期间，渡轮从磨坊旁边出发。",
    "并非所有人都满意。“我们要的是一座桥，”对岸的一位面包师说，“结果得到的又是木板。”",
    "码头造价四百二十万元，其中一半由地区承担，预计可以使用六十年。",
]
MENU = "".join(f'<li><a href="/s{i}">Section number {i}</a></li>' for i in range(12))
TEASERS = "".join(
    f'<div class="card"><h3><a href="/a{i}">Another story of the day, number {i}</a></h3>'
    f"<p>The first words of a story that is told in full elsewhere, number {i}, and so on...</p></div>"
    for i in range(8)
)


def page(main):
    return (
        f"<!DOCTYPE html><html><head><title>Title</title></head><body><div class='header'><ul>{MENU}</ul></div>"
        f"<h1>The pier comes back</h1>{main}"
        f"<div class='footer'><p>All rights reserved, the publisher answers for its own pages only, since 1999.</p>"
        f"<ul>{MENU}</ul></div></body></html>"
    )


def in_tags(paragraphs, tag):
    return "".join(f"<{tag}>{paragraph}</{tag}>" for paragraph in paragraphs)


both_languages = pytest.mark.parametrize("story", [ENGLISH, CHINESE], ids=["english", "chinese"])


@both_languages
@pytest.mark.parametrize("tag", ["p", "div", "section", "blockquote"])
def test_paragraphs_in_any_element(story, tag):
    assert extract_paragraphs(page(f"<div id='text'>{in_tags(story, tag)}</div>")) == story


@both_languages
@pytest.mark.parametrize("joint", ["<br>", "<br/><br/>", "\n<br>\n &nbsp;<br>"])
def test_paragraphs_between_line_breaks(story, joint):
    assert extract_paragraphs(page(f"<div>{joint.join(story)}</div>")) == story


@both_languages
def test_table_of_prose(story):
    rows = "".join(f"<tr><td>{text}</td></tr>" for text in story)
    assert extract_paragraphs(page(f"<table><tbody>{rows}</tbody></table>")) == story


def test_inline_elements_run_on():
    text = "<p>The <b>harbour</b> council <!-- at last -->voted,<a href='/x'> on Tuesday</a>, to re<i>build</i> it.</p>"
    (first, *_) = extract_paragraphs(page(f"<div>{text}{in_tags(ENGLISH, 'p')}</div>"))
    assert first == "The harbour council voted, on Tuesday, to rebuild it."


def test_short_lines_in_the_format_of_the_text_stay():
    story = [*CHINESE, "港务委员会", "三月二日"]
    assert extract_paragraphs(page(f"<div>{in_tags(story, 'p')}</div>")) == story


def test_subheadings_stay_inside_and_leave_the_edges():
    main = f"<h2>Above</h2><p>{ENGLISH[0]}</p><h2>Between</h2><p>{ENGLISH[1]}</p><h2>Below</h2>"
    assert extract_paragraphs(page(f"<div>{main}</div>")) == [ENGLISH[0], "Between", ENGLISH[1]]


@both_languages
@pytest.mark.parametrize("name", ["comments", "comment-list", "userComments", "disqus_thread"])
def test_comments_are_left_out(story, name):
    opinions = "".join(
        f"<div class='entry'><b>reader{i}</b><p>I saw it, and I say it was different, dear people, {i} times.</p></div>"
        for i in range(9)
    )
    main = f"<div class='story'>{in_tags(story, 'p')}<div id='{name}'>{opinions}</div></div>"
    assert extract_paragraphs(page(main)) == story


@pytest.mark.parametrize("hiding", ["style='display: none'", "hidden", "class='sr-only'", "aria-hidden='true'"])
def test_hidden_spam_does_not_win(hiding):
    spam = " ".join(f"cheap tickets {i}" for i in range(3000))
    assert extract_paragraphs(page(f"<div {hiding}>{spam}</div><div>{in_tags(ENGLISH, 'p')}</div>")) == ENGLISH


@pytest.mark.parametrize("marks", ["role='dialog'", "role='alertdialog'", "aria-modal='true'"])
def test_a_dialog_longer_than_the_story_does_not_win(marks):
    dialog = f"<div {marks}><div>{in_tags([text[::-1] for text in ENGLISH], 'p')}</div></div>"
    main = f"<div>{in_tags(ENGLISH[:3], 'p')}</div>{dialog}"
    assert extract_paragraphs(page(main)) == ENGLISH[:3]


@pytest.mark.parametrize("mode", ["open", "closed"])
def test_a_declarative_shadow_tree_is_read(mode):
    root = parse(page(f"<a-story><template shadowrootmode='{mode}'>{in_tags(ENGLISH, 'p')}</template></a-story>"))
    assert texts_of(root).paragraphs == ENGLISH


def test_a_template_that_no_browser_shows_is_not_read():
    root = parse(page(f"<template>{in_tags(CHINESE, 'p')}</template><div>{in_tags(ENGLISH, 'p')}</div>"))
    assert texts_of(root).paragraphs == ENGLISH


INGREDIENTS = ["250 g flour", "3 eggs", "half a litre of milk", "a pinch of salt", "20 g butter", "sugar for the top"]


@pytest.mark.parametrize(
    "ingredients",
    [
        f"<ul>{in_tags(INGREDIENTS, 'li')}</ul>",
        f"<table>{''.join(f'<tr><td>{line}</td></tr>' for line in INGREDIENTS)}</table>",
        f"<dl>{''.join(f'<dt>{i}</dt><dd>{line}</dd>' for i, line in enumerate(INGREDIENTS))}</dl>",
    ],
    ids=["list", "table", "definitions"],
)
@pytest.mark.parametrize("order", [1, -1], ids=["before", "after"])
def test_a_list_beside_the_text_is_read(ingredients, order):
    parts = [
        f"<section class='ingredients'><h2>Ingredients</h2><button>Print</button>{ingredients}</section>",
        f"<section class='steps'><h2>Steps</h2>{in_tags(ENGLISH, 'p')}</section>",
    ]
    found = extract_paragraphs(page("".join(parts[::order])))
    assert set(found) >= {*INGREDIENTS, *ENGLISH}


def test_a_list_of_teasers_beside_the_text_is_left_out():
    teasers = "".join(
        f"<li><h3><a href='/a{i}'>Another story of the day, number {i}</a></h3><p>In short, summary {i}.</p></li>"
        for i in range(8)
    )
    assert extract_paragraphs(page(f"<div>{in_tags(ENGLISH, 'p')}</div><ul>{teasers}</ul>")) == ENGLISH


@pytest.mark.parametrize(
    "marks", ["main", "div role='main'", "div itemprop='articleBody'", "div class='post_body'"], ids=lambda m: m[-11:]
)
@both_languages
def test_what_calls_itself_the_main_text_wins(story, marks):
    panel = f"<div class='box'>{in_tags([text[::-1] for text in ENGLISH * 2], 'p')}</div>"
    main = f"<div class='menu-column'><{marks}>{in_tags(story, 'p')}</{marks.split(maxsplit=1)[0]}></div>"
    assert extract_paragraphs(page(f"{panel}{main}")) == story
    assert extract_paragraphs(page(f"{main}{panel}")) == story


def test_a_hidden_element_that_calls_itself_the_main_text_does_not_win():
    hidden = f"<div style='display:none'><main>{in_tags([text[::-1] for text in ENGLISH * 2], 'p')}</main></div>"
    assert extract_paragraphs(page(f"{hidden}<div>{in_tags(ENGLISH, 'p')}</div>")) == ENGLISH


def test_a_paragraph_of_links_stays_in_the_text():
    sources = "(<a href='/1'>Law 1</a>, <a href='/2'>Law 2</a>.)"
    main = f"<p>{ENGLISH[0]}</p><p>{sources}</p><p>{ENGLISH[1]}</p>"
    assert extract_paragraphs(page(f"<div>{main}</div>")) == [ENGLISH[0], "(Law 1, Law 2.)", ENGLISH[1]]


def test_a_table_of_contents_is_what_its_page_shows():
    contents = "".join(f"<li><a href='/s{i}'>Section {i}, on the duties of ferrymen</a></li>" for i in range(9))
    found = extract_text(page(f"<main><h2>Ferries</h2><nav><ul>{contents}</ul></nav></main>"))
    assert not found.is_main_text
    assert found.paragraphs == ["Ferries", *(f"Section {i}, on the duties of ferrymen" for i in range(9))]


@both_languages
def test_teasers_around_a_text_are_left_out(story):
    main = f"<div class='top'>{TEASERS}</div><div>{in_tags(story, 'p')}</div><div class='more'>{TEASERS}</div>"
    assert extract_paragraphs(page(main)) == story


COOKIES = "<div class='cookie-consent'><p>We use cookies, as others do. Accept them?</p><button>Accept</button></div>"
LOGIN = "<form class='login'><label>Name</label><input><label>Password</label><input><p>Forgot it? Ask us.</p></form>"


@pytest.mark.parametrize(
    "main",
    [f"<ul>{MENU * 20}</ul>", COOKIES, LOGIN, COOKIES + LOGIN, "<p>请先登录，再阅读全文。</p>"],
    ids=["links", "cookies", "login", "both", "chinese-login"],
)
def test_pages_without_main_text(main):
    html = f"<html><body>{main}</body></html>"
    assert texts_of(parse(html)).paragraphs == []
    assert not extract_text(html).is_main_text


@pytest.mark.parametrize(
    "html", ["", " \n\t", "\x00", "\ufeff", "<!-- a comment -->", "<?xml version='1.0'?>", "<html/>", "<p>", "\ud800"]
)
def test_nothing_to_find(html):
    assert extract_paragraphs(html) == []


def test_bytes_are_refused_with_the_remedy():
    with pytest.raises(ConfigError, match=r"html must be str, got bytes\. Decode bytes first\."):
        extract_paragraphs(b"<p>")


def test_named_anchors_are_no_links():
    assert extract_paragraphs(page(f"<div><a name='top'>{in_tags(ENGLISH, 'p')}</a></div>")) == ENGLISH


@pytest.mark.parametrize(
    "before", ["", "<p>Words, first, and </p>", "<ul><li><a href='/x'>A link that is long</a> x</li></ul>"]
)
@pytest.mark.parametrize("after", ["", "<br>", "<p>and words, last.</p>"])
def test_links_are_left_out_wherever_they_stand(before, after):
    links = "".join(
        f"<li>{i} <a href='/a{i}'>Another story of the day, with a long headline</a></li>" for i in range(9)
    )
    main = f"<div>{before}<ul>{links}</ul>{after}{in_tags(ENGLISH, 'p')}</div>"
    assert extract_paragraphs(page(main))[-len(ENGLISH) :] == ENGLISH
    assert "Another story" not in " ".join(extract_paragraphs(page(main)))


def fail_meanwhile(root):
    with plain_elements(root):
        assert type(root.find(".//p")) is etree._Element
        raise ZeroDivisionError


def test_elements_are_plain_only_while_a_page_is_read():
    root = Selector(text=page(f"<form>{in_tags(ENGLISH, 'p')}</form>"), type="html").root
    held = root.find(".//h1")
    with pytest.raises(ZeroDivisionError):
        fail_meanwhile(root)
    assert type(root.find(".//p")) is lxml_html.HtmlElement
    assert texts_of(root).paragraphs == ENGLISH
    assert type(root.find(".//p")) is lxml_html.HtmlElement
    assert type(root.find(".//form")) is lxml_html.FormElement
    assert root.find(".//h1") is held


# Pieces of markup and of text, so that hypothesis gets past the first tag.
MARKUP = """
    <div> </div> <p> </p> <br> <a> </a> <li> <table><tr><td> <!-- --> <script> </script> <h2> <body> </html> &nbsp; &#0;
    <a/href=x> <div/class=comments> <div/hidden> <head> </head> <title> </title> <main> </main> <noscript> <frameset>
"""
pieces = st.sampled_from([*MARKUP.split(), " ", ENGLISH[0], CHINESE[0]])


pages = st.one_of(st.text(), st.lists(st.one_of(pieces, st.text(max_size=5)), max_size=60).map("".join))


@given(pages)
def test_the_tree_is_that_of_the_response(html):
    selected = browser_tree(Selector(text=html.encode("utf-8", "replace").decode(), type="html").root)
    root = parse(html)
    assert etree.tostring(root.getroottree()) == etree.tostring(selected.getroottree())
    assert texts_of(root).paragraphs == texts_of(selected).paragraphs


@given(pages)
def test_any_string_gives_paragraphs_of_its_own_text(html):
    paragraphs = extract_paragraphs(html)
    if not paragraphs:
        return
    text = "".join("".join(browser_tree(Selector(text=html, type="html").root).itertext()).split())
    for paragraph in paragraphs:
        assert paragraph
        assert paragraph == " ".join(paragraph.split())
    # Comments and scripts in between break the text of the page up, not that of a paragraph: compare without them.
    if "<!" not in html and "<?" not in html and "script" not in html:
        for paragraph in paragraphs:
            assert "".join(paragraph.split()) in text


# --- several texts on a page

CARDS = [("Oak stool", "$49.99"), ("Pine bench", "$129.00"), ("Ash chair", "$89.50"), ("Elm table", "$310.00")] * 6


def test_the_cards_of_a_collection_are_its_content():
    cards = "".join(
        f"<div class='card'><a href='/p{i}'>{name} {i}, made by hand</a><span class='price'>{price}</span>"
        f"<p>{i % 3 + 2} colours, {i % 4 + 1} sizes</p></div>"
        for i, (name, price) in enumerate(CARDS)
    )
    found = extract_text(page(f"<div class='grid'>{cards}</div><p>{ENGLISH[0]}</p>"))
    assert found.type == "list"
    assert not found.is_main_text
    for i, (name, price) in enumerate(CARDS):
        assert f"{name} {i}, made by hand{price}" in found.paragraphs
    assert ENGLISH[0] in found.paragraphs


@both_languages
def test_sections_of_several_makes_belong_together(story):
    sections = "".join(
        f"<div class='part-{i}'><h2>Part {i}</h2><div class='box-{i}'><p>{text}</p></div><a href='/{i}'>More</a></div>"
        for i, text in enumerate(story)
    )
    assert [text for text in extract_paragraphs(page(f"<div>{sections}</div>")) if text in story] == story


@pytest.mark.parametrize(
    "stated",
    [
        '<script type="application/ld+json">{"@type": "DiscussionForumPosting"}</script>',
        '<div itemscope itemtype="https://schema.org/DiscussionForumPosting"></div>',
    ],
    ids=["data", "element"],
)
@both_languages
def test_replies_are_content_where_the_page_says_that_it_is_a_thread(story, stated):
    comments = f"<div class='comments'>{in_tags([text[::-1] for text in story], 'p')}</div>"
    thread = f"<div class='post'>{in_tags(story, 'p')}</div>{comments}"
    assert extract_paragraphs(page(thread)) == story
    found = extract_text(page(stated + thread))
    assert found.type == "thread"
    assert found.paragraphs == [*story, *(text[::-1] for text in story)]


@both_languages
def test_a_short_text_is_no_list(story):
    notice = f"<main><h1>Notice</h1><p>{story[0][:60]}</p></main><div class='banner'><p>{story[1]}</p></div>"
    assert story[1] not in extract_paragraphs(f"<html><body>{notice}</body></html>")
