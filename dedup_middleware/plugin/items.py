"""Follows items between the spider and the pipelines, lets those of duplicates wait, and sends released ones."""

from __future__ import annotations

import logging
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy import Request, signals

from dedup_middleware.model import Action, Rejection
from dedup_middleware.plugin.threads import sleep
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response

    from dedup_middleware.deduplicator import Deduplication
    from dedup_middleware.index.dropped_items import DroppedItem
    from dedup_middleware.plugin.extension import DedupExtension
    from dedup_middleware.releases import Releaser
    from dedup_middleware.visit import Visit

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

# Seconds after which a duplicate looks whether the claim has ended: a get, where processes share the store.
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
    """Lets duplicates wait until the claim of their original is confirmed or void.

    At most ``CONCURRENT_REQUESTS`` wait at a time, each no longer than ``MAX_WAIT`` seconds, and none while the
    scraper is full. A duplicate that may not wait is kept.
    """

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension
        self._limit = extension.crawler.settings.getint("CONCURRENT_REQUESTS") or _DEFAULT_LIMIT
        self._waiting = 0

    async def for_original(self, deduplication: Deduplication, visit: Visit) -> None:
        """Return when the verdict of *visit* does not depend on a pending claim any more."""
        if visit.original_is_pending:
            deduplication.reconsider(visit)
        if not visit.original_is_pending:
            return
        slot = self._extension.crawler.engine.scraper.slot
        if self._waiting < self._limit and slot is not None and not slot.needs_backout():
            self._extension.count("waits")
            self._waiting += 1
            try:
                deadline = time.monotonic() + MAX_WAIT
                while visit.original_is_pending and time.monotonic() < deadline:
                    await sleep(_ASK_AGAIN)
                    if not deduplication.rests_on_claim(visit):
                        deduplication.reconsider(visit)
            finally:
                self._waiting -= 1
        if visit.original_is_pending:
            self._extension.count("waits/given_up")
            visit.overrule(Rejection(Reason.ORIGINAL_PENDING))


class Releases:
    """The items that one crawl releases."""

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension
        self._is_requested = False
        extension.crawler.signals.connect(self.idle, signals.spider_idle)

    async def items(self) -> AsyncIterator[Any]:
        """Yield the items that are to be released now."""
        deduplication, releaser = self._extension.deduplication, self._extension.releaser
        self._is_requested = False
        # A dry run changes nothing that another crawl sees.
        if deduplication is None or releaser is None or self._extension.config.action is Action.DRY_RUN:
            return
        count = 0
        try:
            for dropped, by_person in releaser.take():
                for item in await self._released(deduplication, releaser, dropped, by_person=by_person):
                    count += 1
                    yield item
        except Exception as error:  # noqa: BLE001 - a plugin bug: the items stay, and the spider's own requests follow
            self._extension.releaser = None
            self._extension.goes_without("items that were to be released", error)
        if count:
            were = "items were" if count != 1 else "item was"
            why = "the original was lost, its text is a template, or `scrapy dedup allow` was run"
            extra = {"spider": self._extension.crawler.spider}
            logger.info("dedup: %d dropped %s released: %s", count, were, why, extra=extra)

    async def _released(
        self, deduplication: Deduplication, releaser: Releaser, dropped: list[DroppedItem], *, by_person: bool
    ) -> list[Any]:
        """Return the items of a page that go on; what a bug of ours holds up stays for the next crawl."""
        released: list[Any] = []
        try:
            visit = releaser.release(dropped, by_person=by_person)
            await self._extension.wait.for_original(deduplication, visit)
            released = releaser.keep_or_drop(visit)
            for item, each in zip(released, dropped, strict=False):
                entry = Entry(deduplication, visit, each)
                self._extension.passing[id(item)] = Passing(item, entry, request=None)
        except Exception as error:  # noqa: BLE001 - a plugin bug
            self._extension.defect(error, dropped[0].url)
        return released

    def request(self) -> None:
        """Release soon what is to be released by now."""
        if not self._is_requested:
            self._is_requested = True
            meta = {"dont_cache": True, "allow_offsite": True, "dont_redirect": True}
            request = Request(RELEASE_URL, callback=_no_output, dont_filter=True, meta=meta, priority=PRIORITY)
            self._extension.crawler.engine.crawl(request)

    def idle(self) -> None:
        """Look for what is to be released: what other processes have left, in a store that they share."""
        deduplication, releaser = self._extension.deduplication, self._extension.releaser
        if deduplication is None or releaser is None or self._is_requested:
            return
        if self._extension.config.action is not Action.DRY_RUN and releaser.has_any():
            self.request()


def _no_output(response: Response) -> None:
    """Give nothing: the items come from the spider middleware."""
