"""No page takes the place of another host's: not by redirects, by what it answers later, or by links in its head.

Nor does what other hosts publish: what sets a page apart counts as long as its own host does not repeat it.
"""

from functools import partial
from itertools import product

import pytest
import scrapy
from beside import shared_uri
from local_site import Answer, Site, redirect
from prose import article, blog, linked, story, zh_story
from scrapy.http.request import NO_CALLBACK

from dedup_middleware import Deduplicator
from dedup_middleware.index import schema

VICTIM, ATTACKER, READER = range(3)
MIDDLEWARES = {"test_theft.BrowserMiddleware": 950}


# --- parts of a project


class BrowserMiddleware:
    """Follow redirects as a browser does: in one request, whose response has the final URL."""

    def __init__(self, crawler):
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    async def process_response(self, request, response):
        if not request.meta.get("browser") or response.status != 302:
            return response
        target = scrapy.Request(response.headers["Location"].decode(), callback=NO_CALLBACK, dont_filter=True)
        end = await self._crawler.engine.download_async(target)
        return end.replace(request=request)


def refresh(url):
    return Answer(f'<html><head><meta http-equiv="refresh" content="0; url={url}"></head></html>')


#: How an address leads to a page of the victim: what it answers, and how it is requested.
LEADS = {
    "redirect": (redirect, {}),
    "meta refresh": (refresh, {}),
    "redirect in a browser": (redirect, {"meta": {"browser": True}}),
    "form in a browser": (redirect, {"meta": {"browser": True}, "method": "POST"}),
}


@pytest.fixture
def neighbour():
    """Return a site on another port of the victim's host."""
    site = Site(hosts=1)
    yield site
    site.close()


@pytest.fixture(params=["", "sqlite"], ids=["a store of its own", "a shared store"])
def run(request, crawl, tmp_path):
    """Run crawls with one store, of each kind."""
    store = {"DEDUP_STORE": shared_uri(request.param, tmp_path, request)} if request.param else {}
    return partial(
        crawl, "sample_spiders.Steps", folder="one", settings={"DOWNLOADER_MIDDLEWARES": MIDDLEWARES, **store}
    )


def test_pages_stay_their_originals(site, neighbour, run):
    """The first crawl follows links, which lead to the victim's pages; they do not in the second one.

    And copies come that name the victim's pages as canonical, or as their views for phones.
    """
    places = (partial(site.add, host=VICTIM), partial(site.add, host=ATTACKER), neighbour.add)
    other = site.add("/other", article("Other", story(900)))
    later = [Answer(status=404), Answer(status=410), article("Theirs", story(901)), redirect(other)]

    def told(number):
        return site.add(f"/story/{number}", article(f"Story {number}", story(number)))

    links, victims, views = [], [], []
    for number, ((leads, how), after) in enumerate(product(LEADS.values(), later)):
        victims.append(told(number))
        place = places[(number + number // len(later)) % len(places)]
        links.append({"url": place(f"/link/{number}", leads(victims[-1]), after), **how})
    led_to = len(links)
    for number, (place, rel) in enumerate(product(places, ("canonical", "amphtml")), led_to):
        victims.append(told(number))
        views.append(place(f"/view/{number}", linked(blog("View", story(number)), **{rel: victims[-1]})))
    copies = [site.add(f"/copy/{n}", blog("Copy", story(n)), host=READER) for n in range(len(victims))]

    def steps(*urls):
        return [{"url": url} for url in urls]

    first = run(steps=[*links, *steps(*victims[led_to:], other)])
    assert first.kept == [*victims, other]
    second = run(steps=[*links, *steps(*views, *copies)], afresh=True)
    dropped = [item["url"] for item in second.dropped]
    assert [url for url in dropped if "/link/" not in url and url != other] == [*views, *copies]
    third = run(steps=steps(*victims, *views, *copies), afresh=True)
    # What a form led to is another page than the same URL: it was kept already, and its URL is the original of that.
    by_form = [url for url, link in zip(victims, links, strict=False) if "method" in link]
    assert third.kept == [url for url in victims if url not in by_form]
    assert [third.record(url)["original_url"] for url in by_form] == by_form
    assert [third.record(url)["original_url"] for url in copies] == victims
    assert third.problems == []


def test_what_a_browser_was_redirected_to_is_itself(site, crawl):
    """Also where each request of one address ends at another."""
    ends = [site.add(f"/end/{n}", article("End", story(1))) for n in range(2)]
    start = site.add("/start", redirect(ends[0]), redirect(ends[0]), redirect(ends[1]))
    settings = {"DOWNLOADER_MIDDLEWARES": MIDDLEWARES}
    asked = [{"url": start, "meta": {"browser": True}}]
    seen = []
    for _ in range(3):
        outcome = crawl("sample_spiders.Steps", steps=asked, settings=settings, folder="one", afresh=True)
        seen.append((outcome.kept, outcome.verdicts))
    assert seen == [
        (ends[:1], {}),
        (ends[:1], {ends[0]: ("unchanged", "kept")}),
        ([], {ends[1]: ("duplicate", "dropped")}),
    ]


# --- what others publish


@pytest.mark.parametrize("has_text", [True, False], ids=["text", "title"])
@pytest.mark.parametrize("own", [1, 6], ids=["a paragraph", "six paragraphs"])
@pytest.mark.parametrize("foreign", [1, 3, 6], ids="{} hosts".format)
@pytest.mark.parametrize("language", [story, zh_story])
def test_what_others_publish_takes_nothing_away(language, foreign, own, *, has_text):
    """A page repeats a story and has paragraphs of its own, which other hosts show on four pages each."""
    told, mine = language(1, 12), language(2, own)

    def page(number, lines):
        title = f"A title {number}"
        item = {"title": title, **({"text": "\n".join(lines)} if has_text else {})}
        return {"html": article(title, lines), "item": item}

    with Deduplicator() as dedup:
        dedup.add("http://courier.example/story", **page(0, told))
        assert not dedup.check("http://wire.example/story", **page(0, [*told, *mine])).is_duplicate
        for host, number in product(range(foreign), range(4)):
            there = page(10 * host + number + 1, [*mine, *language(100 + 10 * host + number, 8)])
            dedup.add(f"http://other{host}.example/{number}", **there)
        assert not dedup.check("http://wire.example/story", **page(0, [*told, *mine])).is_duplicate
        # Its own host does take it away: there, it stands on each page.
        for number in range(4):
            dedup.add(f"http://wire.example/{number}", **page(200 + number, [*mine, *language(200 + number, 8)]))
        found = dedup.check("http://wire.example/story", **page(0, [*told, *mine]))
        assert found.original_url == "http://courier.example/story"


def test_no_host_can_be_named_so_that_it_counts_as_another():
    """A page number has 16 bits of its host: without a key, a name with the same ones is found at once."""
    urls = [f"http://evil{n}.example/" for n in range(500)]
    marks = [[schema.host_mark(url, key) for url in urls] for key in (b"one key", b"another")]
    assert len(set(marks[0])) > 480
    assert sum(a == b for a, b in zip(*marks, strict=True)) < 3
