"""Keeps or drops items: those of pages in spider middlewares, those that are checked as pages in a pipeline.

Also lets the links of duplicates be followed last, and formats the line that is logged for a dropped item.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.exceptions import DropItem
from scrapy.logformatter import LogFormatter
from scrapy.utils.log import logformatter_adapter

from dedup_middleware.budget import Budget, UncheckableError, page_budget
from dedup_middleware.item_values import item_texts
from dedup_middleware.model import Action, VerdictKind
from dedup_middleware.plugin.extension import Component
from dedup_middleware.plugin.items import RELEASE_URL, Entry, Passing, item_entry, item_type
from dedup_middleware.plugin.requests import marked
from dedup_middleware.reasons import Reason
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import item_identity, request_identity
from dedup_middleware.visit import Stage, Visit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from scrapy import Spider
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure

    from dedup_middleware.deduplicator import Deduplication
    from dedup_middleware.plugin.extension import DedupExtension

#: Dropped items are logged where Scrapy itself logs them.
scraper_logger = logging.getLogger("scrapy.core.scraper")


class DedupSpiderMiddleware(Component):
    """The outermost spider middleware: the last that gets the output of a callback.

    Released items come from here, too: they have passed the other spider middlewares before.
    """

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for item in self._extension.releases.items():
            yield item
        async for output in start:
            yield output

    def process_start_requests(self, start: Iterable[Any], spider: Spider) -> Iterator[Any]:  # noqa: ARG002 - Scrapy's
        """Stand in for `process_start` in Scrapy 2.15 where another middleware has only this method.

        Released items may have to wait, which a plain generator cannot: they come as the output of a request.
        """
        self._extension.releases.idle()
        yield from start

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        if response.url == RELEASE_URL:
            async for item in self._extension.releases.items():
                yield item
        entry = self._extension.visits.get(response)
        if entry is None or entry.visit.stage is Stage.CHECKED:
            async for output in result:
                yield marked(response, output)
            return
        page_output = _PageOutput(self._extension, entry, response)
        try:
            async for output in result:
                for passed in await page_output.take(output):
                    yield passed
            for passed in await page_output.end(finished=True):
                yield passed
        except Exception:
            for passed in await page_output.end():
                yield passed
            raise
        finally:
            await page_output.close()


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
        if entry is None or entry.visit.stage is Stage.CHECKED:
            return
        try:
            entry.deduplication.callback_failed(entry.visit)
            if not entry.visit.has_output:
                entry.deduplication.finish(entry.visit)
        except Exception as error:  # noqa: BLE001 - else Scrapy would take it for the spider's exception
            self._extension.defect(error, response)


class _PageOutput:
    """The output of one page's callback, on its way out.

    Each item of a duplicate is checked: it is dropped if the original's items contain what it contains, and else kept.
    Items without text wait until the end: they are dropped unless an item of the page was kept. A first item that
    is to be kept waits, too: if it is the only one, its page becomes an original.
    """

    def __init__(self, extension: DedupExtension, entry: Entry, response: Response) -> None:
        self._extension = extension
        self._entry = entry
        self._deduplication, self._visit = entry.deduplication, entry.visit
        self._response = response
        self._links: list[str] = []
        self._items = 0
        # Items without text, and a first item that is to be kept.
        self._waiting: list[Any] = []
        self._rejected: list[Any] = []
        self._any_kept = False
        self._ended = False
        self._is_sound = True
        self._visit.has_output = True

    async def take(self, output: Any) -> list[Any]:  # noqa: PLR0911 - an outcome each
        """Return what goes on now that the callback has given *output*."""
        visit = self._visit
        if output is None:
            return []
        if isinstance(output, Request):
            self._links.append(output.url)
            self._follow_last_if_duplicate(output)
            return [marked(self._response, output)]
        try:
            self._items += 1
            if self._items == 1 and visit.original_is_pending:
                await self._extension.wait.for_original(self._deduplication, visit)
            is_unchanged = visit.verdict.kind is VerdictKind.UNCHANGED
            if is_unchanged and self._is_sound and self._deduplication.drop_released(visit, output):
                await self._drop(output)
                return []
            if not self._is_sound or not visit.is_duplicate:
                return self._kept(output)
            may_drop = self._deduplication.check_item(visit, output)
            if may_drop is None and not self._rejected and not self._any_kept:
                self._waiting.append(output)
                return []
            if may_drop:
                return await self._repeated(output)
            if self._items == 1 and visit.is_duplicate:
                self._rejected.append(output)
                return []
        except Exception as error:  # noqa: BLE001 - it must not take the item, nor the rest of the output
            self._defect(error)
        return self._kept(output)

    def _follow_last_if_duplicate(self, request: Request) -> None:
        try:
            if self._visit.is_duplicate and self._visit.action is not Action.DRY_RUN:
                request.priority += self._extension.config.priority_adjust
                self._extension.count("outlinks_last")
        except Exception as error:  # noqa: BLE001 - as in `take`
            self._defect(error)

    async def _repeated(self, item: Any) -> list[Any]:
        """Drop *item* of a duplicate; return it if it goes on, because the action is another, or it is kept."""
        visit = self._visit
        try:
            if self._is_sound and self._deduplication.drop(visit, item):
                if visit.action is Action.DROP:
                    await self._drop(item)
                    return []
                visit.items_would_drop += visit.action is Action.DRY_RUN
                self._keep(item, repeats=True)
                return [item]
        except Exception as error:  # noqa: BLE001 - as in `take`
            self._defect(error)
        return self._kept(item)

    def _kept(self, *items: Any) -> list[Any]:
        """Return *items*, kept, and before them those that have waited."""
        kept = [*self._rejected, *self._waiting, *items]
        self._rejected, self._waiting, self._any_kept = [], [], True
        try:
            for item in kept:
                self._keep(item)
        except Exception as error:  # noqa: BLE001 - as in `take`
            self._defect(error)
        return kept

    async def end(self, *, finished: bool = False) -> list[Any]:
        """Return what goes on now that the callback has finished, or failed."""
        self._ended = finished
        if self._rejected:
            try:
                self._deduplication.overrule(self._visit, self._visit.item_rejection)
            except Exception as error:  # noqa: BLE001 - as in `take`
                self._defect(error)
            return self._kept()
        waiting, self._waiting = self._waiting, []
        passed = []
        for item in waiting:
            passed += await self._repeated(item)
        return passed

    async def close(self) -> None:
        """Count and record the page, whether its output ended, raised or was abandoned."""
        visit, deduplication = self._visit, self._deduplication
        for item in self._waiting:
            # The callback was abandoned: nothing can go on any more.
            await self._repeated(item)
        try:
            if self._ended:
                deduplication.end_callback(visit, several=self._items > 1)
            else:
                deduplication.void(visit)
            if visit.items_would_drop and not visit.is_duplicate:
                visit.items_would_drop = 0
            deduplication.finish(visit)
            if self._ended and self._extension.requests is not None:
                self._extension.requests.visited(visit, self._response, self._links)
        except Exception as error:  # noqa: BLE001 - as in `take`
            self._defect(error)

    def _defect(self, error: Exception) -> None:
        """Keep the rest of the output after a plugin bug."""
        self._is_sound = False
        self._extension.defect(error, self._response, self._entry)

    def _keep(self, item: Any, *, repeats: bool = False) -> None:
        visit, extension, request = self._visit, self._extension, self._response.request
        if extension.config.item_fields and visit.needs_item_check and request is not None:
            identity = request_identity(extension.crawler.request_fingerprinter.fingerprint(request))
            extension.passing[id(item)] = Passing(item, self._entry, identity)
            visit.items_kept += 1
            visit.items_are_checked = True
        else:
            self._deduplication.keep_item(visit, item, repeats=repeats)

    async def _drop(self, item: Any) -> None:
        """Drop *item* as Scrapy does when a pipeline raises DropItem: its log line, its signal, its stats."""
        crawler, spider = self._extension.crawler, self._extension.crawler.spider
        assert spider is not None
        self._deduplication.count_drop(self._visit)
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
    """Checks the text and short values of the item fields named in ``DEDUP_ITEM_FIELDS``, as if the item were a page.

    Only items of responses that cannot be checked are checked here: JSON, XML, feeds, pages with too little text. Items
    of one request are never compared with one another, and an item that comes again from its own request, unchanged, is
    the same one.
    """

    def __init__(self, extension: DedupExtension | None = None) -> None:
        """Pass items on where an ``ITEM_PROCESSOR`` of the project's own gives no *extension*."""
        self._is_alone = extension is None
        if extension is not None:
            super().__init__(extension)

    async def process_item(self, item: Any) -> Any:
        if self._is_alone:
            return item
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
        except Exception as error:  # noqa: BLE001 - a plugin bug must not take the item
            self._extension.defect(error, page.url, entry)
        return item

    def _examined(self, deduplication: Deduplication, item: Any, page_visit: Visit, request: bytes) -> Visit:
        """Return the visit of *item* of the page of *page_visit*, checked."""
        url, action = page_visit.url, page_visit.action
        config = self._extension.config
        try:
            texts = item_texts(item, config.item_fields)
            if sum(map(len, texts)) > config.max_bytes:
                return Visit.unchecked(url, Reason.TOO_LARGE, action)
            identities = (item_identity(request, texts),)
            page = deduplication.reader.paragraphs(url, identities, texts, source=request, budget=page_budget())
        except UncheckableError as error:
            return Visit.unchecked(url, error.reason, action)
        return deduplication.check(page, action, Budget(), is_exempt=page_visit.is_exempt)

    async def _keep_or_drop(self, entry: Entry, item: Any) -> None:
        """Keep the item, or raise DropItem."""
        deduplication, visit, _ = entry
        deduplication.enter(visit)
        await self._extension.wait.for_original(deduplication, visit)
        if visit.is_duplicate:
            deduplication.check_item(visit, item)
            deduplication.overrule(visit, visit.item_rejection)
        repeats = deduplication.drop(visit, item)
        if repeats and visit.action is Action.DROP:
            deduplication.count_drop(visit)
            exception = DuplicateItem(visit)
            deduplication.finish(visit)
            raise exception
        deduplication.keep_item(visit, item, repeats=repeats)
        # Before the callback ends: the item is still to leave the pipelines.
        item_entry.set(entry)
        deduplication.end_callback(visit, several=False)
        visit.items_would_drop = int(repeats and visit.action is Action.DRY_RUN)
        deduplication.finish(visit)


class DuplicateItem(DropItem):
    """An item was dropped because its page repeats a stored page, or because it was released just now."""

    def __init__(self, visit: Visit) -> None:
        """Name the page of *visit* and its original; without one, the item was released in this crawl."""
        match = visit.verdict.match
        what = (
            "repeats its released item" if match is None else f"repeats {match.original.url} (score {match.score:.2f})"
        )
        super().__init__(one_line(f"{visit.url} {what}"))


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
