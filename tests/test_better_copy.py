"""Which copy of a story is kept: what a project prefers, and what pages say of their own addresses."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from crawling import Outcome, store_uri
from prose import article, blog, story
from test_commands import Output, run_here

from dedup_middleware.api import Deduplicator

if TYPE_CHECKING:
    from local_site import Site

STORYS_OWN = "the story's own page"
#: Enough text for two pages to be told apart, too little to take long.
STORIES = 8


def linked(html: str, **links: str) -> str:
    """Return the page with ``<link rel=… href=…>`` in its head."""
    tags = "".join(f'<link rel="{rel}" href="{href}">' for rel, href in links.items())
    return html.replace("</head>", f"{tags}</head>")


def steps(*urls: str) -> list[dict[str, str]]:
    return [{"url": url} for url in urls]


class TestPreferredUrls:
    def test_a_page_with_such_an_address_is_delivered_and_takes_the_story(self, site: Site, crawl) -> None:
        printed = site.add("/print/1", blog("Printed", story(1)))
        own = site.add("/story/1", article("Own", story(1)))
        copy = site.add("/copy", blog("Copy", story(1)), host=1)
        outcome = crawl(
            "sample_spiders.Steps", steps=steps(printed, own, copy), settings={"DEDUP_PREFERRED_URLS": ["/story/"]}
        )
        assert outcome.delivered == [printed, own]
        assert outcome.record(own)["reason"] == "a preferred address"
        assert outcome.record(copy)["owner_url"] == own

    @pytest.mark.parametrize("given", ["/story/", '["/story/"]'])
    def test_patterns_may_come_from_the_command_line(self, site: Site, crawl, given: str) -> None:
        pages = site.add("/print/1", blog("Printed", story(1))), site.add("/story/1", article("Own", story(1)))
        outcome = crawl("sample_spiders.Steps", steps=steps(*pages), settings={"DEDUP_PREFERRED_URLS": given})
        assert outcome.delivered == [*pages]

    def test_what_is_no_pattern_is_told(self, crawl) -> None:
        outcome = crawl("sample_spiders.Steps", steps=[], settings={"DEDUP_PREFERRED_URLS": ["("]})
        assert "DEDUP_PREFERRED_URLS = ['('] is no list of patterns" in outcome.log


class TestCanonical:
    def pages(self, site: Site, number: int, *, amp_names: bool = True) -> tuple[str, str, str]:
        """Add a story with its print and AMP views; return the addresses of all three, its own first."""
        text = story(number)
        own, printed, amp = f"/story/{number}", f"/print/{number}", f"/amp/{number}"
        return (
            site.add(own, linked(article(f"s{number}", text), amphtml=amp)),
            site.add(printed, linked(blog(f"s{number}", text), canonical=own)),
            site.add(amp, linked(blog(f"s{number}", text), **({"canonical": own} if amp_names else {}))),
        )

    @pytest.mark.parametrize("order", range(10))
    def test_each_story_gives_its_own_page_in_any_order(self, order: int) -> None:
        stories = {}
        for number in range(1, 20):
            own, printed, amp = (f"http://a.test/{view}/{number}" for view in ("story", "print", "amp"))
            stories[own] = linked(article(f"s{number}", story(number)), amphtml=amp)
            for url in (printed, amp):
                stories[url] = linked(blog(f"s{number}", story(number)), canonical=own)
        urls = [*stories]
        random.Random(order).shuffle(urls)
        with Deduplicator("memory:") as dedup:
            delivered = [url for url in urls if not dedup.add(url, stories[url]).is_duplicate]
        own_pages = [url for url in delivered if "/story/" in url]
        assert len(own_pages) == 19
        assert len(delivered) <= 2 * 19
        views = Counter(url.rpartition("/")[2] for url in delivered if url not in own_pages)
        assert max(views.values()) == 1

    @pytest.mark.parametrize("order", range(4))
    def test_each_story_gives_its_own_page_with_all_in_flight(self, site: Site, crawl, order: int) -> None:
        stories = [self.pages(site, number) for number in range(1, STORIES + 1)]
        urls = [url for views in stories for url in views]
        random.Random(order).shuffle(urls)
        outcome = crawl("sample_spiders.Steps", steps=steps(*urls), together=True)
        for views in stories:
            delivered = [url for url in views if url in outcome.delivered]
            assert delivered[0] == views[0]
            assert len(delivered) <= 2
        upgraded = [record["url"] for record in outcome.records if record["reason"] == STORYS_OWN]
        assert outcome.stats.get("dedup/upgrades", 0) == len(upgraded)
        assert len(outcome.delivered) == STORIES + len(upgraded)
        assert outcome.problems == []

    def test_from_then_on_the_view_repeats_it(self, site: Site, crawl) -> None:
        own, printed, _ = self.pages(site, 1)
        copy = site.add("/copy", blog("Copy", story(1)), host=1)
        first = crawl("sample_spiders.Steps", steps=steps(printed, own, copy), folder="one")
        assert first.delivered == [printed, own]
        assert first.record(copy)["owner_url"] == own
        second = crawl("sample_spiders.Steps", steps=steps(printed, own, copy), folder="one", afresh=True)
        assert second.delivered == [own]
        assert second.record(printed)["owner_url"] == own
        assert "1 owners, 2 duplicates" in command(first, "stats").out

    def test_a_view_that_comes_later_is_dropped(self, site: Site, crawl) -> None:
        own, printed, amp = self.pages(site, 1)
        assert crawl("sample_spiders.Steps", steps=steps(own, printed, amp)).delivered == [own]

    def test_a_page_that_names_its_view_for_phones_takes_its_place(self, site: Site, crawl) -> None:
        own, _, amp = self.pages(site, 1, amp_names=False)
        outcome = crawl("sample_spiders.Steps", steps=steps(amp, own))
        assert outcome.delivered == [amp, own]
        assert outcome.record(own)["reason"] == STORYS_OWN

    def test_a_view_of_a_page_that_never_comes_is_delivered(self, site: Site, crawl) -> None:
        _, printed, amp = self.pages(site, 1)
        assert crawl("sample_spiders.Steps", steps=steps(printed, amp)).delivered == [printed]

    def test_what_is_said_of_another_host_is_recorded_and_not_obeyed(self, site: Site, crawl) -> None:
        own = site.url("/story/1")
        liar = site.add("/a", linked(blog("a", story(1)), canonical=own), host=1)
        site.add("/story/1", linked(article("s1", story(1)), amphtml=liar))
        repost = site.add("/b", linked(blog("b", story(1)), canonical=own), host=2)
        outcome = crawl("sample_spiders.Steps", steps=steps(liar, own, repost))
        assert outcome.delivered == [liar]
        assert outcome.record(repost)["canonical"] == own

    def test_pages_that_name_each_other_are_delivered_once(self, site: Site, crawl) -> None:
        a, b = (site.add(f"/{x}", linked(blog(x, story(1)), canonical=f"/{y}")) for x, y in ("ab", "ba"))
        assert crawl("sample_spiders.Steps", steps=steps(a, b)).delivered == [a]

    @pytest.mark.parametrize(
        "href",
        ["", "#top", "javascript:alert(1)", "http://[", "x" * 100_000, "/missing", "//", "mailto:a@b.test", "\x00"],
    )
    def test_what_leads_nowhere_changes_nothing(self, site: Site, crawl, href: str) -> None:
        a = site.add("/a", linked(blog("a", story(1)), canonical=href))
        b = site.add("/b", linked(article("b", story(1)), amphtml=href))
        outcome = crawl("sample_spiders.Steps", steps=steps(a, b))
        assert (outcome.delivered, outcome.problems) == ([a], [])

    def test_a_page_that_names_itself_is_none_of_its_views(self, site: Site, crawl) -> None:
        a = site.add("/a", linked(blog("a", story(1)), canonical="/a#text"))
        b = site.add("/b", linked(article("b", story(1)), canonical="/b"))
        assert crawl("sample_spiders.Steps", steps=steps(a, b)).delivered == [a]

    def test_a_link_in_the_body_is_a_readers(self, site: Site, crawl) -> None:
        a = site.add("/a", blog("a", story(1)).replace("</body>", '<link rel="canonical" href="/b"></body>'))
        b = site.add("/b", article("b", story(1)))
        assert crawl("sample_spiders.Steps", steps=steps(a, b)).delivered == [a]

    def test_it_can_be_switched_off(self, site: Site, crawl) -> None:
        own, printed, _ = self.pages(site, 1)
        settings = {"DEDUP_PREFER_CANONICAL": False}
        assert crawl("sample_spiders.Steps", steps=steps(printed, own), settings=settings).delivered == [printed]

    def test_one_that_a_pipeline_refuses_takes_nobodys_place(self, site: Site, crawl) -> None:
        text = story(1)
        printed = site.add("/print", linked(blog("s", text), canonical="/own"))
        own = site.add("/own", article("s", text))
        copy = site.add("/copy", blog("copy", text), host=1)
        unwanted = {"url": own, "cb_kwargs": {"fate": "drop"}}
        pipelines = {"EXTRA_PIPELINES": {"sample_spiders.FatePipeline": 100}}
        outcome = crawl("sample_spiders.Steps", steps=[*steps(printed), unwanted, *steps(copy)], settings=pipelines)
        assert outcome.record(copy)["owner_url"] == printed
        assert "dedup/upgrades" not in outcome.stats


def command(outcome: Outcome, *arguments: str) -> Output:
    """Run a subcommand on the store of a crawl, in this process."""
    here = ("-s", f"DEDUP_STORE={store_uri(outcome.folder)}", "-s", f"DEDUP_LOG={outcome.folder / 'records.jsonl'}")
    return run_here(*arguments, *here, folder=outcome.folder)


class TestCorrections:
    def test_what_is_restored_owns_its_text_and_is_never_dropped_for_its_former_owner(self, site: Site, crawl) -> None:
        a, b = site.add("/a", article("a", story(1))), site.add("/b", blog("b", story(1)), host=1)
        first = crawl("sample_spiders.Steps", steps=steps(a, b), folder="one")
        assert first.delivered == [a]
        assert command(first, "restore", b).exit_status == 0
        again = [crawl("sample_spiders.Steps", steps=steps(a, b), folder="one", afresh=True) for _ in range(2)]
        assert [outcome.delivered for outcome in again] == [[a, b], [a, b]]

        said = command(first, "corrections")
        assert said.out.splitlines()[0].endswith(b)
        assert said.out.splitlines()[1:] == [f"    does not repeat {a}"]

    def test_the_former_owner_is_not_dropped_for_it_either(self, site: Site, crawl) -> None:
        a, b = site.add("/a", article("a", story(1))), site.add("/b", blog("b", story(1)), host=1)
        first = crawl("sample_spiders.Steps", steps=steps(a, b), folder="one")
        command(first, "restore", b)
        crawl("sample_spiders.Steps", steps=steps(b), folder="one", afresh=True)
        site.add("/a", article("a", [*story(1), "One more line, which was added a day later by the same hand."]))
        assert crawl("sample_spiders.Steps", steps=steps(a), folder="one", afresh=True).delivered == [a]

    def test_it_owns_its_text_once_it_is_delivered(self, site: Site, crawl) -> None:
        a, b = site.add("/a", article("a", story(1))), site.add("/b", blog("b", story(1)), host=1)
        first = crawl("sample_spiders.Steps", steps=steps(a, b), folder="one")
        command(first, "restore", b)
        crawl("sample_spiders.Steps", steps=[], folder="one", afresh=True)
        assert "2 owners, 0 duplicates" in command(first, "stats").out

    def test_a_correction_can_be_taken_back(self, site: Site, crawl) -> None:
        a, b = site.add("/a", article("a", story(1))), site.add("/b", blog("b", story(1)), host=1)
        first = crawl("sample_spiders.Steps", steps=steps(a, b), folder="one")
        assert command(first, "corrections").out == "nothing was restored yet\n"
        command(first, "restore", b)
        said = command(first, "corrections", "--forget", b)
        assert (said.exit_status, said.out.splitlines()[1]) == (0, f"    may repeat again {a}")
        said = command(first, "corrections", "--forget", b)
        assert (said.exit_status, said.err.count("\n")) == (3, 1)
        assert "was not corrected" in said.err
