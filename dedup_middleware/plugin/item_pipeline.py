"""Checks the items of pages that are not HTML, and logs one line for each dropped item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.exceptions import DropItem
from scrapy.logformatter import LogFormatter

from dedup_middleware.budget import Budget, UncheckableError, page_budget
from dedup_middleware.checks.items import item_texts
from dedup_middleware.model import Action, Witness
from dedup_middleware.plugin.extension import extension_of
from dedup_middleware.plugin.items import Entry, item_entry, item_type
from dedup_middleware.reasons import Reason
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import item_identity
from dedup_middleware.visit import Visit

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure
    from typing_extensions import Self

    from dedup_middleware.deduplicator import Deduplication
    from dedup_middleware.model import Page
    from dedup_middleware.plugin.extension import DedupExtension


class DedupItemPipeline:
    """Check the text and short values of the item fields named in ``DEDUP_ITEM_FIELDS``, as if the item were a page.

    Only items of responses that cannot be checked are checked here: JSON, XML, feeds, pages with too little text. Items
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
            await self._check(deduplication, item, visit)
        except DropItem:
            raise
        except Exception as error:  # noqa: BLE001 - a defect of ours must not take the item
            self._extension.defect(error, page_visit.url, visit)
        return item

    async def _check(self, deduplication: Deduplication, item: Any, visit: Visit) -> None:
        """Keep the item, or raise DropItem."""
        deduplication.enter(visit)
        await self._extension.wait.settle(deduplication, visit)
        deduplication.keep_if_feed_lacks_it(visit, item)
        if visit.is_duplicate:
            # The response shows nothing that is not in its items, and their fields are named: each value counts.
            deduplication.check_item(visit, item, bool)
            if visit.objection is not None:
                deduplication.keep_page(visit, visit.objection, Witness.ITEM)
        if visit.is_duplicate and visit.action is Action.DROP and deduplication.drop(visit, item):
            deduplication.count_drop(visit)
            exception = DuplicateItem(visit)
            deduplication.finish(visit)
            raise exception
        deduplication.keep_item(visit, item, repeats=visit.is_duplicate)
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
        except UncheckableError as error:
            return Visit.unchecked(page_visit.url, error.reason, action, threshold)
        return deduplication.check(page, action, threshold, Budget(), keep=page_visit.keep)

    def _page(self, deduplication: Deduplication, url: str, identity: bytes, texts: list[str], request: bytes) -> Page:
        """Return the item as a page; `UncheckableError` if it costs more than it may."""
        config = self._extension.config
        if sum(map(len, texts)) > config.max_bytes:
            raise UncheckableError(Reason.TOO_LARGE)
        return deduplication.reader.paragraphs(url, (identity,), texts, source=request, budget=page_budget())


class DuplicateItem(DropItem):
    """An item was dropped because its page repeats a stored page."""

    def __init__(self, visit: Visit) -> None:
        """Name the page of *visit*, a duplicate, and its original."""
        match = visit.verdict.match
        assert match is not None
        super().__init__(one_line(f"{visit.url} repeats {match.original.url} (score {match.score:.2f})"))


class DropLogFormatter(LogFormatter):
    """Scrapy's log lines; a duplicate's ``Dropped:`` line has no dump of the item behind it."""

    def dropped(
        self, item: Any, exception: BaseException, response: Response | Failure | None, spider: Spider
    ) -> LogFormatterResult:
        """Return Scrapy's result, for a duplicate without the item."""
        result = super().dropped(item, exception, response, spider)
        if isinstance(exception, DuplicateItem):
            result["msg"] = "Dropped: %(exception)s"
        return result
