"""Wait while the event loop turns: a moment, or until it is known what came of an owner's claim."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.delivery.claims import Claim, Soon
    from dedup_middleware.delivery.page_state import PageState
    from dedup_middleware.plugin.extension import DedupExtension
    from dedup_middleware.session.session import Session

# Seconds that what is complete waits to be written with something else. Another worker that meets a copy waits for it.
_SOON = 0.1
# Seconds after which the store is asked again whether another process has settled its claim.
_ASK_AGAIN = 0.05
#: Waiters at a time where CONCURRENT_REQUESTS sets no limit.
_DEFAULT_WAITERS = 16


async def sleep(seconds: float) -> None:
    """Let the event loop turn for so long, whichever it is."""
    over: Deferred[None] = Deferred()
    call_later(seconds, lambda: over.callback(None))
    await maybe_deferred_to_future(over)


def soon(defect: Callable[[Exception, object], None]) -> Soon:
    """Return what calls a moment later what it is given; *defect* is told of what should never be raised, and where."""

    def call(callback: Callable[[], None]) -> None:
        try:
            callback()
        except Exception as error:  # noqa: BLE001 - else it would end in the event loop
            defect(error, "a page that is complete")

    def later(callback: Callable[[], None]) -> None:
        call_later(_SOON, call, callback)

    return later


class OwnerWait:
    """Let duplicates wait until the page they repeat is safe or lost.

    At most ``CONCURRENT_REQUESTS`` wait at a time, each no longer than ``DEDUP_WAIT`` seconds, and none while the
    scraper is full: who may not wait is delivered.
    """

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension
        self._limit = extension.crawler.settings.getint("CONCURRENT_REQUESTS") or _DEFAULT_WAITERS
        self._waiting = 0

    async def settle(self, session: Session, state: PageState) -> None:
        """Return when the verdict of *state*, a page of *session*, does not depend on an open claim any more."""
        deadline = time.monotonic() + self._extension.config.wait
        session.reconsider(state)
        while state.owner_is_pending:
            claim = session.claiming.of_owner(state)
            if claim is None and not session.claiming.another_holds_owner(state):
                # Another process has settled it since; else it is another crawl's of this process, which tells nobody.
                session.reconsider(state)
                if state.owner_is_pending and not session.claiming.another_holds_owner(state):
                    break
                continue
            remaining = deadline - time.monotonic()
            if remaining <= 0 or self._full():
                settled = False
            elif claim is None:
                settled = await self._outcome_elsewhere(session, state, deadline)
            else:
                settled = await self._outcome(claim, remaining)
            if not settled:
                self._extension.count("waits/given_up")
                break
            session.reconsider(state)
        state.deliver_undecided()

    def _full(self) -> bool:
        slot = self._extension.crawler.engine.scraper.slot
        return self._waiting >= self._limit or slot is None or slot.needs_backout()

    async def _outcome_elsewhere(self, session: Session, state: PageState, deadline: float) -> bool:
        """Wait for the claim that another process holds to be settled; tell whether it was before the *deadline*."""
        self._extension.count("waits")
        self._waiting += 1
        try:
            while session.claiming.another_holds_owner(state):
                if time.monotonic() >= deadline:
                    return False
                await sleep(_ASK_AGAIN)
            return True
        finally:
            self._waiting -= 1

    async def _outcome(self, claim: Claim, seconds: float) -> bool:
        """Wait for *claim* to be settled; tell whether it was within *seconds*."""
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
        claim.when_settled(settled)
        try:
            return await maybe_deferred_to_future(outcome)
        finally:
            timer.cancel()
            self._waiting -= 1
