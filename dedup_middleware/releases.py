"""Releases dropped items: those whose original was lost, and those that a person has allowed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from dedup_middleware.durability import recover
from dedup_middleware.model import Action, Rejection, Verdict, VerdictKind
from dedup_middleware.reasons import Reason
from dedup_middleware.visit import Visit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from dedup_middleware.deduplicator import Deduplication
    from dedup_middleware.index.dropped_items import DroppedItem, Release


class Releaser:
    """Releases the dropped items of one crawl."""

    def __init__(self, deduplication: Deduplication) -> None:
        self._core = deduplication
        # The keys of the items that this crawl is releasing, or has found gone.
        self._taken: set[bytes] = set()

    def take(self) -> Iterator[tuple[list[DroppedItem], bool]]:
        """Yield the items that this crawl is to release now, by page, and whether a person has allowed the page.

        Each item once, in a store that several processes share to one of them.
        """
        waiting: dict[bytes, Release] = {}
        with self._core.guarded():
            releases = self._core.index.dropped.releases(self._core.spider, self._core.run)
            waiting = {release.key: release for release in releases if release.key not in self._taken}
        for key in [*waiting]:
            items: list[DroppedItem] = []
            by_person = False
            with self._core.guarded():
                for item in self._of_one_page(key, waiting):
                    release = waiting.pop(item.key)
                    if self._core.index.atomically(partial(self._core.index.dropped.take, release)):
                        self._taken.add(item.key)
                        items.append(item)
                        by_person |= release.by_person
            if items:
                yield items, by_person
            elif waiting.pop(key, None) is not None:
                # The mark of an item that is gone: it must not bring an idle crawl here again and again.
                self._taken.add(key)

    def _of_one_page(self, key: bytes, waiting: Collection[bytes]) -> list[DroppedItem]:
        """Return the item with this *key* and the other items of its page that are *waiting*; none if it is not."""
        dropped = self._core.index.dropped
        first = dropped.get([key] if key in waiting else [])
        return dropped.get(each for item in first for each in dropped.of_page(item.number) if each in waiting)

    def has_any(self) -> bool:
        """Return whether other processes have left something to release. A scan of a few keys."""
        with self._core.guarded():
            if self._core.index.store.shared is not None:
                recover(self._core.index)
                releases = self._core.index.dropped.releases(self._core.spider, self._core.run)
                return any(r.key not in self._taken and self._core.index.dropped.is_free(r) for r in releases)
        return False

    def release(self, items: Sequence[DroppedItem], *, by_person: bool) -> Visit:
        """Return the visit in which the *items* of one page go on: it is checked again, by what the store has now.

        By now it may be a duplicate of another original. What a person has allowed is kept in any case.
        """
        url, action, threshold = items[0].url, Action.DROP, self._core.detector.threshold
        visit = Visit.unchecked(url, Reason.RELEASED, action, threshold)
        with self._core.guarded():
            stored = self._core.index.page(items[0].number)
            if stored is not None and stored.original is not None:
                page = self._core.reader.stored(self._core.index, stored)
                visit = Visit(url, page, Verdict(VerdictKind.NEW), action, threshold, keep=by_person)
                visit.version, visit.verdict = self._core.index.version, self._core.detector.check_stored(page)
                if by_person and visit.is_duplicate:
                    visit.overrule(Rejection(Reason.KEPT))
        visit.released = items
        self._core.enter(visit)
        return visit

    def go_on(self, visit: Visit) -> list[Any]:
        """Return the items of a released *visit* that go on to the pipelines; the others are dropped again."""
        items = [each.item for each in visit.released]
        if visit.is_duplicate:
            # What the page showed is not known any more, so each value counts.
            may_drop = all(self._core.check_item(visit, item, lambda _: True) is not False for item in items)
            if may_drop and all(self._core.drop(visit, item) for item in items):
                with self._core.guarded():
                    self._core.index.store.write([], self._core.index.dropped.deletes(visit.released))
                visit.items_dropped = len(items)
                self._core.finish(visit)
                return []
            self._core.keep_page(visit, visit.objection or Rejection(Reason.RELEASED))
        for item in items:
            self._core.keep_item(visit, item)
        self._core.end_callback(visit, several=len(items) > 1)
        self._core.finish(visit)
        return items
