"""Handles items outside of the spider middleware: of pages that are not HTML, in pipelines, and released ones."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy import Request, signals
from scrapy.exceptions import DropItem
from scrapy.http import Response
from scrapy.logformatter import LogFormatter

from dedup_middleware.budget import Budget, UnjudgeableError
from dedup_middleware.checks.items import item_texts
from dedup_middleware.model import Action, Witness
from dedup_middleware.plugin.extension import extension_of
from dedup_middleware.reasons import Reason
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import item_identity
from dedup_middleware.visit import Visit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure
    from typing_extensions import Self

    from dedup_middleware.deduplicator import Deduplication
    from dedup_middleware.index.dropped_items import DroppedItem
    from dedup_middleware.model import Page
    from dedup_middleware.plugin.extension import DedupExtension


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


#: A sentence in a drop line is cut here: the line is to fit a wide terminal.
_SENTENCE_CHARACTERS = 60


class DuplicateItem(DropItem):
    """An item was dropped because a stored page already says what it says."""

    def __init__(self, deduplication: Deduplication, visit: Visit, log_level: str) -> None:
        """Name the page of the duplicate *visit*, its original, and one of the repeated sentences."""
        match = visit.verdict.match
        assert match is not None
        message = f"{visit.url} repeats {match.owner.url}: {match.score:.0%} of its text"
        if evidence := deduplication.recorder.evidence(visit):
            message += f', such as "{one_line(max(evidence, key=len), _SENTENCE_CHARACTERS)}"'
        super().__init__(one_line(message), log_level=log_level)


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


logger = logging.getLogger(__name__)

#: The URL of the request in whose output items are released.
URL = "data:,dedup-release"
#: Before what the spider has in the queue.
PRIORITY = 1_000_000


class Releases:
    """The items that one crawl releases."""

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension
        self._is_requested = False
        extension.crawler.signals.connect(self.idle, signals.spider_idle)

    async def items(self) -> AsyncIterator[Any]:
        """Yield the items that are to be released now."""
        deduplication, releaser = self._extension.deduplication, self._extension.releaser
        self._is_requested = False
        # A dry run changes nothing that another crawl sees.
        if deduplication is None or releaser is None or self._extension.config.action is Action.DRY_RUN:
            return
        count = 0
        for dropped, by_person in releaser.take():
            released: list[Any] = []
            try:
                visit = releaser.release(dropped, by_person=by_person)
                await self._extension.wait.settle(deduplication, visit)
                released = releaser.go_on(visit)
                for item, each in zip(released, dropped, strict=False):
                    entry = Entry(deduplication, visit, each)
                    self._extension.passing[id(item)] = Passing(item, entry, request=None)
            except Exception as error:  # noqa: BLE001 - a defect of ours: the items stay, and the next crawl tries again
                self._extension.defect(error, dropped[0].url)
            for item in released:
                count += 1
                yield item
        if count:
            were = "items were" if count != 1 else "item was"
            why = "the original was lost, its text is a template, or a person has allowed the page"
            extra = {"spider": self._extension.crawler.spider}
            logger.info("dedup: %d dropped %s released: %s", count, were, why, extra=extra)

    def request(self) -> None:
        """Release, soon, what is to be released by now."""
        if not self._is_requested:
            self._is_requested = True
            meta = {"dont_cache": True, "allow_offsite": True, "dont_redirect": True}
            request = Request(URL, callback=_no_output, dont_filter=True, meta=meta, priority=PRIORITY)
            self._extension.crawler.engine.crawl(request)

    def idle(self) -> None:
        """Look for what other processes have left, in a store that they share."""
        if self._extension.deduplication is None or self._extension.releaser is None or self._is_requested:
            return
        if self._extension.releaser.has_any():
            self.request()

    @staticmethod
    def is_of(response: Response) -> bool:
        """Return whether *response* is that of :meth:`request`."""
        return response.url == URL


def _no_output(response: Response) -> None:
    """Give nothing: the items come from the spider middleware."""
