"""A response -> its text and a provisional verdict."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING
from weakref import ref

from scrapy.http import HtmlResponse
from scrapy.http.request import NO_CALLBACK

from dedup_middleware.budget import UnjudgeableError
from dedup_middleware.delivery.page_state import PageState
from dedup_middleware.errors import ConfigError
from dedup_middleware.extraction.charsets import NO_CHARSETS
from dedup_middleware.extraction.truncation import is_cut_off
from dedup_middleware.model import Fetched, VerdictKind
from dedup_middleware.plugin.arrivals import arrivals_here
from dedup_middleware.plugin.extension import Visit, extension_of
from dedup_middleware.plugin.recovery import take_recovered
from dedup_middleware.plugin.requests import identities_of
from dedup_middleware.reasons import Reason
from dedup_middleware.settings.config import PageOptions
from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

    from dedup_middleware.budget import Budget
    from dedup_middleware.model import Page
    from dedup_middleware.plugin.extension import DedupExtension
    from dedup_middleware.session.session import Session

logger = logging.getLogger(__name__)

#: Scrapy's flags of a response that is incomplete: the connection broke (DOWNLOAD_FAIL_ON_DATALOSS is False), or the
#: spider stopped the download (StopDownload).
CUT_OFF_FLAGS = frozenset({"dataloss", "download_stopped"})
#: Scrapy's flag of a response without a Content-Length that ended with its connection: HTTP/1.0, ``Connection: close``.
#: Only its markup shows whether it is complete; nearly all are.
UNKNOWN_LENGTH_FLAG = "partial"
#: Nothing is at the address any more, 404 and 410: who owned its text from there owns it no more.
GONE = frozenset({404, 410})


class DedupDownloaderMiddleware:
    """Judge every page on its way to the spider.

    It stands on the engine's side of all others and sees what the callback will see: decompressed, retried, redirected.
    It works on ``response.selector``, the tree that the callback gets, and of what that sees it changes nothing but
    ``response.flags``.
    """

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension
        self._crawler = extension.crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(extension_of(crawler))

    def process_request(self, request: Request) -> None:
        if self._extension.session is not None:
            with self._harmless(request):
                self._extension.origins.note(request)

    def process_exception(self, request: Request, exception: Exception) -> None:  # noqa: ARG002 - Scrapy's hook
        """Leave nothing of ours where an errback sees it."""
        with self._harmless(request):
            self._extension.origins.take(request)
            take_recovered(request)

    async def process_response(self, request: Request, response: Response) -> Response:
        session = self._extension.session
        with self._harmless(response):
            original_url, recovered = self._extension.origins.take(request), take_recovered(request)
            if session is not None and request.callback is not NO_CALLBACK:
                await self._judge(session, request, response, original_url, recovered)
        return response

    @contextmanager
    def _harmless(self, where: Request | Response) -> Iterator[None]:
        """Let no defect of ours stop what passes: an errback would get it, and not the callback."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is
            self._extension.defect(error, where)

    async def _judge(
        self, session: Session, request: Request, response: Response, original_url: str, recovered: frozenset[bytes]
    ) -> None:
        identities = identities_of(self._crawler, request, original_url, response.url)
        if response.status in GONE:
            session.safety.gone(identities, recovered)
        if not 200 <= response.status < 300:  # noqa: PLR2004
            return
        state = await self._examine(session, request, response, identities)
        state.recovered, state.bytes = recovered, len(response.body)
        self._extension.visits[response] = Visit(session, state)
        match = state.verdict.match
        if match is not None and state.verdict.kind in (VerdictKind.DUPLICATE, VerdictKind.RELATED):
            response.flags.append(f"dedup: {state.verdict.kind.value} {match.score:.0%}")

    async def _examine(
        self, session: Session, request: Request, response: Response, identities: tuple[bytes, ...]
    ) -> PageState:
        config = self._extension.config
        wanted = request.meta.get("dedup")
        url = without_secrets(response.url, redact=config.redact_query)
        off = PageState.unjudged(url, Reason.SWITCHED_OFF, config.action, config.threshold)
        if wanted is False:
            return off
        try:
            options = PageOptions.from_meta(wanted, config)
        except ConfigError as error:
            logger.error("dedup: %s; %s is not judged", error, request, extra={"spider": self._crawler.spider})
            return off
        try:
            page_response = self._checked(response)
            fetched = Fetched(url, identities, self._extension.body_digest(page_response))
            # What holds the response would keep it alive: its state is kept for as long as it is.
            later = partial(self._read_again, session, ref(page_response), fetched)
            budget = config.budget()
            asked = (options.action, options.threshold, budget)
            state = None if options.keep else session.examine_unread(fetched, *asked, later)
            if state is not None:
                return state
            page = self._page(session, page_response, fetched, budget)
            if (fetch := session.judging.fetching(page)) is not None:
                budget.pause()
                await arrivals_here().fetched(fetch)
                budget.resume()
            return session.examine(page, *asked, keep=options.keep)
        except UnjudgeableError as error:
            reason = error.reason
        except Exception as error:  # noqa: BLE001 - whatever a page does to a parser
            self._extension.defect(error, response)
            reason = Reason.ERROR
        return PageState.unjudged(url, reason, options.action, options.threshold, keep=options.keep)

    def _checked(self, response: Response) -> HtmlResponse:
        """Return *response*; `UnjudgeableError` if it is not HTML, is incomplete, or is too large."""
        if not isinstance(response, HtmlResponse):
            raise UnjudgeableError(Reason.NOT_TEXT)
        if not CUT_OFF_FLAGS.isdisjoint(response.flags):
            raise UnjudgeableError(Reason.CUT_OFF)
        if len(response.body) > self._extension.config.max_bytes:
            raise UnjudgeableError(Reason.TOO_LARGE)
        if response.encoding in NO_CHARSETS:
            raise UnjudgeableError(Reason.NO_CHARSET)
        if UNKNOWN_LENGTH_FLAG in response.flags and is_cut_off(self._text(response)):
            raise UnjudgeableError(Reason.CUT_OFF)
        return response

    @staticmethod
    def _text(response: HtmlResponse) -> str:
        """Return the text of *response*; `UnjudgeableError` if it cannot be decoded."""
        try:
            return response.text
        except (LookupError, ValueError) as error:
            raise UnjudgeableError(Reason.NOT_PARSED) from error

    @staticmethod
    def _page(session: Session, response: HtmlResponse, fetched: Fetched, budget: Budget) -> Page:
        """Return *response* as a page; `UnjudgeableError` if it cannot be read, or costs more than it may."""
        try:
            root = response.selector.root
        except (LookupError, ValueError) as error:  # an encoding that does not decode, a base address that is none
            raise UnjudgeableError(Reason.NOT_PARSED) from error
        return session.read(fetched, root, budget)

    def _read_again(self, session: Session, kept: ref[HtmlResponse], fetched: Fetched) -> Page:
        """Return the page that was taken for what the store has of it; the callback may have changed its tree since."""
        response = kept()
        if response is None:
            raise UnjudgeableError(Reason.ERROR)
        return self._page(session, response.copy(), fetched, self._extension.config.budget())
