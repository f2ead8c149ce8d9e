"""Whether a page is compared with this crawl only: ``DEDUP_SCOPE``, and what ``auto`` makes of the feeds."""

import pytest
from prose import article, blog, story
from scrapy.settings import Settings

from dedup_middleware.api import Deduplicator
from dedup_middleware.model import Scope
from dedup_middleware.plugin.feeds import read_config

OVERWRITTEN = {"format": "jsonlines", "overwrite": True}
APPENDED = {"format": "jsonlines"}


def scope_line(outcome):
    (line,) = [line for line in outcome.log.splitlines() if "dedup: action drop, scope " in line]
    return line.partition("scope ")[2].partition(", store")[0]


class TestCrawls:
    @pytest.mark.parametrize(
        ("settings", "second", "reason"),
        [
            ({"FEEDS": {"feed.jsonl": OVERWRITTEN}}, ["b"], "crawl (feed.jsonl is overwritten)"),
            ({"FEEDS": {"feed.jsonl": APPENDED}}, [], "store (no feed is overwritten)"),
            ({}, [], "store (no feed is overwritten)"),
            ({"FEEDS": {"feed.jsonl": OVERWRITTEN}, "DEDUP_SCOPE": "store"}, [], "store (DEDUP_SCOPE)"),
            ({"FEEDS": {"feed.jsonl": APPENDED}, "DEDUP_SCOPE": "crawl"}, ["b"], "crawl (DEDUP_SCOPE)"),
        ],
        ids=["overwritten", "appended", "no feed", "explicit store", "explicit crawl"],
    )
    def test_a_daily_crawl_has_each_story_in_a_feed_that_is_overwritten(self, site, crawl, settings, second, reason):
        a, b = site.add("/a", article("A", story(1))), site.add("/b", blog("B", story(1)), host=1)
        copy = site.add("/c", blog("C", story(1)), host=2)
        steps = [{"url": url} for url in (b, copy)]
        crawl("sample_spiders.Steps", steps=[{"url": a}], settings=settings, folder="daily")
        outcome = crawl("sample_spiders.Steps", steps=steps, settings=settings, folder="daily", afresh=True)
        assert outcome.kept == [{"b": b}[name] for name in second]
        assert scope_line(outcome) == reason
        if "FEEDS" in settings:
            urls = [item["url"] for item in outcome.lines("feed.jsonl")]
            assert (b in urls) is bool(second)

    @pytest.mark.parametrize("resumed", [False, True])
    @pytest.mark.parametrize("overwritten", [False, True])
    def test_a_resumed_crawl_does_not_compare_with_what_was_in_a_feed_that_it_overwrites(
        self,
        site,
        crawl,
        overwritten,
        resumed,
    ):
        a, b = site.add("/a", article("A", story(1))), site.add("/b", blog("B", story(1)), host=1)
        copy = site.add("/c", blog("C", story(1)), host=2)
        feeds = {"FEEDS": {"feed.jsonl": OVERWRITTEN if overwritten else APPENDED}}
        first = crawl("sample_spiders.Steps", steps=[{"url": a}], settings=feeds | {"JOBDIR": "job"}, folder="one")
        assert first.problems == []
        settings = feeds | {"JOBDIR": "job" if resumed else "another", "DEDUP_SCOPE": "crawl"}
        steps = [{"url": b}, {"url": copy}]
        outcome = crawl("sample_spiders.Steps", steps=steps, settings=settings, folder="one", afresh=True)
        assert outcome.kept == ([] if resumed and not overwritten else [b])
        if overwritten and resumed:
            (warning,) = outcome.problems
            assert "this crawl resumes a JOBDIR, and Scrapy replaces feed.jsonl" in warning
            assert [item["url"] for item in outcome.lines("feed.jsonl")] == [b]
        else:
            assert outcome.problems == []


class TestOverwrittenFeeds:
    """Which feeds count as overwritten, as Scrapy's storages treat them."""

    @pytest.mark.parametrize(
        ("uri", "option", "expected"),
        [
            ("out.jsonl", None, Scope.STORE),
            ("out.jsonl", False, Scope.STORE),
            ("out.jsonl", True, Scope.CRAWL),
            ("file:///tmp/out.jsonl", None, Scope.STORE),
            ("C:\\out.jsonl", None, Scope.STORE),
            ("stdout:", None, Scope.STORE),
            ("stdout:", True, Scope.CRAWL),
            ("s3://bucket/out.jsonl", None, Scope.CRAWL),
            # Scrapy ignores the option there.
            ("s3://bucket/out.jsonl", False, Scope.CRAWL),
            ("gs://bucket/out.jsonl", None, Scope.CRAWL),
            ("gs://bucket/out.jsonl", False, Scope.CRAWL),
            ("ftp://host/out.jsonl", None, Scope.CRAWL),
            ("ftps://host/out.jsonl", None, Scope.CRAWL),
            ("ftp://host/out.jsonl", False, Scope.STORE),
            # A new file in each crawl.
            ("s3://bucket/%(name)s/%(time)s.jsonl", None, Scope.STORE),
            ("ftp://host/%(batch_time)s-%(batch_id)d.jsonl", None, Scope.STORE),
            ("s3://bucket/%(name)s-%(batch_id)d.jsonl", None, Scope.CRAWL),
            ("out-%(time)s.jsonl", True, Scope.CRAWL),
            ("unknown://somewhere", None, Scope.STORE),
            # Storages of the project.
            ("s3-of-ours://x", None, Scope.CRAWL),
            ("file-of-ours://x", None, Scope.STORE),
            ("none://x", None, Scope.STORE),
        ],
    )
    def test_storages(self, uri, option, expected):
        options = APPENDED if option is None else {**APPENDED, "overwrite": option}
        ours = {
            "s3-of-ours": "scrapy.extensions.feedexport.S3FeedStorage",
            "file-of-ours": "scrapy.extensions.feedexport.FileFeedStorage",
            "none": "there.is.no.Storage",
        }
        assert read_config(Settings({"FEEDS": {uri: options}, "FEED_STORAGES": ours}), None).scope is expected


def test_for_programs_auto_is_the_store(tmp_path):
    store = f"sqlite:{tmp_path / 'store'}"
    with Deduplicator(store) as dedup:
        dedup.add("http://a.test/", article("A", story(1)))
    with Deduplicator(store, scope="auto") as dedup:
        assert dedup.add("http://b.test/", blog("B", story(1))).is_duplicate
    with Deduplicator(store, scope="crawl") as dedup:
        assert not dedup.add("http://c.test/", blog("C", story(1))).is_duplicate
