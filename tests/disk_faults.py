"""An extension for a stranger's project: slow or broken disks, and what the event loop feels of them.

``DISK = {"slow": 3, "seconds": 0.5}``: so many of the first syncs take so long. ``{"broken": "feed.jsonl"}``: those of
files that are called so fail, and for ``"store"`` those of the store. The stat ``loop/stall`` says how long the event
loop has stood still at most, in seconds.
"""

from __future__ import annotations

import errno
import itertools
import os
import time
from pathlib import Path

from scrapy import signals
from scrapy.utils.asyncio import call_later

from dedup_middleware.stores.base import Store

_TICK = 0.01
_fsync, _sync = os.fsync, Store.sync


class DiskFaults:
    """The extension."""

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
