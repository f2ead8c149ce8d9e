"""Keeps or drops items: those of pages in spider middlewares, those that are checked as pages in a pipeline.

Also lets the links of duplicates be followed last, and formats the line that is logged for a dropped item.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.exceptions import DropItem
from scrapy.logformatter import LogFormatter
from scrapy.pipelines import ItemPipelineManager
from scrapy.utils.log import logformatter_adapter

from dedup_middleware.common.budget import Budget, UncheckableError, page_budget
from dedup_middleware.common.urls import item_identity, request_identity, without_secrets
from dedup_middleware.items.item_values import item_texts
from dedup_middleware.model import Action
from dedup_middleware.plugin import messages
from dedup_middleware.plugin.extension import Component
from dedup_middleware.plugin.item_flow import RELEASE_URL, Wait, item_entry, item_type
from dedup_middleware.plugin.shared_state import Entry, Passing
from dedup_middleware.reasons import Reason
from dedup_middleware.text.clauses import one_line
from dedup_middleware.visits.states import Output
from dedup_middleware.visits.visit import Fate, Visit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from scrapy import Spider
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure

    from dedup_middleware.driver.deduplicator import Deduplication
    from dedup_middleware.plugin.extension import DedupExtension
    from dedup_middleware.visits.visit import Decision

# Items of a page that wait for its original; with more, its callback waits too. As many as CONCURRENT_ITEMS.
_MOST_WAITING = 100
#: Dropped items are logged where Scrapy itself logs them.
scraper_logger = logging.getLogger("scrapy.core.scraper")


class DedupSpiderMiddleware(Component):
    """The outermost spider middleware: the last that gets the output of a callback.

    Released items come from here, too: they have passed the other spider middlewares before.
    """

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        # As the output of a request: Scrapy never ends a crawl that gets a SIGTERM while an item of its start is in the
        # pipelines.
        self._extension.releases.idle()
        async for output in start:
            yield output

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        if response.url == RELEASE_URL:
            self._extension.releases.uncount(response)
            async for item in self._extension.releases.items():
                yield item
        entry = self._extension.visits.get(response)
        # An errback has given what comes without the callback, or in its place.
        if entry is None or entry.visit.items.output is not Output.FLOWS:
            async for output in result:
                yield _marked(self._extension, response, output)
            return
        page = _PageOutput(self._extension, entry, response)
        try:
            async for output in result:
                for passed in await page.take(output):
                    yield passed
            for passed in await page.end():
                yield passed
        except Exception:
            for passed in await page.end(is_complete=False):
                yield passed
            raise
        finally:
            # Abandoned: nothing can go on any more.
            await page.end(is_complete=False)


class DedupCallbackMiddleware(Component):
    """The innermost spider middleware: here it is certain that the callback gets the page.

    The output of an errback, or of a middleware that recovers, is not the page's: it is kept, and the page owns
    nothing.
    """

    def process_spider_input(self, response: Response) -> None:
        entry = self._extension.visits.get(response)
        if entry is None:
            return
        try:
            entry.deduplication.enter(entry.visit)
        except Exception as error:  # noqa: BLE001 - else the errback would get the page, and not the callback
            self._extension.defect(error, response, entry)
            del self._extension.visits[response]

    def process_spider_exception(self, response: Response, exception: Exception) -> None:  # noqa: ARG002 - Scrapy's hook
        """Void the page's claim, whether or not another middleware recovers."""
        entry = self._extension.visits.get(response)
        if entry is None or entry.visit.items.output is not Output.FLOWS:
            return
        try:
            entry.deduplication.callback_failed(entry.visit)
            if not entry.visit.items.is_passed_on:
                entry.deduplication.end(entry.visit, is_complete=False)
        except Exception as error:  # noqa: BLE001 - else Scrapy would take it for the spider's exception
            self._extension.defect(error, response)


def _marked(extension: DedupExtension, response: Response, output: Any) -> Any:
    """Return *output* of a callback or errback; a request with its mark, an item with its page, where these count."""
    if extension.requests is not None and isinstance(output, Request):
        extension.requests.mark(response, output)
    elif extension.deduplication is not None and extension.config.key and not isinstance(output, (Request, type(None))):
        # An item with a key is judged by it wherever it came from.
        entry = extension.visits.get(response) or Entry(extension.deduplication, _unread(extension, response.url))
        extension.passing[id(output)] = Passing(output, entry, b"")
    return output


def _unread(extension: DedupExtension, url: str) -> Visit:
    """Return the visit of the page at *url*, empty for items of ``start()``, which is not read."""
    config = extension.config
    visit = Visit.unchecked(without_secrets(url, redact=config.redact_query), Reason.OTHER_CONTENT_TYPE, config.action)
    visit.unchanged = config.unchanged
    return visit


class _PageOutput:
    """The output of one page's callback, on its way out."""

    def __init__(self, extension: DedupExtension, entry: Entry, response: Response) -> None:
        self._extension, self._entry, self._response = extension, entry, response
        self._deduplication, self._visit = entry.deduplication, entry.visit
        self._links: list[str] = []
        self._wait: Wait | None = None
        # Items that wait, and those behind them.
        self._waiting: deque[Any] = deque()
        self._visit.items.is_passed_on = True

    async def take(self, output: Any) -> list[Any]:
        """Return what goes on now that the callback has given *output*."""
        if output is None:
            return []
        if isinstance(output, Request):
            self._links.append(output.url)
            _marked(self._extension, self._response, output)
            self._follow_last_if_duplicate(output)
            return [output]
        if self._wait is None:
            try:
                found = self._extension.wait.process(self._entry, output)
            except Exception as error:  # noqa: BLE001 - it must not take the item, nor the rest of the output
                found = self._distrusted(error, output)
            if not isinstance(found, Wait):
                return await self._carried_out(found)
            self._wait = found
        # The links of the page do not wait with its items.
        self._waiting.append(output)
        return await self._decided(self._wait) if len(self._waiting) == _MOST_WAITING else []

    async def _decided(self, wait: Wait, *, is_complete: bool = True) -> list[Any]:
        """Return what goes on of the items that *wait*, in their order; the wait ends with them."""
        passed = []
        try:
            while self._waiting:
                item = self._waiting[0]
                try:
                    if is_complete:
                        decisions = await wait.decisions(item)
                    else:
                        decisions = self._deduplication.process(self._visit, item, may_wait=False)
                except Exception as error:  # noqa: BLE001 - as in `take`
                    decisions = self._distrusted(error, item)
                self._waiting.popleft()
                passed += await self._carried_out(decisions)
        finally:
            wait.end()
            self._wait = None
        return passed

    def _follow_last_if_duplicate(self, request: Request) -> None:
        try:
            if self._visit.is_duplicate and self._visit.action is not Action.DRY_RUN:
                request.priority += self._extension.config.priority_adjust
                self._extension.count("outlinks_last")
        except Exception as error:  # noqa: BLE001 - as in `take`
            self._distrusted(error)

    async def end(self, *, is_complete: bool = True) -> list[Any]:
        """Return what goes on now that the output has ended; nothing if it had ended before."""
        if self._visit.items.output is Output.ENDED:
            return []
        passed = [] if self._wait is None else await self._decided(self._wait, is_complete=is_complete)
        try:
            decisions = self._deduplication.end(self._visit, is_complete=is_complete)
            if is_complete and self._extension.requests is not None:
                self._extension.requests.visited(self._visit, self._response, self._links)
        except Exception as error:  # noqa: BLE001 - as in `take`
            decisions = self._distrusted(error)
            self._visit.items.output = Output.ENDED
        return passed + await self._carried_out(decisions)

    def _distrusted(self, error: Exception, *items: Any) -> list[Decision]:
        """Keep the rest of the output after a plugin bug."""
        self._extension.defect(error, self._response, self._entry)
        return self._visit.items.distrust(*items)

    async def _carried_out(self, decisions: Iterable[Decision]) -> list[Any]:
        """Drop what is to be dropped; return what goes on."""
        kept, request, has_keys = [], self._response.request, bool(self._extension.config.key)
        for fate, item in decisions:
            if fate is Fate.DROP:
                await self._drop(item)
            elif fate in {Fate.KEEP, Fate.CHECK}:
                kept.append(item)
                identity = b""
                if fate is Fate.CHECK and request is not None:
                    identity = request_identity(self._extension.crawler.request_fingerprinter.fingerprint(request))
                # The pipeline is to know the page of each item that may have a key.
                if identity or has_keys:
                    self._extension.passing[id(item)] = Passing(item, self._entry, identity)
        return kept

    async def _drop(self, item: Any) -> None:
        """Drop *item* as Scrapy does when a pipeline raises DropItem: its log line, its signal, its stats."""
        crawler, spider = self._extension.crawler, self._extension.crawler.spider
        assert spider is not None
        exception = DuplicateItem(self._visit)
        try:
            line = crawler.logformatter.dropped(item, exception, self._response, spider)
        except Exception:  # a formatter of the project's own must not cost an item its signal
            scraper_logger.exception("dedup: LOG_FORMATTER cannot format a dropped item", extra={"spider": spider})
            line = None
        if line is not None:
            scraper_logger.log(*logformatter_adapter(line), extra={"spider": spider, "item": item})
        await crawler.signals.send_catch_log_async(
            signal=signals.item_dropped, item=item, response=self._response, spider=spider, exception=exception
        )


class DedupItemPipeline(Component):
    """Checks items that have a key, and the item fields named in ``DEDUP_ITEM_FIELDS``, as if the item were a page.

    Without a key, only items of responses that cannot be checked are checked here: JSON, XML, feeds, pages with too
    little text. Items of one request are never compared with one another, and an item that comes again from its own
    request, unchanged, is the same one.
    """

    def __init__(self, extension: DedupExtension | None = None) -> None:
        """Pass items on where an ``ITEM_PROCESSOR`` of the project's own gives no *extension*."""
        self._is_alone = extension is None
        if extension is not None:
            super().__init__(extension)

    def process_item(self, item: Any, spider: Spider | None = None) -> Any:  # noqa: ARG002 - an older processor gives it
        """Return *item*, or raise `DuplicateItem`; where it waits for its original, return a coroutine that does so.

        An ``ITEM_PROCESSOR`` of the project's own may hand what it gets to the next pipeline, without awaiting it.
        """
        if self._is_alone:
            return item
        # All items come here, also those of errbacks and of start().
        passing, deduplication = self._extension.passing.pop(id(item), None), self._extension.deduplication
        item_entry.set(None if passing is None or passing.request is not None else passing.entry)
        item_type.set(type(item))
        if deduplication is None or (not self._extension.config.key if passing is None else passing.request is None):
            return item
        page = _unread(self._extension, "") if passing is None else passing.entry.visit
        entry = None
        try:
            visit = self._examined(deduplication, item, page, passing and passing.request)
            if visit is None:
                return item
            visit.claim.dropped_before = page.claim.dropped_before
            entry = Entry(deduplication, visit)
            deduplication.enter(visit)
            is_awaited = type(self._extension.crawler.engine.scraper.itemproc) is ItemPipelineManager
            found = self._extension.wait.process(entry, item, may_wait=is_awaited)
            if isinstance(found, Wait):
                return self._after_original(found, entry, item)
            return self._carried_out(entry, item, found)
        except DuplicateItem:
            raise
        except Exception as error:  # noqa: BLE001 - a plugin bug must not take the item
            self._extension.defect(error, page.url, entry)
            return item

    async def _after_original(self, wait: Wait, entry: Entry, item: Any) -> Any:
        try:
            decisions = await wait.last_decisions(item)
            return self._carried_out(entry, item, decisions)
        except DuplicateItem:
            raise
        except Exception as error:  # noqa: BLE001 - as in `process_item`
            self._extension.defect(error, entry.visit.url, entry)
            return item

    @staticmethod
    def _carried_out(entry: Entry, item: Any, decisions: list[Decision]) -> Any:
        # Before the output ends: the item is still to leave the pipelines.
        item_entry.set(entry)
        decisions += entry.deduplication.end(entry.visit)
        if any(fate is Fate.DROP for fate, _ in decisions):
            # That it is dropped says nothing of its page, nor of what the store has of it.
            item_entry.set(entry._replace(visit=Visit.unchecked(entry.visit.url, "", entry.visit.action)))
            raise DuplicateItem(entry.visit)
        return item

    def _examined(
        self, deduplication: Deduplication, item: Any, page_visit: Visit, request: bytes | None
    ) -> Visit | None:
        """Return the visit of *item* of the page of *page_visit*, checked; ``None`` if it is not checked by itself."""
        visit = deduplication.verdicts.check_keyed(page_visit, item)
        if visit is not None or not request:
            return visit
        url, action = page_visit.url, page_visit.action
        config = self._extension.config
        deduplication.item_check.note_fields(item)
        try:
            texts = item_texts(item, config.item_fields)
            if sum(map(len, texts)) > config.max_bytes:
                return Visit.unchecked(url, Reason.TOO_LARGE, action, is_item=True)
            identities = (item_identity(request, texts),)
            page = deduplication.reader.paragraphs(url, identities, texts, source=request, budget=page_budget())
        except UncheckableError as error:
            return Visit.unchecked(url, error.reason, action, is_item=True)
        visit = deduplication.verdicts.check(page, action, Budget(), is_exempt=page_visit.is_exempt)
        visit.is_item = True
        return visit


class DuplicateItem(DropItem):
    """An item was dropped because it or its page repeats what is stored, or because it was released just now."""

    def __init__(self, visit: Visit) -> None:
        """Name the page or the item of *visit*, and its original; without one, it is unchanged, or was released."""
        super().__init__(one_line(messages.dropped(visit)))


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
