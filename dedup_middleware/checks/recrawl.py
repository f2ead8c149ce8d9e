"""Compares a page with what the store has of it from earlier crawls, and with what these decided."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.checks.page_changes import changes_of
from dedup_middleware.index.candidates import containment
from dedup_middleware.model import Changes, Match, is_cut

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.index.index import Index
    from dedup_middleware.index.lookup import Found
    from dedup_middleware.model import Page, StoredPage


def is_eligible(index: Index, original: StoredPage, page: Page) -> bool:
    """Return whether *original* may drop *page* by the scope and age of the crawl's originals, and by overrides."""
    has_reach = index.eligibility.has(original, page.run)
    return has_reach and not index.overrides.mark(page.identities, original.identities)


def may_drop(index: Index, original: StoredPage, page: Page) -> bool:
    """Return whether *original* may drop *page*, and is not known to be another page by now."""
    return is_eligible(index, original, page) and not index.open_claims.is_outdated(original.number)


def changes_since(index: Index, page: Page, own: Iterable[StoredPage]) -> Changes | None:
    """Return what has changed on *page* since the store got it; ``None`` if it has no text of its *own*.

    Of a page that was dropped, only a change counts: what has not changed is still to be compared with others.
    """
    known = [each for each in own if is_eligible(index, each, page)]
    stored = min(known, key=lambda each: each.original is not None, default=None)
    if stored is None:
        return None
    is_equal = stored.digest == page.fingerprint.digest
    if page.source or stored.source or page.fingerprint.is_whole or stored.pending:
        # Of an item, and of little text, only digests are known.
        return Changes() if is_equal and stored.original is None else None
    # Of a page with several items, the store has their text.
    has_text = stored.exact_digest and not (is_equal and stored.original is not None)
    text = index.text(stored.number) if has_text else None
    found = changes_of(page, stored, text, is_cut=text is not None and is_cut(text))
    return found if found or stored.original is None else None


def earlier_match(index: Index, page: Page, own: StoredPage, least: float) -> Match | None:
    """Return what *own*, as an earlier crawl dropped it, repeats, if neither *page* nor its original has changed since.

    What is boilerplate changes as a store grows; a recrawl must not keep other pages for that. *least*: the least score
    of a duplicate, for the setting may be another one now.
    """
    original = index.page(own.original) if own.original is not None else None
    if original is None or not original.is_original_of(own) or own.score < round(least, 4):
        return None
    if not may_drop(index, original, page):
        return None
    return Match(original, own.score, original.hashes & page.fingerprint.weights.keys())


def moved_from(
    index: Index, page: Page, found: Found, candidates: Iterable[Match], threshold: float
) -> StoredPage | None:
    """Return *page* as it is stored under another URL, which leads here now, or named this one as canonical.

    A page that this crawl has met under the other URL is still there.
    """
    if any(own.original is None for own in found.own):
        return None
    named = [match.original for match in candidates if has_named(index, match.original, page)]
    for known in (*index.leading_to(page), *named):
        is_alike = containment(page.fingerprint.weights, known.hashes) >= threshold
        has_text = is_alike or known.digest == page.fingerprint.digest
        if has_text and not known.pending and is_eligible(index, known, page):
            return known
    return None


def has_named(index: Index, known: StoredPage, page: Page) -> bool:
    """Return whether *known*, which this crawl has not met, named the URL of *page* as its canonical one."""
    is_met = known.run == page.run or index.open_claims.is_kept_again(known.number)
    return known.canonical in page.identities and not is_met
