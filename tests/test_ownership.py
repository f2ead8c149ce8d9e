"""Which page is the original of a story, and for how long."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from crawling import run_scrapy
from library import Library
from local_site import Answer, redirect
from prose import article, blog, story
from test_claims_in_crawls import pair

from dedup_middleware.index.schema import encode_page, page_key
from dedup_middleware.model import VerdictKind


def test_a_page_that_is_gone_owns_nothing_any_more(site, crawl):
    text = story(1)
    a = site.add("/a", Answer(article("a", text)), Answer("gone", status=410))
    b = site.add("/b", blog("b", text), host=1)
    outcome = crawl("sample_spiders.Steps", steps=[{"url": url} for url in (a, a, b)])
    assert outcome.kept == [a, b]
    assert outcome.dropped == []


def test_a_page_is_what_its_redirects_end_at(site, crawl):
    ends = [site.add(f"/a/session/{n}", article("a", story(1))) for n in range(2)]
    hops = [site.add(f"/hop/{n}", redirect(end)) for n, end in enumerate(ends)]
    a = site.add("/a", *map(redirect, hops))
    assert crawl("sample_spiders.Steps", steps=[{"url": a}], folder="one").kept == ends[:1]
    again = crawl("sample_spiders.Steps", steps=[{"url": a}, {"url": ends[0]}], folder="one", afresh=True)
    assert again.verdicts == {ends[1]: ("duplicate", "dropped"), ends[0]: ("unchanged", "kept")}
    assert again.kept == ends[:1]


@pytest.mark.parametrize("host", [0, 1], ids=["same host", "another host"])
def test_who_redirected_to_a_page_cannot_replace_it(site, crawl, host):
    """The URL at which a redirect began is another page's once it answers by itself."""
    a = site.add("/a", article("a", story(1)))
    thief = site.add("/thief", redirect(a), Answer(article("thief", story(2))), host=host)
    copy = site.add("/copy", blog("copy", story(1)), host=2)
    assert crawl("sample_spiders.Steps", steps=[{"url": thief}], folder="one").kept == [a]
    again = crawl("sample_spiders.Steps", steps=[{"url": thief}, {"url": copy}], folder="one", afresh=True)
    assert again.kept == [thief]
    assert again.record(copy)["original_url"] == a


def test_an_original_older_than_the_lease_drops_nothing():
    library = Library(lease=timedelta(days=2))
    original = library.index.commit(library.page("a", range(20)))
    copy = library.page("b", range(20))
    for age, expected in ((1, VerdictKind.DUPLICATE), (3, VerdictKind.NEW)):
        time = (datetime.now(timezone.utc) - timedelta(days=age)).isoformat()
        library.store.write(
            [(page_key(original.number), encode_page(replace(original, kept=replace(original.kept, time=time))))]
        )
        assert library.detector.check(copy).kind is expected


# --- what a person allows


def test_a_page_that_a_person_allows_is_released_once(site, crawl):
    a, b = pair(site, 1)
    c = site.add("/c", blog("c", story(1)), host=2)
    feed = {"FEEDS": {"feed.jsonl": {"format": "jsonlines"}}}
    first = crawl("sample_spiders.Steps", steps=[{"url": url} for url in (a, b, c)], settings=feed, folder="one")
    assert [i["url"] for i in first.dropped] == [b, c]

    allowed = run_scrapy(first.folder, "dedup", "allow", "--host", "127.0.0.2")
    assert (allowed.returncode, allowed.stderr) == (0, "")
    assert allowed.stdout.splitlines() == [
        "Allowed 1 page; the next crawl with a feed releases 1 dropped item",
        f"    {b}",
    ]
    requests = len(site.paths())
    second = crawl("sample_spiders.Steps", steps=[], settings=feed, folder="one", afresh=True)
    assert second.kept == [b]
    assert len(site.paths()) == requests
    third = crawl("sample_spiders.Steps", steps=[], settings=feed, folder="one", afresh=True)
    assert third.kept == []

    allowed = run_scrapy(first.folder, "dedup", "allow", "--original", a, "--json")
    assert json.loads(allowed.stdout)["allowed"] == [c]  # the other one is an original by now


# --- what a spider sees of us


def test_nothing_of_ours_is_in_the_meta_that_a_spider_sees(site, crawl):
    """Spiders copy it: into items, into requests."""
    plain = site.add("/plain", article("plain", story(1)))
    redirected = site.add("/redirected", redirect(site.add("/end", article("end", story(2)))))
    missing = site.url("/missing")
    steps = [{"url": url, "callback": "parse_meta", "errback": "give_up_meta"} for url in (plain, redirected, missing)]
    steps.append({"url": plain, "callback": "parse_inline", "cb_kwargs": {"url": redirected}})
    outcome = crawl("sample_spiders.Steps", steps=steps)
    assert len(outcome.items) == 4
    assert [item for item in outcome.items if any("dedup" in key for key in item["meta"])] == []
    assert outcome.problems == []
