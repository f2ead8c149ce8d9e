"""Verdicts on the pages of a session: made, made anew when anything has changed, and unread where that will do.

It decides when a page is judged, not what it is; that is the detector's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.budget import UnjudgeableError
from dedup_middleware.errors import StoreAwayError, StoreError
from dedup_middleware.model import Fetched, Rejection, Verdict, VerdictKind
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from dedup_middleware.checks.detector import Detector
    from dedup_middleware.delivery.page_state import PageState
    from dedup_middleware.delivery.safety import Safety
    from dedup_middleware.errors import DedupError
    from dedup_middleware.index.shared_ahead import Fetch
    from dedup_middleware.model import Page


class Judging:
    """The verdicts of one crawl, *run*."""

    def __init__(
        self, detector: Detector, safety: Safety, run: str, guard: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Judge with *detector*; what is to be written down of templates, *safety* does; *guard* notes what fails."""
        self.failure: Reason | None = None
        """Why no page is judged any more, once the store has failed."""
        self._detector = detector
        self._safety = safety
        self._run = run
        self._guard = guard

    def failed(self, error: DedupError) -> None:
        """Judge no page any more if it is the store that has failed."""
        if self.failure is None and isinstance(error, StoreError):
            self.failure = Reason.STORE_AWAY if isinstance(error, StoreAwayError) else Reason.STORE_FAILED

    def find_unread(self, fetched: Fetched, threshold: float) -> tuple[Page, Verdict] | None:
        """Return the page that was *fetched* as the store has it, with its verdict; ``None`` if it is to be read.

        So is whatever an unclean shutdown, a person or a template has left to be delivered.
        """
        index = self._detector.index
        if index.is_far:
            # Two questions would take longer than to read the page and to ask one.
            return None
        if self.failure or self._safety.failed or self._safety.awaits(fetched.identities):
            return None
        page = index.unchanged(fetched, self._run)
        verdict = None if page is None else self._detector.judge_unread(page, threshold=threshold)
        return None if page is None or verdict is None else (page, verdict)

    def fetching(self, page: Page) -> Fetch | None:
        """See Index; ``None`` after the store has failed."""
        return None if self.failure else self._detector.index.fetching(page)

    def judge(self, state: PageState) -> None:
        """Judge the page of *state*; one that stands unread is read if it has to be."""
        if self.failure is None:
            with self._guard(), self._detector.index.noting() as state.reads:
                state.version = self._detector.index.version
                state.repeated = None
                if self._judged_unread(state):
                    return
                if state.page is None:
                    return
                state.verdict = self._detector.judge(state.page, threshold=state.threshold)
                if state.keep and state.is_duplicate:
                    state.overrule(Rejection(Reason.KEPT))
                state.suspected_template = self._detector.suspected_template(state.page, state.verdict)
                return
        if state.page is not None:
            state.verdict = Verdict(VerdictKind.UNJUDGED, reason=self.failure or Reason.STORE_FAILED)

    def judge_if_stale(self, state: PageState) -> None:
        """Judge the page of *state* anew if anything that concerns it has changed."""
        if state.page is None:
            return
        index, is_stale = self._detector.index, self.failure is not None
        if not is_stale and index.changed_since(state.version, state.page):
            is_stale = state.reads is None or not index.rests_on(state.reads)
        if is_stale:
            self.judge(state)

    def stands(self, state: PageState) -> bool:
        """Tell whether a duplicate still is one, of the same owner, when it is judged by what the store has now."""
        before = state.verdict.match
        self.judge_if_stale(state)
        match = state.verdict.match
        is_same = before is not None and match is not None and match.owner.number == before.owner.number
        return is_same and state.is_duplicate and not state.owner_is_pending

    def _judged_unread(self, state: PageState) -> bool:
        """Judge a page that stands unread; tell whether that could be done. If not, it has been read, or cannot be."""
        if state.read is None or state.page is None:
            return False
        page = state.page
        found = self.find_unread(Fetched(page.url, page.identities, page.body_digest), state.threshold)
        if found is not None:
            state.page, state.verdict = found
            state.suspected_template = self._detector.suspected_template(*found)
            return True
        return not is_read(state)


def is_read(state: PageState) -> bool:
    """Read the page of *state* if it stands unread; tell whether there is one now. Its verdict stays what it was."""
    try:
        state.read_in_full()
    except UnjudgeableError:
        return False
    return state.page is not None
