"""A page is read as a browser shows it, whichever of ``<html>``, ``<head>`` and ``<body>`` it writes, and where."""

from itertools import product

import pytest
from lxml import etree
from parsel import Selector
from prose import story

from dedup_middleware import Deduplicator, extract_paragraphs
from dedup_middleware.common.budget import UNLIMITED
from dedup_middleware.extraction import EXTRACTORS, extract_text, parse, weighted_dom
from dedup_middleware.extraction.body import browser_tree
from dedup_middleware.extraction.features import description_of, shown_digest
from dedup_middleware.methods.extractors import elements

HEAD = (
    "<title>Bridge closed</title><meta name=description content='Nine weeks'><link rel=canonical href=/bridge>"
    '<script type=\'application/ld+json\'>{"price": "12 EUR"}</script><style>p{}</style>'
)
STORY = "".join(f"<p>{paragraph}</p>" for paragraph in story(1))
FIRST = {
    **{tag: f"<{tag}>It costs 14 EUR <i>here</i></{tag}>" for tag in ("header", "aside", "p", "div", "h1", "label")},
    **{tag: f"<{tag} class=story>{STORY}<img src=/a.png></{tag}>" for tag in ("main", "article", "section", "x-story")},
    "nav": "<nav><a href=/>Home</a> <a href=/all>All</a></nav>",
    "footer": "<footer>All rights reserved<sup>1</sup></footer>",
    "figure": "<figure><img src=/b.png><figcaption>The bridge, 30 m</figcaption></figure>",
    "details": "<details><summary>Prices</summary>4.50 EUR</details>",
    "dialog": "<dialog open>Accept 3 cookies</dialog>",
    "picture": "<picture><source srcset=/c.png><img src=/c.png></picture>",
    "svg": "<svg><title>Icon</title><text>38 km</text></svg>",
    "input": "<input type=checkbox checked>",
    "object": "<object data=/d.pdf></object>",
    "template": "<template><p>Not shown</p></template>",
    "comment": "<!-- a comment -->",
}
REST = f" <main><h1>Bridge closed</h1>{STORY}<a href=/a.pdf>Plan</a></main><footer>Tel. 555 1234</footer><p>The end"


def all_read(html):
    """Return what is read of a page, by all that read pages, and of the tree that a spider has."""
    root, spiders = parse(html), Selector(html).root
    read = elements.read(root, UNLIMITED)
    return [
        weighted_dom(root, UNLIMITED),
        weighted_dom(browser_tree(spiders), UNLIMITED),
        (shown_digest(root), description_of(root), extract_text(html)),
        (read.nodes, read.lines),
    ]


@pytest.mark.parametrize("first", FIRST)
def test_a_page_that_leaves_tags_out_is_read_as_the_one_that_writes_them(first):
    content = f"{FIRST[first]}{REST}"
    whole = all_read(f"<!DOCTYPE html><html><head>{HEAD}</head><body>{content}</body></html>")
    for html, head, body, ends, comment in product((True, False), repeat=5):
        mix = "<!-- before -->" * comment + "<html>" * html + "<head>" * head + HEAD
        mix += "</head>" * (head and ends) + "<body>" * body + content
        mix += "</body>" * (body and ends) + "</html>" * (html and ends)
        assert all_read(mix) == whole, mix


NOTICE = (
    "<p>We store cookies to keep this site running, to count visits, and to remember what you chose before.</p>" * 3
)
#: Where a parser of HTML 4 leaves a story that a browser shows.
PLACES = {
    "no body is written": "<title>News</title><main>{story}</main><div>{notice}</div>",
    "nor anything else": "<section>{story}</section><title>News</title><div>{notice}</div>",
    "in an element of one's own": "<title>News</title><a-story>{story}</a-story><div>{notice}</div>",
    "in a written head": "<html><head><title>News</title><form>{story}</form></head><body>{notice}</body></html>",
    "in a second head": "<head><title>News</title></head><head><article>{story}</article></head><body>{notice}</body>",
    "in a head after the body": "<title>News</title><body>{notice}</body><head><article>{story}</article></head>",
    "after the body": "<html><head><title>News</title></head><body>{notice}</body>{story}</html>",
    "after the end": "<html><head><title>News</title></head><body>{notice}</body></html>{story}",
    "as text after the end": "<title>News</title>{notice}</html>{text}",
    "in a second document": "<html><body>{notice}</body></html><html><head><nav>{story}</nav></head></html>",
    "in a second body": "<title>News</title><body>{notice}</body><body>{story}</body>",
    "in an element that is never void here": "<title>News</title><bgsound src=a><main>{story}</main>{notice}",
    "before frames": "<title>News</title><main>{story}</main><frameset><frame src=/a></frameset>{notice}",
    "in a shadow root": "<title>News</title><template shadowrootmode=open>{story}</template>{notice}",
    "without scripts": "<title>News</title><noscript>{story}</noscript>{notice}",
}


def told(place, number):
    """Return a page that shows a notice, and story *number* in this *place*."""
    paragraphs = story(number)
    told = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return PLACES[place].format(story=told, text=" ".join(paragraphs), notice=NOTICE)


@pytest.mark.parametrize("place", PLACES)
def test_two_stories_with_one_notice_are_no_duplicates(place):
    with Deduplicator() as dedup:
        first, second, again = (dedup.add(f"http://a.example/?id={n}", told(place, n % 2)) for n in range(3))
    assert (first.verdict, second.is_duplicate) == ("new", False)
    assert (again.verdict, again.original_url, again.score) == ("duplicate", first.url, 1.0)


def test_the_pages_of_a_crawl_are_read_so_and_its_spider_gets_them_as_they_are(site, crawl):
    urls = [site.add(f"/{n}", told("no body is written", n)) for n in (1, 2)]
    copy = site.add("/copy", told("no body is written", 1), host=1)
    outcome = crawl("sample_spiders.OneByOne", urls=",".join([*urls, copy]), settings={"DEDUP_ACTION": "tag"})
    assert outcome.verdicts == {copy: ("duplicate", "tagged")}
    assert outcome.record(copy)["original_url"] == urls[0]
    for place in PLACES:
        root = Selector(told(place, 1)).root
        before = etree.tostring(root.getroottree()), [etree.tostring(each) for each in root.itersiblings()]
        browser_tree(root)
        assert (etree.tostring(root.getroottree()), [etree.tostring(each) for each in root.itersiblings()]) == before


@pytest.mark.parametrize("name", [name for name in EXTRACTORS.names() if name != "trafilatura"])
def test_every_extraction_reads_the_body_of_a_browser(name):
    written = f"<html><head><title>A</title></head><body><article>{STORY}</article></body></html>"
    extract = EXTRACTORS.load(name)
    assert extract(parse(f"<title>A</title><article>{STORY}</article>"), UNLIMITED) == extract(
        parse(written), UNLIMITED
    )


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("<main><p>x</p></main><title>B</title>", "B"),
        ("<body><p>x</p><title>B</title><title>C</title></body>", "B"),
        ("<svg><title>icon</title></svg><main><title>B</title></main>", "B"),
        ("<template><title>A</title></template><p>x</p><title>B</title>", "B"),
        ("<head></head><body></body></html><title>B</title>", "B"),
        ("<title></title><main>x</main>", ""),
        ("<title>A</title><main><svg><title>icon</title></svg></main><title>B</title>", "A"),
    ],
)
def test_the_title_is_the_first_that_is_not_that_of_an_icon(page, title):
    assert weighted_dom(parse(page), UNLIMITED).features.title == title


@pytest.mark.parametrize(
    ("page", "canonical"),
    [
        ("<title>A</title><link rel=canonical href=/a><main>x</main>", "/a"),
        ("<noscript>Scripts, please</noscript><title>A</title><link rel=canonical href=/a><main>x</main>", ""),
        ("<title>A</title><noscript>Scripts, please</noscript><link rel=canonical href=/a><main>x</main>", "/a"),
        # A reader may have written these.
        ("<title>A</title><main>x</main><link rel=canonical href=/a>", ""),
        ("<head><title>A</title><x-y></x-y><link rel=canonical href=/a></head><body>x</body>", ""),
        ("<title>A</title><body>x</body><head><link rel=canonical href=/a></head>", ""),
        ("<body>x</body></html><head><link rel=canonical href=/a></head>", ""),
    ],
)
def test_what_stands_after_the_head_of_a_browser_names_no_canonical_page(page, canonical):
    assert weighted_dom(parse(page), UNLIMITED).features.canonical == canonical


@pytest.mark.parametrize("inside", ["<style>p{}</style>", "<img src=/count?id=7>", "&lt;img src=/count?id=7&gt;", " "])
def test_what_counts_visits_without_scripts_is_not_read_of_a_head(inside):
    page = f"<html><head><title>A</title>{{}}</head><body><main>{STORY}</main></body></html>"
    assert all_read(page.format(f"<noscript>{inside}</noscript>"))[:2] == all_read(page.format(""))[:2]


def test_texts_run_on_where_a_parser_breaks_them():
    words = " ".join(story(1))
    page = f"<title>A</title><x-a>{words} It </x-a><x-b>was dark</x-b><body>er.</body> <i>So</i></html><i> it was.</i>"
    assert extract_paragraphs(page) == [f"{words} It was darker. So it was."]


def test_control_characters_stop_nothing():
    text = " ".join(story(1))
    page = f"<title>A</title><main>{text} It\x1b </main><b>was</b> \x1b<body>late.\x1b</body></html>\x1b"
    assert extract_paragraphs(page)[0].startswith(f"{text} It")


def test_of_frames_nothing_is_compared_but_these():
    page = "<title>News</title><frameset><frame src=/{}></frameset><noframes>Frames, please</noframes><body>{}</body>"
    with Deduplicator() as dedup:
        first, second = (dedup.add(f"http://a.example/?id={n}", page.format(n, NOTICE)) for n in (1, 2))
        assert (first.reason, second.reason) == ("too_little_text", "too_little_text")
    digests = {shown_digest(parse(page.format(n, NOTICE))) for n in (1, 2, 2)}
    assert len(digests) == 2


def test_what_a_parser_has_cut_off_is_found_there_too():
    with Deduplicator() as dedup:
        deep = f"<title>A</title><main>{STORY}{'<div>' * 100_000}<p>The very end.</p>"
        root = parse(deep)
        assert "The very end." in "".join(root.itertext()) or dedup.add("http://a.example/", deep).reason == (
            "nested_too_deeply"
        )
