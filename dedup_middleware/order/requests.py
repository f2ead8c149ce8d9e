"""Lets requests that are expected to bring nothing new be fetched last, and learns from the pages which ones are."""

from __future__ import annotations

from heapq import nlargest
from operator import itemgetter
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from scrapy.http import HtmlResponse

from dedup_middleware.common.sites import are_one_site
from dedup_middleware.model import VerdictKind
from dedup_middleware.order.forms import MAX_FORMS, FormLast
from dedup_middleware.order.order import FetchedPage, Order
from dedup_middleware.order.recent import Recent
from dedup_middleware.order.url_rules import address_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy import Request
    from scrapy.http import Response

    from dedup_middleware.plugin.extension import DedupExtension
    from dedup_middleware.visits.visit import Visit

#: In the meta of a request: where the link stands; without it, the request is never put off.
PLACE = "dedup_place"
#: In the meta of a request that another site's page has led to.
FOREIGN = "dedup_foreign"
#: In the meta of a request whose priority was lowered: by how much.
LOWERED = "dedup_lowered"
_MAX_COUNTED = 2_000
_OWN_TEXT = (VerdictKind.NEW, VerdictKind.RELATED, VerdictKind.CHANGED, VerdictKind.UNCHANGED)


class RequestOrder:
    """The order of the requests of one crawl. A bug in it ends it: then requests come as they are."""

    def __init__(self, extension: DedupExtension, key: bytes) -> None:
        """*key* is the store's."""
        self._extension = extension
        self._order = Order(key)
        self._last: Recent[str, int] = Recent(_MAX_COUNTED)
        """Form -> its requests that were put off."""
        self._all_last = 0
        self._by_depth = extension.crawler.settings.getint("DEPTH_PRIORITY")
        self.queues: WeakSet[Any] = WeakSet()
        """The queues of Scrapy's scheduler, where the crawl uses ours."""

    def mark(self, response: Response, request: Request) -> None:
        """Note in the meta of *request* where its link stands, if it may be put off; it comes from *response*.

        It may not if a sitemap, a feed or an API has it, or if the spider wants it early, or in any case.
        """
        meta: dict[str, Any] = request.meta
        meta.pop(PLACE, None)
        meta.pop(FOREIGN, None)
        if not are_one_site((response.url, request.url)):
            meta[FOREIGN] = True
        # DepthMiddleware has been here.
        priority = request.priority + self._by_depth * meta.get("depth", 0)
        is_link = isinstance(response, HtmlResponse) and request.method == "GET"
        if is_link and priority <= 0 and not request.dont_filter and meta.get("dedup") is not False:
            try:
                meta[PLACE] = self._order.place_of(request.url, response.url)
            except Exception as error:  # noqa: BLE001 - a plugin bug: the request is as it was
                self.fail(error)

    def is_last(self, request: Request) -> bool:
        """Return whether *request* is to be fetched last: no redirect, no retry, and none that was lowered before."""
        place = request.meta.get(PLACE)
        if place is None or request.dont_filter or "redirect_urls" in request.meta:
            return False
        try:
            return self._order.is_last(request.url, place)
        except Exception as error:  # noqa: BLE001 - a plugin bug
            self.fail(error)
            return False

    def count(self, request: Request) -> None:
        """Count a *request* that is put off."""
        self._extension.count("requests_last")
        self._all_last += 1
        if self._extension.deduplication is not None:
            self._extension.deduplication.recorder.note(requests_last=self._all_last)
        if (address := address_of(request.url)) is not None:
            self._last[address.form] = self._last.get(address.form, 0) + 1

    def close(self) -> None:
        """Record which forms were fetched last, those with the most requests."""
        if self._extension.deduplication is not None:
            most = nlargest(MAX_FORMS, self._last.items(), key=itemgetter(1))
            forms = [FormLast(form, count, *self._order.forms.get(form, (0, 0))) for form, count in most]
            self._extension.deduplication.recorder.note(last=forms)

    def dispatched(self, request: Request) -> Request | None:
        """Return *request* with a lower priority for Scrapy to reschedule: once, and only if the queue is not ours."""
        lowered = request.meta.pop(LOWERED, None)
        if lowered is not None:
            request.priority += lowered
            request.dont_filter = False
        elif not self.queues and self.is_last(request):
            lowered = -self._extension.config.priority_adjust
            self.count(request)
            meta = {**request.meta, LOWERED: lowered}
            return request.replace(priority=request.priority - lowered, meta=meta, dont_filter=True)
        return None

    def visited(self, visit: Visit, response: Response, links: Iterable[str]) -> None:
        """Learn from a page whose callback has finished."""
        try:
            self._learn(visit, response, links)
        except Exception as error:  # noqa: BLE001 - a plugin bug: the page is as it was
            self.fail(error)

    def _learn(self, visit: Visit, response: Response, links: Iterable[str]) -> None:
        kind, match = visit.verdict.kind, visit.verdict.match
        text = visit.url if kind in _OWN_TEXT else None
        if kind is VerdictKind.DUPLICATE and match is not None:
            text = match.original.url
        request = response.request
        urls, place = [response.url], 0
        if request is not None:
            urls = [*request.meta.get("redirect_urls", ()), request.url, response.url]
            place = request.meta.get(PLACE, 0)
        # What becomes of items with keys says nothing of the page.
        new = visit.items.kept + visit.items.keyed - visit.items.would_drop - visit.items.tagged
        is_foreign = not are_one_site(urls) or (request is not None and FOREIGN in request.meta)
        page = FetchedPage(
            tuple(dict.fromkeys(urls)), text, tuple(links), place, brings_item=new > 0, is_foreign=is_foreign
        )
        if self._order.learn(page) and request is not None:
            slot = self._extension.crawler.engine.downloader.get_slot_key(request)
            for queue in self.queues:
                queue.judge_again(slot)

    def fail(self, error: Exception) -> None:
        """End the order after a plugin bug: from now on requests come as they are."""
        self._extension.requests = None
        self._extension.goes_without("order of requests", error)
