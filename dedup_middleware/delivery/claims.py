"""Provisional ownership: a page owns its text until its items are safe or lost.

It knows neither Scrapy nor time. Whoever waits for a claim brings the clock.

    pending   -> confirmed   the callback has finished, it gave at least one item, and every item left the pipelines
    pending   -> void        the callback raised, it gave no item, or an item was dropped or failed on the way
    confirmed -> sealed      see `sealing`

A crash voids pending claims; confirming one is one atomic batch in the store. Where that is far away, claims that are
complete stay pending for a moment, and are confirmed with whatever is written next.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from dedup_middleware.errors import DedupError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.checks.items import ItemText
    from dedup_middleware.index.index import Index
    from dedup_middleware.model import Page, StoredPage

    _T = TypeVar("_T")

    #: Calls, a moment later, what it is given.
    Soon = Callable[[Callable[[], None]], None]


class ClaimState(Enum):
    """Where a claim stands."""

    PENDING = "pending"
    CONFIRMED = "confirmed"
    VOID = "void"


class Claim:
    """One page's claim; it settles by itself once the last outcome is in."""

    def __init__(self, page: Page, stored: StoredPage, settle: Callable[[Claim, ClaimState], None]) -> None:
        self.page = page
        self.stored = stored
        self.state = ClaimState.PENDING
        self.items: list[ItemText] = []
        """What its items say, those that could be read."""
        self.kept: StoredPage | None = None
        """The page as it is stored, once the claim is confirmed."""
        self.failed = False
        """Whether it was voided by what went wrong, not because the project wants none of its items."""
        self.feeds: frozenset[str] | None = frozenset()
        """The kinds of the feeds that have taken an item; see `Delivery`."""
        self._settle = settle
        self._waiters: list[Callable[[], None]] = []
        self._items = 0
        self._scraped = 0
        self._finished = False

    def item_yielded(self) -> None:
        """Count an item on its way to the pipelines."""
        self._items += 1

    def item_scraped(self, feeds: frozenset[str] | None = frozenset()) -> None:
        """Count an item that has left the pipelines, and that *feeds* have taken: ``None`` for whatever there are."""
        self._scraped += 1
        self.feeds = None if feeds is None or self.feeds is None else self.feeds | feeds
        self._settle_if_complete()

    def item_dropped(self) -> None:
        """Void the claim: a pipeline does not want an item."""
        self._end(ClaimState.VOID)

    def item_failed(self) -> None:
        """Void the claim: an item raised an error in a pipeline, or a feed could not take it."""
        self._fail()

    def callback_finished(self) -> None:
        """Note that no item will follow."""
        self._finished = True
        self._settle_if_complete()

    def callback_failed(self) -> None:
        """Void the claim: the callback raised or was abandoned."""
        self._fail()

    def when_settled(self, callback: Callable[[], None]) -> None:
        """Call *callback* once the claim is confirmed or void; at once if it is already."""
        if self.state is ClaimState.PENDING:
            self._waiters.append(callback)
            self._settle_if_complete()
        else:
            callback()

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for it to be settled."""
        return bool(self._waiters)

    def tell(self) -> None:
        """Tell those who wait that it is settled."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter()

    def _settle_if_complete(self) -> None:
        if self._finished and self._scraped == self._items:
            self._end(ClaimState.CONFIRMED if self._items else ClaimState.VOID)

    def _fail(self) -> None:
        self.failed = True
        self._end(ClaimState.VOID)

    def _end(self, state: ClaimState) -> None:
        if self.state is ClaimState.PENDING:
            self._settle(self, state)


class Claims:
    """The open claims of one crawl."""

    def __init__(
        self,
        index: Index,
        on_settled: Callable[[Claim], None],
        on_failure: Callable[[DedupError], None],
        *,
        sealed: bool = False,
        soon: Soon | None = None,
    ) -> None:
        """Keep the claims of *index*; *on_settled* hears of each one that ends, *on_failure* of a store that failed.

        With *sealed*, confirming a claim seals its owner: no feed has its items in a buffer. Where *soon* is given, one
        that is complete may stay pending for so long; nobody waits for it.
        """
        self._index = index
        self._sealed = sealed
        self._on_settled = on_settled
        # An exception would reach whoever ended the claim: in Scrapy a signal handler, which only logs it.
        self._on_failure = on_failure
        self._soon = soon
        self._open: dict[int, Claim] = {}
        self._complete: list[Claim] = []
        self._is_to_look = False

    def open(self, page: Page, stored: StoredPage) -> Claim:
        """Open the claim of *page*: *stored* so by `Index.claim`, or as it was, where its text is owned already."""
        claim = Claim(page, stored, self._settle)
        if stored.pending:
            self._open[stored.number] = claim
        return claim

    def of(self, owner: StoredPage) -> Claim | None:
        """Return the open claim of *owner*; ``None`` if it is settled, or another crawl's."""
        return self._open.get(owner.number)

    def revoke_all(self) -> None:
        """End every open claim: the crawl is over, or the store is not to be trusted."""
        for claim in [*self._open.values(), *self._complete]:
            claim.callback_failed()

    def atomically(self, work: Callable[[], _T]) -> _T:
        """See `Index.atomically`; where *work* returns anything, and so writes, those that are complete are confirmed.

        They are with it, or not at all.
        """
        complete: list[Claim] = []

        def all_of_it() -> _T:
            result = work()
            complete[:] = self._complete if result else ()
            for claim in complete:
                self._commit(claim)
            return result

        result = self._index.atomically(all_of_it)
        self._complete = [claim for claim in self._complete if claim not in complete]
        for claim in complete:
            self._end(claim, ClaimState.CONFIRMED)
        return result

    def confirm_complete(self) -> None:
        """Confirm those that are complete, now."""
        try:
            if self._complete:
                self.atomically(lambda: True)
        except DedupError as error:
            complete, self._complete = self._complete, []
            for claim in complete:
                self._open.pop(claim.stored.number, None)
            self._on_failure(error)
            for claim in complete:
                self._end(claim, ClaimState.VOID)

    def _settle(self, claim: Claim, state: ClaimState) -> None:
        if state is ClaimState.VOID:
            self._void(claim)
            return
        if claim not in self._complete:
            self._complete.append(claim)
        if self._soon is None or claim.is_awaited:
            self.confirm_complete()
        elif not self._is_to_look:
            self._look_soon(self._soon)

    def _look_soon(self, soon: Soon) -> None:
        """Confirm, a moment later, what is complete now, if nothing else has been written by then."""
        first, self._is_to_look = self._complete[0], True

        def look() -> None:
            self._is_to_look = False
            if first in self._complete:
                self.confirm_complete()
            if self._complete:
                self._look_soon(soon)

        soon(look)

    def _commit(self, claim: Claim) -> None:
        pending = claim.stored.number if claim.stored.pending else None
        claim.kept = self._index.commit(claim.page, claim=pending, sealed=self._sealed, feeds=claim.feeds)

    def _void(self, claim: Claim) -> None:
        if claim in self._complete:
            self._complete.remove(claim)
        self._open.pop(claim.stored.number, None)
        try:
            if claim.stored.pending:
                self._index.release(claim.stored.number)
        except DedupError as error:
            self._on_failure(error)
        finally:
            self._end(claim, ClaimState.VOID)

    def _end(self, claim: Claim, state: ClaimState) -> None:
        if claim.state is not ClaimState.PENDING:
            return  # the store has failed meanwhile
        claim.state = state
        self._open.pop(claim.stored.number, None)
        try:
            self._on_settled(claim)
        finally:
            claim.tell()
