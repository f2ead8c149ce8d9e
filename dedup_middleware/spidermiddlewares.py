"""Verdict -> native drops, links followed last. ★ Scrapy glue."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.utils.log import logformatter_adapter

from dedup_middleware.extension import extension_of
from dedup_middleware.identity import request_identity
from dedup_middleware.logformatter import duplicate_item
from dedup_middleware.model import Action
from dedup_middleware.requests import purpose_of
from dedup_middleware.waiting import OwnerWait

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

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
        if crawl is None or case is None:
            return
        try:
            crawl.enter(case)
            its_items = self._extension.config.item_fields and case.is_undecided
            if (case.is_duplicate or its_items) and case.action is Action.DROP and response.request is not None:
                # Now, for the callback may change what is in its arguments.
                case.request = self._extension.packed(response.request)
            if crawl.safety.journal.left_over and case.page is not None and response.request is not None:
                purpose = purpose_of(response.request, self._extension.spider)
                case.leftover |= crawl.safety.leftover(case.page.identities, purpose)
        except Exception as error:  # noqa: BLE001 - else the errback would get the page, and not the callback
            self._extension.defect(error, response, case)
            del self._extension.cases[response]

    def process_spider_exception(self, response: Response, exception: Exception) -> None:  # noqa: ARG002 - Scrapy's hook
        """Void the page's claim, whether or not another middleware recovers."""
        crawl, case = self._extension.crawl, self._extension.cases.get(response)
        if crawl is None or case is None or not case.entered:
            return
        try:
            case.entered = False
            if case.claim is not None:
                case.claim.callback_failed()
            if not case.has_output:
                crawl.finish(case)
        except Exception as error:  # noqa: BLE001 - else it would be what the spider's exception is taken for
            self._extension.defect(error, response)


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
        self._is_sound = True
        case.has_output = True

    async def take(self, output: Any) -> list[Any]:
        """Return what goes on now that the callback has given *output*."""
        if isinstance(output, Request):
            with self._harmless():
                self._follow_last(output)
                self._case.asks_again |= output.url in (self._response.url, getattr(self._response.request, "url", ""))
            return [output]
        if output is None:
            return []
        with self._harmless():
            if await self._hold_if_first(output):
                return []
        items, self._held = [*self._held, output], []
        return [item for item in items if not await self._drop_or_deliver(item)]

    async def _hold_if_first(self, item: Any) -> bool:
        """Tell whether *item* is the first one, and is held back until it is known whether others follow."""
        case, crawl = self._case, self._crawl
        self._items += 1
        if self._items == 1:
            await self._wait.settle(case)
        crawl.deliver_if_feed_lacks_it(case, item)
        if self._items > 1:
            return False
        if case.is_duplicate:
            self._first_is_of_page = not crawl.items.says_something_else(case, item)
        if self._drops and self._first_is_of_page and crawl.may_drop(case, item):
            self._held = [item]
        return bool(self._held)

    async def _drop_or_deliver(self, item: Any) -> bool:
        """Drop *item* where it repeats the owner itself, one of several on a duplicate page; else deliver it."""
        case, crawl = self._case, self._crawl
        with self._harmless():
            repeats = case.is_duplicate and crawl.items.is_duplicate(case, item)
            if repeats and self._drops and crawl.may_drop(case, item):
                await self._drop(item)
                return True
            self._would_drop += repeats and case.action is Action.DRY_RUN
            self._deliver(item)
        return False

    async def end(self) -> list[Any]:
        """Return what goes on now that the callback has finished."""
        self._ended = True
        held, self._held = self._held, []
        return [item for item in held if not await self._drop_or_deliver_held(item)]

    async def _drop_or_deliver_held(self, item: Any) -> bool:
        """Drop the held *item* and return True, or deliver it and return False if the store has failed meanwhile."""
        with self._harmless():
            if self._drops:
                await self._drop(item)
                return True
            self._deliver(item)
        return False

    async def close(self) -> None:
        """Settle the page, whether its output ended, raised or was abandoned."""
        for item in self._held:
            with self._harmless():
                await self._drop(item)
        case, crawl = self._case, self._crawl
        with self._harmless():
            if not self._ended:
                crawl.safety.item_failed(case)
            if case.claim is not None and not self._ended:
                case.claim.callback_failed()
            elif case.claim is not None:
                if self._items > 1:
                    crawl.narrow(case, self._delivered)
                case.claim.callback_finished()
            if case.is_duplicate and case.action is Action.DRY_RUN:
                case.items_would_drop = int(self._first_is_of_page) if self._items == 1 else self._would_drop
                crawl.count_would_drop(case.items_would_drop)
            crawl.finish(case)

    @contextmanager
    def _harmless(self) -> Iterator[None]:
        """Let no defect of ours take an item, or the rest of what the callback gives: after one, all of it goes on."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is
            self._is_sound = False
            self._extension.defect(error, self._response, self._case)

    @property
    def _drops(self) -> bool:
        case = self._case
        return case.is_duplicate and case.action is Action.DROP and self._is_sound and not self._crawl.failed

    def _follow_last(self, request: Request) -> None:
        if self._case.is_duplicate and self._case.action is not Action.DRY_RUN:
            request.priority -= self._extension.config.outlink_penalty
            self._extension.count("outlinks_last")

    def _deliver(self, item: Any) -> None:
        case, extension = self._case, self._extension
        if extension.config.item_fields and case.is_undecided and self._response.request is not None:
            fingerprint = extension.crawler.request_fingerprinter.fingerprint(self._response.request)
            extension.item_sources[id(item)] = (item, case, request_identity(fingerprint))
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
