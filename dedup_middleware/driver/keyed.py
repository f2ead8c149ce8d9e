"""Judges items by their keys: a key that the store has not is another thing, and the same values repeat the thing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dedup_middleware.checks.page_changes import changes_between, with_values
from dedup_middleware.model import Changes, ItemContent, Match, Verdict, VerdictKind
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.index.index import Index
    from dedup_middleware.model import Page, StoredPage


def verdict_on(page: Page, index: Index, is_earlier: Callable[[StoredPage], bool]) -> Verdict:
    """Return the verdict on a keyed *page*. One read, and another one if there is something with its key.

    *is_earlier* returns whether only earlier crawls have kept a stored page.
    """
    known = (*index.kept_at(page.identities[:2]),)
    eligible = [
        each
        for each in known
        if index.eligibility.has(each, page.run) and not index.overrides.mark(page.identities, each.identities)
    ]
    if not eligible:
        return Verdict(VerdictKind.NEW, known=known)
    same = [each for each in eligible if each.digest == page.fingerprint.digest]
    here = [each for each in eligible if each.pending or not is_earlier(each)]
    # What is durable comes first.
    if of_crawl := sorted((each for each in same if each in here), key=lambda each: each.pending):
        return Verdict(VerdictKind.DUPLICATE, Match(of_crawl[0], 1.0, frozenset()), known=known)
    reason = Reason.KEY_GIVEN_TWICE if here else ""
    latest = max(eligible, key=lambda each: each.kept.time)
    # What a key had before its latest crawl is not what it has.
    if any(each.kept.run == latest.kept.run for each in same):
        return Verdict(VerdictKind.UNCHANGED, reason=reason, known=known)
    before = next((each for each in here if page.identities[0] in each.identities), latest)
    assert page.item_content is not None
    changes = _changes(page.item_content, before, index)
    return Verdict(VerdictKind.CHANGED, reason=reason, changes=changes, known=known)


def placed(page: Page, verdict: Verdict) -> Page:
    """Return a keyed *page* with this *verdict* as it is claimed and stored: in the place of its key.

    The values that a crawl gives second have a place of their own, so that each repetition of either is found.
    """
    if len(page.identities) == 1:  # of a copy that is released, which is a thing beside its original
        return page
    key, values, _ = page.identities
    return replace(page, identities=(values if verdict.reason == Reason.KEY_GIVEN_TWICE else key,))


def _changes(content: ItemContent, before: StoredPage, index: Index) -> Changes:
    """Return how the *content* of an item differs from that of what is stored, or claimed, with its key."""
    then = before.item_content or ItemContent(frozenset(), frozenset(), has_text=False)
    has_text = content.has_text or then.has_text
    found = changes_between(then.texts or index.item_text(before), content.texts) if has_text else Changes()
    old, new = (
        each.digest.decode("utf8", "surrogatepass").split("\n") if each.digest else [] for each in (then, content)
    )
    return with_values(found, (line for line in old if line not in new), (line for line in new if line not in old))
