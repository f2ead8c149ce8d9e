"""Checks the items of pages that are not HTML, and logs one line for each dropped item."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import DropItem
from scrapy.logformatter import LogFormatter

from dedup_middleware.budget import Budget, UncheckableError, page_budget
from dedup_middleware.checks.items import item_texts
from dedup_middleware.model import Action
from dedup_middleware.plugin.extension import Component
from dedup_middleware.plugin.items import Entry, item_entry, item_type
from dedup_middleware.reasons import Reason
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import item_identity
from dedup_middleware.visit import Visit

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure

    from dedup_middleware.deduplicator import Deduplication


class DedupItemPipeline(Component):
    """Checks the text and short values of the item fields named in ``DEDUP_ITEM_FIELDS``, as if the item were a page.

    Only items of responses that cannot be checked are checked here: JSON, XML, feeds, pages with too little text. Items
    of one request are never compared with one another, and an item that comes again from its own request, unchanged, is
    the same one.
    """

    async def process_item(self, item: Any) -> Any:
        # All items come here, also those of errbacks and of start().
        passing, deduplication = self._extension.passing.pop(id(item), None), self._extension.deduplication
        item_entry.set(None if passing is None or passing.request is not None else passing.entry)
        item_type.set(type(item))
        if deduplication is None or passing is None or passing.request is None:
            return item
        page, entry = passing.entry.visit, None
        try:
            visit = self._examined(deduplication, item, page, passing.request)
            entry = Entry(deduplication, visit)
            await self._keep_or_drop(entry, item)
        except DropItem:
            raise
        except Exception as error:  # noqa: BLE001 - a defect of ours must not take the item
            self._extension.defect(error, page.url, entry)
        return item

    def _examined(self, deduplication: Deduplication, item: Any, page_visit: Visit, request: bytes) -> Visit:
        """Return the visit of *item* of the page of *page_visit*, checked."""
        url, action, threshold = page_visit.url, page_visit.action, page_visit.threshold
        config = self._extension.config
        try:
            texts = item_texts(item, config.item_fields)
            if sum(map(len, texts)) > config.max_bytes:
                return Visit.unchecked(url, Reason.TOO_LARGE, action, threshold)
            identities = (item_identity(request, texts),)
            page = deduplication.reader.paragraphs(url, identities, texts, source=request, budget=page_budget())
        except UncheckableError as error:
            return Visit.unchecked(url, error.reason, action, threshold)
        return deduplication.check(page, action, threshold, Budget(), keep=page_visit.keep)

    async def _keep_or_drop(self, entry: Entry, item: Any) -> None:
        """Keep the item, or raise DropItem."""
        deduplication, visit, _ = entry
        deduplication.enter(visit)
        await self._extension.wait.settle(deduplication, visit)
        if visit.is_duplicate:
            # The response shows nothing that is not in its items, and their fields are named: each value counts.
            deduplication.check_item(visit, item, bool)
            deduplication.keep_for_its_item(visit)
        if visit.action is Action.DROP and deduplication.drop(visit, item):
            deduplication.count_drop(visit)
            exception = DuplicateItem(visit)
            deduplication.finish(visit)
            raise exception
        deduplication.keep_item(visit, item, repeats=visit.is_duplicate)
        # Before the callback ends: the item is still to leave the pipelines.
        item_entry.set(entry)
        deduplication.end_callback(visit, several=False)
        visit.items_would_drop = int(visit.is_duplicate and visit.action is Action.DRY_RUN)
        deduplication.finish(visit)


class DuplicateItem(DropItem):
    """An item was dropped because its page repeats a stored page."""

    def __init__(self, visit: Visit) -> None:
        """Name the page of *visit*, a duplicate, and its original."""
        match = visit.verdict.match
        assert match is not None
        super().__init__(one_line(f"{visit.url} repeats {match.original.url} (score {match.score:.2f})"))


class DropLogFormatter(LogFormatter):
    """Scrapy's log lines; the ``Dropped:`` line of a duplicate has no dump of the item behind it.

    Its level is ``DEFAULT_DROPITEM_LOG_LEVEL``, or INFO where a project leaves that unset: Scrapy's own WARNING is for
    items that a pipeline refuses, and a duplicate is ordinary.
    """

    def dropped(
        self, item: Any, exception: BaseException, response: Response | Failure | None, spider: Spider
    ) -> LogFormatterResult:
        """Return Scrapy's result, for a duplicate without the item."""
        result = super().dropped(item, exception, response, spider)
        if isinstance(exception, DuplicateItem):
            result["msg"] = "Dropped: %(exception)s"
            if not spider.crawler.settings.getpriority("DEFAULT_DROPITEM_LOG_LEVEL"):
                result["level"] = logging.INFO
        return result
