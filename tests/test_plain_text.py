"""Plain text and Markdown are checked as pages are; what a server calls plain text, and is data, is not."""

import json
import textwrap
from functools import partial

import pytest
from crawling import REACTOR
from local_site import Answer
from prose import blog, headline, story
from test_batch import checked, lines_of, run_batch
from test_linear_time import is_linear
from test_nothing_is_lost import closing_server
from warcs import http, record

from dedup_middleware.common.budget import Budget, UncheckableError
from dedup_middleware.extraction.decoding import NO_CHARSETS
from dedup_middleware.extraction.plain import MARKDOWN, PLAIN, read_text, text_type


def text_of(number, width=0, heading=""):
    """Return story *number* as a text, its lines at most *width* characters long."""
    paragraphs = [textwrap.fill(paragraph, width) if width else paragraph for paragraph in story(number)]
    return "\n\n".join([f"# {heading}"] * bool(heading) + paragraphs) + "\n"


def serve(site, path, body, kind="text/plain; charset=utf-8", host=0):
    return site.add(path, Answer(body, headers={"Content-Type": kind}), host=host)


def crawled(crawl, urls, **how):
    return crawl("sample_spiders.Steps", steps=[{"url": url} for url in urls], **how)


def test_texts_are_pages_however_their_lines_are_wrapped(site, crawl):
    urls = [
        serve(site, "/a.txt", text_of(1, 72)),
        serve(site, "/b.txt", text_of(2, 72)),
        serve(site, "/a.md", text_of(1, heading=headline("", story(1))), "text/markdown", host=1),
        serve(site, "/b.txt", text_of(2, 40).replace("\n", "\r\n"), host=2),
        site.add("/c", blog("C", story(1)), host=2),
    ]
    outcome = crawled(crawl, urls, folder="texts")
    assert outcome.kept == urls[:2]
    assert {r["url"]: r["original_url"] for r in outcome.records} == dict(
        zip(urls[2:], [*urls[:2], urls[0]], strict=True)
    )
    again = crawled(crawl, urls[:2], folder="texts", afresh=True)
    assert again.verdicts == dict.fromkeys(urls[:2], ("unchanged", "kept"))


def test_what_differs_keeps_a_text(site, crawl):
    text = text_of(1).replace("tram line", "line of 12 trams").replace("market hall", "hall of 1850")
    urls = [
        serve(site, "/a.md", f"# The council\n\nThe council of York has 17 members.\n\n{text}", "text/markdown"),
        serve(site, "/number.txt", f"The council of York has 19 members.\n\n{text}", host=1),
        serve(site, "/name.txt", f"The council of Leeds has 17 members.\n\n{text}", host=1),
        serve(site, "/more.txt", f"The council of York has 17 members.\n\n{text}\nThis is new.\n"),
        serve(
            site, "/title.md", f"# The budget\n\nThe council of York has 17 members.\n\n{text}", "text/markdown", host=2
        ),
        serve(site, "/short.txt", "Closed on Monday."),
        serve(site, "/short.txt?sid=2", "Closed on Sunday."),
    ]
    outcome = crawled(crawl, urls)
    assert outcome.kept == urls
    assert outcome.record(urls[1])["reason"] == "other_numbers"


def test_a_copy_at_another_address_of_a_site_is_equal_as_it_is_written(site, crawl):
    short = "The library is closed on Monday, the council says."
    urls = [
        serve(site, "/a.txt", text_of(1, 72)),
        serve(site, "/mirror/a.txt", text_of(1, 50)),
        serve(site, "/other/a.txt", text_of(1).replace(",", ";", 1)),
        serve(site, "/s.txt", short),
        serve(site, "/s.txt?utm_source=mail", short),
    ]
    outcome = crawled(crawl, urls)
    assert [item["url"] for item in outcome.dropped] == [urls[1], urls[4]]


DATA = json.dumps([{"url": "item", "text": " ".join(story(1))}])
#: Content types, and what they come with.
OTHERS = {
    "application/json": DATA,
    "text/plain": f"\n{DATA}",
    "text/csv": text_of(1),
    "text/xml": f"<a>{text_of(1)}</a>",
    "application/pdf": b"%PDF-1.7\0\xff" + text_of(1).encode(),
}


def test_other_types_are_unchecked_and_the_reason_is_that(site, crawl):
    urls = [serve(site, f"/{host}", body, kind, host) for kind, body in OTHERS.items() for host in (0, 1)]
    steps = [{"url": url, "callback": "parse_bulk"} for url in urls]
    outcome = crawl("sample_spiders.Steps", steps=steps)
    assert len(outcome.kept) == len(urls)
    assert {r["url"]: r["reason"] for r in outcome.records} == dict.fromkeys(urls, "other_content_type")
    assert {r["message"] for r in outcome.records} == {"the response is neither HTML nor plain text"}


def test_items_of_data_that_is_called_plain_text_are_checked_by_their_fields(site, crawl):
    urls = [serve(site, "/data", DATA, host=host) for host in (0, 1)]
    steps = [{"url": url, "callback": "parse_api"} for url in urls]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings={"DEDUP_ITEM_FIELDS": ["text"]})
    assert (len(outcome.kept), len(outcome.dropped)) == (1, 1)


def test_files_have_the_type_of_their_names(tmp_path, crawl):
    paths = [tmp_path / name for name in ("a.txt", "b.txt", "b.csv")]
    for path in paths:
        path.write_text(text_of(1), encoding="utf8")
    outcome = crawled(crawl, [path.as_uri() for path in paths])
    assert [r["verdict"] for r in outcome.records] == ["duplicate", "unchecked"]


@pytest.mark.skipif(REACTOR == "reactorless", reason="httpx flags no response without a length")
def test_nothing_shows_the_end_of_a_text_without_a_length(crawl):
    bodies = {f"/{n}": ("", text_of(1).encode()[: -99 * n or None]) for n in range(2)}
    with closing_server(bodies, kind="text/plain") as root:
        outcome = crawled(crawl, [root + path for path in bodies])
    assert {r["reason"] for r in outcome.records} == {"truncated_response"}
    assert len(outcome.kept) == 2


def test_a_text_in_no_charset_is_not_checked(site, crawl):
    chinese = "".join(map(chr, range(0x4E00, 0x4F00))) * 3
    urls = [serve(site, f"/{n}", chinese, f"text/plain; charset={name}") for n, name in enumerate(sorted(NO_CHARSETS))]
    urls.append(serve(site, "/wrong", chinese.encode("gb18030")))
    outcome = crawl("sample_spiders.Steps", steps=[{"url": url, "callback": "parse_bulk"} for url in urls])
    assert {r["url"]: r["reason"] for r in outcome.records} == dict.fromkeys(urls, "no_charset")


@pytest.mark.parametrize(
    ("text", "paragraphs"),
    [
        ("", []),
        (" \n\t\r\n", []),
        ("one\ntwo\n  three", ["one two three"]),
        ("\n\none\n\ntwo\n", ["one", "two"]),
        ("one\n \t\n\n\ntwo", ["one", "two"]),
        ("one\r\ntwo\r\n\r\nthree\r\n", ["one two", "three"]),
        ("one\rtwo\r\rthree", ["one two", "three"]),
        ("one\n\f\ntwo\f\nthree", ["one", "two three"]),
        ("- one\n- two\n\n    code  here", ["- one - two", "code here"]),
    ],
)
def test_paragraphs_are_what_blank_lines_separate(text, paragraphs):
    assert read_text(text, PLAIN).paragraphs == paragraphs


@pytest.mark.parametrize(
    ("text", "heading", "paragraphs"),
    [
        ("# A  bridge \n\nIt opens.", "A bridge", ["It opens."]),
        ("\n[badge](x)\n# A bridge\nIt opens.\n\n# Another", "A bridge", ["[badge](x)", "It opens.", "# Another"]),
        ("one\r# A bridge\rtwo", "A bridge", ["one", "two"]),
        ("## Part\n#tag\n #9\n#!/bin/sh\n#", "", ["## Part #tag #9 #!/bin/sh #"]),
        ("It opens:\n\n```\n# a comment\n```", "", ["It opens:", "``` # a comment ```"]),
    ],
)
def test_the_heading_is_the_first_one_of_markdown(text, heading, paragraphs):
    read = read_text(text, MARKDOWN)
    assert (read.features.heading, read.paragraphs) == (heading, paragraphs)
    assert read_text(f"A\n{text}", PLAIN).features.heading == ""


@pytest.mark.parametrize("text", ['{"a": 1}', "\n [1]", "<p>A", "<?xml version='1.0'?>"])
def test_plain_text_that_begins_as_data_is_none_but_markdown_may(text):
    with pytest.raises(UncheckableError, match="other_content_type"):
        read_text(text, PLAIN)
    assert read_text(text, MARKDOWN).paragraphs


def test_a_type_is_read_as_it_may_be_written():
    kinds = [
        "text/plain",
        "TEXT/PLAIN ; charset=x",
        "text/markdown;variant=GFM",
        "text/plainer",
        "text/html",
        "",
        "; text/plain",
    ]
    assert [text_type(kind) for kind in kinds] == [PLAIN, PLAIN, MARKDOWN, "", "", "", ""]


@pytest.mark.parametrize("part", ["\n", "\r\n", " \n", "\n\f", " ", "a\n\n", "# ", "# \n", "a b\n", "\u2003\n"])
def test_a_text_is_read_in_linear_time(part):
    assert is_linear(lambda size: partial(read_text, part * (size // len(part)) + "x", MARKDOWN), 50_000)


def test_a_text_of_too_many_paragraphs_is_not_checked():
    read_text("a\n\n" * 10, PLAIN, Budget(elements=10))
    with pytest.raises(UncheckableError, match="too_many_elements"):
        read_text("a\n\n" * 11, PLAIN, Budget(elements=10))
    with pytest.raises(UncheckableError, match="too_slow"):
        read_text("a\n\n" * 11, PLAIN, Budget(milliseconds=0))


def test_the_texts_of_an_archive_are_checked_too(tmp_path):
    bodies = [
        ("text/plain; charset=utf-8", text_of(1, 72)),
        ("text/markdown", text_of(1, heading=headline("", story(1)))),
        ("text/plain", DATA),
        ("text/plain; charset=punycode", text_of(2)),
        ("application/json", DATA),
    ]
    path = tmp_path / "archive.warc"
    path.write_bytes(
        b"".join(
            record("response", f"http://h{n}.example/", http(body.encode(), kind=kind.encode()))
            for n, (kind, body) in enumerate(bodies)
        )
    )
    report = run_batch(tmp_path, path)
    assert report["left_out"] == {"neither HTML nor plain text": 1}
    assert [(line["verdict"], line["reason"]) for line in lines_of(tmp_path, "verdicts.jsonl")] == [
        ("new", ""),
        ("duplicate", "cross_host"),
        ("unchecked", "other_content_type"),
        ("unchecked", "no_charset"),
    ]


def test_a_field_of_an_archive_names_no_type(tmp_path):
    pages = [{"url": f"http://h{n}.example/", "html": blog("A", story(1)), "kind": "text/plain"} for n in range(2)]
    assert checked(tmp_path, pages) == [("new", None), ("duplicate", pages[0]["url"])]
