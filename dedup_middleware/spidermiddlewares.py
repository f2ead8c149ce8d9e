"""Verdict -> native drops, links followed last. ★ Scrapy glue."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.utils.log import logformatter_adapter

from dedup_middleware.downloadermiddlewares import SWITCHED_OFF
from dedup_middleware.extension import extension_of
from dedup_middleware.identity import request_identity
from dedup_middleware.logformatter import duplicate_item
from dedup_middleware.model import Action, VerdictKind
from dedup_middleware.requests import pack
from dedup_middleware.waiting import OwnerWait

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

    from dedup_middleware.case import Case
    from dedup_middleware.crawl import Crawl
    from dedup_middleware.extension import DedupExtension

#: Dropped items are logged where Scrapy itself logs them.
scraper_logger = logging.getLogger("scrapy.core.scraper")


class DedupSpiderMiddleware:
    """Stand outermost: the last to see what a callback gives, the first to see what it gets.

    The items of a duplicate take Scrapy's own way of dropping, before any pipeline; its links are followed last.
    """

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension
        self._wait = OwnerWait(extension)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(extension_of(crawler))

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        crawl, case = self._extension.crawl, self._extension.cases.get(response)
        if crawl is None or case is None or not case.entered:
            async for output in result:
                yield output
            return
        page_output = _PageOutput(self._extension, self._wait, crawl, case, response)
        try:
            async for output in result:
                for passed in await page_output.take(output):
                    yield passed
            for passed in await page_output.end():
                yield passed
        finally:
            await page_output.close()


class DedupCallbackMiddleware:
    """Stand innermost, where it is certain that the callback gets the page, and where its exceptions come by first.

    What others give in its place (an errback, a middleware that recovers) is not the page's: it is delivered, and owns
    nothing.
    """

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(extension_of(crawler))

    def process_spider_input(self, response: Response) -> None:
        crawl, case = self._extension.crawl, self._extension.cases.get(response)
        if crawl is not None and case is not None:
            crawl.enter(case)
            if case.is_duplicate and case.action is Action.DROP and response.request is not None:
                # Now, for the callback may change what is in its arguments.
                case.request = pack(response.request, self._extension.spider)

    def process_spider_exception(self, response: Response, exception: Exception) -> None:  # noqa: ARG002 - Scrapy's hook
        """Void the page's claim, whether or not another middleware recovers."""
        crawl, case = self._extension.crawl, self._extension.cases.get(response)
        if crawl is None or case is None or not case.entered:
            return
        case.entered = False
        if case.claim is not None:
            case.claim.callback_failed()
        if not case.has_output:
            crawl.finish(case)


class _PageOutput:
    """What one page's callback gives, on its way out.

    A page that gives one item is dropped as a whole; where there are more, each is judged by its own text against the
    owner. So the first item of a duplicate is held back until a second one or the end tells which it is.
    """

    def __init__(
        self, extension: DedupExtension, wait: OwnerWait, crawl: Crawl, case: Case, response: Response
    ) -> None:
        self._extension = extension
        self._wait = wait
        self._crawl = crawl
        self._case = case
        self._response = response
        self._items = 0
        self._would_drop = 0
        self._first_is_of_page = True
        self._held: list[Any] = []
        self._delivered: list[Any] = []
        self._ended = False
        case.has_output = True

    async def take(self, output: Any) -> list[Any]:
        """Return what goes on now that the callback has given *output*."""
        if isinstance(output, Request):
            self._follow_last(output)
            return [output]
        if output is None:
            return []
        self._items += 1
        if self._items == 1:
            await self._wait.settle(self._case)
            if self._case.is_duplicate:
                self._first_is_of_page = not self._crawl.item_says_something_else(self._case, output)
            if self._drops and self._first_is_of_page and self._crawl.safety.may_drop(self._case):
                self._held = [output]
                return []
        items, self._held = [*self._held, output], []
        return [item for item in items if await self._keep(item)]

    async def end(self) -> list[Any]:
        """Return what goes on now that the callback has finished."""
        self._ended = True
        held, self._held = self._held, []
        return [item for item in held if not await self._dropped_or_delivered(item)]

    async def _dropped_or_delivered(self, item: Any) -> bool:
        """Drop the held *item* and return True, or deliver it and return False if the store has failed meanwhile."""
        if self._drops:
            await self._drop(item)
            return True
        self._deliver(item)
        return False

    async def close(self) -> None:
        """Settle the page, whether its output ended, raised or was abandoned."""
        for item in self._held:
            await self._drop(item)
        if self._case.claim is not None:
            if self._ended:
                if self._items > 1:
                    self._crawl.narrow(self._case, self._delivered)
                self._case.claim.callback_finished()
            else:
                self._case.claim.callback_failed()
        if self._case.is_duplicate and self._case.action is Action.DRY_RUN:
            self._case.items_would_drop = int(self._first_is_of_page) if self._items == 1 else self._would_drop
            self._crawl.count_would_drop(self._case.items_would_drop)
        self._crawl.finish(self._case)

    @property
    def _drops(self) -> bool:
        return self._case.is_duplicate and self._case.action is Action.DROP and not self._crawl.failed

    def _follow_last(self, request: Request) -> None:
        if self._case.is_duplicate and self._case.action is not Action.DRY_RUN:
            request.priority -= self._extension.config.outlink_penalty
            self._extension.count("outlinks_last")

    async def _keep(self, item: Any) -> bool:
        """Deliver *item*, or drop it where it is one of several on a duplicate page and repeats the owner itself."""
        case, crawl = self._case, self._crawl
        if self._drops and crawl.item_is_duplicate(case, item) and crawl.safety.may_drop(case):
            await self._drop(item)
            return False
        if self._case.is_duplicate and self._case.action is Action.DRY_RUN:
            self._would_drop += self._crawl.item_is_duplicate(self._case, item)
        self._deliver(item)
        return True

    def _deliver(self, item: Any) -> None:
        case, extension = self._case, self._extension
        unjudged = case.verdict.kind is VerdictKind.UNJUDGED and case.verdict.reason != SWITCHED_OFF
        if unjudged and extension.config.item_fields and self._response.request is not None:
            fingerprint = extension.crawler.request_fingerprinter.fingerprint(self._response.request)
            extension.item_sources[id(item)] = (item, case, request_identity(fingerprint), self._response.request)
            case.items_delivered += 1
        else:
            self._crawl.deliver(case, item)
            if case.claim is not None:
                self._delivered.append(item)

    async def _drop(self, item: Any) -> None:
        """Drop *item* as Scrapy does when a pipeline raises DropItem: its log line, its signal, its stats."""
        case, extension, spider = self._case, self._extension, self._extension.crawler.spider
        assert spider is not None
        self._crawl.count_drop(case)
        exception = duplicate_item(self._crawl, case, extension.config.log_level)
        try:
            line = extension.crawler.logformatter.dropped(item, exception, self._response, spider)
        except Exception:  # a formatter of the project's own must not cost an item its signal
            scraper_logger.exception("dedup: LOG_FORMATTER cannot tell of a dropped item", extra={"spider": spider})
            line = None
        if line is not None:
            scraper_logger.log(*logformatter_adapter(line), extra={"spider": spider, "item": item})
        await extension.crawler.signals.send_catch_log_async(
            signal=signals.item_dropped, item=item, response=self._response, spider=spider, exception=exception
        )
