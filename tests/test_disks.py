"""Slow and broken disks under a crawl: the event loop goes on, and nothing is lost."""

from __future__ import annotations

import sys

import pytest
from benchmarks.crashes import StorySite
from crawling import run_job, write_job

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there a descriptor tells its file")

FEED = {"FEEDS": {"feed.jsonl": {"format": "jsonlines"}}}
# A quarter of what is waited for would be seen; a busy machine stalls an event loop for a tenth of that.
SECONDS, STALL = 1.0, 0.6


@pytest.fixture(scope="module")
def told():
    told = StorySite.build(30, together=False)
    yield told
    told.site.close()


def crawled(folder, told, disk, store=None, **options):
    settings = {**FEED, "EXTENSIONS": {"disk_faults.DiskFaults": 0}, "DISK": disk, "CHECKPOINT_INTERVAL": 5}
    if store is not None:
        settings["DEDUP_STORE"] = store
    command = write_job(
        folder, "sample_spiders.Articles", urls=",".join(told.urls), settings=settings, afresh=True, **options
    )
    return run_job(folder, command)


def stories_fed(outcome, told):
    return sorted(told.stories[item["url"]] for item in outcome.lines("feed.jsonl"))


@pytest.mark.parametrize("reactor", ["asyncio", "default", "reactorless"])
def test_a_slow_disk_does_not_stop_the_event_loop(told, tmp_path, reactor):
    outcome = crawled(tmp_path, told, {"slow": 2, "seconds": SECONDS}, reactor=reactor)
    assert outcome.stats["disk/syncs"] > 2
    assert outcome.stats["loop/stall"] < STALL
    assert stories_fed(outcome, told) == sorted(set(told.stories.values()))
    assert outcome.stats["dedup/verdict/duplicate"] == 20
    assert outcome.problems == []
    # All originals are durable: the next crawl has nothing to release.
    outcome = crawled(tmp_path, told, {})
    assert "dedup/items/released" not in outcome.stats


@pytest.mark.parametrize(
    ("store", "broken"),
    [
        (None, "feed.jsonl"),
        (None, "store"),
        ("sqlite:store", "store-wal"),
        ("sqlite:store?shared=1", "store-wal"),
    ],
)
def test_after_a_sync_that_failed_nothing_is_dropped(told, tmp_path, store, broken):
    outcome = crawled(tmp_path, told, {"broken": broken}, store)
    assert outcome.stats["dedup/failures"] == 1
    said = [line for line in outcome.log.splitlines() if "nothing is dropped" in line]
    assert len(said) == 1
    assert set(stories_fed(outcome, told)) == set(told.stories.values())
    after = outcome.log.splitlines()[outcome.log.splitlines().index(said[0]) :]
    assert not [line for line in after if "Dropped:" in line]
    # What was not durable is new to the next crawl.
    outcome = crawled(tmp_path, told, {}, store)
    assert outcome.problems == []
    assert outcome.exit_status == 0
