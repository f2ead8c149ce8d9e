"""Compares the items of a page with those of its original, or with what the page itself gave before."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dedup_middleware.checks.page_changes import item_changes
from dedup_middleware.common.budget import UncheckableError
from dedup_middleware.items.reading import content_of
from dedup_middleware.model import Changes, Rejection, Unchanged, VerdictKind
from dedup_middleware.reasons import Reason
from dedup_middleware.visits.visit import Decision, Fate, ItemVerdict, within

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.checks.detector import Detector
    from dedup_middleware.index.index import Index
    from dedup_middleware.items.reading import ItemCheck
    from dedup_middleware.model import ItemContent, Page, StoredPage
    from dedup_middleware.visits.visit import Visit

# Of a page whose items all have keys: no item of another page repeats one that is judged by its key.
_NOTHING = content_of([])


def compare_with_itself(
    visit: Visit, index: Index, check: ItemCheck, wanting: Callable[[Any], frozenset[str]], run: str
) -> None:
    """Compare the items of an unchanged page with what it gave before: if that is other, the page has changed.

    If it is the same, and all feeds have it, the items are dropped where that is wanted. They are not stored: the store
    has the page. *wanting* returns the kinds of the feeds that want an item; *run* names the crawl. Two reads at most,
    mostly none. `UncheckableError` for an item that cannot be read.
    """
    own = _own(visit, index)
    if own is None or own.item_content is None or visit.claim.page is None:
        return
    texts, changes = visit.claim.item_texts, Changes()
    if not visit.claim.page.is_keyed:
        texts = texts or [check.read(visit.claim.page, item, visit.budget) for item in visit.items.held]
        changes = item_changes(texts, own.item_content, lambda: index.items_of(own))
    if changes:
        visit.verdict = replace(visit.verdict, kind=VerdictKind.CHANGED, changes=changes)
        if visit.claim.stored is not None:
            index.outdate(visit.claim.stored.number, [own], run)
    elif (
        visit.unchanged is Unchanged.DROP
        and visit.verdict.moved is None
        and all(own.kept.has_reached(wanting(item)) for item in visit.items.held)
    ):
        visit.items.decided += [Decision(Fate.DROP, item) for item in visit.items.held]
        visit.items.dropped += len(visit.items.held)
        if visit.items.held:
            visit.claim.item_texts, visit.claim.feeds, visit.items.held = texts, own.kept.feeds, []


def item_verdict(
    visit: Visit, item: Any, detector: Detector, check: ItemCheck, wanting: Callable[[Any], frozenset[str]]
) -> ItemVerdict:
    """Return whether an *item* of a duplicate repeats what an original gave, to each of the feeds that want it.

    The first item judges the page: it is a duplicate of an original that has what the item has, or none. Later ones are
    compared with that original. `UncheckableError` for an item that cannot be read.
    """
    assert visit.page is not None
    wanted, verdict, match = wanting(item), visit.verdict, visit.verdict.match
    page = within(visit.page, visit.budget)

    def rejects(original: StoredPage) -> Rejection | None:
        # What the items of an open claim contain, and which feeds have them, is known once it has ended.
        if original.pending:
            return None
        if original.item_content == _NOTHING:
            return Rejection(Reason.ORIGINAL_ITEM_HAS_NO_TEXT)
        return None if original.kept.has_reached(wanted) else Rejection(Reason.ORIGINAL_MISSING_FROM_FEED)

    if page.is_keyed:
        assert match is not None
        rejection = rejects(match.original)
        return ItemVerdict(verdict, repeats=rejection is None, rejection=rejection)

    with visit.budget:
        text = check.read(page, item, visit.budget)
        if visit.read is not None or match is None:
            # Of a page that was not read: the item was dropped before, for what is as it was.
            return ItemVerdict(verdict, text.has_text or None)
        provisional = verdict if verdict.candidates else replace(verdict, candidates=(match,))
        judged = detector.judge(page, provisional, text, rejects)
        if judged.kind is VerdictKind.DUPLICATE:
            return ItemVerdict(judged, text.has_text or None)
        rejection = Rejection(judged.reason or Reason.BELOW_THRESHOLD, judged.difference)
        return ItemVerdict(judged if verdict.candidates else verdict, repeats=False, rejection=rejection)


def _own(visit: Visit, index: Index) -> StoredPage | None:
    if visit.claim.stored is None or visit.claim.page is None or not visit.claim.stored.pending:
        return visit.claim.stored
    if visit.claim.page.is_keyed:
        # The place of its key may have other values, which other feeds have.
        digest = visit.claim.page.fingerprint.digest
        return next((known for known in visit.verdict.known if known.digest == digest), None)
    return next((page for page in index.same(visit.claim.page.all_identities) if page.original is None), None)


def page_verdict(visit: Visit, detector: Detector) -> ItemVerdict:
    """Return whether the page of a duplicate repeats its original, where no item is compared."""
    assert visit.page is not None
    with visit.budget:
        judged = detector.judge(within(visit.page, visit.budget), visit.verdict)
    return ItemVerdict(judged, repeats=judged.kind is VerdictKind.DUPLICATE)


def owned_by(visit: Visit, claimed: Page, index: Index) -> Page | None:
    """Return the page of *visit*, *claimed* so, with what it owns now that all its items came; ``None`` for nothing.

    A page with one item owns its whole text; one with several only their text: a list of teasers does not own the
    articles.
    """
    if claimed.is_keyed:
        return claimed
    known, several = claimed.known, visit.items.processed > 1
    try:
        with visit.budget:
            content = content_of(visit.claim.item_texts, None if known is None else known.item_content)
    except UncheckableError:
        content = _NOTHING
    if visit.read is not None and not _owns_the_same(claimed, content, index, several=several):
        page = visit.read_in_full()
        if page is None:
            return None
        claimed = page
    page = claimed.restricted_to(content.hashes, content.texts) if several else claimed
    return replace(page, item_content=content)


def _owns_the_same(page: Page, content: ItemContent, index: Index, *, several: bool) -> bool:
    """Return whether an unread original still owns the same text, now that its items have this *content*.

    A page with one item owns its text, regardless of what the item contains. If it has *several* items, or had several
    the last time, they must contain what they contained then. Two reads, or none.
    """
    known = page.known
    if known is None or (known.exact_digest and not several):
        return known is not None
    is_same = known.item_content == content and "\n".join(index.items_of(known)[0]) == "\n".join(content.texts)
    return is_same and several and known.hashes <= content.hashes
