"""Pages dropped for a text that later pages show to be a template are no duplicates: their items are released."""

from __future__ import annotations

import pytest
from crawling import Running, run_job, write_job
from local_site import wait_until
from prose import page, story
from scrapy.exceptions import IgnoreRequest
from test_claims_in_crawls import FATES
from test_two_witnesses import LONG_NOTICE, visit

TITLE = "Our branches, and what you find in each of them"
TOWNS = ["Norwich", "Leeds", "Cardiff", "Bristol", "Glasgow", "York"]
OTHER_FACTS = "different_context"


def branch(town, number=1, text=LONG_NOTICE):
    """Return a page that has its own facts around a text and a title which tell enough to be a story's."""
    return page(TITLE, text, below=f"<ul><li>{number} High Street, {town}<li>0{number}603 55{number}</ul><p>hold</p>")


def branches(site, address="/branch/{}", host=0):
    return [site.add(address.format(n), branch(town, n), host=host) for n, town in enumerate(TOWNS, 1)]


def filled(site):
    """Return branches of which an aggregator on another host has copied the first, and is crawled before them."""
    return [site.add("/copied/1", branch(TOWNS[0]), host=1), *branches(site)[1:]]


@pytest.mark.parametrize("address", ["/branch/{}", "/branch?id={}"])
def test_branches_under_one_long_text_and_telling_title_are_kept(pages, address):
    urls = branches(pages, address)
    assert pages.kept(urls) == urls


def test_branches_of_which_one_was_copied_elsewhere_are_kept(site, crawl):
    urls = filled(site)
    outcome = visit(crawl, urls)
    assert set(outcome.kept) == set(urls)
    # The fourth page shows what the second and the third one are.
    assert [item["url"] for item in outcome.dropped] == urls[1:3]
    assert outcome.stats["dedup/items/released"] == 2
    assert [(r["verdict"], r["outcome"], r["reason"]) for r in outcome.records if r["url"] == urls[1]] == [
        ("duplicate", "dropped", "cross_host"),
        ("related", "released", OTHER_FACTS),
    ]
    lines = [line for line in outcome.log.splitlines() if "INFO: dedup:" in line and "template" in line]
    assert "2 pages were dropped for a text that is a template" in lines[0]
    assert lines[1].endswith("dedup: 2 stored items were released: a text is a template")
    assert "dropped items released" in outcome.log
    assert outcome.problems == []
    assert len(site.paths()) == len(urls), "no page is requested again"


def test_pages_that_are_checked_at_the_same_time_are_all_released(site, crawl):
    urls = branches(site)
    outcome = crawl("sample_spiders.Articles", urls=",".join(urls))
    assert sorted(outcome.kept) == urls
    assert len(outcome.dropped) == outcome.stats.get("dedup/items/released", 0)


def test_the_pages_of_a_host_are_not_lost_to_a_copy_of_one_of_them_elsewhere(site, crawl):
    """An aggregator has copied one of the flats, and is crawled first."""
    text = story(7, 4)
    told = [page(f"Flat in the old granary, {town} side", f"The {town} one is free now.", *text) for town in TOWNS]
    mirror = site.add("/copied/1", told[2], host=1)
    urls = [site.add(f"/flat/{n}", each) for n, each in enumerate(told)]
    outcome = visit(crawl, [mirror, *urls[:5]], folder="same")
    assert sorted(outcome.kept) == sorted([mirror, *urls[:2], *urls[3:5]])
    assert outcome.record(urls[2])["original_url"] == mirror
    assert "dedup/items/released" not in outcome.stats
    assert outcome.problems == []
    # What they share is boilerplate on their host from then on.
    later = visit(crawl, [mirror, *urls], folder="same", afresh=True)
    assert sorted(later.kept) == sorted([mirror, *urls[:2], *urls[3:]])


def test_copies_of_the_pages_of_a_template_are_dropped(pages):
    urls = branches(pages)[:3]
    copies = [pages.add(f"/branch/{n}?session=7", branch(town, n)) for n, town in enumerate(TOWNS[:3], 1)]
    assert pages.kept([*urls[:2], copies[1], urls[2], copies[0]]) == urls
    verdicts = pages.checked([*urls[:2], copies[1], urls[2], copies[0]])
    assert [verdicts[copy].original_url for copy in copies[:2]] == urls[:2]


@pytest.mark.parametrize(
    "around", ["<p>Views: {}</p>", "<p>Printed at 10:0{}</p>", "<p>Nice.</p>" * 3, "<p>{} readers said: nice.</p>"]
)
def test_counters_clocks_and_comments_around_a_story_show_no_template(pages, around):
    urls = [
        pages.add(
            f"/news/7.html{f'?sid{n}=1' if n else ''}",
            page("A story that is told in four places", *story(1), below=around.format(n)),
        )
        for n in range(4)
    ]
    assert pages.kept(urls) == urls[:1]
    assert pages.released(urls) == []


def test_a_later_crawl_knows_a_template_by_its_pages(site, crawl):
    urls = branches(site)
    first = visit(crawl, urls[:4], folder="same")
    assert sorted(first.kept) == urls[:4]
    second = visit(crawl, urls, folder="same", afresh=True)
    assert second.kept == urls
    assert second.dropped == []


@pytest.mark.parametrize("settings", [{}, {"JOBDIR": "job", "DEDUP_SCOPE": "crawl"}], ids=["two crawls", "a pause"])
def test_what_an_earlier_crawl_dropped_is_released_though_its_pages_are_not_visited_again(site, crawl, settings):
    urls = filled(site)
    first = visit(crawl, urls[:3], folder="same", settings=settings)
    assert first.kept == urls[:1]
    second = visit(crawl, urls[3:], folder="same", afresh=True, settings=settings)
    assert set(second.kept) == set(urls[1:])
    assert second.stats["dedup/items/released"] == 2
    assert second.problems == []


@pytest.mark.parametrize("action", ["tag", "dry-run"])
def test_actions_that_keep_everything_release_nothing(site, crawl, action):
    urls = filled(site)
    outcome = visit(crawl, urls, settings={"DEDUP_ACTION": action})
    assert outcome.kept == urls
    assert [url for url, (verdict, _) in outcome.verdicts.items() if verdict == "duplicate"] == urls[1:3]
    assert outcome.problems == []


def test_the_items_are_released_as_they_were(site, crawl):
    """With what the arguments of the callback added; the callback does not run again."""
    urls = branches(site)
    steps = [{"url": url, "callback": "parse_numbered", "cb_kwargs": {"number": n}} for n, url in enumerate(urls)]
    outcome = crawl("sample_spiders.Witnesses", steps=steps)
    assert sorted((item["number"], item["url"]) for item in outcome.items) == list(enumerate(urls))
    assert not [key for item in outcome.items for key in item["meta"] if "dedup" in key]


class WebOnly:
    """A downloader middleware that lets no other URL than those of the web pass."""

    def process_request(self, request):
        if not request.url.startswith("http"):
            raise IgnoreRequest


def test_what_cannot_be_released_in_this_crawl_the_next_one_releases(site, crawl):
    """A project may refuse requests."""
    urls = filled(site)
    settings = {"DOWNLOADER_MIDDLEWARES": {"test_templates_in_crawls.WebOnly": 1}}
    first = visit(crawl, urls, folder="same", settings=settings)
    assert set(first.kept) == {urls[0], *urls[3:]}
    second = crawl("sample_spiders.Witnesses", steps=[], folder="same", afresh=True)
    assert sorted(second.kept) == urls[1:3]
    assert second.stats["dedup/items/released"] == 2


@pytest.mark.parametrize("feeds", [{}, {"feed.jsonl": {"format": "jsonlines"}}], ids=["no feed", "feed"])
def test_a_crash_while_items_are_released_loses_none(site, tmp_path, feeds):
    urls = filled(site)[:4]
    steps = [{"url": url, "cb_kwargs": {"fate": "hold"} if url in urls[1:3] else {}} for url in urls]
    settings = {**FATES, "HOLD_UNTIL": {"never": 1}, "FEEDS": feeds}
    with Running(tmp_path, write_job(tmp_path, "sample_spiders.Witnesses", steps=steps, settings=settings)) as running:
        wait_until((tmp_path / "held").exists)
        crashed = running.kill()
    assert sorted(crashed.kept) == sorted([urls[0], urls[3]])
    outcome = run_job(tmp_path, write_job(tmp_path, "sample_spiders.Witnesses", steps=[], settings={"FEEDS": feeds}))
    assert set(outcome.kept) == set(urls)
    assert outcome.stats["dedup/items/released"] == 2


def test_a_template_is_one_for_pages_of_its_host_that_repeat_another_hosts_page(site, crawl):
    colours = ["red", "blue", "green", "white"]
    own = [site.add(f"/p?variant={c}", page(TITLE, LONG_NOTICE, below=f"<p>Colour: {c}")) for c in colours]
    mall = [site.add(f"/p/{c}", page(f"{TITLE} {c} | Mall", LONG_NOTICE), host=1) for c in ("oak", "pine", "elm")]
    outcome = visit(crawl, [*own[:3], *mall, own[3]])
    assert set(own) <= set(outcome.kept)
