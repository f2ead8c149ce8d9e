"""Judges items by their keys: a key that the store has not is another thing, and the same values repeat the thing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dedup_middleware.checks.page_changes import changes_between, with_values
from dedup_middleware.checks.recrawl import is_eligible
from dedup_middleware.common.budget import Budget, UncheckableError
from dedup_middleware.model import KEYED, Changes, Fingerprint, ItemContent, Match, Page, Verdict, VerdictKind
from dedup_middleware.reasons import Reason
from dedup_middleware.visits.visit import Visit

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dedup_middleware.index.index import Index
    from dedup_middleware.index.overrides import Overrides
    from dedup_middleware.items.keys import ItemKey, ItemKeys
    from dedup_middleware.items.reading import ItemCheck
    from dedup_middleware.model import StoredPage


class KeyedItems:
    """The items of the crawl *run* that have *keys*, each of which stands for a page."""

    def __init__(  # noqa: PLR0913, PLR0917 - what they are read and judged with
        self,
        run: str,
        keys: ItemKeys,
        check: ItemCheck,
        visit: Callable[..., Visit],
        overrides: Overrides,
        repeats_release: Callable[[Visit, Any], bool],
    ) -> None:
        """*check* reads them, and *visit* gives each a provisional verdict: see `Verdicts.check`.

        *repeats_release* returns whether an item of a visit, a duplicate, is one that the crawl releases.
        """
        self.keys = keys
        self._run, self._check, self._visit = run, check, visit
        self._overrides, self._repeats_release = overrides, repeats_release

    def key_of(self, visit: Visit, item: Any) -> ItemKey | None:
        """Return the key of an *item* of the page of *visit*; ``None`` if it has none, or is not to be checked."""
        is_on = visit.verdict.reason != Reason.SWITCHED_OFF and not visit.is_item
        return self.keys.of(item) if is_on else None

    def check(self, visit: Visit, item: Any, key: ItemKey) -> Visit:
        """Return the visit of an *item* with this *key* of the page of *visit*, checked."""
        try:
            digest, content = self._check.exact(item, visit.url, key.paths)
            places, copy = self._places(key, digest, visit.url)
            exact = Fingerprint({}, digest)
            for place in places:
                identities = *place, copy
                page = Page(visit.url, identities, exact, (), self._run, source=KEYED, item_content=content)
                found = self._visit(page, visit.action, Budget(), is_exempt=visit.is_exempt)
                if not found.is_duplicate or self._repeats_release(found, item):
                    break
        except UncheckableError as error:
            found = Visit.unchecked(visit.url, error.reason, visit.action)
        found.is_item, found.key, found.unchanged = True, key.text, visit.unchanged
        return found

    def _places(self, key: ItemKey, digest: bytes, url: str) -> tuple[list[tuple[bytes, bytes]], bytes]:
        """Return the places that an item may have as an original, two identities each, and the identity of its copy.

        The last place is that of its key. Before it come those of the copies, from the page at *url*, that a person has
        set apart from what is there: each is a thing of its own beside it.
        """
        of_key, copies = (key.identity, key.identity_with(digest)), list[bytes]()
        copy = key.identity_with(digest, url.encode("utf8", "surrogatepass"))
        while self._overrides.mark((copy,), (*of_key, *copies)):
            copies.append(copy)
            copy = key.identity_with(copy)
        return [*((each, each) for each in copies), of_key], copy


def verdict_on(page: Page, index: Index, is_earlier: Callable[[StoredPage], bool]) -> Verdict:
    """Return the verdict on a keyed *page*. One read, and another one if there is something with its key.

    *is_earlier* returns whether only earlier crawls have kept a stored page.
    """
    known = (*index.kept_at(page.identities[:2]),)
    eligible = [each for each in known if is_eligible(index, each, page)]
    same = [each for each in eligible if each.digest == page.fingerprint.digest]
    here = [each for each in eligible if each.pending or not is_earlier(each)]
    # What is durable comes first.
    if of_crawl := sorted((each for each in same if each in here), key=lambda each: each.pending):
        return Verdict(VerdictKind.DUPLICATE, Match(of_crawl[0], 1.0, frozenset()), known=known)
    reason = Reason.KEY_GIVEN_TWICE if here else ""
    if not eligible:
        return Verdict(VerdictKind.NEW, known=known)
    latest = max(eligible, key=lambda each: each.kept.time)
    # What a key had before its latest crawl is not what it has.
    if any(each.kept.run == latest.kept.run for each in same):
        return Verdict(VerdictKind.UNCHANGED, reason=reason, known=known)
    before = next((each for each in here if page.identities[0] in each.identities), latest)
    assert page.item_content is not None
    changes = _changes(page.item_content, before, index)
    return Verdict(VerdictKind.CHANGED, reason=reason, changes=changes, known=known)


def claim_keyed(page: Page, verdict: Verdict, index: Index) -> tuple[Page, StoredPage]:
    """Open the claim of a keyed *page* with this *verdict*; return the page as it is stored, and its claim.

    It takes the place of its key. The values that a crawl gives second have a place of their own, so that each
    repetition of either is found.
    """
    if len(page.identities) == 1:  # of a copy that is released, which is a thing beside its original
        return page, index.claim(page)
    key, values, _ = page.identities
    page = replace(page, identities=(values if verdict.reason == Reason.KEY_GIVEN_TWICE else key,))
    return page, index.claim(page)


def _changes(content: ItemContent, before: StoredPage, index: Index) -> Changes:
    """Return how the *content* of an item differs from that of what is stored, or claimed, with its key."""
    then = before.item_content or ItemContent(frozenset(), frozenset(), has_text=False)
    has_text = content.has_text or then.has_text
    found = changes_between(then.texts or index.item_text(before), content.texts) if has_text else Changes()
    old, new = (
        each.digest.decode("utf8", "surrogatepass").split("\n") if each.digest else [] for each in (then, content)
    )
    return with_values(found, (line for line in old if line not in new), (line for line in new if line not in old))
