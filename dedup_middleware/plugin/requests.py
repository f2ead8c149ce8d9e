"""Holds requests back between the scheduler and the downloader, and brings them back when the crawl is idle."""

from __future__ import annotations

import json
import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.exceptions import DontCloseSpider
from scrapy.http import HtmlResponse
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.request import request_from_dict

from dedup_middleware import permissions
from dedup_middleware.economy.economy import Economy, Mode, Visited
from dedup_middleware.economy.stored import restore, save
from dedup_middleware.economy.waiting import EARLIER, LEFT_OUT, WaitingRoom, is_list
from dedup_middleware.errors import TROUBLE
from dedup_middleware.model import Action, VerdictKind
from dedup_middleware.plugin import messages
from dedup_middleware.records.crawls import RuleChange
from dedup_middleware.settings import FOLDER
from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scrapy.core.scheduler import BaseScheduler
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from dedup_middleware.economy.economy import Event
    from dedup_middleware.economy.rules import Hold
    from dedup_middleware.plugin.extension import DedupExtension
    from dedup_middleware.visit import Visit

#: In the meta of a request that has waited: ``True`` if it is to be fetched, ``False`` if it is judged again.
WAITED = "dedup_waited"
#: In the flags of a request that a sitemap or a feed has listed: such a link is never held back.
LISTED = "dedup: listed"
_PACKING = (ValueError, TypeError, AttributeError, pickle.PicklingError, RecursionError)
_OWN_TEXT = (VerdictKind.NEW, VerdictKind.RELATED, VerdictKind.UNCHANGED)


class RequestEconomy:
    """What the requests of one crawl go through after the scheduler.

    A request is judged when it is taken from the queue, not when it is put there: by then more is known, and the
    scheduler, its queues and its duplicate filter may be any. Held requests return through ``engine.crawl``.
    """

    def __init__(self, extension: DedupExtension, mode: Mode) -> None:
        """Watch the scheduler of the crawl of *extension*, or hold its requests back."""
        config, crawler = extension.config, extension.crawler
        self._extension, self._crawler = extension, crawler
        self._economy = Economy(mode)
        self._is_full = self._has_failed = False
        # ``None``: no request waits.
        self._room: WaitingRoom | None = None
        if mode in (Mode.ON, Mode.LAST):
            path = None if config.jobdir is None else config.jobdir / FOLDER / "waiting"
            try:
                self._room = WaitingRoom(path)
            except OSError as error:
                where, why = path or "a temporary file", error.strerror or error
                extension.warn(f"no request can wait in {where} ({why}); all are fetched as they come")
        assert extension.opened is not None
        assert extension.deduplication is not None
        try:
            restore(self._economy, extension.opened.store)
        except TROUBLE as error:
            extension.deduplication.fail(error)
        scheduler = _scheduler_of(crawler)
        self._next: Callable[[], Request | None] = scheduler.next_request
        # The engine has no hook between its scheduler and its downloader that neither calls an errback nor counts an
        # exception; and a scheduler class of ours would take the place of the project's.
        scheduler.next_request = self._next_request  # type: ignore[method-assign]
        crawler.signals.connect(self._idle, signals.spider_idle)

    # --- requests

    def _next_request(self) -> Request | None:
        while (request := self._next()) is not None:
            waited = request.meta.pop(WAITED, None)
            if waited is not None:
                request = request.replace(dont_filter=False)
            if waited:
                return request
            try:
                if not self._is_held(request):
                    return request
            except Exception as error:  # noqa: BLE001 - a defect of ours must not cost the request
                self._extension.defect(error, request)
                return request
        return None

    def _is_held(self, request: Request) -> bool:
        """Put *request* into the waiting room, if that is what it is to do."""
        if self._extension.deduplication is None or self._has_failed or not _may_wait(request):
            return False
        hold = self._economy.hold(request.url)
        if hold is None:
            return False
        if self._room is None:
            self._count("rules/would_hold")
            return False
        try:
            packed = pickle.dumps(request.to_dict(spider=self._crawler.spider), protocol=4)
        except _PACKING:
            # Its callback is no method of the spider, or what it carries cannot be stored.
            self._extension.count("rules/not_packed")
            return False
        if not self._put(hold, packed):
            return False
        self._count("rules/held")
        return True

    def _put(self, hold: Hold, packed: bytes) -> bool:
        """Let a packed request wait for *hold*; return ``False`` if there is no room for it."""
        assert self._room is not None
        try:
            self._room.put(hold, packed)
        except OSError as error:
            if not self._is_full:
                self._extension.warn(f"requests cannot wait ({error}), and are fetched at once")
            self._is_full = True
            return False
        return True

    def _release(self, hold: Hold, count: int) -> int:
        """Let *count* of the requests that wait for *hold* be fetched; return how many that are."""
        return 0 if self._room is None else sum(self._fetch(hold, packed) for packed in self._room.take(hold, count))

    def _fetch(self, hold: Hold, packed: bytes) -> bool:
        try:
            request = request_from_dict(pickle.loads(packed), spider=self._crawler.spider)  # noqa: S301 - ours
        except Exception as error:  # noqa: BLE001 - the spider has changed since
            self._extension.defect(error, "a request that has waited")
            return False
        # The duplicate filter has seen it.
        meta = {**request.meta, WAITED: hold is not EARLIER}
        self._crawler.engine.crawl(request.replace(dont_filter=True, meta=meta))
        self._count("rules/released")
        return True

    def _idle(self) -> None:
        """Bring back what is worth it, now that the crawl has nothing else to fetch."""
        waiting = self._waiting()
        if self._extension.deduplication is None or not waiting:
            return
        # Without rules, nothing that waits is a repetition.
        wanted = waiting if self._has_failed else self._economy.at_idle(waiting)
        released = sum(self._release(hold, count) for hold, count in wanted.items())
        if released or self._release_uncovered():
            raise DontCloseSpider

    def _release_uncovered(self) -> int:
        """Release what no rule covers any more, though one did when it was held; return how many requests that is."""
        released = 0
        for hold, count in self._waiting().items():
            if hold.rule is not None and self._room is not None:
                for packed in self._room.take(hold, count):
                    stays = self._economy.covers(pickle.loads(packed)["url"])  # noqa: S301 - ours
                    released += not (stays and self._put(hold, packed)) and self._fetch(hold, packed)
        return released

    def _waiting(self) -> dict[Hold, int]:
        return {} if self._room is None else self._room.counts()

    def _count(self, stat: str, amount: int = 1) -> None:
        self._extension.count(stat, amount)
        if self._extension.deduplication is not None:
            self._extension.deduplication.recorder.count_requests(stat.removeprefix("rules/"), amount)

    # --- pages

    def visited(self, visit: Visit, response: Response, links: Iterable[str]) -> None:
        """Learn from a page whose callback has finished; after a bug no more, and then no request waits."""
        if self._has_failed:
            return
        try:
            self._learn(visit, response, links)
        except Exception as error:  # noqa: BLE001 - a plugin bug: the page is as it was
            self._has_failed = True
            self._extension.goes_without("URL rules", error)

    def _learn(self, visit: Visit, response: Response, links: Iterable[str]) -> None:
        kind, match = visit.verdict.kind, visit.verdict.match
        text = visit.url if kind in _OWN_TEXT else None
        if kind is VerdictKind.DUPLICATE and match is not None:
            text = match.original.url
        request = response.request
        urls = (response.url,) if request is None else (*dict.fromkeys((request.url, response.url)),)
        page = Visited(urls, text, tuple(links), brings_item=visit.items_kept > 0)
        for event in self._economy.visited(page):
            self._report(event)

    def _report(self, event: Event) -> None:
        config = self._extension.config
        line = messages.of_rule(event, config, is_obeyed=self._room is not None)
        url = without_secrets(event.url, redact=config.redact_query)
        if event.rule is None and self._room is not None:
            self._extension.warn(line)
        else:
            self._extension.inform(line)
        if self._extension.deduplication is not None:
            change = RuleChange(event.kind, event.name, "" if event.rule is None else event.rule.id, url)
            self._extension.deduplication.recorder.rule_changed(change)
        if event.kind == "withdrawn":
            for hold, count in self._waiting().items():
                if hold.rule is event.rule:
                    self._release(hold, count)

    # --- end

    def close(self, *, is_finished: bool) -> None:
        """Save what was learned; list what a crawl that *is finished* leaves out."""
        extension = self._extension
        deduplication, opened = extension.deduplication, extension.opened
        # What has failed, or is away, was reported then.
        has_failed = deduplication is None or deduplication.has_failed
        if opened is not None and not has_failed and extension.config.action is not Action.DRY_RUN:
            try:
                save(self._economy, opened.store, partial(without_secrets, redact=extension.config.redact_query))
            except TROUBLE as error:
                extension.warn(f"the rules of this crawl are not saved: {error}")
        if self._room is not None:
            if self._room.damaged:
                extension.warn(
                    f"requests that waited cannot be read, and were not fetched: {self._room.damaged}. What they lead "
                    "to may be missing; crawl without this JOBDIR to fetch it"
                )
            if is_finished and len(self._room):
                self._count("rules/left_out", len(self._room))
                self._list(self._room)
            self._room.close()

    def _list(self, room: WaitingRoom) -> None:
        config = self._extension.config
        if config.log is None:
            return
        path = config.log.with_name(LEFT_OUT)
        try:
            with permissions.replaced(path, is_list) as file:
                for hold in room.counts():
                    for packed in room.all(hold):
                        url = without_secrets(pickle.loads(packed)["url"], redact=config.redact_query)  # noqa: S301 - ours
                        file.write(json.dumps({"left_out": url, "reason": hold.text}).encode() + b"\n")
        except OSError as error:
            self._extension.warn(f"the list of what was not fetched is not written: {error}")


def _scheduler_of(crawler: Crawler) -> BaseScheduler:
    """Return the scheduler of an open spider; before Scrapy 2.19, only a private attribute has it."""
    engine: Any = crawler.engine
    scheduler: BaseScheduler = (engine if hasattr(engine, "scheduler") else engine._slot).scheduler  # noqa: SLF001
    return scheduler


def marked(response: Response, output: Any) -> Any:
    """Return *output*; a request is marked if *response* is a sitemap, a feed or the answer of an API, not a page."""
    if isinstance(output, Request) and not isinstance(response, HtmlResponse):
        output.flags.append(LISTED)
    return output


def _may_wait(request: Request) -> bool:
    """Return whether *request* may be held back at all."""
    meta: dict[str, Any] = request.meta
    return not (
        request.method != "GET"
        or request.dont_filter
        or request.callback is NO_CALLBACK
        or LISTED in request.flags
        or meta.get("is_start_request")
        or meta.get("dedup") is False
        or "redirect_urls" in meta
    )
