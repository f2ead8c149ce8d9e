"""A page with little text is a copy only of a page at its own address that shows the same in all."""

from dataclasses import replace
from itertools import permutations

import pytest
from library import Library, verdicts
from prose import story

from dedup_middleware import Deduplicator
from dedup_middleware.common.budget import UNLIMITED
from dedup_middleware.index.shared import index_for_command
from dedup_middleware.model import Action, Fingerprint, PageFeatures, VerdictKind
from dedup_middleware.stores import OpenStore
from dedup_middleware.visits.states import Claim

TALK = "http://talks.example/video/1"
KEPT_READS = 1
WALL = "<h1>Please log in</h1><p>Members can read on.</p>"


def page(body, title="A talk on tides", *, head=""):
    menu = "<nav><a href=/>Home</a> <a href=/videos>Videos</a></nav>"
    start = f"<!DOCTYPE html><html><head><title>{title} - Talks</title>{head}</head><body>{menu}"
    return f"{start}<main>{body}</main><footer><p>Recorded in the harbour.</p></footer></body></html>"


SHORT = page("<h1>A talk on tides</h1><p>Ann Holt, Tuesday</p><p>In the old mill.</p>")


@pytest.mark.parametrize(
    "url", [f"{TALK}?t=30", f"{TALK}?utm_source=mail&utm_medium=link", "http://talks.example/print/video/1"]
)
def test_equal_content_at_the_same_address_is_a_copy_in_both_orders(url):
    for pages in permutations([(TALK, SHORT), (url, SHORT)]):
        assert verdicts(*pages) == ["unchecked", "duplicate"]
        assert verdicts(*[(*each, {"title": "A talk on tides"}) for each in pages]) == ["unchecked", "duplicate"]


def test_one_word_is_enough():
    word = page("<p>Closed.</p>")
    assert verdicts(("http://one.example/a", word), ("http://one.example/a?s=1", word)) == ["unchecked", "duplicate"]
    nothing = "<html><head><title>Talks</title></head><body><div id=root></div><script>run()</script></body></html>"
    assert verdicts(("http://one.example/b", nothing), ("http://one.example/b?s=1", nothing)) == ["unchecked"] * 2


DIFFERENT = {
    "a word": SHORT.replace("Tuesday", "Monday"),
    "a number": SHORT.replace("Tuesday", "Tuesday 9"),
    "a symbol": SHORT.replace("Tuesday", "Tuesday ✓"),
    "a word of the menu": SHORT.replace("Videos</a>", "Films</a>"),
    "a headline in a list of links": SHORT.replace("</main>", f"<ul><li><a href=/next>{story(7)[0]}</a></ul></main>"),
    "where a link leads": SHORT.replace("href=/videos", "href=/films"),
    "a picture": SHORT.replace("</main>", "<img src=/gull.png></main>"),
    "a picture in a link": SHORT.replace("Home</a>", "Home<img src=/gull.png></a>"),
    "a chosen option": SHORT.replace("</main>", "<select><option selected>Red</select></main>"),
    "the data of a script": SHORT.replace("</head>", '<script type="application/json">{"price": "4"}</script></head>'),
    "an icon": SHORT.replace("</main>", "<i class=icon-yes></i></main>"),
    "the title": SHORT.replace("A talk on tides - Talks", "A talk on winds - Talks"),
    "the order": page("<h1>A talk on tides</h1><p>In the old mill.</p><p>Ann Holt, Tuesday</p>"),
}


@pytest.mark.parametrize("other", DIFFERENT.values(), ids=DIFFERENT)
def test_anything_that_is_shown_makes_another_page(other):
    assert other != SHORT
    for pages in permutations([(TALK, SHORT), (f"{TALK}?t=30", other)]):
        assert verdicts(*pages) == ["unchecked", "unchecked"]


@pytest.mark.parametrize(
    "urls",
    [
        ("http://one.example/read?id=1", "http://one.example/read?id=2"),
        ("http://one.example/read/1", "http://one.example/read/2"),
        ("http://one.example/read/1", "http://two.example/read/1"),
        ("http://one.example/read/1?page=2", "http://one.example/read/1?page=3"),
    ],
)
def test_a_wall_that_many_addresses_show_is_kept(urls):
    for pages in permutations([(url, page(WALL, "Please log in")) for url in urls]):
        assert verdicts(*pages) == ["unchecked", "unchecked"]


def test_a_page_that_names_a_wall_as_canonical_is_kept():
    head = "<link rel=canonical href=http://one.example/login>"
    wall = page(WALL, "Please log in", head=head)
    assert verdicts(("http://one.example/login", wall), ("http://one.example/read/1", wall)) == ["unchecked"] * 2


def test_a_value_of_an_item_keeps_it():
    def items(*values):
        urls = (TALK, f"{TALK}?size=2")
        return verdicts(*[(url, SHORT, value) for url, value in zip(urls, values, strict=True)])

    assert items({"speaker": "Ann Holt"}, {"speaker": "Ann Holt"})[1] == "duplicate"
    assert items({"stock": 3}, {"stock": 4})[1] == "related"
    text = " ".join(story(3))
    assert items({"speaker": "Ann Holt"}, {"speaker": "Ann Holt", "text": text})[1] != "duplicate"


def test_it_is_the_original_of_nothing_else():
    lines = "".join(f"<p>{line}</p>" for line in story(5))
    sentence = story(5)[0][:120]
    short = page(f"<h1>Tides</h1><p>{sentence}</p>")
    whole = page(f"<h1>Tides</h1>{lines}")
    with Deduplicator() as dedup:
        assert dedup.add(TALK, short).reason == "too_little_text"
        assert dedup.add(f"{TALK}?t=30", whole).verdict == "new"
        assert dedup.add("http://talks.example/video/2", short).verdict == "unchecked"
        assert dedup.add("http://other.example/", whole).original_url == f"{TALK}?t=30"


def test_the_store_has_one_posting_of_it(tmp_path):
    uri = f"leveldb:{tmp_path / 'store'}"
    with Deduplicator(uri) as dedup:
        dedup.add(TALK, SHORT)
    with index_for_command(uri, "test") as (store, index):
        (stored,) = index.pages()
        assert len(stored.hashes) == 1
        assert sum(1 for _ in store.scan(b"c", b"d")) == 1
        assert [*store.scan(b"e", b"f")] == []
        assert sum(len(key) + len(value) for key, value in store.scan(b"a", b"z")) < 700


def test_a_later_crawl_has_the_same_verdicts(tmp_path):
    uri = f"leveldb:{tmp_path / 'store'}"
    for first in ("unchecked", "unchanged"):
        with Deduplicator(uri) as dedup:
            assert [dedup.add(url, SHORT).verdict for url in (TALK, f"{TALK}?t=30")] == [first, "duplicate"]
    with Deduplicator(uri) as dedup:
        changed = SHORT.replace("Tuesday", "Monday")
        assert [dedup.add(url, changed).verdict for url in (TALK, f"{TALK}?t=30")] == ["unchecked", "duplicate"]
        assert dedup.add(f"{TALK}?t=60", SHORT).verdict == "unchecked"


def test_it_is_kept_with_one_read_as_any_page_and_dropped_with_fewer(tmp_path, monkeypatch):
    reads = []
    get_many = OpenStore.get_many
    monkeypatch.setattr(OpenStore, "get_many", lambda store, keys: reads.append(1) or get_many(store, keys))

    def count(dedup, html):
        counts = []
        for url in (TALK, f"{TALK}?t=30"):
            reads.clear()
            dedup.add(url, html)
            counts.append(len(reads))
        return counts

    with Deduplicator(f"leveldb:{tmp_path / 'store'}") as dedup:
        dedup.add("http://talks.example/", SHORT.replace("tides", "winds"))
        kept, dropped = count(dedup, SHORT)
    with Deduplicator(f"leveldb:{tmp_path / 'other'}") as dedup:
        dedup.add("http://talks.example/", SHORT.replace("tides", "winds"))
        full_kept, full_dropped = count(dedup, page("".join(f"<p>{line}</p>" for line in story(3, 6))))
    assert kept == full_kept == KEPT_READS
    assert dropped < full_dropped


class TestClaims:
    """Of a page with little text, in a crawl."""

    @staticmethod
    def page(library, url):
        found = library.page(url, [])
        whole = Fingerprint({b"shown.": 0}, b"all that it shows", is_whole=True)
        return replace(found, fingerprint=whole, features=PageFeatures("A talk"))

    def test_a_list_owns_none_of_its_items(self):
        library = Library()
        assert library.leave(library.enter(self.page(library, TALK)), items=[{}, {}]).claim.state is Claim.VOID
        assert library.enter(self.page(library, f"{TALK}?t=30")).verdict.kind is VerdictKind.UNCHECKED
        library.check_invariants()

    def test_a_claim_is_seen_by_a_page_that_was_checked_before(self):
        library = Library()
        one, other = (
            library.deduplication.verdicts.check(self.page(library, url), Action.DROP, UNLIMITED)
            for url in (TALK, f"{TALK}?t=30")
        )
        library.deduplication.enter(one)
        library.deduplication.enter(other)
        assert (one.claim.state, other.is_duplicate) == (Claim.PENDING, True)

    def test_a_void_claim_is_the_original_of_nothing(self):
        library = Library()
        one, other = (library.enter(self.page(library, url)) for url in (TALK, f"{TALK}?t=30"))
        assert other.is_duplicate
        library.deduplication.claims.void(one)
        assert library.leave(other).items.kept == 1
        assert library.enter(self.page(library, TALK)).is_duplicate
        library.check_invariants()
