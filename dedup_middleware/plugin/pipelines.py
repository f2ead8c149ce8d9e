"""Item-level dedup for spiders whose pages are no HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.exceptions import DropItem

from dedup_middleware.budget import Budget, UnjudgeableError
from dedup_middleware.checks.item_values import item_texts
from dedup_middleware.identity import item_identity
from dedup_middleware.model import Action, Witness
from dedup_middleware.plugin.extension import extension_of
from dedup_middleware.plugin.item_signals import Entry, item_entry, item_type
from dedup_middleware.plugin.logformatter import DuplicateItem
from dedup_middleware.reasons import Reason
from dedup_middleware.visit import Visit

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from typing_extensions import Self

    from dedup_middleware.deduplicator import Deduplication
    from dedup_middleware.model import Page
    from dedup_middleware.plugin.extension import DedupExtension


class DedupItemPipeline:
    """Judge the text and short values of the item fields named in ``DEDUP_ITEM_FIELDS``, as if the item were a page.

    Only items of responses that cannot be judged are judged here: JSON, XML, feeds, pages with too little text. Items
    of one request are never compared with one another, and an item that comes again from its own request, unchanged, is
    the same one.
    """

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(extension_of(crawler))

    async def process_item(self, item: Any) -> Any:
        # Here come all items: those of errbacks and of start() too.
        passing = self._extension.passing.pop(id(item), None)
        item_entry.set(None if passing is None or passing.request is not None else passing.entry)
        item_type.set(type(item))
        deduplication = self._extension.deduplication
        if deduplication is None or passing is None or passing.request is None:
            return item
        page_visit, visit = passing.entry.visit, None
        try:
            visit = self._examine(deduplication, item, page_visit, passing.request)
            await self._judge(deduplication, item, visit)
        except DropItem:
            raise
        except Exception as error:  # noqa: BLE001 - a defect of ours must not take the item
            self._extension.defect(error, page_visit.url, visit)
        return item

    async def _judge(self, deduplication: Deduplication, item: Any, visit: Visit) -> None:
        """Keep the item, or raise DropItem."""
        deduplication.enter(visit)
        await self._extension.wait.settle(deduplication, visit)
        deduplication.keep_if_feed_lacks_it(visit, item)
        if visit.is_duplicate:
            # The response shows nothing that is not in its items, and their fields are named: each value counts.
            deduplication.check_item(visit, item, bool)
            if visit.objection is not None:
                deduplication.keep(visit, visit.objection, Witness.ITEM)
        if visit.is_duplicate and visit.action is Action.DROP and deduplication.drop(visit, item):
            deduplication.count_drop(visit)
            exception = DuplicateItem(deduplication, visit, self._extension.config.log_level)
            deduplication.finish(visit)
            raise exception
        deduplication.deliver(visit, item, repeats=visit.is_duplicate)
        # Before the callback ends: the item is still to leave the pipelines.
        item_entry.set(Entry(deduplication, visit))
        deduplication.end_callback(visit, several=False)
        if visit.is_duplicate and visit.action is Action.DRY_RUN:
            visit.items_would_drop = 1
        deduplication.finish(visit)

    def _examine(self, deduplication: Deduplication, item: Any, page_visit: Visit, request: bytes) -> Visit:
        action, threshold = page_visit.action, page_visit.threshold
        try:
            texts = item_texts(item, self._extension.config.item_fields)
            page = self._page(deduplication, page_visit.url, item_identity(request, texts), texts, request)
        except UnjudgeableError as error:
            return Visit.unjudged(page_visit.url, error.reason, action, threshold)
        return deduplication.judge(page, action, threshold, Budget(), keep=page_visit.keep)

    def _page(self, deduplication: Deduplication, url: str, identity: bytes, texts: list[str], request: bytes) -> Page:
        """Return the item as a page; `UnjudgeableError` if it costs more than it may."""
        config = self._extension.config
        if sum(map(len, texts)) > config.max_bytes:
            raise UnjudgeableError(Reason.TOO_LARGE)
        return deduplication.reader.paragraphs(url, (identity,), texts, source=request, budget=config.budget())
