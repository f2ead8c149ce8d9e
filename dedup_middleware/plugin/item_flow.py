"""Follows items between the spider and the pipelines, lets those of duplicates wait, and sends released ones."""

from __future__ import annotations

import logging
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy import Request, signals
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from dedup_middleware.model import Action
from dedup_middleware.plugin.threads import sleep
from dedup_middleware.visits.visit import Fate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response

    from dedup_middleware.driver.deduplicator import Deduplication
    from dedup_middleware.driver.releases import Releaser
    from dedup_middleware.index.dropped_items import DroppedItem
    from dedup_middleware.plugin.extension import DedupExtension
    from dedup_middleware.visits.visit import Decision, Visit

logger = logging.getLogger(__name__)


class Entry(NamedTuple):
    """A page on its way, and the deduplication in which it ends, also after the store was away."""

    deduplication: Deduplication
    visit: Visit
    released: DroppedItem | None = None
    """The dropped item, of an item that is released."""


class Passing(NamedTuple):
    """An item between the spider middleware and the pipelines."""

    item: Any
    """A reference, so that no other item gets its ``id()``: items are often not hashable."""
    entry: Entry
    request: bytes | None
    """The identity of its request if the item is to be checked as a page; ``None`` if it is released."""


#: The entry of the item that is in the pipelines. Scrapy runs the pipelines on an item and sends the signal of their
#: outcome in one context; the signal alone does not show it, because a pipeline may return another object.
item_entry: ContextVar[Entry | None] = ContextVar("item_entry", default=None)
#: The type with which the item came to the first pipeline.
item_type: ContextVar[type | None] = ContextVar("item_type", default=None)

# Seconds after which a duplicate looks whether the claim of another process has ended: a get.
_ASK_AGAIN = 0.05
#: Duplicates that wait at a time where CONCURRENT_REQUESTS sets no limit.
_DEFAULT_LIMIT = 16
#: Seconds that a duplicate waits: as long as a slow page, and long enough for the items of most pages.
MAX_WAIT = 2.0
#: The URL of the request in whose output items are released.
RELEASE_URL = "data:,dedup-release"
#: Before all requests of the spider.
PRIORITY = 1_000_000


class OriginalWait:
    """Lets duplicates wait until the claim of their original has ended, no longer than ``MAX_WAIT`` seconds.

    Of those whose original is still in the pipelines, at most ``CONCURRENT_REQUESTS`` wait at a time, and none while
    the scraper is full. A duplicate that may not wait is kept.
    """

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension
        self._limit = extension.crawler.settings.getint("CONCURRENT_REQUESTS") or _DEFAULT_LIMIT
        self._waiting = 0

    async def decisions(self, deduplication: Deduplication, visit: Visit, item: Any) -> list[Decision]:
        """Return what `Deduplication.process` does for *item*, once its original's claim has ended."""
        decisions = deduplication.process(visit, item)
        return decisions if decisions[0].fate is not Fate.WAIT else await self.after(deduplication, visit, item)

    async def after(self, deduplication: Deduplication, visit: Visit, item: Any) -> list[Decision]:
        """Return the same for an *item* that is to wait."""
        if not (deduplication.is_delivered(visit) or self._has_room):
            return self.given_up(deduplication, visit, item)
        self._extension.count("waits")
        self._waiting += 1
        try:
            deadline = time.monotonic() + MAX_WAIT
            while time.monotonic() < deadline:
                await self._wait(deduplication, visit, deadline)
                decisions = deduplication.process(visit, item)
                if decisions[0].fate is not Fate.WAIT:
                    return decisions
        finally:
            self._waiting -= 1
        return self.given_up(deduplication, visit, item)

    def given_up(self, deduplication: Deduplication, visit: Visit, item: Any) -> list[Decision]:
        """Return the same for an *item* that is to wait, and may not: it is kept."""
        self._extension.count("waits/given_up")
        return deduplication.process(visit, item, may_wait=False)

    @property
    def _has_room(self) -> bool:
        slot = self._extension.crawler.engine.scraper.slot
        return self._waiting < self._limit and slot is not None and not slot.needs_backout()

    @staticmethod
    async def _wait(deduplication: Deduplication, visit: Visit, deadline: float) -> None:
        """Return when the claim has ended, or at the *deadline*; that of another process is looked for in the store."""
        over: Deferred[None] = Deferred()

        def end() -> None:
            if not over.called:
                over.callback(None)

        # Not at once: the claim ends within a transaction.
        if deduplication.await_original(visit, lambda: call_later(0, end)):
            timer = call_later(max(0, deadline - time.monotonic()), end)
            await maybe_deferred_to_future(over)
            timer.cancel()
            return
        await sleep(_ASK_AGAIN)
        while deduplication.rests_on_claim(visit) and time.monotonic() < deadline:
            await sleep(_ASK_AGAIN)


class Releases:
    """The items that one crawl releases."""

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension
        self._is_requested = False
        extension.crawler.signals.connect(self.idle, signals.spider_idle)

    @property
    def _releaser(self) -> Releaser | None:
        # A dry run changes nothing that another crawl sees.
        extension = self._extension
        is_on = extension.deduplication is not None and extension.config.action is not Action.DRY_RUN
        return extension.releaser if is_on else None

    async def items(self) -> AsyncIterator[Any]:
        """Yield the items that are to be released now."""
        deduplication, releaser, count = self._extension.deduplication, self._releaser, 0
        self._is_requested = False
        if deduplication is None or releaser is None:
            return
        try:
            for dropped, by_person in releaser.take():
                for item in await self._released(deduplication, releaser, dropped, by_person=by_person):
                    count += 1
                    yield item
        except Exception as error:  # noqa: BLE001 - a plugin bug: the items stay, and the spider's own requests follow
            self._give_up(error)
        if count:
            were = "items were" if count != 1 else "item was"
            why = "a text is a template, a feed that had it was lost, or `scrapy dedup allow` was run"
            extra = {"spider": self._extension.crawler.spider}
            logger.info("dedup: %d stored %s released: %s", count, were, why, extra=extra)

    async def _released(
        self, deduplication: Deduplication, releaser: Releaser, dropped: list[DroppedItem], *, by_person: bool
    ) -> list[Any]:
        """Return the items of a page that go on; what a bug of ours holds up stays for the next crawl."""
        kept: list[tuple[Any, DroppedItem]] = []
        try:
            visit = releaser.visit(dropped, by_person=by_person)
            items = [each.item for each in dropped]
            decisions: list[Decision] = []
            for item in items:
                decisions += await self._extension.wait.decisions(deduplication, visit, item)
            decisions += deduplication.end(visit)
            kept = releaser.released(visit, items, decisions)
            for item, each in kept:
                self._extension.passing[id(item)] = Passing(item, Entry(deduplication, visit, each), request=None)
        except Exception as error:  # noqa: BLE001 - a plugin bug
            self._extension.defect(error, dropped[0].url)
        return [item for item, _ in kept]

    def request(self) -> None:
        """Release soon what is to be released by now."""
        if not self._is_requested:
            self._is_requested = True
            meta = {"dont_cache": True, "allow_offsite": True, "dont_redirect": True}
            request = Request(RELEASE_URL, callback=_no_output, dont_filter=True, meta=meta, priority=PRIORITY)
            self._extension.crawler.engine.crawl(request)

    def idle(self) -> None:
        """Look for what is to be released: what other processes have left, in a store that they share."""
        releaser = self._releaser
        if releaser is None or self._is_requested:
            return
        try:
            releaser.sweep()
            if releaser.has_any():
                self.request()
        except Exception as error:  # noqa: BLE001 - as in `items`
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._extension.releaser = None
        self._extension.goes_without("items that were to be released", error)


def _no_output(response: Response) -> None:
    """Give nothing: the items come from the spider middleware."""
