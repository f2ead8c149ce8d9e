"""Waits while the event loop turns: a moment, or until a pending claim is confirmed or void."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.deduplicator import Deduplication
    from dedup_middleware.plugin.extension import DedupExtension
    from dedup_middleware.visit import Visit

# Seconds after which the store is asked again whether another process has settled its claim.
_ASK_AGAIN = 0.05
#: Waiters at a time where CONCURRENT_REQUESTS sets no limit.
_DEFAULT_WAITERS = 16

#: Seconds: most pipelines are done with an item long before, and a callback is held up no longer than by a slow page.
MAX_WAIT = 2.0


async def sleep(seconds: float, wake_by: Callable[[Callable[[], None]], object] = lambda _: None) -> None:
    """Let the event loop turn for *seconds*, or until what *wake_by* is given is called."""
    over: Deferred[None] = Deferred()

    def end() -> None:
        if not over.called:
            over.callback(None)

    timer = call_later(seconds, end)
    wake_by(end)
    try:
        await maybe_deferred_to_future(over)
    finally:
        timer.cancel()


class OriginalWait:
    """Let duplicates wait until the claim of the page they repeat is confirmed or void.

    At most ``CONCURRENT_REQUESTS`` wait at a time, each no longer than ``MAX_WAIT`` seconds, and none while the
    scraper is full. A duplicate that may not wait is kept.
    """

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension
        self._limit = extension.crawler.settings.getint("CONCURRENT_REQUESTS") or _DEFAULT_WAITERS
        self._waiting = 0

    async def settle(self, deduplication: Deduplication, visit: Visit) -> None:
        """Return when the verdict of *visit* does not depend on a pending claim any more."""
        deadline = time.monotonic() + MAX_WAIT
        deduplication.reconsider(visit)
        while visit.original_is_pending:
            is_claimed = deduplication.rests_on_claim(visit)
            if is_claimed and not await self._outcome(deduplication, visit, deadline):
                self._extension.count("waits/given_up")
                break
            deduplication.reconsider(visit)
            if not is_claimed and not deduplication.rests_on_claim(visit):
                break  # it is the claim of another crawl of this process
        visit.keep_undecided()

    async def _outcome(self, deduplication: Deduplication, visit: Visit, deadline: float) -> bool:
        """Wait for the claim on which *visit* rests; return whether it is settled before the *deadline*."""
        slot = self._extension.crawler.engine.scraper.slot
        is_full = self._waiting >= self._limit or slot is None or slot.needs_backout()
        if is_full or time.monotonic() >= deadline:
            return False
        self._extension.count("waits")
        self._waiting += 1
        try:
            while deduplication.rests_on_claim(visit):
                if (remaining := deadline - time.monotonic()) <= 0:
                    return False
                if (original := deduplication.pending_original(visit)) is not None:
                    await sleep(remaining, partial(deduplication.when_settled, original))
                else:
                    await sleep(min(remaining, _ASK_AGAIN))
        finally:
            self._waiting -= 1
        return True
