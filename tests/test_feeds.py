"""A duplicate's item is dropped only if every feed that would take it has taken an item of its original."""

import functools
import json
import os
import pathlib
import threading

import pytest
from local_site import wait_until
from prose import article, blog, story
from sample_spiders import Steps, TagDataItem
from scrapy import signals
from scrapy.extensions.feedexport import ItemFilter

from dedup_middleware.reasons import Reason

JSON_LINES = {"format": "jsonlines"}
#: Takes items of one class; what is a dict goes to the pipelines alone.
STORIES = {"stories.jsonl": {**JSON_LINES, "item_classes": ["sample_spiders.DataItem"]}}


# --- parts of a project


class OnlyTheFirst:
    """A feed's filter: items of pages whose path ends in /a."""

    def __init__(self, feed_options):
        pass

    def accepts(self, item):
        return item["url"].endswith("/a")


class Chosen(ItemFilter):
    """A feed's filter: the items that its option ``chosen`` returns a true value for, with its ``ends``."""

    def accepts(self, item):
        return self.feed_options["chosen"](item, *self.feed_options.get("ends", ()))


class Ending:
    """Whether the path of an item's page has this end; an object without a repr."""

    def __init__(self, end):
        self.end = end

    def __call__(self, item):
        return item["url"].endswith(self.end)


def has_end(item, *ends):
    return item["url"].endswith(ends)


def ends_with(end):
    @functools.wraps(has_end)
    def wrapped(item):
        return has_end(item, end)

    return wrapped


#: Options of a feed for items whose URL has an end.
CHOICES = {
    "named": lambda end: {"chosen": has_end, "ends": {end, "/never"}},
    "lambda": lambda end: {"chosen": lambda item: item["url"].endswith(end)},
    "object": lambda end: {"chosen": Ending(end)},
    "wrapped": lambda end: {"chosen": ends_with(end)},
}


class Choosing(Steps):
    """A spider with a feed for each of ``FEED_ENDS``, whose options are one of ``CHOICES``."""

    @classmethod
    def update_settings(cls, settings):
        options_for = CHOICES[settings["FEED_CHOICE"]]
        ends = settings.getdict("FEED_ENDS").items()
        feeds = {uri: {**JSON_LINES, "item_filter": Chosen, **options_for(end)} for uri, end in ends}
        settings.set("FEEDS", feeds, priority="spider")


class SomeBecomeStories:
    """A pipeline that makes other items of some: of those whose path ends in /b."""

    def process_item(self, item):
        return TagDataItem(item["url"], item["title"]) if item["url"].endswith("/b") else item


class FeedReader:
    """An extension that reads FEED_TO_READ, a named pipe, to its end and puts what came into another file."""

    def __init__(self, path):
        self.path = path
        threading.Thread(target=self.read, daemon=True).start()

    @classmethod
    def from_crawler(cls, crawler):
        return cls(pathlib.Path(crawler.settings["FEED_TO_READ"]))

    def read(self):
        told = self.path.read_bytes()
        self.path.with_suffix(".read").write_bytes(told)


class BatchMover:
    """An extension that takes every batch away as soon as it is there."""

    @classmethod
    def from_crawler(cls, crawler):
        mover = cls()
        crawler.signals.connect(mover.take, signals.feed_slot_closed)
        return mover

    def take(self, slot):
        path = pathlib.Path(slot.storage.path)
        path.rename(path.with_suffix(".taken"))


def copies(site, number, *names):
    """Serve story *number* at several URLs and return them."""
    text = story(number)
    return [
        site.add(f"/{number}/{name}", (blog if place else article)(name, text), host=place % 3)
        for place, name in enumerate(names)
    ]


def step(url, kind="dataclass", **more):
    return {"url": url, "cb_kwargs": {"kind": kind}, **more}


def fed(outcome, name="stories.jsonl"):
    return [item["url"] for item in outcome.lines(name)]


@pytest.mark.every_scrapy
def test_a_copy_is_kept_until_each_feed_that_wants_it_has_the_story(site, crawl):
    pairs = [copies(site, number, "a", "b") for number in range(3)]
    a, b, c, d = copies(site, 4, "a", "b", "c", "d")
    unwanted = copies(site, 5, "a", "b")
    steps = [s for first, second in pairs for s in (step(first, "dict"), step(second))]
    steps += [step(a, "dict"), step(b), step(c), step(d, "dict"), *(step(url, "dict") for url in unwanted)]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings={"FEEDS": STORIES})
    assert fed(outcome) == [*(second for _, second in pairs), b]
    assert [i["url"] for i in outcome.dropped] == [c, d, unwanted[1]]
    assert {u: outcome.record(u)["original_url"] for u in (c, d)} == {c: b, d: a}
    record = outcome.record(pairs[0][1])
    reason = Reason.ORIGINAL_MISSING_FROM_FEED
    assert (record["verdict"], record["outcome"], record["reason"]) == ("related", "kept", reason)
    assert outcome.problems == []


@pytest.mark.parametrize(
    "feeds", [STORIES, {"later-%(time)s.jsonl": STORIES["stories.jsonl"]}], ids=["same", "renamed"]
)
def test_a_later_crawl_knows_which_feeds_had_the_story(site, crawl, feeds):
    """By what they take: they may be written elsewhere each time."""
    (a, b), (c, d) = copies(site, 1, "a", "b"), copies(site, 2, "c", "d")
    crawl("sample_spiders.Steps", steps=[step(a, "dict"), step(c)], settings={"FEEDS": STORIES}, folder="kept")
    outcome = crawl(
        "sample_spiders.Steps", steps=[step(b), step(d)], settings={"FEEDS": feeds}, folder="kept", afresh=True
    )
    assert outcome.kept == [b]
    assert [i["url"] for i in outcome.dropped] == [d]


def test_a_filter_of_the_projects_own_is_taken_to_want_everything(site, crawl):
    (a, x), (y, b) = copies(site, 1, "a", "x"), copies(site, 2, "y", "b")
    feeds = {"first.jsonl": {**JSON_LINES, "item_filter": "test_feeds.OnlyTheFirst"}}
    outcome = crawl("sample_spiders.Steps", steps=[step(u, "dict") for u in (a, x, y, b)], settings={"FEEDS": feeds})
    assert fed(outcome, "first.jsonl") == [a]
    assert outcome.kept == [a, y, b]
    assert [i["url"] for i in outcome.dropped] == [x]


def choosing(crawl, how, url, **ends):
    settings = {"FEED_CHOICE": how, "FEED_ENDS": {f"{name}.jsonl": end for name, end in ends.items()}}
    steps = [step(each, "dict") for each in url.split()]
    return crawl("test_feeds.Choosing", steps=steps, settings=settings, folder="chosen", afresh=True)


@pytest.mark.parametrize("how", CHOICES)
def test_two_feeds_that_choose_by_an_object_of_the_project_are_two(site, crawl, how):
    a, b = copies(site, 1, "a", "b")
    outcome = choosing(crawl, how, f"{a} {b}", one="/a", two="/b")
    assert (fed(outcome, "one.jsonl"), fed(outcome, "two.jsonl")) == ([a], [b])
    assert outcome.problems == []


@pytest.mark.parametrize("how", CHOICES)
def test_a_later_crawl_knows_a_feed_that_chooses_by_what_has_a_name(site, crawl, how):
    """Of any other object nothing shows that it is the same."""
    a, b, c = copies(site, 1, "a", "b", "c/a")
    assert fed(choosing(crawl, how, a, one="/a"), "one.jsonl") == [a]
    same = choosing(crawl, how, c, one="/a")
    assert [item["url"] for item in same.dropped] == ([c] if how == "named" else [])
    other = choosing(crawl, how, b, one="/b")
    assert (fed(other, "one.jsonl")[-1], other.dropped) == (b, [])


@pytest.mark.parametrize("filters", [{}, {"item_filter": "test_feeds.OnlyTheFirst"}], ids=["everything", "filter"])
def test_a_feed_of_other_fields_is_another(site, crawl, filters):
    a, b, c = copies(site, 1, "a", "b", "c/a")
    feed = JSON_LINES | filters

    def titles(url, feed, **settings):
        settings["FEEDS"] = {"feed.jsonl": feed}
        return crawl("sample_spiders.Steps", steps=[step(url, "dict")], settings=settings, folder="kept", afresh=True)

    assert titles(a, feed | {"fields": ["title", "url"]}).kept == [a]
    assert titles(b, feed, FEED_EXPORT_FIELDS={"url": "URL", "title": "Title"}).kept == []
    assert titles(b, feed, FEED_EXPORT_FIELDS=["title"]).kept == [b]
    assert titles(c, feed).kept == [c]


def test_where_pipelines_make_other_items_any_feed_may_want_them(site, crawl):
    """What a feed would take is known of the item that the spider gives, and the feed sees another one."""
    (a, b), (other,) = copies(site, 1, "a", "b"), copies(site, 2, "b")
    settings = {"FEEDS": STORIES, "EXTRA_PIPELINES": {"test_feeds.SomeBecomeStories": 100}}
    outcome = crawl("sample_spiders.Steps", steps=[step(url, "dict") for url in (other, a, b)], settings=settings)
    assert fed(outcome) == [other, b]
    assert outcome.dropped == []


def test_where_pipelines_leave_items_as_they_are_feeds_choose_as_without_them(site, crawl):
    """From the first item on that has shown it."""
    (a, b), (c,) = copies(site, 1, "a", "b"), copies(site, 2, "c")
    crawl("sample_spiders.Steps", steps=[step(a, "dict")], settings={"FEEDS": STORIES}, folder="kept")
    settings = {"FEEDS": STORIES, "EXTRA_PIPELINES": {"sample_spiders.SlowPipeline": 100}}
    outcome = crawl(
        "sample_spiders.Steps", steps=[step(c, "dict"), step(b, "dict")], settings=settings, folder="kept", afresh=True
    )
    assert [i["url"] for i in outcome.dropped] == [b]


# --- where a feed may lead


def led(site, crawl, feeds, **settings):
    """Crawl a story and two copies, which are dropped, with these *feeds*; return what came, and the story's URL."""
    first, *rest = copies(site, 1, "a", "b", "c")
    settings |= {"FEEDS": feeds, "CHECKPOINT_INTERVAL": 1}
    outcome = crawl("sample_spiders.Steps", steps=[step(url) for url in (first, *rest)], settings=settings)
    assert [i["url"] for i in outcome.dropped] == rest
    assert outcome.problems == []
    return outcome, first


def test_a_feed_may_be_a_device(site, crawl):
    led(site, crawl, {"/dev/null": JSON_LINES})


def test_a_feed_may_be_a_named_pipe(site, crawl, tmp_path):
    """Opened again, it would wait for ever: it has no writer any more."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = {"EXTENSIONS": {"test_feeds.FeedReader": 0}, "FEED_TO_READ": str(pipe)}
    _, first = led(site, crawl, {str(pipe): JSON_LINES}, **reader)
    wait_until(lambda: pipe.with_suffix(".read").exists() and first in pipe.with_suffix(".read").read_text())


def test_a_batch_that_has_been_taken_away_is_stored(site, crawl):
    batches = {"batch-%(batch_id)d.jsonl": {**JSON_LINES, "batch_item_count": 1}}
    outcome, first = led(site, crawl, batches, EXTENSIONS={"test_feeds.BatchMover": 0})
    assert fed(outcome, "batch-1.taken") == [first]


@pytest.mark.parametrize("uri", ["late://fails", "late://works", "feed.jsonl"])
def test_without_stats_no_feed_is_taken_for_stored_at_its_end(site, crawl, uri):
    """Nothing else tells what Scrapy could not store."""
    a, b = copies(site, 1, "a", "b")
    settings = {
        "FEED_STORAGES": {"late": "sample_spiders.LateStorage"},
        "STATS_CLASS": "scrapy.statscollectors.DummyStatsCollector",
        "FEEDS": {uri: JSON_LINES},
    }
    outcome = crawl("sample_spiders.Steps", steps=[step(a), step(b)], settings=settings, folder="kept")
    assert [i["url"] for i in outcome.dropped] == [b]
    assert len([p for p in outcome.problems if "is not known without Scrapy's stats" in p]) == 1
    # The original of the drop was on disk before it, or in the store.
    better = crawl("sample_spiders.Steps", steps=[], settings={"FEEDS": {"better.jsonl": JSON_LINES}}, folder="kept")
    assert fed(outcome, "feed.jsonl") + fed(better, "better.jsonl") == [a]


@pytest.mark.every_scrapy
def test_a_line_that_a_killed_crawl_has_torn_takes_no_other_with_it(site, crawl, tmp_path):
    feed = tmp_path / "stories.jsonl"
    feed.write_text('{"url": "first"}\n{"url": "seco')
    urls = [site.add(f"/{n}", article(str(n), story(n))) for n in range(2)]
    settings = {"FEEDS": {str(feed): JSON_LINES}}
    outcome = crawl("sample_spiders.Articles", urls=",".join(urls), settings=settings)
    first, torn, *items = feed.read_text().splitlines()
    assert (first, torn) == ('{"url": "first"}', '{"url": "seco')
    assert {json.loads(item)["url"] for item in items} == set(urls)
    assert "stories.jsonl ended within a line" in outcome.log
    # Nothing is added to one that ends well.
    before = feed.read_text()
    crawl("sample_spiders.Articles", urls=site.add("/c", article("c", story(9))), settings=settings, folder="again")
    assert feed.read_text().startswith(before)
    assert "\n\n" not in feed.read_text()
