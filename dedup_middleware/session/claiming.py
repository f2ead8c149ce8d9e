"""Pages that own their text from the moment their callback gets them, until it is known what became of their items.

It decides which page opens a claim, and when; what a claim is, `claims` says.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dedup_middleware.model import Action, VerdictKind
from dedup_middleware.session.judging import is_read

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from dedup_middleware.checks.detector import Detector
    from dedup_middleware.delivery.claims import Claim, Claims
    from dedup_middleware.delivery.page_state import PageState
    from dedup_middleware.model import Page, StoredPage
    from dedup_middleware.session.judging import Judging


class Claiming:
    """The claims of one crawl."""

    def __init__(
        self, claims: Claims, judging: Judging, detector: Detector, guard: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Open *claims* on what *judging* leaves to be owned; *guard* notes what fails."""
        self._claims = claims
        self._judging = judging
        self._detector = detector
        self._guard = guard

    def judge_and_claim(self, state: PageState) -> None:
        """Judge the page of *state* if anything has changed; unless it is a duplicate, it claims its text.

        Of two processes that share a store and meet a story at once, one does both before the other.
        """
        index = self._detector.index
        if index.is_far and state.is_duplicate:
            # It claims nothing, and whoever drops it looks again: that it is one need not be certain.
            if state.owner_is_pending or state.action is not Action.DROP or index.is_upset(state.reads):
                self._judging.judge_if_stale(state)
            if state.is_duplicate:
                return

        def work() -> tuple[Page, StoredPage] | None:
            self._judging.judge_if_stale(state)
            return self._claimed(state)

        self._open(state, work)
        if self._judging.failure is not None:
            # Where the store would not begin, nothing of that was done.
            self._judging.judge_if_stale(state)

    def claim(self, state: PageState) -> None:
        """Open a claim for the page of *state*, unless it is a duplicate, or has nothing to own."""
        self._open(state, partial(self._claimed, state))

    def _open(self, state: PageState, work: Callable[[], tuple[Page, StoredPage] | None]) -> None:
        with self._guard():
            claimed = self._claims.atomically(work)
            if claimed is not None:
                state.claim = self._claims.open(*claimed)

    def _claimed(self, state: PageState) -> tuple[Page, StoredPage] | None:
        """Return the page of *state* as it is kept, claimed; ``None`` where it claims nothing."""
        if state.page is None or state.is_duplicate or not state.is_worth_owning:
            return None
        if state.items_delivered:
            return None  # what becomes of these would be taken for what becomes of the claim's own
        index, own = self._detector.index, None
        if state.verdict.kind is VerdictKind.SAME:
            own = state.page.known or index.find(state.page.identities)
        if own is None and not is_read(state):
            return None
        page = self._detector.as_kept(state.page, state.verdict, state.threshold)
        # One that is unchanged owns its text already.
        return page, own or index.claim(page)

    def of_owner(self, state: PageState) -> Claim | None:
        """Return the open claim that this duplicate depends on, if this crawl has it."""
        match = state.verdict.match
        return self._claims.of(match.owner) if match and state.owner_is_pending else None

    def another_holds_owner(self, state: PageState) -> bool:
        """Tell whether this duplicate depends on an open claim of another process. One get or two."""
        match = state.verdict.match
        if match is None or not state.owner_is_pending or self.of_owner(state) is not None:
            return False
        with self._guard():
            return self._detector.index.claimed(match.owner.number) is not None
        return False
