"""Which copy of a story is kept: what a project prefers, and what pages say of their own addresses."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from typing import ClassVar

import pytest
from beside import KINDS, shared_uri
from prose import article, blog, linked, story
from test_commands import run_here
from test_crashes import again, fed, killed

from dedup_middleware.api import Deduplicator


def steps(*urls):
    return [{"url": url} for url in urls]


def told(site, number, *, host, name="copy"):
    """Add a copy of story *number* to a host, and return its URL."""
    return site.add(f"/{name}/{number}", blog(f"{name} {number}", story(number)), host=host)


def kept(*pages, **options):
    """Return the URLs of *pages*, visited in this order without a crawl, that are kept."""
    with Deduplicator("memory:", **options) as dedup:
        return [url for url, html in pages if not dedup.add(url, html).is_duplicate]


class TestPreferred:
    #: The site's host 0 is preferred, by name.
    HOST: ClassVar = {"DEDUP_PREFERRED": ["127.0.0.1"]}
    FATE: ClassVar = {"EXTRA_PIPELINES": {"sample_spiders.FatePipeline": 100}}

    @pytest.mark.parametrize("shared", ["", *KINDS], ids=str)
    def test_it_takes_the_place_of_a_copy_that_came_first(self, site, crawl, request, *, shared):
        first, own, late = told(site, 1, host=1), told(site, 1, host=0), told(site, 1, host=2)
        folder = request.getfixturevalue("tmp_path")
        store = {"DEDUP_STORE": shared_uri(shared, folder, request)} if shared else {}
        run = partial(crawl, "sample_spiders.Steps", settings=self.HOST | store, folder="one")
        outcome = run(steps=steps(first, own, late))
        assert outcome.kept == [first, own]
        record = outcome.record(own)
        assert (record["verdict"], record["original_url"], record["reason"]) == ("related", first, "preferred")
        assert outcome.record(late)["original_url"] == own
        assert outcome.stats["dedup/upgrades"] == 1
        again = run(steps=steps(first, own, late), afresh=True)
        assert again.kept == [own]
        assert {again.record(url)["original_url"] for url in (first, late)} == {own}
        if not shared:
            assert pages_in(outcome) == (1, 2)

    @pytest.mark.parametrize(
        "step",
        [
            {"callback": "generator_raises_first"},
            {"callback": "generator_raises_last"},
            {"callback": "parse_links"},
            {"cb_kwargs": {"fate": "drop"}},
            {"cb_kwargs": {"fate": "fail"}},
        ],
        ids=["raises", "raises after its item", "no item", "item dropped", "item failed"],
    )
    def test_one_whose_items_come_to_nothing_takes_no_place(self, site, crawl, step):
        first, own, late = told(site, 1, host=1), told(site, 1, host=0), told(site, 1, host=2)
        wanted = [*steps(first), {"url": own, **step}, *steps(late)]
        outcome = crawl("sample_spiders.Steps", steps=wanted, settings=self.HOST | self.FATE, folder="one")
        assert outcome.record(late)["original_url"] == first
        assert "dedup/upgrades" not in outcome.stats
        assert pages_in(outcome) == (1, 1)
        # And the next crawl has it.
        again = crawl("sample_spiders.Steps", steps=steps(first, own), settings=self.HOST, folder="one", afresh=True)
        assert again.kept == [first, own]

    def test_a_page_that_says_much_less_replaces_none(self, site, crawl):
        """The copy's additional text would have no original."""
        text = story(1, 12)
        first, own = site.add("/full", blog("full", text), host=1), site.add("/part", blog("part", text[:4]))
        late = site.add("/full", blog("late", text), host=2)
        outcome = crawl("sample_spiders.Steps", steps=steps(first, own, late), settings=self.HOST)
        assert outcome.kept == [first, own]
        assert outcome.record(late)["original_url"] == first


class TestPreferredAfterACrash:
    PREFERRED: ClassVar = {"DEDUP_PREFERRED": ["127.0.0.1"]}

    def test_no_story_is_lost(self, site, tmp_path):
        """Copies were dropped for the former original, and for the preferred page."""
        first, before, own = told(site, 1, host=1), told(site, 1, host=2), told(site, 1, host=0)
        after = told(site, 1, host=2, name="after")
        crashed = killed(tmp_path, site, steps(first, before, own, after), **self.PREFERRED)
        assert crashed.kept == [first, own]
        assert [item["url"] for item in crashed.dropped] == [before, after]
        assert first in fed(crashed)
        outcome = again(tmp_path, [], **self.PREFERRED)
        assert fed(outcome)
        assert outcome.problems == []
        # Two crawls later the preferred page is the only original.
        for _ in range(2):
            outcome = again(tmp_path, steps(first, before, own, after), **self.PREFERRED)
        assert fed(outcome).count(own) >= 2
        verdicts = {url: verdict for url, (verdict, _) in outcome.verdicts.items()}
        assert verdicts == dict.fromkeys((first, before, after), "duplicate") | {own: "unchanged"}


class TestCanonical:
    def pages(self, site, number):
        """Add a story with its print and AMP views; return the addresses of all three, its own first."""
        text = story(number)
        own, printed, amp = f"/story/{number}", f"/print/{number}", f"/amp/{number}"
        return (
            site.add(own, linked(article(f"s{number}", text), amphtml=amp)),
            site.add(printed, linked(blog(f"s{number}", text), canonical=own)),
            site.add(amp, linked(blog(f"s{number}", text), canonical=own)),
        )

    @pytest.mark.parametrize("order", range(3))
    def test_each_story_is_kept_once_in_any_order(self, order):
        stories = {}
        for number in range(1, 20):
            own, printed, amp = (f"http://a.test/{view}/{number}" for view in ("story", "print", "amp"))
            stories[own] = linked(article(f"s{number}", story(number)), amphtml=amp)
            for url in (printed, amp):
                stories[url] = linked(blog(f"s{number}", story(number)), canonical=own)
        urls = [*stories]
        random.Random(order).shuffle(urls)
        found = kept(*((url, stories[url]) for url in urls))
        assert Counter(url.rpartition("/")[2] for url in found) == {str(number): 1 for number in range(1, 20)}

    def test_what_is_said_of_another_host_is_recorded_and_not_obeyed(self, site, crawl):
        own = site.url("/story/1")
        liar = site.add("/a", linked(blog("a", story(1)), canonical=own), host=1)
        site.add("/story/1", linked(article("s1", story(1)), amphtml=liar))
        repost = site.add("/b", linked(blog("b", story(1)), canonical=own), host=2)
        outcome = crawl("sample_spiders.Steps", steps=steps(liar, own, repost))
        assert outcome.kept == [liar]
        assert outcome.record(repost)["canonical"] == own

    def test_pages_that_name_each_other_are_kept_once(self):
        a, b = ((f"http://a.test/{x}", linked(blog(x, story(1)), canonical=f"/{y}")) for x, y in ("ab", "ba"))
        assert kept(a, b) == [a[0]]

    def test_what_leads_nowhere_changes_nothing(self):
        hrefs = [
            "",
            "#top",
            "javascript:alert(1)",
            "http://[",
            "x" * 100_000,
            "/missing",
            "//",
            "mailto:a@b.test",
            "\x00",
        ]
        for href in hrefs:
            a = ("http://a.test/a", linked(blog("a", story(1)), canonical=href))
            b = ("http://a.test/b", linked(article("b", story(1)), amphtml=href))
            assert kept(a, b) == [a[0]], href


def pages_in(outcome):
    """Return how many originals and duplicates the store of a crawl has."""
    (info,) = command(outcome, "store", "info", "--json").json
    return info["originals"], info["duplicates"]


def command(outcome, *arguments):
    """Run a subcommand on the store of a crawl, in this process."""
    return run_here(*arguments, *outcome.here, folder=outcome.folder)
