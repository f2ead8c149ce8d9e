"""Gives pages their verdicts, and renews those that are stale because the store has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.driver.keyed import verdict_on
from dedup_middleware.errors import TROUBLE
from dedup_middleware.model import Action, Fetched, Page, Rejection, Verdict, VerdictKind
from dedup_middleware.reasons import Reason
from dedup_middleware.visits.visit import Visit, within

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.checks.detector import Detector
    from dedup_middleware.common.budget import Budget
    from dedup_middleware.errors import DedupError, UnreadableError
    from dedup_middleware.model import StoredPage


class Verdicts:
    """The verdicts of one crawl, *run*, by *detector*; *fail* gets the trouble of its store."""

    def __init__(
        self,
        run: str,
        detector: Detector,
        fail: Callable[[DedupError | UnreadableError], None],
        is_earlier: Callable[[StoredPage], bool],
    ) -> None:
        """*is_earlier* returns whether only earlier crawls have kept an original."""
        self.store_failure: Reason | None = None
        """Why the store can not be used, once that is so: then pages are unchecked."""
        self.has_failed = False
        """Whether something has failed: from then on nothing is dropped, and nothing made durable."""
        self._run = run
        self._detector = detector
        self._index = detector.index
        self._fail = fail
        self._is_earlier = is_earlier

    def check(self, page: Page, action: Action, budget: Budget, *, is_exempt: bool = False) -> Visit:
        """Return the visit of *page* with its provisional verdict; its items have what is left of its *budget*."""
        visit = Visit(page.url, page, Verdict(VerdictKind.NEW), action, budget, is_exempt=is_exempt)
        self.give(visit)
        budget.pause()
        return visit

    def check_unread(self, fetched: Fetched, action: Action, budget: Budget, read: Callable[[], Page]) -> Visit | None:
        """Return the visit of a page that was *fetched* again, byte for byte; ``None`` for any other one.

        *read* reads the page, should that be needed later.
        """
        try:
            version = self._index.read_version()
            found = self._find_unread(fetched)
        except TROUBLE as error:
            self._fail(error)
            return None
        # Only an item that was dropped before, and is stored, needs no comparison.
        if found is None or (found[1].kind is VerdictKind.DUPLICATE and action is not Action.DROP):
            return None
        budget.pause()
        page, verdict = found
        return Visit(fetched.url, page, verdict, action, budget, read=read, version=version)

    def _find_unread(self, fetched: Fetched) -> tuple[Page, Verdict] | None:
        page = None if self.has_failed else self._index.unchanged(fetched, self._run)
        verdict = None if page is None else self._detector.check_unread(page)
        return None if page is None or verdict is None else (page, verdict)

    def give(self, visit: Visit) -> None:
        """Check the page against what the store has now; it is unchecked if the store fails, or has failed."""
        if self.store_failure is None:
            try:
                visit.version = self._index.read_version()
                if visit.read is not None and (page := visit.page) is not None:
                    found = self._find_unread(Fetched(page.url, page.identities, page.body_digest))
                    if found is not None:
                        visit.page, visit.verdict = found
                        return
                page = visit.page if visit.read is None else visit.read_in_full()
                if page is not None and page.is_keyed:
                    visit.verdict = verdict_on(page, self._index, self._is_earlier)
                elif page is not None:
                    with visit.budget:
                        visit.verdict = self._detector.check(within(page, visit.budget))
                if visit.is_duplicate and visit.is_exempt:
                    visit.overrule(Rejection(Reason.KEPT_ON_REQUEST))
            except TROUBLE as error:
                self._fail(error)
            else:
                return
        if visit.page is not None:
            visit.verdict = Verdict(VerdictKind.UNCHECKED, reason=self.store_failure or Reason.STORE_FAILED)

    def renew_if_stale(self, visit: Visit) -> None:
        """Check the page again if the store has changed since in a way that may change its verdict.

        If not, a transaction of a shared store that writes because of the verdict is repeated when others write.
        """
        page, version = visit.page, visit.version if self.store_failure is None else None
        if page is not None and (version is None or self._index.changed_since(version, page)):
            self.give(visit)
        elif page is not None:
            self._index.store.require_unchanged()
