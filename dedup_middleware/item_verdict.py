"""Compares an item of a duplicate with what its original gave, and finds another original if that lacks something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.model import Rejection, Verdict, VerdictKind
from dedup_middleware.reasons import Reason
from dedup_middleware.visit import within

if TYPE_CHECKING:
    from dedup_middleware.checks.detector import Detector
    from dedup_middleware.checks.items import ItemCheck
    from dedup_middleware.model import StoredPage
    from dedup_middleware.visit import Visit


class ItemVerdict(NamedTuple):
    """What the comparison of an item with the original of its page has found."""

    verdict: Verdict
    """That on the page, perhaps with another original, which the item repeats."""
    repeats: bool | None
    """Whether the original's items contain what it contains; ``None`` if it has no text, and follows its page."""
    rejection: Rejection | None = None
    """Why it is kept, if that is known."""


def item_verdict(visit: Visit, item: Any, check: ItemCheck, detector: Detector, wanted: frozenset[str]) -> ItemVerdict:
    """Return whether an *item* of a duplicate repeats what its original gave, to each of the feeds *wanted* for it.

    If not, there may be another original. `UncheckableError` if the item cannot be read within the budget of *visit*.
    """
    assert visit.page is not None
    page = within(visit.page, visit.budget)
    text = check.read(page, item, visit.budget)

    def rejects(original: StoredPage) -> Rejection | None:
        if original.pending:
            return None  # what its items contain is known once it is durable
        if not original.kept.has_reached(wanted):
            return Rejection(Reason.ORIGINAL_MISSING_FROM_FEED)
        return check.rejection(page, text, original, detector)

    verdict, match = visit.verdict, visit.verdict.match
    rejection = None if match is None else rejects(match.original)
    if rejection and not visit.items_dropped and not visit.items_kept:
        another = detector.check(page, rejects=rejects)
        if another.kind is VerdictKind.DUPLICATE:
            verdict, rejection = another, None
    if rejection is not None:
        return ItemVerdict(verdict, repeats=False, rejection=rejection)
    return ItemVerdict(verdict, repeats=True if text.has_text else None)
