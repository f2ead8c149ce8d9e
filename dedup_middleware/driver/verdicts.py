"""Gives pages their verdicts, and renews those that are stale because the store has changed.

An item with a key is judged by that: a key that the store has not is another thing, and the same values repeat the
thing.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dedup_middleware.checks.page_changes import changes_between, with_values
from dedup_middleware.checks.recrawl import is_eligible
from dedup_middleware.common.budget import UNLIMITED, UncheckableError
from dedup_middleware.errors import TROUBLE
from dedup_middleware.model import (
    KEYED,
    Action,
    Changes,
    Fetched,
    Fingerprint,
    ItemContent,
    Match,
    Page,
    Rejection,
    Verdict,
    VerdictKind,
    now_exactly,
)
from dedup_middleware.reasons import Reason
from dedup_middleware.visits.visit import Visit, within

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.common.budget import Budget
    from dedup_middleware.driver.core import Core
    from dedup_middleware.index.index import Index
    from dedup_middleware.items.keys import ItemKey
    from dedup_middleware.model import StoredPage

_NOT_GIVEN = Verdict(VerdictKind.NEW)


class Verdicts:
    """The verdicts of one crawl."""

    def __init__(self, core: Core) -> None:
        """Begin the crawl of *core*."""
        self._core, self._index = core, core.index
        self._begun = now_exactly()
        # The crawls at work when it began.
        self._beside: frozenset[str] = frozenset()
        with suppress(*TROUBLE):  # the crawl will notice by itself
            self._beside = core.index.begin(core.run)

    def check(self, page: Page, action: Action, budget: Budget, *, is_exempt: bool = False) -> Visit:
        """Return the visit of *page* with its provisional verdict; its items have what is left of its *budget*."""
        visit = Visit(page.url, page, _NOT_GIVEN, action, budget, is_exempt=is_exempt)
        self.give(visit)
        budget.pause()
        return visit

    def check_unread(self, fetched: Fetched, action: Action, budget: Budget, read: Callable[[], Page]) -> Visit | None:
        """Return the visit of a page that was *fetched* again, byte for byte; ``None`` for any other one.

        *read* reads the page, should that be needed later.
        """
        found = None
        with self._core.guard:
            version = self._index.read_version()
            found = self._find_unread(fetched)
        # Only an item that was dropped before, and is stored, needs no comparison.
        if found is None or (found[1].kind is VerdictKind.DUPLICATE and action is not Action.DROP):
            return None
        budget.pause()
        page, verdict = found
        return Visit(fetched.url, page, verdict, action, budget, read=read, version=version)

    def _find_unread(self, fetched: Fetched) -> tuple[Page, Verdict] | None:
        page = None if self._core.has_failed else self._index.unchanged(fetched, self._core.run)
        verdict = None if page is None else self._core.detector.check_unread(page)
        return None if page is None or verdict is None else (page, verdict)

    def key_of(self, visit: Visit, item: Any) -> ItemKey | None:
        """Return the key of an *item* of the page of *visit*; ``None`` if it has none, or is not to be checked."""
        is_on = visit.verdict.reason != Reason.SWITCHED_OFF and not visit.is_item
        return self._core.keys.of(item) if is_on else None

    def check_keyed(self, visit: Visit, item: Any) -> Visit | None:
        """Return the visit of an *item* of the page of *visit*, checked by its key; ``None`` if `key_of` is."""
        if (key := self.key_of(visit, item)) is None:
            return None
        try:
            digest, content = self._core.item_check.exact(item, visit.url, key.paths)
            places, copy = self._places(key, digest, visit.url)
            exact = Fingerprint({}, digest)
            for place in places:
                identities = *place, copy
                page = Page(visit.url, identities, exact, (), self._core.run, source=KEYED, item_content=content)
                found = self.check(page, visit.action, UNLIMITED, is_exempt=visit.is_exempt)
                if not found.is_duplicate or self._rests_on_release(found, item):
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
        while self._index.overrides.mark((copy,), (*of_key, *copies)):
            copies.append(copy)
            copy = key.identity_with(copy)
        return [*((each, each) for each in copies), of_key], copy

    def _rests_on_release(self, visit: Visit, item: Any) -> bool:
        """Return whether *item* is one that this crawl releases, or has released."""
        match = visit.verdict.match if visit.is_duplicate else None
        original = None if match is None else self._core.open.get(match.original.number)
        is_open = original is not None and bool(original.items.released)
        return is_open or self._core.repeats_released(visit, item)

    def give(self, visit: Visit) -> None:
        """Check the page against what the store has now; it is unchecked if the store fails, or has failed."""
        if self._core.store_failure is None:
            with self._core.guard:
                visit.version = self._index.read_version()
                if visit.read is not None and (page := visit.page) is not None:
                    found = self._find_unread(Fetched(page.url, page.identities, page.body_digest))
                    if found is not None:
                        visit.page, visit.verdict = found
                        return
                page = visit.read_in_full()
                if page is not None and page.is_keyed:
                    visit.verdict = verdict_on(page, self._index, self.is_earlier)
                elif page is not None:
                    with visit.budget:
                        visit.verdict = self._core.detector.check(within(page, visit.budget))
                if visit.is_duplicate and visit.is_exempt:
                    visit.overrule(Rejection(Reason.KEPT_ON_REQUEST))
                return
        if visit.page is not None:
            visit.verdict = Verdict(VerdictKind.UNCHECKED, reason=self._core.store_failure or Reason.STORE_FAILED)

    def renew_if_stale(self, visit: Visit) -> None:
        """Check the page again if the store has changed since in a way that may change its verdict.

        If not, a transaction of a shared store that writes because of the verdict is repeated when others write.
        """
        page, version = visit.page, visit.version if self._core.store_failure is None else None
        if page is not None and (version is None or self._index.changed_since(version, page)):
            self.give(visit)
        elif page is not None:
            self._index.store.require_unchanged()

    # --- what earlier crawls have kept

    def is_earlier(self, original: StoredPage) -> bool:
        """Return whether an earlier crawl has kept *original*, and neither this one nor one beside it has since."""
        if original.number in self._core.open or original.number in self._index.met_again:
            return False
        return original.run not in {self._core.run, *self._beside} and original.time <= self._begun

    def resume_from(self, before: Verdicts) -> None:
        """Go on with the same crawl, which *before* has begun."""
        self._begun, self._beside = before._begun, self._beside | before._beside

    def end(self) -> None:
        """Note that the crawl is over."""
        with suppress(*TROUBLE):
            self._index.end(self._core.run)


# --- items with keys


def verdict_on(page: Page, index: Index, is_earlier: Callable[[StoredPage], bool]) -> Verdict:
    """Return the verdict on a keyed *page*. One read, and another one if there is something with its key.

    *is_earlier* returns whether only earlier crawls have kept a stored page.
    """
    known = (*index.kept_at(page.identities[:2]),)
    eligible = [each for each in known if is_eligible(index, each, page)]
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
    """Return a keyed *page* with this *verdict* as it is claimed and stored: at the place of its key.

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
    found = changes_between(then.texts or index.items_of(before)[0], content.texts) if has_text else Changes()
    old, new = (
        each.digest.decode("utf8", "surrogatepass").split("\n") if each.digest else [] for each in (then, content)
    )
    return with_values(found, (line for line in old if line not in new), (line for line in new if line not in old))
