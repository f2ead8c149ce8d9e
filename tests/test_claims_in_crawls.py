"""Nothing is lost with its original: whether the first copy is kept, dropped or fails, one copy is kept."""

import json
import pathlib
import random
import re
import threading

import pytest
from local_site import PATIENCE, Answer
from prose import article, blog, several, story
from sample_spiders import held
from scrapy import signals

from dedup_middleware.plugin.messages import originals_pending

FATES = {"EXTRA_PIPELINES": {"sample_spiders.FatePipeline": 100}}
FAILING = [
    "plain_raises",
    "coroutine_raises",
    "generator_raises_first",
    "async_generator_raises_first",
    "generator_raises_last",
    "async_generator_raises_last",
]
RAISES_LAST = [name for name in FAILING if name.endswith("last")]


# --- parts of a project


class DropWitness:
    """Note of each drop whether its original is in feed.jsonl by then."""

    def __init__(self):
        self.seen = []

    @classmethod
    def from_crawler(cls, crawler):
        witness = cls()
        crawler.signals.connect(witness.dropped, signal=signals.item_dropped)
        crawler.signals.connect(witness.closed, signal=signals.spider_closed)
        return witness

    def dropped(self, exception):
        original = str(exception).split(" repeats ")[1].split(" ")[0]
        self.seen.append(f'"{original}"' in pathlib.Path("feed.jsonl").read_text(encoding="utf8"))

    def closed(self):
        pathlib.Path("witness.json").write_text(json.dumps(self.seen), encoding="utf8")


class HoldsTheFirst:
    """A pipeline that lets the first item go once HOLD_UNTIL is reached."""

    def __init__(self, crawler):
        self._crawler = crawler
        self._is_first = True

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    async def process_item(self, item):
        is_first, self._is_first = self._is_first, False
        if is_first:
            await held(self._crawler)
        return item


def pair(site, number, first="a", second="b", *, shown=""):
    """Serve story *number* twice and return both URLs; both pages have the word *shown* in their text."""
    text = [*story(number), *([f"The crew said {shown} and left."] if shown else [])]
    return (
        site.add(f"/{number}/{first}", article(first, text)),
        site.add(f"/{number}/{second}", blog(second, text), host=1),
    )


class Recovery:
    """A spider middleware that gives an item where a callback raised."""

    def process_spider_exception(self, response, exception):
        return [{"url": response.url, "recovered": True}]


@pytest.mark.parametrize("recovers", [False, True], ids=["", "the project recovers"])
def test_a_page_whose_callback_raises_owns_nothing(site, crawl, recovers):
    pairs = {name: pair(site, number) for number, name in enumerate(FAILING)}
    steps = [step for name, (a, b) in pairs.items() for step in ({"url": a, "callback": name}, {"url": b})]
    settings = {"SPIDER_MIDDLEWARES": {"test_claims_in_crawls.Recovery": 500}} if recovers else {}
    outcome = crawl("sample_spiders.Steps", steps=steps, settings=settings)
    expected = [[a] * ((name in RAISES_LAST) + recovers) + [b] for name, (a, b) in pairs.items()]
    assert outcome.kept == [url for urls in expected for url in urls]
    assert outcome.dropped == []
    assert ["Spider error processing" in line for line in outcome.problems] == [True] * len(FAILING) * (not recovers)
    recovered = {item["url"] for item in outcome.items if "recovered" in item}
    assert recovered == ({a for a, _ in pairs.values()} if recovers else set())
    assert outcome.stats["dedup/claims/void"] == len(FAILING)
    assert outcome.stats["dedup/pages"] == 2 * len(FAILING)


def test_an_item_that_its_pipelines_lose_owns_nothing_and_one_that_they_replace_is_safe(site, crawl):
    fates = ("drop", "fail", "replace")
    pages = {fate: [*pair(site, n), site.add(f"/{n}/a?c=1", article("a", story(n)))] for n, fate in enumerate(fates)}
    steps = [
        step
        for fate, (a, b, c) in pages.items()
        for step in ({"url": a, "cb_kwargs": {"fate": fate}}, {"url": b}, {"url": c})
    ]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings=FATES)
    assert outcome.kept == [pages["drop"][1], pages["fail"][1], pages["replace"][0]]
    assert outcome.items[-1]["replaced"]
    originals = {fate: outcome.record(c)["original_url"] for fate, (_, _, c) in pages.items()}
    assert originals == dict(zip(fates, outcome.kept, strict=True))


@pytest.mark.parametrize("end", ["", "drop", "fail"])
def test_twins_in_flight_wait_for_the_first(site, crawl, end):
    """The first copy is held in a slow pipeline until the two others wait for it; then it ends well or badly."""
    a, b = pair(site, 1)
    c = site.add("/1/a?c=1", article("a", story(1)))
    steps = [{"url": url, "cb_kwargs": {"fate": f"hold {end}"}, "priority": -n} for n, url in enumerate((a, b, c))]
    settings = {
        **FATES,
        "HOLD_UNTIL": {"dedup/waits": 2},
    }
    outcome = crawl("sample_spiders.Steps", steps=steps, together=True, settings=settings)
    lost = {i["url"] for i in outcome.dropped if i["type"] != "DuplicateItem"}
    if end:
        # Every copy that takes over meets the same end: each was given its chance, so none was lost to a verdict.
        assert outcome.kept == []
        assert [r for r in outcome.records if r["verdict"] == "duplicate"] == []
        assert lost == ({a, b, c} if end == "drop" else set())
    else:
        (original,) = outcome.kept
        assert {r["url"]: r["original_url"] for r in outcome.records} == dict.fromkeys({a, b, c} - {original}, original)
        assert outcome.stats["dedup/items/dropped"] == 2
        assert outcome.problems == []
    assert "dedup/waits/given_up" not in outcome.stats


@pytest.mark.every_scrapy
@pytest.mark.parametrize("room", ["as it is", "for a page and a half"])
def test_while_a_copy_waits_the_crawl_goes_on(site, crawl, room):
    """The item of the original leaves its pipeline when the page has been scraped that the copy links."""
    other = site.add("/other", article("Other", story(2)))
    text, link = story(1), (site.url("/other"),)
    a, b = site.add("/a", article("a", text)), site.add("/b", article("b", text, link), host=1)
    steps = [{"url": a, "cb_kwargs": {"fate": "hold"}}, {"url": b, "priority": -1}]
    settings = FATES | {"HOLD_UNTIL": {"item_scraped_count": 1}, "CONCURRENT_REQUESTS": 1}
    if room != "as it is":
        settings["SCRAPER_SLOT_MAX_ACTIVE_SIZE"] = len(article("a", text)) * 3 // 2
    outcome = crawl("sample_spiders.Steps", steps=steps, together=True, settings=settings)
    assert outcome.kept == [other, a]
    assert outcome.record(b)["original_url"] == a
    assert [item["url"] for item in outcome.dropped] == [b]
    assert "dedup/waits/given_up" not in outcome.stats
    assert outcome.problems == []


def test_a_twin_without_room_to_wait_is_kept(site, crawl):
    """Of three pages in flight one is kept, one waits, and no other one may."""
    page, all_are_under_way = article("a", story(1)), threading.Barrier(3)
    pages = [site.add("/a", Answer(page, hold=all_are_under_way), host=host) for host in range(3)]
    settings = FATES | {
        "HOLD_UNTIL": {"dedup/waits/no_room": 1},
        "SCRAPER_SLOT_MAX_ACTIVE_SIZE": len(page) * 3 // 2,
    }
    steps = [{"url": url, "cb_kwargs": {"fate": "hold"}} for url in pages]
    outcome = crawl("sample_spiders.Steps", steps=steps, together=True, settings=settings)
    assert len(outcome.kept) == 2
    assert [outcome.stats[f"dedup/{name}"] for name in ("waits", "waits/given_up", "waits/no_room")] == [1, 1, 1]
    assert outcome.stats["dedup/kept/original_pending"] == 1
    assert re.search("^ +original_pending +1$", outcome.log, re.MULTILINE)
    (warning,) = outcome.problems
    assert "1 of 2 copies were not treated as duplicates" in warning
    assert "Raise SCRAPER_SLOT_MAX_ACTIVE_SIZE" in warning


def test_a_twin_waits_no_longer_than_a_download_may_take(site, crawl):
    a, b = pair(site, 1)
    meta = {"download_timeout": PATIENCE}
    steps = [{"url": a, "cb_kwargs": {"fate": "hold"}, "meta": meta}, {"url": b, "priority": -1, "meta": meta}]
    settings = {
        **FATES,
        "HOLD_UNTIL": {"item_scraped_count": 1},
        "CONSTANTS": {"dedup_middleware.plugin.item_flow:MAX_WAIT": 0.1},
        "DOWNLOAD_TIMEOUT": 0.2,
        "CONCURRENT_REQUESTS": 1,
    }
    outcome = crawl("sample_spiders.Steps", steps=steps, together=True, settings=settings)
    assert outcome.kept == [b, a]
    record = outcome.record(b)
    assert (record["verdict"], record["outcome"], record["original_url"]) == ("related", "kept", a)
    assert record["reason"] == "original_pending"
    assert outcome.stats["dedup/kept/original_pending"] == outcome.stats["dedup/waits/given_up"] == 1
    (warning,) = outcome.problems
    assert "1 of 1 copies were not treated as duplicates" in warning
    assert "Raise DOWNLOAD_TIMEOUT" in warning
    again = crawl("sample_spiders.Steps", steps=[{"url": a}, {"url": b}], folder="again")
    assert again.stats["dedup/verdict/duplicate"] == 1
    assert again.problems == []


def test_a_copy_that_waits_when_its_callback_raises_is_kept(site, crawl):
    a, b = pair(site, 1)
    steps = [{"url": a, "cb_kwargs": {"fate": "hold"}}, {"url": b, "priority": -1, "callback": RAISES_LAST[0]}]
    settings = FATES | {"HOLD_UNTIL": {"item_scraped_count": 1}, "CONCURRENT_REQUESTS": 1}
    outcome = crawl("sample_spiders.Steps", steps=steps, together=True, settings=settings)
    assert outcome.kept == [b, a]
    assert outcome.dropped == []


@pytest.mark.parametrize("most", [2, 100])
def test_items_of_a_page_wait_together_and_come_in_their_order(site, crawl, most):
    parts = several("Parts", [story(n) for n in range(4)])
    pages = [site.add("/parts", parts, host=host) for host in range(2)]
    steps = [{"url": url, "callback": "parse_parts", "priority": -n} for n, url in enumerate(pages)]
    settings = {
        "EXTRA_PIPELINES": {"test_claims_in_crawls.HoldsTheFirst": 100},
        "HOLD_UNTIL": {"dedup/waits": 1},
        "CONSTANTS": {"dedup_middleware.plugin.spider_middleware:_MOST_WAITING": most},
        "CONCURRENT_REQUESTS": 1,
    }
    outcome = crawl("sample_spiders.Steps", steps=steps, together=True, settings=settings)
    assert sorted(item["text"] for item in outcome.items) == sorted(" ".join(story(n)) for n in range(4))
    assert {item["url"] for item in outcome.items} == {pages[0]}
    assert [item["text"] for item in outcome.dropped] == [" ".join(story(n)) for n in range(4)]
    assert outcome.stats["dedup/waits"] == 1
    assert outcome.problems == []


def test_no_drop_rests_on_an_original_that_is_not_in_its_feed(site, crawl):
    """Copies come one to forty pages after their originals, sixteen at a time."""
    chance, number = random.Random(1), 60
    pages = {}
    for told in range(number):
        a, b = pair(site, told)
        pages[a], pages[b] = told, told + chance.uniform(0.5, 40)
    urls = sorted(pages, key=pages.__getitem__)
    settings = {
        "FEEDS": {"feed.jsonl": {"format": "jsonlines"}},
        "EXTENSIONS": {"test_claims_in_crawls.DropWitness": 0},
        "CONCURRENT_REQUESTS": 16,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    }
    outcome = crawl("sample_spiders.Articles", urls=",".join(urls), settings=settings)
    there = json.loads((outcome.folder / "witness.json").read_text(encoding="utf8"))
    assert there == [True] * number
    assert "dedup/waits/given_up" not in outcome.stats


def test_what_has_not_waited_needs_no_longer_wait():
    """As in a crawl that passes through."""
    numbers = {"kept/original_pending": 4, "verdict/duplicate": 9}
    assert "4 of 13 copies" in originals_pending(numbers)
    assert "Raise" not in originals_pending(numbers)
    assert "Raise DOWNLOAD_TIMEOUT" in originals_pending(numbers | {"waits/given_up": 1})
