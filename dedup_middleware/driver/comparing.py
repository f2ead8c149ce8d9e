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
    from dedup_middleware.driver.core import Core
    from dedup_middleware.index.index import Index
    from dedup_middleware.model import ItemContent, Page, StoredPage
    from dedup_middleware.visits.visit import Visit

# Of a page whose items all have keys: no item of another page repeats one that is judged by its key.
_NOTHING = content_of([])


def compare_with_itself(core: Core, visit: Visit) -> None:
    """Compare the items of an unchanged page with what it gave before: if that is other, the page has changed.

    If it is the same, and all feeds have it, the items are dropped where that is wanted. They are not stored: the store
    has the page. Two reads at most, mostly none. `UncheckableError` for an item that cannot be read.
    """
    claim, index = visit.claim, core.index
    own = _own(visit, index)
    if own is None or own.item_content is None or claim.page is None:
        return
    texts, changes = claim.item_texts, Changes()
    if not claim.page.is_keyed:
        texts = texts or [core.item_check.read(claim.page, item, visit.budget) for item in visit.items.held]
        changes = item_changes(texts, own.item_content, lambda: index.items_of(own))
    if changes:
        visit.verdict = replace(visit.verdict, kind=VerdictKind.CHANGED, changes=changes)
        if claim.stored is not None:
            index.outdate(claim.stored.number, [own], core.run)
    elif (
        visit.unchanged is Unchanged.DROP
        and visit.verdict.moved is None
        and all(own.kept.has_reached(core.feeds_wanting(item)) for item in visit.items.held)
    ):
        visit.items.decided += [Decision(Fate.DROP, item) for item in visit.items.held]
        visit.items.dropped += len(visit.items.held)
        if visit.items.held:
            claim.item_texts, claim.feeds, visit.items.held = texts, own.kept.feeds, []


def _own(visit: Visit, index: Index) -> StoredPage | None:
    stored, page = visit.claim.stored, visit.claim.page
    if stored is None or page is None or not stored.pending:
        return stored
    if page.is_keyed:
        # The place of its key may have other values, which other feeds have.
        return next((known for known in visit.verdict.known if known.digest == page.fingerprint.digest), None)
    return next((known for known in index.same(page.all_identities) if known.original is None), None)


def item_verdict(core: Core, visit: Visit, item: Any) -> ItemVerdict:
    """Return whether an *item* of a duplicate repeats what an original gave, to each of the feeds that want it.

    The first item judges the page: it is a duplicate of an original that has what the item has, or none. Later ones are
    compared with that original. Without an *item*, the page itself is judged. `UncheckableError` for an item that
    cannot be read.
    """
    assert visit.page is not None
    page, verdict, match = within(visit.page, visit.budget), visit.verdict, visit.verdict.match
    if item is None:
        with visit.budget:
            judged = core.detector.judge(page, verdict)
        return ItemVerdict(judged, repeats=judged.kind is VerdictKind.DUPLICATE)
    wanted = core.feeds_wanting(item)

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
        text = core.item_check.read(page, item, visit.budget)
        if visit.read is not None or match is None:
            # Of a page that was not read: the item was dropped before, for what is as it was.
            return ItemVerdict(verdict, text.has_text or None)
        provisional = verdict if verdict.candidates else replace(verdict, candidates=(match,))
        judged = core.detector.judge(page, provisional, text, rejects)
        if judged.kind is VerdictKind.DUPLICATE:
            return ItemVerdict(judged, text.has_text or None)
        rejection = Rejection(judged.reason or Reason.BELOW_THRESHOLD, judged.difference)
        return ItemVerdict(judged if verdict.candidates else verdict, repeats=False, rejection=rejection)


def owned_by(visit: Visit, index: Index) -> Page | None:
    """Return the page that *visit* claims, with what it owns now that all its items came; ``None`` for nothing.

    A page with one item owns its whole text; one with several only their text: a list of teasers does not own the
    articles.
    """
    claimed = visit.claim.page
    if claimed is None or claimed.is_keyed:
        return claimed
    known, several = claimed.known, visit.items.processed > 1
    try:
        with visit.budget:
            content = content_of(visit.claim.item_texts, None if known is None else known.item_content)
    except UncheckableError:
        content = _NOTHING
    if visit.read is not None and not _owns_the_same(claimed, content, index, several=several):
        claimed = visit.read_in_full()
        if claimed is None:
            return None
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
