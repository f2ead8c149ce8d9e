"""Reports what becomes of items in the pipelines and the feeds to the visits of their pages."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy import signals
from scrapy.http import Response

if TYPE_CHECKING:
    from dedup_middleware.deduplicator import Deduplication
    from dedup_middleware.index.dropped_items import DroppedItem
    from dedup_middleware.plugin.extension import DedupExtension
    from dedup_middleware.visit import Visit


class Entry(NamedTuple):
    """A page on its way, and the deduplication in which it ends, though another one may have begun since."""

    deduplication: Deduplication
    visit: Visit
    released: DroppedItem | None = None
    """The dropped item, of an item that is released."""


class Passing(NamedTuple):
    """An item between the spider middleware and the pipelines."""

    item: Any
    """Kept, for it is known by its ``id()``: items are often not hashable."""
    entry: Entry
    request: bytes | None
    """The identity of its request if the item is to be judged as if it were a page; ``None`` if it is released."""


#: The visit of the item that is in the pipelines. Scrapy runs the pipelines on an item and sends the signal of their
#: outcome in one context; the signal alone does not show it, for a pipeline may return another object.
item_entry: ContextVar[Entry | None] = ContextVar("item_entry", default=None)
#: The type with which the item came to the first pipeline.
item_type: ContextVar[type | None] = ContextVar("item_type", default=None)


class ItemSignals:
    """Receives the signal of every item that leaves the pipelines, one way or the other."""

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension
        connect = extension.crawler.signals.connect
        connect(self.scraped, signals.item_scraped)
        connect(self.dropped, signals.item_dropped)
        connect(self.failed, signals.item_error)

    def scraped(self, item: Any, response: Response | None) -> None:
        if self._extension.deduplication is None:
            return
        self._extension.count("items/delivered")
        taken = self._extension.feeds.took(item, item_type.get())
        item_type.set(None)
        if taken is None:
            self.failed(response)
        elif (entry := self._entry(response)) is not None:
            entry.deduplication.item_left(entry.visit, taken)
            self._forget(entry)

    def dropped(self, response: Response | None) -> None:
        if (entry := self._entry(response)) is not None:
            entry.deduplication.item_dropped(entry.visit)
            self._forget(entry)

    def failed(self, response: Response | None) -> None:
        if (entry := self._entry(response)) is not None:
            entry.deduplication.item_failed(entry.visit)

    @staticmethod
    def _forget(entry: Entry) -> None:
        if entry.released is not None:
            entry.deduplication.released_item_left(entry.released)

    def _entry(self, response: object) -> Entry | None:
        """Return the visit that the item of a signal belongs to: its own, or that of its page."""
        entry = item_entry.get()
        if entry is not None:
            item_entry.set(None)
            return entry
        # The response of an item from an errback is a Failure, and of one from start() None: neither is a visit.
        return self._extension.visits.get(response) if isinstance(response, Response) else None
