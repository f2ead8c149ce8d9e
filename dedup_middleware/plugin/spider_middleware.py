"""Verdict -> native drops, links followed last."""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from scrapy import Request, signals
from scrapy.utils.log import logformatter_adapter

from dedup_middleware.budget import UncheckableError
from dedup_middleware.checks.items import carried
from dedup_middleware.extraction.blocks import PageText
from dedup_middleware.model import Action, Witness
from dedup_middleware.plugin.extension import extension_of
from dedup_middleware.plugin.item_pipeline import DuplicateItem
from dedup_middleware.plugin.items import Entry, Passing, Releases
from dedup_middleware.urls import request_identity

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response, TextResponse
    from typing_extensions import Self

    from dedup_middleware.plugin.extension import DedupExtension

#: Dropped items are logged where Scrapy itself logs them.
scraper_logger = logging.getLogger("scrapy.core.scraper")


class DedupSpiderMiddleware:
    """The outermost spider middleware: the last that gets what a callback gives.

    The items of a duplicate take Scrapy's own way of dropping, before any pipeline; its links are followed last. Here
    dropped items are released, too: past the spider middlewares, which they have passed before.
    """

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(extension_of(crawler))

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for item in self._extension.releases.items():
            yield item
        async for output in start:
            yield output

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        if Releases.is_of(response):
            async for item in self._extension.releases.items():
                yield item
        entry = self._extension.visits.get(response)
        if entry is None or not entry.visit.has_entered:
            async for output in result:
                yield output
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


class DedupCallbackMiddleware:
    """The innermost spider middleware: here it is certain that the callback gets the page.

    What others give in its place (an errback, a middleware that recovers) is not the page's: it is kept, and the page
    owns nothing.
    """

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(extension_of(crawler))

    def process_spider_input(self, response: Response) -> None:
        entry = self._extension.visits.get(response)
        if entry is None:
            return
        deduplication, visit = entry.deduplication, entry.visit
        try:
            deduplication.enter(visit)
            if visit.is_duplicate and response.request is not None:
                # Now, for the callback may change what is in its arguments.
                with suppress(UncheckableError):
                    visit.carried = carried(response.request.cb_kwargs, response.request.meta)
        except Exception as error:  # noqa: BLE001 - else the errback would get the page, and not the callback
            self._extension.defect(error, response, visit)
            del self._extension.visits[response]

    def process_spider_exception(self, response: Response, exception: Exception) -> None:  # noqa: ARG002 - Scrapy's hook
        """Void the page's claim, whether or not another middleware recovers."""
        entry = self._extension.visits.get(response)
        if entry is None or not entry.visit.has_entered:
            return
        deduplication, visit = entry.deduplication, entry.visit
        try:
            deduplication.callback_failed(visit)
            if not visit.has_output:
                deduplication.finish(visit)
        except Exception as error:  # noqa: BLE001 - else it would be what the spider's exception is taken for
            self._extension.defect(error, response)


class _PageOutput:
    """What one page's callback gives, on its way out.

    Each item of a duplicate is compared: it is dropped if the original's items contain what it contains, and kept if
    not. Items without text wait until the end: they follow the page, unless one of its items was kept. So does an item
    that is to be kept, if it is the first: alone, it makes another page of the page.
    """

    def __init__(self, extension: DedupExtension, entry: Entry, response: Response) -> None:
        self._extension = extension
        self._deduplication, self._visit = entry.deduplication, entry.visit
        self._response = response
        self._text: PageText | None = None
        self._items = 0
        self._would_drop = 0
        self._waiting: list[Any] = []
        self._objecting: list[Any] = []
        self._any_kept = False
        self._ended = False
        self._is_sound = True
        self._visit.has_output = True

    async def take(self, output: Any) -> list[Any]:
        """Return what goes on now that the callback has given *output*."""
        if isinstance(output, Request):
            with self._harmless():
                self._follow_last(output)
            return [output]
        if output is None:
            return []
        may_drop: bool | None = False
        with self._harmless():
            may_drop = await self._check(output)
        if may_drop is None:
            self._waiting.append(output)
            return []
        if may_drop:
            return await self._drop_if_stored(output)
        if self._visit.is_duplicate and self._items == 1:
            self._objecting.append(output)
            return []
        return self._all_kept(output)

    async def _check(self, item: Any) -> bool | None:
        """Return whether *item* may be dropped; ``None`` if it follows its page."""
        visit, deduplication = self._visit, self._deduplication
        self._items += 1
        if self._items == 1:
            await self._extension.wait.settle(deduplication, visit)
        deduplication.keep_if_feed_lacks_it(visit, item)
        if not visit.is_duplicate:
            return False
        may_drop = deduplication.check_item(visit, item, self._shows)
        return False if may_drop is None and (self._objecting or self._any_kept) else may_drop

    async def _drop_if_stored(self, item: Any) -> list[Any]:
        """Drop *item*, or let it go on marked where that is the action, or unmarked if it must be kept."""
        visit = self._visit
        with self._harmless():
            is_drop = visit.is_duplicate and visit.action is Action.DROP and self._is_sound
            if is_drop and self._deduplication.drop(visit, item):
                await self._drop(item)
                return []
            if visit.is_duplicate and visit.action is not Action.DROP:
                self._would_drop += 1
                self._keep(item, repeats=True)
                return [item]
        return self._all_kept(item)

    def _all_kept(self, *items: Any) -> list[Any]:
        """Return *items*, kept, and before them those that have waited."""
        kept = [*self._objecting, *self._waiting, *items]
        self._objecting, self._waiting = [], []
        self._any_kept = True
        for item in kept:
            with self._harmless():
                self._keep(item)
        return kept

    async def end(self, *, finished: bool = False) -> list[Any]:
        """Return what goes on now that the callback has finished, or failed."""
        self._ended = finished
        if self._objecting:
            with self._harmless():
                if self._visit.objection is not None:
                    self._deduplication.keep_page(self._visit, self._visit.objection, Witness.ITEM)
            return self._all_kept()
        waiting, self._waiting = self._waiting, []
        return [passed for item in waiting for passed in await self._drop_if_stored(item)]

    async def close(self) -> None:
        """Settle the page, whether its output ended, raised or was abandoned."""
        visit, deduplication = self._visit, self._deduplication
        for item in self._waiting:
            # The callback was abandoned: nothing can go on any more.
            await self._drop_if_stored(item)
        with self._harmless():
            if self._ended:
                deduplication.end_callback(visit, several=self._items > 1)
            else:
                deduplication.item_failed(visit)
            if visit.is_duplicate and visit.action is Action.DRY_RUN:
                visit.items_would_drop = self._would_drop
            deduplication.finish(visit)

    def _shows(self, words: str) -> bool:
        if self._text is None:
            self._text = PageText(cast("TextResponse", self._response).selector.root)
        return self._text.shows(words)

    @contextmanager
    def _harmless(self) -> Iterator[None]:
        """Let no defect of ours take an item, or the rest of what the callback gives: after one, all of it is kept."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is
            self._is_sound = False
            self._extension.defect(error, self._response, self._visit)

    def _follow_last(self, request: Request) -> None:
        if self._visit.is_duplicate and self._visit.action is not Action.DRY_RUN:
            request.priority += self._extension.config.priority_adjust
            self._extension.count("outlinks_last")

    def _keep(self, item: Any, *, repeats: bool = False) -> None:
        visit, extension = self._visit, self._extension
        if extension.config.item_fields and visit.is_undecided and self._response.request is not None:
            fingerprint = extension.crawler.request_fingerprinter.fingerprint(self._response.request)
            entry = Entry(self._deduplication, visit)
            extension.passing[id(item)] = Passing(item, entry, request_identity(fingerprint))
            visit.items_kept += 1
            visit.items_are_checked = True
        else:
            self._deduplication.keep_item(visit, item, repeats=repeats)

    async def _drop(self, item: Any) -> None:
        """Drop *item* as Scrapy does when a pipeline raises DropItem: its log line, its signal, its stats."""
        visit, extension, spider = self._visit, self._extension, self._extension.crawler.spider
        assert spider is not None
        self._deduplication.count_drop(visit)
        exception = DuplicateItem(visit)
        try:
            line = extension.crawler.logformatter.dropped(item, exception, self._response, spider)
        except Exception:  # a formatter of the project's own must not cost an item its signal
            scraper_logger.exception("dedup: LOG_FORMATTER cannot format a dropped item", extra={"spider": spider})
            line = None
        if line is not None:
            scraper_logger.log(*logformatter_adapter(line), extra={"spider": spider, "item": item})
        await extension.crawler.signals.send_catch_log_async(
            signal=signals.item_dropped, item=item, response=self._response, spider=spider, exception=exception
        )
