"""Waits without blocking the event loop: in threads for disks and stores, and for a pending claim."""

from __future__ import annotations

import time
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.deduplicator import Deduplication
    from dedup_middleware.plugin.extension import DedupExtension
    from dedup_middleware.visit import Visit

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.durability import Wait

_T = TypeVar("_T")
# Seconds after which the event loop looks whether a wait is over.
_LOOK_AGAIN = 0.02


def in_thread(work: Callable[[], _T]) -> Future[_T]:
    """Call *work* in a daemon thread: a disk or a server that never answers must not keep the process from ending."""
    outcome: Future[_T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except Exception as error:  # noqa: BLE001 - it is raised where the outcome is used
            outcome.set_exception(error)

    Thread(target=run, name="dedup", daemon=True).start()
    return outcome


class DiskThreads:
    """See `DiskWaits`; on every reactor, and without one."""

    def __init__(self, defect: Callable[[Exception, object], None]) -> None:
        """Report to *defect* what should never be raised, and where."""
        self._defect = defect
        self._under_way: list[tuple[Future[None], Callable[[Wait], None]]] = []
        self._is_to_look = False

    def begin(self, wait: Wait, then: Callable[[Wait], None]) -> None:
        """See DiskWaits."""
        self._under_way.append((in_thread(wait), then))
        self._look_later()

    def finish(self) -> None:
        """See DiskWaits; blocks."""
        while self._under_way:
            self._end(*self._under_way[0])

    def _look_later(self) -> None:
        # One at a time: what follows a wait may begin another, and each would look for all.
        if self._under_way and not self._is_to_look:
            self._is_to_look = True
            call_later(_LOOK_AGAIN, self._look)

    def _look(self) -> None:
        self._is_to_look = False
        for outcome, then in [each for each in self._under_way if each[0].done()]:
            self._end(outcome, then)
        self._look_later()

    def _end(self, outcome: Future[None], then: Callable[[Wait], None]) -> None:
        self._under_way.remove((outcome, then))
        try:
            outcome.exception()  # waits until it is over
            then(outcome.result)
        except Exception as error:  # noqa: BLE001 - what waits for it stays in doubt
            self._defect(error, "a disk")


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
