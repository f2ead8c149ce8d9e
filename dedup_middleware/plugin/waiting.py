"""Waits while the event loop turns: a moment, or until a pending claim is confirmed or void."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from dedup_middleware.deduplicator import Deduplication
    from dedup_middleware.plugin.extension import DedupExtension
    from dedup_middleware.visit import Visit

# Seconds after which the store is asked again whether another process has settled its claim.
_ASK_AGAIN = 0.05
#: Waiters at a time where CONCURRENT_REQUESTS sets no limit.
_DEFAULT_WAITERS = 16


async def sleep(seconds: float) -> None:
    """Let the event loop turn for so long, whichever it is."""
    over: Deferred[None] = Deferred()
    call_later(seconds, lambda: over.callback(None))
    await maybe_deferred_to_future(over)


class OriginalWait:
    """Let duplicates wait until the page they repeat is safe or lost.

    At most ``CONCURRENT_REQUESTS`` wait at a time, each no longer than ``DEDUP_WAIT`` seconds, and none while the
    scraper is full: who may not wait is delivered.
    """

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension
        self._limit = extension.crawler.settings.getint("CONCURRENT_REQUESTS") or _DEFAULT_WAITERS
        self._waiting = 0

    async def settle(self, deduplication: Deduplication, visit: Visit) -> None:
        """Return when the verdict of *visit* does not depend on a pending claim any more."""
        deadline = time.monotonic() + self._extension.config.wait
        deduplication.reconsider(visit)
        while visit.original_is_pending:
            original = deduplication.pending_original(visit)
            if original is None and not deduplication.is_pending_elsewhere(visit):
                # Another process has settled it since; else it is another crawl's of this process.
                deduplication.reconsider(visit)
                if visit.original_is_pending and not deduplication.is_pending_elsewhere(visit):
                    break
                continue
            remaining = deadline - time.monotonic()
            if remaining <= 0 or self._full():
                is_settled = False
            elif original is None:
                is_settled = await self._outcome_elsewhere(deduplication, visit, deadline)
            else:
                is_settled = await self._outcome(deduplication, original, remaining)
            if not is_settled:
                self._extension.count("waits/given_up")
                break
            deduplication.reconsider(visit)
        visit.keep_undecided()

    def _full(self) -> bool:
        slot = self._extension.crawler.engine.scraper.slot
        return self._waiting >= self._limit or slot is None or slot.needs_backout()

    async def _outcome_elsewhere(self, deduplication: Deduplication, visit: Visit, deadline: float) -> bool:
        """Wait for the pending claim of another process; return whether it was settled before the *deadline*."""
        self._extension.count("waits")
        self._waiting += 1
        try:
            while deduplication.is_pending_elsewhere(visit):
                if time.monotonic() >= deadline:
                    return False
                await sleep(_ASK_AGAIN)
            return True
        finally:
            self._waiting -= 1

    async def _outcome(self, deduplication: Deduplication, original: Visit, seconds: float) -> bool:
        """Wait for the claim of *original*; return whether it was settled within *seconds*."""
        outcome: Deferred[bool] = Deferred()

        def settled() -> None:
            if not outcome.called:
                outcome.callback(True)  # noqa: FBT003 - a Deferred takes its result so

        def timed_out() -> None:
            if not outcome.called:
                outcome.callback(False)  # noqa: FBT003 - the same

        self._extension.count("waits")
        self._waiting += 1
        timer = call_later(seconds, timed_out)
        deduplication.when_settled(original, settled)
        try:
            return await maybe_deferred_to_future(outcome)
        finally:
            timer.cancel()
            self._waiting -= 1
