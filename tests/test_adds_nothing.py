"""A page is a copy only if it adds nothing: small crawls of one or two sites, and what must come of each second page.

The rows are causes for which pages were lost, or copies were missed, on crawls of many kinds of site.
"""

from __future__ import annotations

import json

import pytest
from prose import page, story, zh_story

from dedup_middleware import Deduplicator

SITE, OTHER_SITE = "http://one.example", "http://two.example"
TITLE = "What the harbour council decided about the grain store"


def outcomes(*pages: tuple[str, str]) -> list[str | None]:
    """Return for each page, in this order, the URL of its original, or ``None`` for one that is kept."""
    with Deduplicator() as dedup:
        found = [dedup.add(url, html) for url, html in pages]
    assert "unchecked" not in {each.verdict for each in found}
    return [each.original_url if each.is_duplicate else None for each in found]


def assert_all_kept(*pages: tuple[str, str]) -> None:
    """Assert that no page is a copy of another one, in the given and in the reversed order."""
    for crawled in (pages, pages[::-1]):
        kept = dict(zip([url for url, _ in crawled], outcomes(*crawled), strict=True))
        assert kept == dict.fromkeys(kept)


def assert_copy(first: tuple[str, str], copy: tuple[str, str], *before: tuple[str, str]) -> None:
    """Assert that *copy* is dropped for *first*."""
    assert outcomes(*before, first, copy)[-1] == first[0]


def on_site(*htmls: str, path: str = "/a/{}.html") -> list[tuple[str, str]]:
    return [(SITE + path.format(number), html) for number, html in enumerate(htmls)]


# --- symbols and words


@pytest.mark.parametrize(
    ("one", "other"), ["✓✗", "★☆", "↑↓", "≤≥", "♠♥", ("&amp;&amp;", "||"), ("+", "-"), ("😀", "😡"), ("€", "$")]
)
def test_another_symbol_makes_another_page(one: str, other: str) -> None:
    """In a table and in paragraphs, in a long story and nearly alone."""
    features = ["Works without a network", "Has an export for tables", "Can be read aloud", "Runs on old machines"]

    def shown(marks: list[str], *, is_table: bool) -> str:
        rows = zip(features, marks, strict=True)
        if is_table:
            return "<table>" + "".join(f"<tr><td>{name}</td><td>{mark}</td></tr>" for name, mark in rows) + "</table>"
        return "".join(f"<p>{name}: {mark} 5</p>" for name, mark in rows)

    for told, is_table in ((story(1), True), (story(1), False), (story(1, 2), True), (story(1, 2), False)):
        pages = [page(TITLE, *told, shown([one, one, mark, other], is_table=is_table)) for mark in (one, other)]
        assert_all_kept(*on_site(*pages))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pair.split()
        for pair in ("northern southern", "increase decrease", "Mario Maria", "inhibits inhabits", "legal illegal")
    ],
)
@pytest.mark.parametrize("count", [1, 6])
def test_words_that_are_spelt_alike_are_other_words(one: str, other: str, count: int) -> None:
    def told(word: str) -> list[str]:
        return [f"{text} As they told us later, {word} is the word." for text in story(2, count)] + story(3, 6 - count)

    assert_all_kept(*on_site(page(TITLE, *told(one)), page(TITLE, *told(other))))


# --- additions


def test_a_reply_that_quotes_the_whole_question_is_another_page() -> None:
    question = story(6, 4)
    quoted = "".join(f"<p>&gt; {text}</p>" for text in question)
    answer = "I had the same trouble with my pump; a new seal was all it took."
    asked = page("The pump in my cellar hums at night", *question)
    reply = page("The pump in my cellar hums at night", quoted, answer)
    assert outcomes(*on_site(asked, reply)) == [None, None]


@pytest.mark.parametrize("tell", [story, zh_story])
@pytest.mark.parametrize("length", [1, 3], ids=["one paragraph", "three paragraphs"])
@pytest.mark.parametrize("is_first", [True, False], ids=["at the top", "at the end"])
def test_a_page_with_one_more_entry_is_kept_and_one_with_an_entry_less_is_a_copy(tell, length, *, is_first) -> None:
    """A thread with one more answer, a live blog with a new entry, a manual with a new section."""
    entries, new = tell(7, 8), tell(8, length)
    less = page(TITLE, *entries)
    more = page(TITLE, *(new + entries if is_first else entries + new))
    assert outcomes(*on_site(less, more)) == [None, None]
    assert_copy((f"{SITE}/a", more), (f"{SITE}/a?s=2", less))


# --- facts around the text

DESCRIPTION = story(10, 5)


@pytest.mark.parametrize("kind", ["application/ld+json", "application/json"])
@pytest.mark.parametrize(
    ("one", "other"),
    [({"price": 19.9}, {"price": 24.9}), ({"offers": [{"price": "120"}]}, {"offers": [{"price": "130"}]})],
)
def test_another_fact_in_a_script_makes_another_page(kind: str, one: object, other: object) -> None:
    title = "A tent for two in any weather of the year"
    pages = [
        page(title, *DESCRIPTION, head=f'<script type="{kind}">{json.dumps(data)}</script>') for data in (one, other)
    ]
    assert_all_kept(*on_site(*pages))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("17 comments", "21 comments"),
        ("阅读(1200)", "阅读(1301)"),
        ("2 hours ago", "3 hours ago"),
        ("Printed on 5 May 2024, 10:15", "Printed on 6 May 2024, 11:20"),
        ("Monday, 5 May", "Tuesday, 6 May"),
    ],
)
def test_counters_and_clocks_are_not_facts(one: str, other: str) -> None:
    title = "A tent for two in any weather of the year"
    first, copy = (page(title, *DESCRIPTION, below=f"<aside><span>{shown}</span></aside>") for shown in (one, other))
    assert_copy((f"{SITE}/tent", first), (f"{SITE}/tent?sid=2", copy))


# --- between sites


@pytest.mark.parametrize("tell", [story, zh_story])
@pytest.mark.parametrize("where", ["end", "middle", "beginning"])
def test_the_whole_story_is_kept_although_its_trimmed_copy_came_first(tell, where: str) -> None:
    whole = tell(11, 12)
    start = {"end": 10, "middle": 5, "beginning": 0}[where]
    trimmed = whole[:start] + whole[start + 2 :]
    pages = [(f"{SITE}/trimmed", page(TITLE, *trimmed)), (f"{OTHER_SITE}/whole", page(TITLE, *whole, menu="Start"))]
    assert outcomes(*pages) == [None, None]
    assert_copy(*pages[::-1])


def test_city_sites_on_subdomains_are_kept() -> None:
    text = story(12, 6)

    def city(town: str, name: str) -> str:
        told = [f"Our office in {town} is open. {text[0]}", *text[1:5], f"{text[5]} {name} answers your calls."]
        return page("How we help families that are in debt", *told)

    offices = {"leeds": "Ann Moran", "york": "Dan Oakes", "hull": "Sue Platt"}
    assert_all_kept(*((f"http://{town}.debt.example/help", city(town.title(), offices[town])) for town in offices))


@pytest.mark.parametrize("word", ["decibels", "marks", "marathons", "novels", "junipers", "separate rooms"])
def test_a_number_beside_a_word_that_begins_like_a_month_is_no_date(word: str) -> None:
    def told(number: int) -> list[str]:
        text = story(13, 6)
        return [*text[:2], f"{text[2][:-1]} and they counted {number} {word} in all the years.", *text[3:]]

    assert_all_kept(*on_site(page(TITLE, *told(40)), page(TITLE, *told(70))))
    assert_all_kept((f"{SITE}/a", page(TITLE, *told(40))), (f"{OTHER_SITE}/b", page(TITLE, *told(70), menu="Start")))


# --- copies


def bare(title: str, *paragraphs: str, head: str = "h2") -> str:
    """Return a view of a page without menus, which has the site's name below its text."""
    blocks = "".join(f"<p>{text}</p>" for text in paragraphs)
    return (
        f"<html><head><title>{title}</title></head><body><{head}>{TITLE}</{head}>{blocks}"
        "<p>The Harbour Gazette</p></body></html>"
    )


@pytest.mark.parametrize("tell", [story, zh_story])
@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("/print/store", f"{TITLE} - Print"),
        ("/store?print=1", f"Print: {TITLE}"),
        ("/store/print", f"{TITLE} (print version)"),
        ("/store/druck", f"{TITLE} | Druckversion"),
        ("/store/dayin", f"{TITLE}_打印版"),
        ("/amp/store", f"{TITLE} - AMP"),
        ("/m/store", f"{TITLE} | Mobile version"),
    ],
)
def test_views_of_a_page_are_copies(tell, path: str, title: str) -> None:
    text = tell(14)
    whole = page(f"{TITLE} | The Harbour Gazette", *text, heading=TITLE, below="<footer><p>About us</p></footer>")
    others = [
        (f"{SITE}/{n}", page(f"News number {n} of this week | The Harbour Gazette", *tell(50 + n))) for n in range(3)
    ]
    assert_copy((f"{SITE}/news/store", whole), (SITE + path, bare(title, *text)), *others)


@pytest.mark.parametrize("title", ["{} — Library {} documentation", "{} | Manual {}"])
def test_documentation_versions_of_the_same_letters_are_copies(title: str) -> None:
    def version(number: str, name: str, text: list[str]) -> tuple[str, str]:
        return f"{SITE}/docs/{number}/{name}.html", page(title.format(name, number), *text, heading=name)

    others = [version("10.0", name, story(60 + n)) for n, name in enumerate(["Copying", "Locks", "Types", "Views"])]
    for older, newer in (("10.0", "9.3"), ("9.3", "10.0")):
        assert_copy(version(older, "Joins", story(15)), version(newer, "Joins", story(15)), *others)


CREDITS = """
Reporting by Ann Moran; editing by Dan Oakes|Additional reporting by Ann Moran|Edited by: Ann Moran|Photo: Ann Moran|
(Photo by A. Moran)|Source: The Harbour Gazette|Quelle: Hafenblatt|Foto: Anna Moran|Updated 5 May 2024, 10:15|
Published: 2024-05-01|Last updated on Monday, May 5|Aktualisiert am 5. Mai|ENDS|(完)|（完）|
责任编辑：王小明|来源：海港日报|（责编：王小明、李明）|记者/王明|更新时间：2024-05-01|
© 2024 The Harbour Gazette|Copyright 2024|All rights reserved.|
Permalink: http://one.example/1|Copyright 2024 The Harbour Gazette. All rights reserved.
"""


@pytest.mark.parametrize("other", [SITE, OTHER_SITE])
@pytest.mark.parametrize("credit", CREDITS.replace("\n", "").split("|"))
def test_credits_are_no_words_of_a_page(credit: str, other: str) -> None:
    assert_copy((f"{SITE}/story", page(TITLE, *story(16))), (f"{other}/story?view=2", page(TITLE, *story(16), credit)))


DATELINES = (
    *((story, dateline) for dateline in ("LONDON (Reuters) - ", "HARBOUR TOWN, May 5 (AP) — ", "PARIS – ")),
    *(
        (zh_story, dateline)
        for dateline in ("新华社北京4月1日电 ", "（新华社北京4月1日电）", "本报讯5月6日电（记者王明）")
    ),
)


@pytest.mark.parametrize("other", [SITE, OTHER_SITE])
@pytest.mark.parametrize(("tell", "dateline"), DATELINES)
def test_datelines_are_no_words_of_a_page(tell, dateline: str, other: str) -> None:
    first, *rest = tell(17)
    pages = (page(TITLE, first, *rest), page(TITLE, dateline + first, *rest))
    assert_copy((f"{SITE}/story", pages[0]), (f"{other}/story?view=2", pages[1]))


@pytest.mark.parametrize("title", ["{} (page 2)", "{} - Page 2", "{} - Seite 2", "{} 第2页", "{} (2/3)"])
def test_the_pages_of_an_article_are_copies_of_the_whole(title: str) -> None:
    text = story(18, 9)
    whole = (f"{SITE}/store", page(TITLE, *text))
    part = (f"{SITE}/store?page=2", page(title.format(TITLE), *text[3:6], heading=TITLE))
    assert_copy(whole, part)


# --- one change in a long text


@pytest.mark.parametrize(
    ("one", "other"), [("is", "is not"), ("is", "isn't"), ("is rated A+", "is rated A-"), ("is 18°", "is 19°")]
)
def test_a_negation_or_a_symbol_makes_another_story_between_sites(one: str, other: str) -> None:
    first, *rest = story(21)
    pages = [
        (
            f"{host}/story",
            page(TITLE, first, f"The bridge at the mill {word} by the state all year. {rest[0]}", *rest[1:]),
        )
        for host, word in ((SITE, one), (OTHER_SITE, other))
    ]
    assert_all_kept(*pages)
