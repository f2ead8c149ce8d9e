"""Verdict -> native drops, links followed last."""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from scrapy import Request, signals
from scrapy.utils.log import logformatter_adapter

from dedup_middleware.budget import UnjudgeableError
from dedup_middleware.checks.item_values import carried
from dedup_middleware.delivery.item_judge import ItemVerdict
from dedup_middleware.extraction.shown import PageText
from dedup_middleware.identity import request_identity
from dedup_middleware.model import Action, Witness
from dedup_middleware.plugin.extension import extension_of
from dedup_middleware.plugin.logformatter import duplicate_item
from dedup_middleware.plugin.requests import purpose_of
from dedup_middleware.plugin.waiting import OwnerWait

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response, TextResponse
    from typing_extensions import Self

    from dedup_middleware.plugin.extension import DedupExtension, Visit

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
        visit = self._extension.visits.get(response)
        if visit is None or not visit.state.entered:
            async for output in result:
                yield output
            return
        page_output = _PageOutput(self._extension, self._wait, visit, response)
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
        visit = self._extension.visits.get(response)
        if visit is None:
            return
        session, state = visit
        try:
            session.enter(state)
            its_items = self._extension.config.item_fields and state.is_undecided
            if (state.is_duplicate or its_items) and state.action is Action.DROP and response.request is not None:
                # Now and below, for the callback may change what is in its arguments.
                state.request = self._extension.packed(response.request)
            if state.is_duplicate and response.request is not None:
                with suppress(UnjudgeableError):
                    state.carried = carried(response.request.cb_kwargs, response.request.meta)
            if session.safety.journal.recovered and state.page is not None and response.request is not None:
                purpose = purpose_of(response.request, self._extension.spider)
                state.recovered |= session.safety.recovered(state.page.identities, purpose)
        except Exception as error:  # noqa: BLE001 - else the errback would get the page, and not the callback
            self._extension.defect(error, response, state)
            del self._extension.visits[response]

    def process_spider_exception(self, response: Response, exception: Exception) -> None:  # noqa: ARG002 - Scrapy's hook
        """Void the page's claim, whether or not another middleware recovers."""
        visit = self._extension.visits.get(response)
        if visit is None or not visit.state.entered:
            return
        session, state = visit
        try:
            state.entered = False
            if state.claim is not None:
                state.claim.callback_failed()
            if not state.has_output:
                session.finish(state)
        except Exception as error:  # noqa: BLE001 - else it would be what the spider's exception is taken for
            self._extension.defect(error, response)


class _PageOutput:
    """What one page's callback gives, on its way out.

    Of a duplicate, each item is heard: it is dropped if the owner's items have said what it says, and delivered if it
    objects. Items without text wait until the end: they go with the page, unless one of its items was delivered. So
    does an item that objects, if it is the first: alone, it makes another page of the page.
    """

    def __init__(self, extension: DedupExtension, wait: OwnerWait, visit: Visit, response: Response) -> None:
        self._extension = extension
        self._wait = wait
        self._session, self._state = visit
        self._response = response
        self._text: PageText | None = None
        self._items = 0
        self._would_drop = 0
        self._waiting: list[Any] = []
        self._objecting: list[Any] = []
        self._any_delivered = False
        self._ended = False
        self._is_sound = True
        self._state.has_output = True

    async def take(self, output: Any) -> list[Any]:
        """Return what goes on now that the callback has given *output*."""
        if isinstance(output, Request):
            with self._harmless():
                self._follow_last(output)
                self._state.asks_again |= output.url in (self._response.url, getattr(self._response.request, "url", ""))
            return [output]
        if output is None:
            return []
        stance = ItemVerdict.OBJECTS
        with self._harmless():
            stance = await self._hear(output)
        if stance is ItemVerdict.SILENT:
            self._waiting.append(output)
            return []
        if stance is ItemVerdict.REPEATS:
            return await self._withhold(output)
        if self._state.is_duplicate and self._items == 1:
            self._objecting.append(output)
            return []
        return self._all_delivered(output)

    async def _hear(self, item: Any) -> ItemVerdict:
        """Return what *item* says; of a page that is no duplicate, each objects."""
        state, session = self._state, self._session
        self._items += 1
        if self._items == 1:
            await self._wait.settle(session, state)
        session.deliver_if_feed_lacks_it(state, item)
        if not state.is_duplicate:
            return ItemVerdict.OBJECTS
        stance = session.judge_item(state, item, self._shows)
        is_silent = stance is ItemVerdict.SILENT
        return ItemVerdict.OBJECTS if is_silent and (self._objecting or self._any_delivered) else stance

    async def _withhold(self, item: Any) -> list[Any]:
        """Drop *item*, or let it go on marked where that is the action, or unmarked if something stands against it."""
        state = self._state
        with self._harmless():
            if self._drops and self._session.may_drop(state, item):
                await self._drop(item)
                return []
            if state.is_duplicate and state.action is not Action.DROP:
                self._would_drop += 1
                self._deliver(item, repeats=True)
                return [item]
        return self._all_delivered(item)

    def _all_delivered(self, *items: Any) -> list[Any]:
        """Return *items*, delivered, and before them those that have waited."""
        released = [*self._objecting, *self._waiting, *items]
        self._objecting, self._waiting = [], []
        self._any_delivered = True
        for item in released:
            with self._harmless():
                self._deliver(item)
        return released

    async def end(self, *, finished: bool = False) -> list[Any]:
        """Return what goes on now that the callback has finished, or failed."""
        self._ended = finished
        if self._objecting:
            with self._harmless():
                if self._state.objection is not None:
                    self._session.keep(self._state, self._state.objection, Witness.ITEM)
            return self._all_delivered()
        waiting, self._waiting = self._waiting, []
        return [passed for item in waiting for passed in await self._withhold(item)]

    async def close(self) -> None:
        """Settle the page, whether its output ended, raised or was abandoned."""
        state, session = self._state, self._session
        for item in self._waiting:
            # The callback was abandoned: nothing can go on any more.
            await self._withhold(item)
        with self._harmless():
            if not self._ended:
                session.safety.item_failed(state)
            if state.claim is not None and not self._ended:
                state.claim.callback_failed()
            elif state.claim is not None:
                session.settle_items(state, several=self._items > 1)
                state.claim.callback_finished()
            if state.is_duplicate and state.action is Action.DRY_RUN:
                state.items_would_drop = self._would_drop
            session.finish(state)

    def _shows(self, words: str) -> bool:
        if self._text is None:
            self._text = PageText(cast("TextResponse", self._response).selector.root)
        return self._text.shows(words)

    @contextmanager
    def _harmless(self) -> Iterator[None]:
        """Let no defect of ours take an item, or the rest of what the callback gives: after one, all of it goes on."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is
            self._is_sound = False
            self._extension.defect(error, self._response, self._state)

    @property
    def _drops(self) -> bool:
        state = self._state
        return state.is_duplicate and state.action is Action.DROP and self._is_sound and not self._session.safety.failed

    def _follow_last(self, request: Request) -> None:
        if self._state.is_duplicate and self._state.action is not Action.DRY_RUN:
            request.priority -= self._extension.config.outlink_penalty
            self._extension.count("outlinks_last")

    def _deliver(self, item: Any, *, repeats: bool = False) -> None:
        state, extension = self._state, self._extension
        if extension.config.item_fields and state.is_undecided and self._response.request is not None:
            fingerprint = extension.crawler.request_fingerprinter.fingerprint(self._response.request)
            extension.item_sources[id(item)] = (item, state, request_identity(fingerprint))
            state.items_delivered += 1
            state.items_are_judged = True
        else:
            self._session.deliver(state, item, repeats=repeats)

    async def _drop(self, item: Any) -> None:
        """Drop *item* as Scrapy does when a pipeline raises DropItem: its log line, its signal, its stats."""
        state, extension, spider = self._state, self._extension, self._extension.crawler.spider
        assert spider is not None
        self._session.count_drop(state)
        exception = duplicate_item(self._session, state, extension.config.log_level)
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
