"""A duplicate's item is dropped only if every feed that would take it has taken an item of its original."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from local_site import Answer, wait_until
from prose import article, blog, several, story
from scrapy.exporters import JsonLinesItemExporter
from scrapy.extensions.feedexport import FileFeedStorage

from dedup_middleware.errors import FeedError
from dedup_middleware.plugin.feeds import Feeds
from dedup_middleware.reasons import Reason

JSON_LINES = {"format": "jsonlines"}
#: Takes items of one class; what is a dict goes to the pipelines alone.
STORIES = {"stories.jsonl": {**JSON_LINES, "item_classes": ["sample_spiders.DataItem"]}}


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


def test_a_story_whose_original_every_feed_declined_is_in_the_feed(site, crawl):
    pairs = [copies(site, number, "a", "b") for number in range(5)]
    steps = [s for a, b in pairs for s in (step(a, "dict"), step(b))]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings={"FEEDS": STORIES})
    assert fed(outcome) == [b for _, b in pairs]
    assert outcome.dropped == []
    record = outcome.record(pairs[0][1])
    assert (record["verdict"], record["outcome"], record["reason"]) == ("related", "kept", Reason.NOT_REACHED)
    assert outcome.problems == []


def test_once_the_feed_has_the_story_further_copies_are_dropped(site, crawl):
    a, b, c, d = copies(site, 1, "a", "b", "c", "d")
    steps = [step(a, "dict"), step(b), step(c), step(d, "dict")]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings={"FEEDS": STORIES})
    assert outcome.kept == [a, b]
    assert {u: outcome.record(u)["original_url"] for u in (c, d)} == {c: b, d: b}


def test_what_no_feed_wants_needs_none(site, crawl):
    a, b = copies(site, 1, "a", "b")
    outcome = crawl("sample_spiders.Steps", steps=[step(a, "dict"), step(b, "dict")], settings={"FEEDS": STORIES})
    assert [i["url"] for i in outcome.dropped] == [b]


def test_each_feed_counts_for_itself(site, crawl):
    """One feed has the story, the other wants it and has not."""
    a, b, c = copies(site, 1, "a", "b", "c")
    feeds = {"all.jsonl": JSON_LINES, **STORIES}
    outcome = crawl("sample_spiders.Steps", steps=[step(a, "dict"), step(b), step(c)], settings={"FEEDS": feeds})
    assert fed(outcome) == [b]
    assert fed(outcome, "all.jsonl") == [a, b]
    assert [i["url"] for i in outcome.dropped] == [c]


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


def test_a_feed_that_is_new_gets_what_it_never_had(site, crawl):
    a, b, c = copies(site, 1, "a", "b", "c")
    crawl("sample_spiders.Steps", steps=[step(a)], folder="kept")
    outcome = crawl(
        "sample_spiders.Steps", steps=[step(b), step(c)], settings={"FEEDS": STORIES}, folder="kept", afresh=True
    )
    assert fed(outcome) == [b]
    assert [i["url"] for i in outcome.dropped] == [c]


def test_a_filter_of_the_projects_own_is_taken_to_want_everything(site, crawl):
    (a, x), (y, b) = copies(site, 1, "a", "x"), copies(site, 2, "y", "b")
    feeds = {"first.jsonl": {**JSON_LINES, "item_filter": "sample_spiders.OnlyTheFirst"}}
    outcome = crawl("sample_spiders.Steps", steps=[step(u, "dict") for u in (a, x, y, b)], settings={"FEEDS": feeds})
    assert fed(outcome, "first.jsonl") == [a]
    assert outcome.kept == [a, y, b]
    assert [i["url"] for i in outcome.dropped] == [x]


def test_where_pipelines_make_other_items_any_feed_may_want_them(site, crawl):
    """What a feed would take is known of the item that the spider gives, and the feed sees another one."""
    (a, b), (other,) = copies(site, 1, "a", "b"), copies(site, 2, "b")
    settings = {"FEEDS": STORIES, "EXTRA_PIPELINES": {"sample_spiders.SomeBecomeStories": 100}}
    outcome = crawl("sample_spiders.Steps", steps=[step(url, "dict") for url in (other, a, b)], settings=settings)
    assert fed(outcome) == [other, b]
    assert outcome.dropped == []


PIPED = {"FEEDS": STORIES, "EXTRA_PIPELINES": {"sample_spiders.AllBecomeStories": 100}}


def test_before_a_pipeline_has_shown_what_it_makes_of_items_any_feed_may_want_them(site, crawl):
    """The original is an earlier crawl's, and no feed of that one has its story."""
    (a, b), (c,) = copies(site, 1, "a", "b"), copies(site, 1, "c")
    crawl("sample_spiders.Steps", steps=[step(a, "dict")], settings={"FEEDS": STORIES}, folder="kept")
    outcome = crawl(
        "sample_spiders.Steps", steps=[step(b, "dict"), step(c, "dict")], settings=PIPED, folder="kept", afresh=True
    )
    assert fed(outcome) == [b]
    assert [i["url"] for i in outcome.dropped] == [c]


def test_a_pipeline_may_make_items_of_a_class_that_the_spider_gives_too(site, crawl):
    (a, b), (other, another) = copies(site, 1, "a", "b"), copies(site, 2, "c", "d")
    crawl("sample_spiders.Steps", steps=[step(a, "dict")], settings={"FEEDS": STORIES}, folder="kept")
    steps = [step(other), step(another, "dict"), step(b, "dict")]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings=PIPED, folder="kept", afresh=True)
    assert fed(outcome)[-1] == b


def test_where_pipelines_leave_items_as_they_are_feeds_choose_as_without_them(site, crawl):
    """From the first item on that has shown it."""
    (a, b), (c,) = copies(site, 1, "a", "b"), copies(site, 2, "c")
    crawl("sample_spiders.Steps", steps=[step(a, "dict")], settings={"FEEDS": STORIES}, folder="kept")
    settings = {"FEEDS": STORIES, "EXTRA_PIPELINES": {"sample_spiders.SlowPipeline": 100}}
    outcome = crawl(
        "sample_spiders.Steps", steps=[step(c, "dict"), step(b, "dict")], settings=settings, folder="kept", afresh=True
    )
    assert [i["url"] for i in outcome.dropped] == [b]


@pytest.mark.parametrize(("action", "tags"), [("dry-run", None), ("tag", ["new", "related", "duplicate"])])
def test_the_other_actions_follow_the_same_rule(site, crawl, action, tags):
    a, b, c = copies(site, 1, "a", "b", "c")
    feeds = {"stories.jsonl": {**JSON_LINES, "item_classes": ["sample_spiders.TagDataItem"]}}
    steps = [step(a, "dict"), step(b), step(c)]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings={"FEEDS": feeds, "DEDUP_ACTION": action})
    assert outcome.kept == [a, b, c]
    if tags:
        assert [item["dedup"]["verdict"] for item in outcome.items] == tags
    else:
        assert outcome.stats["dedup/items/would_drop"] == 1
        assert (outcome.record(b)["outcome"], outcome.record(c)["outcome"]) == ("kept", "would_drop")


def test_a_page_that_has_given_an_item_before_does_not_come_to_own_its_text(site, crawl):
    """What became of that item would be taken for what became of the later one."""
    a, b, c = copies(site, 1, "a", "b", "c")
    feeds = {"stories.jsonl": {**JSON_LINES, "item_classes": ["sample_spiders.TagDataItem"]}}
    steps = [step(a, "dict"), {"url": b, "callback": "parse_both_kinds"}, step(c)]
    settings = {"FEEDS": feeds, "DEDUP_ACTION": "tag", "EXTRA_PIPELINES": {"sample_spiders.SlowPipeline": 100}}
    outcome = crawl("sample_spiders.Steps", steps=steps, settings=settings)
    assert [item["dedup"]["verdict"] for item in outcome.items] == ["new", "related", "related", "related"]


def test_items_that_are_no_pages_follow_it_too(site, crawl):
    told = json.dumps([{"url": "u", "text": " ".join(story(1))}])
    answer = Answer(told, headers={"Content-Type": "application/json"})
    a, b, c = (site.add(f"/api/{name}", answer, host=host) for host, name in enumerate("abc"))
    kinds = {a: "dict", b: "dataclass", c: "dataclass"}
    steps = [step(url, kind, callback="parse_api") for url, kind in kinds.items()]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings={"FEEDS": STORIES, "DEDUP_ITEM_FIELDS": ["text"]})
    assert len(fed(outcome)) == 1
    assert len(outcome.items) == 2
    assert len(outcome.dropped) == 1


def test_of_several_items_on_a_page_those_are_dropped_that_the_feed_has(site, crawl):
    page, copy = (site.add(f"/{n}", several("Parts", [story(1), story(2)]), host=n) for n in range(2))
    steps = [{"url": page, "callback": "parse_parts"}, {"url": copy, "callback": "parse_parts"}]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings={"FEEDS": {"all.jsonl": JSON_LINES}})
    assert outcome.kept == [page, page]
    assert [i["url"] for i in outcome.dropped] == [copy, copy]


# --- where a feed may lead


def test_a_feed_may_be_a_device(site, crawl):
    a, b, c = copies(site, 1, "a", "b", "c")
    outcome = crawl(
        "sample_spiders.Steps",
        steps=[step(url) for url in (a, b, c)],
        settings={"FEEDS": {"/dev/null": JSON_LINES}, "CHECKPOINT_INTERVAL": 1},
    )
    assert [i["url"] for i in outcome.dropped] == [b, c]
    assert outcome.problems == []


def test_a_feed_may_be_a_named_pipe(site, crawl, tmp_path):
    """Resources once more, it would wait for ever: nobody writes into it any more."""
    a, b = copies(site, 1, "a", "b")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    settings = {
        "FEEDS": {str(pipe): JSON_LINES},
        "EXTENSIONS": {"sample_spiders.FeedReader": 0},
        "FEED_TO_READ": str(pipe),
        "CHECKPOINT_INTERVAL": 1,
    }
    outcome = crawl("sample_spiders.Steps", steps=[step(a), step(b)], settings=settings)
    assert [i["url"] for i in outcome.dropped] == [b]
    assert outcome.problems == []
    wait_until(lambda: pipe.with_suffix(".read").exists() and a in pipe.with_suffix(".read").read_text())


def test_a_batch_that_has_been_taken_away_is_stored(site, crawl):
    a, b = copies(site, 1, "a", "b")
    settings = {
        "FEEDS": {"batch-%(batch_id)d.jsonl": {**JSON_LINES, "batch_item_count": 1}},
        "EXTENSIONS": {"sample_spiders.BatchMover": 0},
        "CHECKPOINT_INTERVAL": 1,
    }
    outcome = crawl("sample_spiders.Steps", steps=[step(a), step(b)], settings=settings)
    assert [item["url"] for item in outcome.lines("batch-1.taken")] == [a]
    assert [i["url"] for i in outcome.dropped] == [b]
    assert outcome.problems == []


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
    better = crawl("sample_spiders.Steps", steps=[], settings={"FEEDS": {"better.jsonl": JSON_LINES}}, folder="kept")
    assert fed(better, "better.jsonl") == [b]


# --- filters of the project's own


def test_feeds_with_one_filter_and_other_options_are_different_feeds(site, crawl):
    a, b, c = copies(site, 1, "a", "b", "c")
    ending = {**JSON_LINES, "item_filter": "sample_spiders.ByEnding"}
    feeds = {"a.jsonl": {**ending, "ending": "/a"}, "b.jsonl": {**ending, "ending": "/b"}}
    outcome = crawl("sample_spiders.Steps", steps=[step(u, "dict") for u in (a, b, c)], settings={"FEEDS": feeds})
    assert (fed(outcome, "a.jsonl"), fed(outcome, "b.jsonl")) == ([a], [b])
    # No page has been taken by both, and either may want it.
    assert outcome.kept == [a, b, c]


def test_a_filter_of_the_projects_own_may_have_any_attributes(site, crawl):
    a, b = copies(site, 1, "a", "b")
    feeds = {
        "feed.jsonl": {
            **JSON_LINES,
            "item_filter": "sample_spiders.OfNames",
            "item_classes": ["sample_spiders.DataItem"],
        }
    }
    outcome = crawl("sample_spiders.Steps", steps=[step(a), step(b)], settings={"FEEDS": feeds})
    assert fed(outcome, "feed.jsonl") == [a]
    assert [i["url"] for i in outcome.dropped] == [b]
    assert outcome.problems == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only there are descriptors to be seen")
def test_one_feed_that_cannot_be_flushed_leaves_no_file_of_another_open(tmp_path):
    slots = []
    for name in ("good", "bad"):
        storage = FileFeedStorage(str(tmp_path / name))
        file = storage.open(None)
        slots.append(
            SimpleNamespace(
                exporter=JsonLinesItemExporter(file), storage=storage, file=file, uri=storage.path, itemcount=1
            )
        )
    feeds = Feeds(SimpleNamespace(get_extension=lambda _: SimpleNamespace(slots=slots)))
    slots[1].file.close()
    before = sorted(Path("/proc/self/fd").iterdir())
    with pytest.raises(FeedError, match="bad cannot be written"):
        feeds.flush()
    assert sorted(Path("/proc/self/fd").iterdir()) == before
    slots[0].file.close()
