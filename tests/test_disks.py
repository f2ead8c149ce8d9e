"""Slow and broken disks under a crawl: the event loop goes on, and nothing is lost."""

import errno
import itertools
import os
import sys
import time
from pathlib import Path

import pytest
from benchmarks.crashes import StorySite
from crawling import FEED, run_job, write_job
from scrapy import signals
from scrapy.utils.asyncio import call_later

from dedup_middleware.stores.base import Store

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there a descriptor tells its file")

# A sync that holds up the loop stalls it for its whole time; a busy machine has stalled one for 0.8 s.
SECONDS, STALL = 2.0, 1.5


_TICK = 0.01
_fsync, _sync = os.fsync, Store.sync


class DiskFaults:
    """An extension: slow or broken disks, and what the event loop feels of them.

    ``DISK = {"slow": 3, "seconds": 0.5}``: so many of the first syncs take so long. ``{"broken": "feed.jsonl"}``:
    those of files that are called so fail, and for ``"store"`` those of the store. The stat ``loop/stall`` says how
    long the event loop has stood still at most, in seconds.
    """

    @classmethod
    def from_crawler(cls, crawler):
        faults = cls(crawler)
        crawler.signals.connect(faults.begin, signals.engine_started)
        crawler.signals.connect(faults.end, signals.spider_closed)
        return faults

    def __init__(self, crawler):
        self._stats = crawler.stats
        self._disk = crawler.settings.getdict("DISK")
        self._syncs = itertools.count()
        self._is_over = False
        self._ticked = 0.0

    def begin(self):
        os.fsync = self._synced
        faults = self
        Store.sync = lambda store: faults._synced_store(store)  # noqa: PLW0108 - bound to the store
        self._ticked = time.monotonic()
        call_later(_TICK, self._tick)

    def end(self):
        # What the end of a crawl waits for is not the event loop's.
        self._is_over = True

    def _tick(self):
        if not self._is_over:
            now = time.monotonic()
            self._stats.max_value("loop/stall", now - self._ticked - _TICK)
            self._ticked = now
            call_later(_TICK, self._tick)

    def _count(self):
        number = next(self._syncs)
        self._stats.set_value("disk/syncs", number + 1)
        if number < int(self._disk.get("slow", 0)):
            time.sleep(float(self._disk["seconds"]))

    def _synced_store(self, store):
        self._count()
        if self._disk.get("broken") == "store":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        _sync(store)

    def _synced(self, descriptor):
        self._count()
        broken = self._disk.get("broken")
        if broken and Path(f"/proc/self/fd/{descriptor}").readlink().match(broken):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        _fsync(descriptor)


@pytest.fixture(scope="module")
def told():
    told = StorySite.build(30, together=False)
    yield told
    told.site.close()


def crawled(folder, told, disk, store=None, **options):
    settings = {**FEED, "EXTENSIONS": {"test_disks.DiskFaults": 0}, "DISK": disk, "CHECKPOINT_INTERVAL": 5}
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
