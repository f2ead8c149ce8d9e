"""Judges items by their keys: a key that the store has not is another thing, and the same values repeat the thing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dedup_middleware.checks.page_changes import changes_between, with_values
from dedup_middleware.model import KEYED, Changes, Fingerprint, ItemContent, Match, Page, Verdict, VerdictKind
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dedup_middleware.index.index import Index
    from dedup_middleware.items.keys import ItemKey
    from dedup_middleware.items.reading import ItemCheck
    from dedup_middleware.model import StoredPage


def page_of(key: ItemKey, item: Any, url: str, run: str, check: ItemCheck) -> Page:
    """Return *item*, of the page at *url*, as a page of its own with the identities of its *key*.

    `UncheckableError` for an item that cannot be read.
    """
    digest, content = check.exact(item, url)
    values = key.identity_with(digest)
    identities = key.identity, values, key.identity_with(digest, url.encode("utf8", "surrogatepass"))
    return Page(url, identities, Fingerprint({}, digest), (), run, source=KEYED, item_content=content)


def verdict_on(page: Page, index: Index, is_earlier: Callable[[StoredPage], bool]) -> Verdict:
    """Return the verdict on a keyed *page*. One read, and one or two more if the store has its key.

    *is_earlier* returns whether only earlier crawls have kept a stored page.
    """
    known = _known(page, index)
    here = [each for each in known if each.pending or not is_earlier(each)]
    same = [each for each in known if each.digest == page.fingerprint.digest]
    of_crawl = [each for each in here if each in same]
    if of_crawl:
        match = Match(min(of_crawl, key=lambda each: each.pending), 1.0, frozenset())
        return Verdict(VerdictKind.DUPLICATE, match)
    reason = Reason.KEY_GIVEN_TWICE if here else ""
    if same:
        return Verdict(VerdictKind.UNCHANGED, reason=reason)
    if not known:
        return Verdict(VerdictKind.NEW)
    before = next((each for each in (*here, *known) if page.identities[0] in each.identities), known[0])
    return Verdict(VerdictKind.CHANGED, reason=reason, changes=_changes(page.item_content, before, index))


def claimed_as(page: Page, verdict: Verdict, index: Index) -> Page:
    """Return a keyed *page* as it is stored: it takes the place of what has its values, or else its key.

    The values that a crawl gives second have a place of their own, so that each repetition of either is found.
    """
    match, (key, values, _) = verdict.match, page.identities
    same = match.original if match else None
    if verdict.kind is VerdictKind.UNCHANGED:
        same = next((each for each in _known(page, index) if each.digest == page.fingerprint.digest), None)
    if same is not None:
        return replace(page, identities=same.identities)
    return replace(page, identities=(values if verdict.reason == Reason.KEY_GIVEN_TWICE else key,))


def _known(page: Page, index: Index) -> list[StoredPage]:
    """Return what the store and the open claims have with the key of *page*, and with its key and values."""
    identities = page.identities[:2]
    found = index.kept_at(identities)
    return [
        each
        for each in found
        if index.eligibility.has(each, page.run) and not index.overrides.mark(page.identities, each.identities)
    ]


def _changes(content: ItemContent, before: StoredPage, index: Index) -> Changes:
    """Return how the *content* of an item differs from that of what is stored, or claimed, with its key."""
    then = before.item_content or ItemContent(frozenset(), frozenset(), has_text=False)
    has_text = content.has_text or then.has_text
    found = changes_between(then.texts or index.item_text(before), content.texts) if has_text else Changes()
    old, new = (
        each.digest.decode("utf8", "surrogatepass").split("\n") if each.digest else [] for each in (then, content)
    )
    return with_values(found, (line for line in old if line not in new), (line for line in new if line not in old))
