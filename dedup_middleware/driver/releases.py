"""Releases stored items: those that a person has allowed, whose feed was lost, or whose original is another now."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dedup_middleware.errors import UnreadableError
from dedup_middleware.model import Action, Verdict, VerdictKind
from dedup_middleware.reasons import Reason
from dedup_middleware.visits.visit import Fate, Visit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dedup_middleware.driver.deduplicator import Deduplication
    from dedup_middleware.index.dropped_items import DroppedItem, Release
    from dedup_middleware.visits.visit import Decision


class Releaser:
    """Releases the dropped items of one crawl."""

    def __init__(self, deduplication: Deduplication) -> None:
        self._core = deduplication
        self._index = deduplication.index
        # The keys of the items that this crawl has released, has found gone, or has no feed for.
        self._taken: set[bytes] = set()

    def take(self) -> Iterator[tuple[list[DroppedItem], bool]]:
        """Yield the items that this crawl is to release now, by page, and whether a person has allowed the page.

        Each item once, and in a store that several processes share to one of them.
        """
        with self._core.guard:
            waiting = {release.key: release for release in self._releases()}
            for key in [*waiting]:
                items, by_person = self._take_page(key, waiting)
                if waiting.pop(key, None) is not None:
                    # The item is gone, and must not bring an idle crawl here again and again.
                    self._taken.add(key)
                if items:
                    yield items, by_person

    def _releases(self) -> list[Release]:
        found = self._index.dropped.releases(self._core.spider, self._core.jobdir)
        return [release for release in found if release.key not in self._taken]

    def _take_page(self, key: bytes, waiting: dict[bytes, Release]) -> tuple[list[DroppedItem], bool]:
        """Take the items of the page of the item *key* that are *waiting*, unless another process has taken them.

        An item that a feed wanted goes on waiting in a crawl without a feed that does.
        """
        dropped, items, by_person = self._index.dropped, [], False
        first = dropped.get([key] if key in waiting else [])
        keys = [each for item in first for each in dropped.of_page(item.number) if each in waiting]
        for item in dropped.get(keys):
            release = waiting.pop(item.key)
            if not self._has_feed_for(item):
                self._taken.add(item.key)
            elif self._index.atomically(dropped.take, release):
                self._taken.add(item.key)
                items.append(item)
                by_person |= release.by_person
        return items, by_person

    def _has_feed_for(self, item: DroppedItem) -> bool:
        with suppress(UnreadableError):  # it is reported when it is released
            return not item.for_feed or bool(self._core.feeds_wanting(item.item))
        return True

    def has_any(self) -> bool:
        """Return whether there is something to release, also what other processes have left. A scan of a few keys."""
        with self._core.guard:
            return any(self._index.dropped.is_free(release) for release in self._releases())
        return False

    def sweep(self) -> None:
        """Remove what processes have left behind that are not at work any more."""
        with self._core.guard:
            self._index.sweep()

    def visit(self, items: Sequence[DroppedItem], *, by_person: bool) -> Visit:
        """Return a new visit of the page of *items*, entered: it is checked again, against what the store has now.

        By now it may be a duplicate of another original. What a person has allowed is kept in any case, and so is what
        was kept before.
        """
        url = items[0].url
        visit = Visit.unchecked(url, Reason.RELEASED, Action.DROP)
        with self._core.guard:
            stored = self._index.page(items[0].number)
            if stored is not None and stored.original is not None:
                page = self._index.read_again(stored, self._core.run, self._core.opened.fingerprint)
                visit = Visit(url, page, Verdict(VerdictKind.NEW), Action.DROP, is_exempt=by_person)
                visit.version = self._index.read_version()
                if page.fingerprint.weight:
                    self._core.verdicts.give(visit)
        visit.items.released, visit.is_item = items, True
        self._core.enter(visit)
        return visit

    def released(
        self, visit: Visit, items: Sequence[Any], decisions: Iterable[Decision]
    ) -> list[tuple[Any, DroppedItem]]:
        """Return those of *items* that go on, with the stored items that they come from; delete what is dropped again.

        Those that were dropped again were stored again.
        """
        stored = {id(item): each for item, each in zip(items, visit.items.released, strict=True)}
        fates = [(item, stored[id(item)], fate) for fate, item in decisions]
        again = [each for _, each, fate in fates if fate is Fate.DROP]
        with self._core.guard:
            if again:
                self._index.store.write([], self._index.dropped.deletes(again))
        return [(item, each) for item, each, fate in fates if fate is Fate.KEEP]
