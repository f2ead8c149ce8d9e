"""Follows items between the spider and the pipelines, lets those of duplicates wait, and sends released ones."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.downloadermiddlewares.stats import DownloaderStats
from scrapy.statscollectors import StatsCollector
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from dedup_middleware.plugin import messages
from dedup_middleware.plugin.shared_state import Entry, Passing
from dedup_middleware.plugin.threads import sleep
from dedup_middleware.visits.visit import Fate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response

    from dedup_middleware.driver.deduplicator import Deduplication
    from dedup_middleware.driver.releases import Releaser
    from dedup_middleware.index.dropped_items import DroppedItem
    from dedup_middleware.plugin.shared_state import SharedState
    from dedup_middleware.visits.visit import Decision


#: The entry of the item that is in the pipelines. Scrapy runs the pipelines on an item and sends the signal of their
#: outcome in one context; the signal alone does not show it, because a pipeline may return another object.
item_entry: ContextVar[Entry | None] = ContextVar("item_entry", default=None)
#: The type with which the item came to the first pipeline.
item_type: ContextVar[type | None] = ContextVar("item_type", default=None)

# A duplicate looks whether the claim of another process has ended, which is a get: after so many seconds, and then
# whenever a tenth of its time has gone by.
_ASK_AGAIN = 0.05
_ASK_AGAIN_SHARE = 0.1
#: Seconds that a duplicate waits: DOWNLOAD_TIMEOUT as Scrapy has it, or as the project has it if that is longer. A file
#: that takes longer fails, and its item leaves the pipelines.
MAX_WAIT = 180.0
# Bytes that Scrapy counts for a response with fewer.
_LEAST_SIZE = 1024
#: The URL of the request in whose output items are released.
RELEASE_URL = "data:,dedup-release"
# What Scrapy counts of a request that is scheduled in memory, beside what its downloader counts.
_COUNTED = (
    "scheduler/enqueued",
    "scheduler/enqueued/memory",
    "scheduler/dequeued",
    "scheduler/dequeued/memory",
    "scheduler/unserializable",
    "response_received_count",
)
#: Before all requests of the spider.
PRIORITY = 1_000_000


class OriginalWait:
    """Lets duplicates wait until the claim of their original has ended, for ``MAX_WAIT`` seconds.

    The rest of the crawl goes on: while items of the original are in the pipelines, the scraper gets as much more room
    as the responses take that wait, up to as much again as it has. A duplicate that may not wait is kept.
    """

    def __init__(self, extension: SharedState) -> None:
        self._extension = extension
        settings = extension.crawler.settings
        self.limit = max(MAX_WAIT, settings.getfloat("DOWNLOAD_TIMEOUT"))
        self._room = settings.getint("SCRAPER_SLOT_MAX_ACTIVE_SIZE")
        # Bytes of the responses that wait in it.
        self._taken = 0

    def process(self, entry: Entry, item: Any, *, may_wait: bool = True) -> list[Decision] | Wait:
        """Return what `Deduplication.process` does for *item*; where it is to wait, the wait, unless it *may not*."""
        decisions = entry.deduplication.process(entry.visit, item)
        if decisions[0].fate is not Fate.WAIT:
            return decisions
        wait = self.begin(entry) if may_wait else None
        return self.given_up(entry, item) if wait is None else wait

    def begin(self, entry: Entry) -> Wait | None:
        """Let a duplicate wait from now on; ``None`` if it may not, because too many do."""
        # What waits for a disk does not wait for long.
        is_brief = entry.deduplication.claims.is_delivered(entry.visit)
        size = 0 if is_brief else max(entry.visit.size, _LEAST_SIZE)
        if size and self._taken and self._taken + size > self._room:
            self._extension.count("waits/no_room")
            return None
        self._extension.count("waits")
        self.make_room(size)
        return Wait(self, entry, size)

    def make_room(self, size: int) -> None:
        """Give the scraper *size* bytes more, or less."""
        self._taken += size
        slot = self._extension.crawler.engine.scraper.slot
        if slot is not None:
            slot.max_active_size += size

    def given_up(self, entry: Entry, item: Any) -> list[Decision]:
        """Return what `Deduplication.process` does for an *item* that is to wait, and may not: it is kept."""
        self._extension.count("waits/given_up")
        return entry.deduplication.process(entry.visit, item, may_wait=False)


class Wait:
    """A duplicate that waits for the claim of its original, until `end`."""

    def __init__(self, waits: OriginalWait, entry: Entry, size: int) -> None:
        self._waits, self._entry, self._size = waits, entry, size
        self._claims = entry.deduplication.claims
        self._began = time.monotonic()
        self._deadline = self._began + waits.limit

    def end(self) -> None:
        """Take back the room."""
        self._waits.make_room(-self._size)

    async def decisions(self, item: Any) -> list[Decision]:
        """Return what `Deduplication.process` does for *item*, once the claim has ended."""
        while (decisions := self._entry.deduplication.process(self._entry.visit, item))[0].fate is Fate.WAIT:
            if time.monotonic() >= self._deadline:
                return self._waits.given_up(self._entry, item)
            await self._claim_ended()
        return decisions

    async def last_decisions(self, item: Any) -> list[Decision]:
        """Return the same, and end the wait."""
        try:
            return await self.decisions(item)
        finally:
            self.end()

    async def _claim_ended(self) -> None:
        """Return when the claim has ended, or at the deadline; that of another process is looked for in the store."""
        over: Deferred[None] = Deferred()

        def end() -> None:
            if not over.called:
                over.callback(None)

        # Not at once: the claim ends within a transaction.
        if self._claims.await_original(self._entry.visit, lambda: call_later(0, end)):
            timer = call_later(max(0, self._deadline - time.monotonic()), end)
            await maybe_deferred_to_future(over)
            timer.cancel()
            return
        await sleep(_ASK_AGAIN)
        while self._claims.rests_on_claim(self._entry.visit) and (now := time.monotonic()) < self._deadline:
            await sleep(max(_ASK_AGAIN, (now - self._began) * _ASK_AGAIN_SHARE))


class Releases:
    """The items that one crawl releases."""

    def __init__(self, extension: SharedState, wait: OriginalWait) -> None:
        self._extension, self._wait = extension, wait
        self._is_requested = False
        extension.crawler.signals.connect(self.idle, signals.spider_idle)

    async def items(self) -> AsyncIterator[Any]:
        """Yield the items that are to be released now."""
        deduplication, releaser = self._extension.deduplication, self._extension.releaser
        causes: Counter[str] = Counter()
        self._is_requested = False
        if deduplication is None or releaser is None:
            return
        try:
            for dropped, by_person in releaser.take():
                for item, each in await self._released(deduplication, releaser, dropped, by_person=by_person):
                    causes[messages.cause_of_release(each, by_person=by_person)] += 1
                    yield item
        except Exception as error:  # noqa: BLE001 - a plugin bug: the items stay, and the spider's own requests follow
            self._give_up(error)
        for cause, count in causes.items():
            self._extension.inform(messages.released(count, cause))

    async def _released(
        self, deduplication: Deduplication, releaser: Releaser, dropped: list[DroppedItem], *, by_person: bool
    ) -> list[tuple[Any, DroppedItem]]:
        """Return the items of a page that go on, as they are stored; what a bug of ours holds up stays for the next."""
        kept: list[tuple[Any, DroppedItem]] = []
        try:
            entry = Entry(deduplication, releaser.visit(dropped, by_person=by_person))
            items = [each.item for each in dropped]
            decisions: list[Decision] = []
            for item in items:
                found = self._wait.process(entry, item)
                decisions += await found.last_decisions(item) if isinstance(found, Wait) else found
            decisions += deduplication.end(entry.visit)
            kept = releaser.released(entry.visit, items, decisions)
            for item, each in kept:
                self._extension.passing[id(item)] = Passing(item, entry._replace(released=each), request=None)
        except Exception as error:  # noqa: BLE001 - a plugin bug
            self._extension.defect(error, dropped[0].url)
        return kept

    def uncount(self, response: Response) -> None:
        """Take the request for the release, and its *response*, out of Scrapy's stats: nothing was sent."""
        crawler, request = self._extension.crawler, response.request
        with suppress(Exception):  # a stats collector of the project's own
            downloaded = StatsCollector(crawler)
            if request is not None:
                DownloaderStats(downloaded).process_response(request, response)
            for name, number in {**dict.fromkeys(_COUNTED, 1), **downloaded.get_stats()}.items():
                if crawler.stats.get_value(name):
                    crawler.stats.inc_value(name, -number)

    def idle(self) -> None:
        """Look for what is to be released: what other processes have left, in a store that they share."""
        releaser = self._extension.releaser
        if releaser is None or self._extension.deduplication is None or self._is_requested:
            return
        try:
            releaser.sweep()
            if releaser.has_any():
                self._is_requested = True
                meta = {"dont_cache": True, "allow_offsite": True, "dont_redirect": True}
                request = Request(RELEASE_URL, callback=_no_output, dont_filter=True, meta=meta, priority=PRIORITY)
                self._extension.crawler.engine.crawl(request)
        except Exception as error:  # noqa: BLE001 - as in `items`
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._extension.releaser = None
        self._extension.goes_without("items that were to be released", error)


def _no_output(response: Response) -> None:
    """Give nothing: the items come from the spider middleware."""
