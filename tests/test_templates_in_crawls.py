"""Pages dropped for a text that later pages show to be a template are no duplicates: their items are released."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from crawling import Running, run_job, write_job
from local_site import wait_until
from prose import story
from test_claims_in_crawls import FATES
from test_two_witnesses import LONG_NOTICE, page, visit

TITLE = "Our branches, and what you find in each of them"
TOWNS = ["Norwich", "Leeds", "Cardiff", "Bristol", "Glasgow", "York"]
OTHER_FACTS = "other facts around the same text"


def branch(town, number=1, text=LONG_NOTICE):
    """Return a page that has its own facts around a text and a title which tell enough to be a story's."""
    return page(TITLE, text, boilerplate=f"<ul><li>{number} High Street, {town}<li>0{number}603 55{number}</ul>")


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
        ("duplicate", "dropped", "on another host"),
        ("related", "released", OTHER_FACTS),
    ]
    lines = [line for line in outcome.log.splitlines() if "INFO: dedup:" in line and "template" in line]
    assert "2 pages were dropped for a text that several pages of one host fill in" in lines[0]
    assert "2 items were released" in lines[1].replace("dropped items", "items")
    assert "dropped items released" in outcome.log
    assert outcome.problems == []
    assert len(site.paths()) == len(urls), "no page is requested again"


@pytest.mark.parametrize(
    "addresses",
    [
        ["/branch/new-york", "/branch/york", "/branch/boston", "/branch/leeds"],
        ["/филиал/архангельск", "/филиал/ангарск", "/филиал/псков", "/филиал/тверь"],
        ["/branch", "/branch?id=2", "/branch?id=3", "/branch?id=4"],
        ["/branch?norwich", "/branch?leeds", "/branch?york", "/branch?cardiff"],
    ],
    ids=["one name in another", "Cyrillic", "the first without a number", "names in queries"],
)
def test_whatever_their_addresses_are_like(pages, addresses):
    urls = [pages.add(quote(each, "/?="), branch(town)) for each, town in zip(addresses, TOWNS, strict=False)]
    assert {*pages.kept(urls), *pages.released(urls)} == {*urls}


def test_sections_that_all_name_the_same_towns_are_kept(pages):
    """What stands on pages of many titles need not be the site's."""
    sections = {"branch": TITLE, "jobs": "Who we are looking for, and where", "menu": "What we cook for you, and where"}
    urls = [
        pages.add(f"/{section}/{n}", page(title, " ".join(story(7 + k, 2)), boilerplate=f"<p>High Street, {town}</p>"))
        for k, (section, title) in enumerate(sections.items())
        for n, town in enumerate(TOWNS)
    ]
    assert sorted(pages.kept(urls)) == sorted(urls)


def test_originals_with_several_items_have_templates_too(site, crawl):
    urls = branches(site)
    steps = [{"url": url, "callback": "parse_labels"} for url in urls]
    outcome = crawl("sample_spiders_witnesses.Witnesses", steps=steps)
    assert sorted(outcome.kept) == sorted([*urls, *urls])


def test_many_copies_of_one_page_do_not_hide_a_template(pages):
    urls = filled(pages)
    copies = [pages.add(f"/branch/2?utm_source={n}", branch(TOWNS[1], 2)) for n in range(40)]
    visited = [*urls[:2], *copies, *urls[2:]]
    assert {*pages.kept(visited), *pages.released(visited)} == {*urls}
    assert len(pages.released(visited)) == 2


def test_pages_that_are_checked_at_the_same_time_are_all_released(site, crawl):
    urls = branches(site)
    outcome = crawl("sample_spiders.Articles", urls=",".join(urls))
    assert sorted(outcome.kept) == urls
    assert len(outcome.dropped) == outcome.stats.get("dedup/items/released", 0)


def test_pages_with_a_sentence_of_their_own_are_kept(pages):
    text = story(7, 4)
    told = [text, *([f"The branch in {town} also has a café by the river.", *text] for town in TOWNS)]
    urls = [pages.add(f"/branch/{n}", page(TITLE, *paragraphs)) for n, paragraphs in enumerate(told)]
    assert pages.kept(urls) == urls


@pytest.mark.parametrize("number", [4, 6])
def test_nor_if_what_differs_stands_around_their_text(site, crawl, number):
    mirror = site.add("/copied/1", branch(TOWNS[2], 3), host=1)
    urls = branches(site)[:number]
    outcome = visit(crawl, [mirror, *urls], folder="same")
    assert set(outcome.kept) >= {mirror, *urls[:2], *urls[3:]}
    assert outcome.problems == []
    later = visit(crawl, [mirror, *urls], folder="same", afresh=True)
    assert set(later.kept) >= {mirror, *urls[:2], *urls[3:]}


def test_what_an_earlier_crawl_dropped_is_released_before_its_pages_are_visited_again(site, crawl):
    """Then the spider has each of them twice, as it has any page that it visits twice."""
    urls = filled(site)
    first = crawl("sample_spiders.OneByOne", urls=",".join(urls[:3]), folder="same")
    assert first.kept == urls[:1]
    outcome = crawl("sample_spiders.OneByOne", urls=",".join(urls[::-1]), folder="same", afresh=True)
    assert sorted(outcome.kept) == sorted([*urls, *urls[1:3]])
    assert outcome.stats["dedup/items/released"] == 2


def test_the_pages_of_a_host_are_not_lost_to_a_copy_of_one_of_them_elsewhere(site, crawl):
    """An aggregator has copied one of the flats, and is crawled first."""
    text = story(7, 4)
    told = [page(f"Flat in the old granary, {town} side", f"The {town} one is free now.", *text) for town in TOWNS]
    mirror = site.add("/copied/1", told[2], host=1)
    urls = [site.add(f"/flat/{n}", each) for n, each in enumerate(told)]
    outcome = visit(crawl, [mirror, *urls[:5]], folder="same")
    assert sorted(outcome.kept) == sorted([mirror, *urls[:2], *urls[3:5]])
    assert outcome.record(urls[2])["original_url"] == mirror
    assert outcome.stats["dedup/items/released"] == 2
    assert outcome.problems == []
    # What they share is boilerplate on their host from then on.
    later = visit(crawl, [mirror, *urls], folder="same", afresh=True)
    assert sorted(later.kept) == sorted([mirror, *urls[:2], *urls[3:]])


@pytest.mark.parametrize("host", [1])
def test_reposts_with_edits_of_their_own_show_no_template(pages, host):
    """Two of them on one host, and any number on others."""
    text, title = story(1, 8), "The harbour council rebuilds the grain store"
    edits = [[f"Our reader {town} sent us this.", *text] for town in TOWNS]
    first = pages.add("/first", page(title, *text))
    copies = [pages.add(f"/copy/{n}", page(title, *edit), host=host + n // 2) for n, edit in enumerate(edits[:2])]
    copies += [pages.add("/copy/9", page(title, *edit), host=2 + n) for n, edit in enumerate(edits[2:])]
    assert pages.kept([first, *copies]) == [first]


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
            f"/news/{n}7.html", page("A story that is told in four places", *story(1), boilerplate=around.format(n))
        )
        for n in range(4)
    ]
    assert pages.kept(urls) == urls[:1]
    assert pages.released(urls) == []


def test_print_views_and_sessions_with_other_teasers_show_no_template(pages):
    teasers = [(f"{what} by the weekend.", f"{what} in all harbours.") for what in ("Rain", "Snow", "Fog", "Hail")]
    addresses = ["/news/17-fair", "/print/17-fair", "/news/17-fair?sid=1", "/amp/news/17-fair"]
    urls = [
        pages.add(address, page("What became of the fair in the end", *story(1), boilerplate=f"<p>{'<p>'.join(shown)}"))
        for address, shown in zip(addresses, teasers, strict=True)
    ]
    assert pages.kept(urls) == urls[:1]


def test_a_later_crawl_knows_a_template_by_its_pages(site, crawl):
    urls = branches(site)
    first = visit(crawl, urls[:4], folder="same")
    assert sorted(first.kept) == urls[:4]
    second = visit(crawl, urls, folder="same", afresh=True)
    assert second.kept == urls
    assert second.dropped == []


def test_a_page_that_an_earlier_crawl_dropped_is_kept_once_its_text_is_a_template(site, crawl):
    urls = filled(site)
    first = visit(crawl, urls[:3], folder="same")
    assert first.kept == urls[:1]
    second = visit(crawl, urls, folder="same", afresh=True)
    assert set(second.kept) == set(urls)


def test_a_later_crawl_knows_a_template_whose_pages_have_sentences_of_their_own(site, crawl):
    text = story(7, 4)
    told = [text, *([f"The branch in {town} also has a café by the river.", *text] for town in TOWNS)]
    urls = [site.add(f"/branch/{n}", page(TITLE, *paragraphs)) for n, paragraphs in enumerate(told)]
    first = visit(crawl, urls[:5], folder="same")
    assert sorted(first.kept) == urls[:5]
    second = visit(crawl, urls[5:], folder="same", afresh=True)
    assert second.kept == urls[5:]


def test_the_items_of_both_callbacks_on_one_page_are_released(site, crawl):
    urls = branches(site)[:3]
    steps = [{"url": urls[0]}, {"url": urls[1]}, {"url": urls[1], "callback": "parse_once"}, {"url": urls[2]}]
    outcome = crawl("sample_spiders_witnesses.Witnesses", steps=steps)
    assert sorted(outcome.kept) == [urls[0], urls[1], urls[1], urls[2]]


def test_copies_are_not_released_in_every_crawl(site, crawl):
    urls = branches(site)
    copy = site.add("/branch/2?session=7", branch(TOWNS[1], 2))
    first = visit(crawl, [*urls[:2], copy, *urls[2:]], folder="same")
    assert sorted(first.kept) == urls
    for _ in range(2):
        later = visit(crawl, urls, folder="same", afresh=True)
        assert later.kept == urls
        assert "dedup/items/released" not in later.stats


@pytest.mark.parametrize("settings", [{}, {"JOBDIR": "job", "DEDUP_SCOPE": "crawl"}], ids=["two crawls", "a pause"])
def test_what_an_earlier_crawl_dropped_is_released_though_its_pages_are_not_visited_again(site, crawl, settings):
    urls = filled(site)
    first = visit(crawl, urls[:3], folder="same", settings=settings)
    assert first.kept == urls[:1]
    second = visit(crawl, urls[3:], folder="same", afresh=True, settings=settings)
    assert set(second.kept) == set(urls[1:])
    assert second.stats["dedup/items/released"] == 2
    assert second.problems == []


def test_a_page_that_was_not_requested_by_get_is_released_too(site, crawl):
    urls = filled(site)[:4]
    steps = [{"url": urls[0]}, {"url": urls[1], "method": "POST"}, {"url": urls[2]}, {"url": urls[3]}]
    outcome = crawl("sample_spiders_witnesses.Witnesses", steps=steps)
    assert sorted(outcome.kept) == sorted(urls)
    assert site.requests.count(("POST", "127.0.0.1", "/branch/2")) == 1
    assert outcome.problems == []


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
    outcome = crawl("sample_spiders_witnesses.Witnesses", steps=steps)
    assert sorted((item["number"], item["url"]) for item in outcome.items) == list(enumerate(urls))
    assert not [key for item in outcome.items for key in item["meta"] if "dedup" in key]


#: What may get in the way of a request that is no download.
SETTINGS = (
    {
        "EXTRA_PIPELINES": {"sample_spiders.FatePipeline": 100},
        "HTTPCACHE_ENABLED": True,
        "ROBOTSTXT_OBEY": True,
        "JOBDIR": "job",
    },
    {"DEPTH_LIMIT": 1, "SPIDER_MIDDLEWARES": {"sample_spiders.Doorkeeper": 543}},
    {
        "DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter",
        "CONCURRENT_REQUESTS": 1,
        "DOWNLOAD_DELAY": 0.01,
    },
)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: next(iter(settings)))
def test_no_setting_of_a_project_stands_in_the_way_of_a_release(site, crawl, settings):
    urls = filled(site)
    outcome = visit(crawl, urls, settings=settings)
    assert sorted(outcome.kept) == sorted(urls)
    assert outcome.stats["dedup/items/released"] == 2


def test_a_release_is_not_offsite(site, crawl):
    urls = filled(site)
    outcome = visit(crawl, urls, allowed_domains=["127.0.0.1"])
    assert sorted(outcome.kept) == sorted(urls)


def test_what_cannot_be_released_in_this_crawl_the_next_one_releases(site, crawl):
    """A project may have no handler for ``data:``."""
    urls = filled(site)
    first = visit(crawl, urls, folder="same", settings={"DOWNLOAD_HANDLERS": {"data": None}})
    assert set(first.kept) == {urls[0], *urls[3:]}
    second = crawl("sample_spiders_witnesses.Witnesses", steps=[], folder="same", afresh=True)
    assert sorted(second.kept) == urls[1:3]
    assert second.stats["dedup/items/released"] == 2


@pytest.mark.parametrize("feeds", [{}, {"feed.jsonl": {"format": "jsonlines"}}], ids=["no feed", "feed"])
def test_a_crash_while_items_are_released_loses_none(site, tmp_path, feeds):
    urls = filled(site)[:4]
    steps = [{"url": url, "cb_kwargs": {"fate": "hold"} if url in urls[1:3] else {}} for url in urls]
    settings = {**FATES, "HOLD_UNTIL": {"never": 1}, "FEEDS": feeds}
    with Running(
        tmp_path, write_job(tmp_path, "sample_spiders_witnesses.Witnesses", steps=steps, settings=settings)
    ) as running:
        wait_until((tmp_path / "held").exists)
        crashed = running.kill()
    assert sorted(crashed.kept) == sorted([urls[0], urls[3]])
    outcome = run_job(
        tmp_path, write_job(tmp_path, "sample_spiders_witnesses.Witnesses", steps=[], settings={"FEEDS": feeds})
    )
    assert set(outcome.kept) == set(urls)
    assert outcome.stats["dedup/items/released"] == 2


def test_a_template_is_one_for_pages_of_its_host_that_repeat_another_hosts_page(site, crawl):
    colours = ["red", "blue", "green", "white"]
    own = [site.add(f"/p?variant={c}", page(TITLE, LONG_NOTICE, boilerplate=f"<p>Colour: {c}")) for c in colours]
    mall = [site.add(f"/p/{c}", page(f"{TITLE} {c} | Mall", LONG_NOTICE), host=1) for c in ("oak", "pine", "elm")]
    outcome = visit(crawl, [*own[:3], *mall, own[3]])
    assert set(own) <= set(outcome.kept)
