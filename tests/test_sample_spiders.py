"""A stranger's crawl with everything in it, again and again, and what happens when something breaks."""

import io
import logging
import re
import threading
from pathlib import Path

import pytest
import scrapy
from crawling import Running, run_scrapy, write_job
from local_site import Answer, wait_until
from PIL import Image
from prose import article, blog, headline, several, story, zh_story
from sample_spiders import Steps, nap
from scrapy.http import JsonRequest
from scrapy.logformatter import LogFormatter
from test_commands import run_here

from dedup_middleware.stores import default_backend


class Everything(Steps):
    """Every way of writing a callback, and all that may be around it."""

    name = "everything"

    async def start(self):
        yield {"url": "from start"}
        async for request in super().start():
            yield request

    async def async_generator(self, response):
        await nap(0.01)
        yield self.item(response)
        for link in response.css("a.next"):
            await nap(0)
            yield response.follow(link)

    async def coroutine_of_list(self, response):
        await nap(0.01)
        return [self.item(response), *response.follow_all(css="a.next")]

    async def coroutine_of_none(self, response):
        await nap(0.01)

    def single_item(self, response):
        return self.item(response)

    def list_of_items(self, response):
        return [self.item(response)]

    def nothing(self, response):
        pass

    def with_picture(self, response):
        pictures = [response.urljoin(src) for src in response.css("img::attr(src)").getall()]
        yield {**self.item(response), "image_urls": pictures}

    def post_form(self, response, url, story):
        yield scrapy.FormRequest(url, formdata={"story": str(story)}, callback=self.answer)

    def post_json(self, response, url, story):
        yield JsonRequest(url, data={"story": story}, callback=self.answer)

    def answer(self, response):
        yield {"url": f"{response.url} {response.request.body.decode()}"}

    def may_fail(self, response, url):
        yield scrapy.Request(url, errback=self.failed, meta={"handle_httpstatus_list": []})

    def failed(self, failure):
        yield {"url": "from errback", "status": failure.value.response.status}


class LoudFormatter(LogFormatter):
    def dropped(self, item, exception, response, spider):
        return {"level": logging.WARNING, "msg": "LOUD: %(why)s", "args": {"why": exception}}


def png():
    file = io.BytesIO()
    Image.new("RGB", (8, 8), "teal").save(file, "PNG")
    return Answer(file.getvalue(), headers={"Content-Type": "image/png"})


def page_with_picture(title, text, src):
    return article(title, text).replace("<h1>", f"<img src='{src}'><h1>")


def everything(site):
    """Return the steps of a crawl with everything in it, and the URLs that it keeps and drops, in order."""
    first = {
        "plain generator": {"callback": "parse", "cb_kwargs": {"section": "World"}},
        "async generator": {"callback": "async_generator"},
        "coroutine": {"callback": "coroutine_of_list"},
        "single item": {"callback": "single_item"},
        "list": {"callback": "list_of_items"},
    }
    steps, kept, dropped = [], [], []
    for number, how in enumerate(first.values()):
        link = site.add(f"/link{number}", article("Link", story(100 + number)))
        url = site.add(f"/first{number}", article("First", story(number), links=(link,)))
        copy = site.add(f"/copy{number}", blog("Copy", story(number), links=(link,)), host=1)
        steps += [{"url": url, **how}, {"url": copy, **how}]
        kept += [url, link] if number < 3 else [url]
        dropped += [copy]
    empty = site.add("/empty", article("Empty", story(20)))
    steps += [{"url": empty, "callback": name} for name in ("nothing", "coroutine_of_none")]

    target = site.add("/target", article("Target", zh_story(21)))
    site.add("/302", Answer(status=302, headers={"Location": target}))
    moved = site.add("/301", Answer(status=301, headers={"Location": "/302"}))
    refresh = site.add("/refresh", f"<html><head><meta http-equiv='refresh' content='0; url={target}'></head></html>")
    moved_copy = site.add("/moved", Answer(status=301, headers={"Location": "/target-copy"}), host=1)
    site.add("/target-copy", blog("Target", zh_story(21)), host=1)
    flaky = site.add("/flaky", Answer("down", 503), article("Flaky", story(22)))
    steps += [{"url": url} for url in (moved, refresh, moved_copy, flaky, flaky)]
    # A page that is fetched again is the same page, by any link.
    kept += [target, target, flaky, flaky]
    dropped += [site.url("/target-copy", 1)]

    site.add("/picture.png", png())
    pictured = site.add("/pictured", page_with_picture("Pictured", story(23), "/picture.png"))
    stolen = site.add("/stolen", page_with_picture("Stolen", story(23), "/stolen.png"), host=1)
    steps += [{"url": url, "callback": "with_picture"} for url in (pictured, stolen)]
    kept += [pictured]
    dropped += [stolen]

    post = site.url("/post")
    bodies = ["story=1", "story=2", "story=3", '{"story": 4}', '{"story": 5}', '{"story": 6}']
    for body, number in zip(bodies, (31, 32, 31, 33, 31, 34), strict=True):
        site.add(f"/post {body}", article("Answer", story(number)))
    post = site.url("/post")
    for number in range(1, 7):
        how = "post_form" if number < 4 else "post_json"
        steps += [{"url": empty, "callback": how, "cb_kwargs": {"url": post, "story": number}}]
    kept += [f"{post} {bodies[n]}" for n in (0, 1, 3, 5)]
    dropped += [f"{post} {bodies[n]}" for n in (2, 4)]

    steps += [{"url": empty, "callback": "may_fail", "cb_kwargs": {"url": site.url("/gone")}}]
    parts = site.add("/parts", several("Parts", [story(41), story(42)]))
    steps += [{"url": parts, "callback": "parse_parts"}]
    kept += ["from errback", parts, parts]
    return steps, kept, dropped


def test_everything_at_once_beside_shell_and_fetch(site, tmp_path):
    steps, kept, dropped = everything(site)
    held = site.add("/held", Answer(article("Held", story(50)), hold=(release := threading.Event())))
    settings = {
        "IMAGES_STORE": str(tmp_path / "images"),
        "EXTRA_PIPELINES": {"scrapy.pipelines.images.ImagesPipeline": 50, "sample_spiders.SlowPipeline": 100},
    }
    command = write_job(tmp_path, "test_sample_spiders.Everything", steps=[*steps, {"url": held}], settings=settings)
    with Running(tmp_path, command) as running:
        wait_until(lambda: "/held" in site.paths())
        log = tmp_path / "records.jsonl"
        before = log.read_bytes()
        looked = [
            run_scrapy(tmp_path, "shell", "-c", "response.css('title::text').get()", site.url("/first0")),
            run_scrapy(tmp_path, "fetch", site.url("/copy0", 1)),
        ]
        assert log.read_bytes() == before
        release.set()
        outcome = running.wait()

    for command in looked:
        assert command.returncode == 0
        assert "dedup is off: this command only looks at pages" in command.stderr
        assert "ERROR" not in command.stderr
    assert headline("First", story(0)) in looked[0].stdout
    assert blog("Copy", story(0), links=(site.url("/link0"),)) in looked[1].stdout

    assert sorted(outcome.kept) == sorted(["from start", *kept, held])
    assert [i["url"] for i in outcome.dropped] == dropped
    assert len(outcome.drop_lines) == len(dropped)
    assert outcome.items[1]["section"] == "World"
    (pictured,) = [i for i in outcome.items if i.get("images")]
    assert (tmp_path / "images" / pictured["images"][0]["path"]).exists()
    assert "/stolen.png" not in site.paths()
    assert outcome.stats["retry/count"] == 1
    assert outcome.stats["dedup/items/dropped"] == outcome.stats["item_dropped_count"] == len(dropped)
    assert outcome.stats["item_scraped_count"] == len(outcome.items)
    # Two of these have no page: one comes from start(), and one from an errback.
    assert outcome.stats["dedup/items/kept"] == len(outcome.items) - 2
    assert outcome.problems == []
    assert outcome.exit_status == 0


def test_looking_at_a_page_makes_no_store(site, tmp_path):
    url = site.add("/a", article("A", story(1)))
    write_job(tmp_path, "sample_spiders.Articles", urls=url)
    for arguments in (("fetch",), ("shell", "-c", "response.status")):
        assert run_scrapy(tmp_path, *arguments, url).returncode == 0
    assert not (tmp_path / "store").exists()
    assert not (tmp_path / "records.jsonl").exists()


# --- recrawl


def test_a_page_that_changed_gives_up_its_old_text(site, crawl):
    one, two = article("One", story(1)), article("Two", story(2))
    changing = site.add("/changing", one, two, two)
    other = site.add("/other", article("Other", story(1)), host=1)
    third = site.add("/third", blog("Third", story(2)))
    first = crawl("sample_spiders.Steps", steps=[{"url": u} for u in (changing, other)], folder="store")
    assert (first.kept, [i["url"] for i in first.dropped]) == ([changing], [other])
    assert "dropped for earlier crawls" not in first.log
    run = first.record(other)["crawl"]
    assert first.record(other)["original_crawl"] == run

    second = crawl(
        "sample_spiders.Steps", steps=[{"url": u} for u in (third, changing, other)], folder="store", afresh=True
    )
    # "third" told it first; so the changed page is a duplicate, its old text is free, and the other one owns it.
    assert second.kept == [third, other]
    assert second.record(changing)["original_url"] == third

    third_crawl = crawl("sample_spiders.Steps", steps=[{"url": site.add("/new", one)}], folder="store", afresh=True)
    assert third_crawl.kept == []
    record = third_crawl.record(site.url("/new"))
    assert record["original_url"] == other
    assert record["original_crawl"] not in (record["crawl"], run)
    assert third_crawl.stats["dedup/items/dropped_for_earlier_crawls"] == 1
    assert re.search(r"^  dropped for earlier crawls +1$", third_crawl.log, re.MULTILINE)
    assert first.exit_status == second.exit_status == third_crawl.exit_status == 0


@pytest.mark.parametrize("order", [1, -1], ids=["originals first", "copies first"])
def test_a_drop_for_a_page_that_the_crawl_keeps_again_is_for_no_earlier_crawl(site, crawl, order):
    """Also while the original waits for its feed to be synced."""
    originals = [site.add(f"/{n}", article(f"Story {n}", story(n))) for n in range(6)]
    copies = [site.add(f"/copy{n}", blog(f"Story {n}", story(n)), host=1) for n in range(6)]
    settings = {"FEEDS": {"feed.jsonl": {"format": "jsonlines"}}}
    for urls in (originals + copies, (originals + copies)[::order], copies):
        outcome = crawl("sample_spiders.OneByOne", urls=",".join(urls), settings=settings, folder="a", afresh=True)
        assert sorted(item["url"] for item in outcome.dropped) == sorted(copies)
        for_earlier = outcome.stats.get("dedup/items/dropped_for_earlier_crawls", 0)
        assert for_earlier == (6 if urls is copies else 0)
        (found,) = run_here("stats", "--crawl", "last", "--json", *outcome.here, folder=outcome.folder).json
        assert found["stats"].get("dedup/items/dropped_for_earlier_crawls", 0) == for_earlier


def test_a_new_text_supersedes_only_once_its_items_are_safe(site, crawl):
    one, two = article("One", story(1)), article("Two", story(2))
    changing = site.add("/changing", one, two)
    copies = [site.add(f"/copy{n}", one) for n in range(2)]
    steps = [
        {"url": changing},
        {"url": changing, "callback": "plain_raises"},
        {"url": copies[0]},
        {"url": changing},
        {"url": copies[1]},
    ]
    outcome = crawl("sample_spiders.Steps", steps=steps)
    # While its new text was not kept, the page still owned the old one. Once it was, what had been dropped came back.
    assert outcome.kept[:2] == [changing, changing]
    assert len(outcome.kept) == 3
    assert outcome.kept[2] in copies
    assert next(r["original_url"] for r in outcome.records if r["url"] == copies[0]) == changing


# --- a project with a mind of its own


FORMATTER = {"LOG_FORMATTER": "test_sample_spiders.LoudFormatter"}
LEVEL = {"DEFAULT_DROPITEM_LOG_LEVEL": "DEBUG"}
PLACED = {
    "DOWNLOADER_MIDDLEWARES": {"dedup_middleware.plugin.downloader_middleware.DedupDownloaderMiddleware": 60},
    "SPIDER_MIDDLEWARES": {"dedup_middleware.plugin.spider_middleware.DedupSpiderMiddleware": 30},
    "EXTENSIONS": {"dedup_middleware.plugin.extension.DedupExtension": 700},
}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (FORMATTER, "] WARNING: LOUD: http"),
        (LEVEL, "[scrapy.core.scraper] DEBUG: Dropped: http"),
        (PLACED, "[scrapy.core.scraper] INFO: Dropped: http"),
    ],
    ids=["formatter", "level", "placed"],
)
def test_the_project_has_the_last_word(site, crawl, settings, said):
    a, b = site.add("/a", article("A", story(1))), site.add("/b", blog("B", story(1)))
    outcome = crawl("sample_spiders.Steps", steps=[{"url": a}, {"url": b}], settings=settings)
    assert outcome.kept == [a]
    assert said in outcome.log
    assert len(outcome.dropped) == outcome.stats["item_dropped_count"] == outcome.stats["dedup/pages"] - 1 == 1
    assert outcome.log.count("DedupSpiderMiddleware") == outcome.log.count("DedupDownloaderMiddleware")


# --- failures


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_when_the_log_fails_everything_is_kept_from_then_on(site, crawl):
    pairs = [(site.add(f"/{n}/a", article("A", story(n))), site.add(f"/{n}/b", blog("B", story(n)))) for n in range(3)]
    steps = [{"url": url} for pair in pairs for url in pair]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings={"DEDUP_LOG": "/dev/full"})
    # The record of the first page is the first to fail.
    assert outcome.kept == [url for pair in pairs for url in pair]
    assert outcome.dropped == []
    (line,) = outcome.problems
    assert "ERROR: dedup: DEDUP_LOG /dev/full cannot be written (No space left on device)" in line
    assert ". From now on every page is kept and nothing is dropped" in line
    assert outcome.stats["dedup/failures"] == 1
    # The failure voids the claim of the first page, perhaps before its copy is checked.
    assert outcome.stats["dedup/verdict/duplicate"] in {len(pairs) - 1, len(pairs)}
    assert "dedup/verdict/unchecked" not in outcome.stats
    assert "Traceback" not in outcome.log + outcome.stderr
    assert outcome.exit_status == 0


@pytest.mark.parametrize("backend", sorted({default_backend(), "sqlite"}))
def test_when_the_store_fails_everything_is_kept_from_then_on(site, crawl, backend):
    """Its disk fills up; the next crawl, on a disk with room, finds the store as it was."""
    a, b = site.add("/a", article("A", story(1))), site.add("/b", blog("B", story(1)))
    steps = [{"url": a}, {"url": b}]
    # Stories long enough to outgrow the store's buffers, which the small files of the crawl itself do not.
    size = 300_000 if backend == "sqlite" else 150_000
    steps += [{"url": a, "callback": "fill_disk", "cb_kwargs": {"size": size}}]
    long = [site.add(f"/long{n}", article("Long", story(n, paragraphs=300))) for n in range(2, 8)]
    copies = [site.add(f"/copy{n}", article("Copy", story(n, paragraphs=300))) for n in (6, 7)]
    last = site.add("/last", blog("Last", story(1)))
    steps += [{"url": url} for url in (*long, *copies, last)]
    settings = {"LOG_LEVEL": "INFO", "DEDUP_STORE": f"{backend}:store-of-{backend}"}
    outcome = crawl("sample_spiders.Steps", steps=steps, settings=settings, folder="full")
    assert outcome.kept == [a, *long, *copies, last]
    assert [i["url"] for i in outcome.dropped] == [b]
    assert outcome.stats["dedup/failures"] == 1
    (line,) = outcome.problems
    assert f"store-of-{backend}" in line
    assert ". From now on every page is kept and nothing is dropped" in line
    assert "Traceback" not in outcome.log + outcome.stderr

    again = crawl(
        "sample_spiders.Steps", steps=[{"url": b}, {"url": last}], settings=settings, folder="full", afresh=True
    )
    assert again.kept == []
    assert {r["original_url"] for r in again.records} == {a}
    assert again.problems == []
