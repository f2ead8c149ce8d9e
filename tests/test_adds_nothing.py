"""A page is a copy only if it adds nothing: small crawls of one or two sites, and what must come of each second page.

The rows are causes for which pages were lost, or copies were missed, on crawls of many kinds of site.
"""

import pytest
from prose import page, story, zh_story

from dedup_middleware import Deduplicator

SITE, OTHER_SITE = "http://one.example", "http://two.example"
TITLE = "What the harbour council decided about the grain store"


def outcomes(*pages):
    """Return for each page, in this order, the URL of its original, or ``None`` for one that is kept."""
    with Deduplicator() as dedup:
        found = [dedup.add(url, html) for url, html in pages]
    assert "unchecked" not in {each.verdict for each in found}
    return [each.original_url if each.is_duplicate else None for each in found]


def assert_copy(first, copy, *before):
    """Assert that *copy* is dropped for *first*."""
    assert outcomes(*before, first, copy)[-1] == first[0]


def on_site(*htmls, path="/a/{}.html"):
    return [(SITE + path.format(number), html) for number, html in enumerate(htmls)]


# --- additions


@pytest.mark.parametrize("tell", [story, zh_story])
@pytest.mark.parametrize("length", [1, 3], ids=["one paragraph", "three paragraphs"])
@pytest.mark.parametrize("is_first", [True, False], ids=["at the top", "at the end"])
def test_a_page_with_one_more_entry_is_kept_and_one_with_an_entry_less_is_a_copy(tell, length, *, is_first):
    """A thread with one more answer, a live blog with a new entry, a manual with a new section."""
    entries, new = tell(7, 8), tell(8, length)
    less = page(TITLE, *entries)
    more = page(TITLE, *(new + entries if is_first else entries + new))
    assert outcomes(*on_site(less, more)) == [None, None]
    assert_copy((f"{SITE}/a", more), (f"{SITE}/a?s=2", less))


# --- facts around the text

DESCRIPTION = story(10, 5)


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
def test_counters_and_clocks_are_not_facts(one, other):
    title = "A tent for two in any weather of the year"
    first, copy = (page(title, *DESCRIPTION, below=f"<aside><span>{shown}</span></aside>") for shown in (one, other))
    assert_copy((f"{SITE}/tent", first), (f"{SITE}/tent?sid=2", copy))


# --- between sites


@pytest.mark.parametrize("tell", [story, zh_story])
@pytest.mark.parametrize("where", ["end", "middle", "beginning"])
def test_the_whole_story_is_kept_although_its_trimmed_copy_came_first(tell, where):
    whole = tell(11, 12)
    start = {"end": 10, "middle": 5, "beginning": 0}[where]
    trimmed = whole[:start] + whole[start + 2 :]
    pages = [(f"{SITE}/trimmed", page(TITLE, *trimmed)), (f"{OTHER_SITE}/whole", page(TITLE, *whole, menu="Start"))]
    assert outcomes(*pages) == [None, None]
    assert_copy(*pages[::-1])


# --- copies


@pytest.mark.parametrize("title", ["{} — Library {} documentation", "{} | Manual {}"])
def test_documentation_versions_of_the_same_letters_are_copies(title):
    def version(number, name, text):
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
def test_credits_are_no_words_of_a_page(credit, other):
    assert_copy((f"{SITE}/story", page(TITLE, *story(16))), (f"{other}/story?view=2", page(TITLE, *story(16), credit)))


DATELINES = (
    *((story, dateline) for dateline in ("LONDON (Reuters) - ", "HARBOUR TOWN, May 5 (AP) — ", "PARIS, May 5 – ")),
    *(
        (zh_story, dateline)
        for dateline in ("新华社北京4月1日电 ", "（新华社北京4月1日电）", "本报讯5月6日电（记者王明）")
    ),
)


@pytest.mark.parametrize("other", [SITE, OTHER_SITE])
@pytest.mark.parametrize(("tell", "dateline"), DATELINES)
def test_datelines_are_no_words_of_a_page(tell, dateline, other):
    first, *rest = tell(17)
    pages = (page(TITLE, first, *rest), page(TITLE, dateline + first, *rest))
    assert_copy((f"{SITE}/story", pages[0]), (f"{other}/story?view=2", pages[1]))


@pytest.mark.parametrize("title", ["{} (page 2)", "{} - Page 2", "{} - Seite 2", "{} 第2页", "{} (2/3)"])
def test_the_pages_of_an_article_are_copies_of_the_whole(title):
    text = story(18, 9)
    whole = (f"{SITE}/store", page(TITLE, *text))
    part = (f"{SITE}/store?page=2", page(title.format(TITLE), *text[3:6], heading=TITLE))
    assert_copy(whole, part)
