"""Releases dropped items: those whose original was lost, and those that a person has allowed."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from dedup_middleware.durability import recover
from dedup_middleware.errors import TROUBLE, UnreadableError
from dedup_middleware.model import Action, Rejection, Verdict, VerdictKind
from dedup_middleware.reasons import Reason
from dedup_middleware.visit import Visit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dedup_middleware.deduplicator import Deduplication
    from dedup_middleware.index.dropped_items import DroppedItem, Release


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
        try:
            waiting = {release.key: release for release in self._releases()}
            for key in [*waiting]:
                items, by_person = self._take_page(key, waiting)
                if waiting.pop(key, None) is not None:
                    # The item is gone, and must not bring an idle crawl here again and again.
                    self._taken.add(key)
                if items:
                    yield items, by_person
        except TROUBLE as error:
            self._core.fail(error)

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
            elif self._index.atomically(partial(dropped.take, release)):
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
        try:
            if self._index.store.worker:
                recover(self._index)
            return any(self._index.dropped.is_free(release) for release in self._releases())
        except TROUBLE as error:
            self._core.fail(error)
        return False

    def release(self, items: Sequence[DroppedItem], *, by_person: bool) -> Visit:
        """Return a new visit of the page of *items*: it is checked again, against what the store has now.

        By now it may be a duplicate of another original. What a person has allowed is kept in any case.
        """
        url = items[0].url
        visit = Visit.unchecked(url, Reason.RELEASED, Action.DROP)
        try:
            stored = self._index.page(items[0].number)
            if stored is not None and stored.original is not None:
                page = self._core.reader.stored(self._index, stored)
                visit = Visit(url, page, Verdict(VerdictKind.NEW), Action.DROP, is_exempt=by_person)
                visit.version, visit.verdict = self._index.version, self._core.detector.check_stored(page)
                if by_person and visit.is_duplicate:
                    visit.overrule(Rejection(Reason.KEPT_ON_REQUEST))
        except TROUBLE as error:
            self._core.fail(error)
        visit.released = items
        self._core.enter(visit)
        return visit

    def keep_or_drop(self, visit: Visit) -> list[Any]:
        """Return the items of a released *visit* that go on to the pipelines; the others are dropped again."""
        items = [each.item for each in visit.released]
        if visit.is_duplicate:
            may_drop = all(self._core.check_item(visit, item) is not False for item in items)
            if may_drop and all(self._core.drop(visit, item) for item in items):
                try:
                    self._index.store.write([], self._index.dropped.deletes(visit.released))
                except TROUBLE as error:
                    self._core.fail(error)
                visit.items_dropped = len(items)
                self._core.finish(visit)
                return []
            self._core.overrule(visit, visit.item_rejection or Rejection(Reason.RELEASED))
        for item in items:
            self._core.keep_item(visit, item)
        self._core.end_callback(visit, several=len(items) > 1)
        self._core.finish(visit)
        return items
