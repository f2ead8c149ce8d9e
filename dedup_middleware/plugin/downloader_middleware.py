"""Reads each response and gives it a provisional verdict."""

from __future__ import annotations

import logging
from functools import partial
from mimetypes import guess_type
from typing import TYPE_CHECKING, Any
from weakref import ref

from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.http.request import NO_CALLBACK

from dedup_middleware.common.budget import UncheckableError, page_budget
from dedup_middleware.common.urls import request_identity, url_identity, without_secrets
from dedup_middleware.errors import ConfigError
from dedup_middleware.extraction.decoding import NO_CHARSETS, is_cut_off
from dedup_middleware.extraction.plain import text_type
from dedup_middleware.model import Fetched, VerdictKind
from dedup_middleware.plugin.extension import Component
from dedup_middleware.plugin.item_flow import RELEASE_URL
from dedup_middleware.plugin.shared_state import Entry
from dedup_middleware.reasons import Reason
from dedup_middleware.settings import PageOptions
from dedup_middleware.visits.visit import Visit

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from dedup_middleware.common.budget import Budget
    from dedup_middleware.driver.deduplicator import Deduplication
    from dedup_middleware.model import Page

logger = logging.getLogger(__name__)

#: Scrapy's flags of a response that is incomplete: the connection broke (DOWNLOAD_FAIL_ON_DATALOSS is False), or the
#: spider stopped the download (StopDownload).
CUT_OFF_FLAGS = frozenset({"dataloss", "download_stopped"})
#: Scrapy's flag of a response without a Content-Length that ended with its connection: HTTP/1.0, ``Connection: close``.
#: Only its markup shows whether it is complete, which a text has not; nearly all are.
UNKNOWN_LENGTH_FLAG = "partial"
#: There is no page at the URL any more: the page that was there owns its text no more.
GONE = frozenset({404, 410})


class DedupDownloaderMiddleware(Component):
    """Checks every page on its way to the spider.

    It stands on the engine's side of all others and gets what the callback will get: decompressed, retried, redirected.
    It reads ``response.selector``, the tree that the callback gets, and changes nothing of a response but its flags.
    """

    async def process_request(self, request: Request) -> Request | Response | None:
        """Reschedule *request* with a lower priority if it is to be fetched last; answer that for a release at once."""
        if request.url == RELEASE_URL:
            return Response(request.url)
        order = self._extension.requests
        return None if order is None else order.dispatched(request)

    async def process_response(self, request: Request, response: Response) -> Response:
        deduplication = self._extension.deduplication
        if deduplication is not None and request.callback is not NO_CALLBACK and response.url != RELEASE_URL:
            try:
                self._check(deduplication, request, response)
            except Exception as error:  # noqa: BLE001 - the errback would get it, and the callback no page
                self._extension.defect(error, response)
        return response

    def _check(self, deduplication: Deduplication, request: Request, response: Response) -> None:
        config = self._extension.config
        identities = identities_of(self._extension.crawler, request, response.url)
        fetched = Fetched(without_secrets(response.url, redact=config.redact_query), identities, b"")
        if response.status in GONE:
            deduplication.gone(fetched.url, identities)
        if not 200 <= response.status < 300:  # noqa: PLR2004
            return
        if urls := request.meta.get("redirect_urls"):
            deduplication.redirected(urls, response.url)
        options = self._options_of(request)
        if options is None:
            visit = Visit.unchecked(fetched.url, Reason.SWITCHED_OFF, config.action)
        else:
            visit = self._examined(deduplication, response, fetched, options)
            visit.unchanged = options.unchanged
        visit.size = len(response.body)
        self._extension.visits[response] = Entry(deduplication, visit)
        match, kind = visit.verdict.match, visit.verdict.kind
        if match is not None and kind in (VerdictKind.DUPLICATE, VerdictKind.RELATED):
            response.flags.append(f"dedup: {kind.value} {match.score:.2f}")

    def _options_of(self, request: Request) -> PageOptions | None:
        """Return the options of the page that *request* fetches; ``None`` if it is not to be checked."""
        wanted, spider = request.meta.get("dedup"), self._extension.crawler.spider
        try:
            return None if wanted is False else PageOptions.from_meta(wanted, self._extension.config)
        except ConfigError as error:
            logger.error("dedup: %s; %s is not checked", error, request, extra={"spider": spider})
            return None

    def _examined(
        self, deduplication: Deduplication, response: Response, fetched: Fetched, options: PageOptions
    ) -> Visit:
        """Return the visit of the page of *response*, *fetched* but for its digest, checked with these *options*."""
        try:
            page_response = _checked(response, self._extension.config.max_bytes)
            opened, kind = self._extension.opened, type(page_response)
            assert opened is not None
            how = page_response.encoding, kind.__module__, kind.__qualname__
            fetched = fetched._replace(body_digest=opened.body_digest(page_response.body, *how))
            budget = page_budget()
            if not options.keep:
                # A reference to the response would keep it alive: its visit is kept for as long as it is.
                later = partial(self._read_again, deduplication, ref(page_response), fetched)
                visit = deduplication.verdicts.check_unread(fetched, options.action, budget, later)
                if visit is not None:
                    return visit
            page = _page(deduplication, page_response, fetched, budget)
            return deduplication.verdicts.check(page, options.action, budget, is_exempt=options.keep)
        except UncheckableError as error:
            reason = error.reason
        except Exception as error:  # noqa: BLE001 - a page may break a parser in any way
            self._extension.defect(error, response)
            reason = Reason.ERROR
        return Visit.unchecked(fetched.url, reason, options.action, is_exempt=options.keep)

    def _read_again(self, deduplication: Deduplication, kept: ref[TextResponse], fetched: Fetched) -> Page:
        """Return the page, not read before because it has not changed; the callback may have changed its tree since."""
        response = kept()
        if response is None:
            raise UncheckableError(Reason.ERROR)
        return _page(deduplication, response.copy(), fetched, page_budget())


def _checked(response: Response, max_bytes: int) -> TextResponse:
    """Return *response*; `UncheckableError` if it is neither HTML nor text, is incomplete, or is too large."""
    is_html = isinstance(response, HtmlResponse)
    if not isinstance(response, TextResponse) or not (is_html or _text_type(response)):
        raise UncheckableError(Reason.OTHER_CONTENT_TYPE)
    if not CUT_OFF_FLAGS.isdisjoint(response.flags):
        raise UncheckableError(Reason.TRUNCATED_RESPONSE)
    if len(response.body) > max_bytes:
        raise UncheckableError(Reason.TOO_LARGE)
    if response.encoding in NO_CHARSETS:
        raise UncheckableError(Reason.NO_CHARSET)
    if UNKNOWN_LENGTH_FLAG in response.flags:
        try:
            text = response.text
        except (LookupError, ValueError) as error:
            raise UncheckableError(Reason.NOT_PARSED) from error
        if not is_html or is_cut_off(text):
            raise UncheckableError(Reason.TRUNCATED_RESPONSE)
    return response


def _text_type(response: Response) -> str:
    """Return the `text_type` of *response*; of one without headers, such as a file, that of its name."""
    header = response.headers.get("Content-Type")
    return text_type((guess_type(response.url)[0] or "") if header is None else header.decode("latin-1"))


def _page(deduplication: Deduplication, response: TextResponse, fetched: Fetched, budget: Budget) -> Page:
    """Return *response* as a page; `UncheckableError` if it cannot be read, or costs more than it may."""
    reader, is_html = deduplication.reader, isinstance(response, HtmlResponse)
    try:
        content: Any = response.selector.root if is_html else response.text
    except (LookupError, ValueError) as error:  # an encoding that does not decode, an invalid base URL
        raise UncheckableError(Reason.NOT_PARSED) from error
    if is_html:
        return reader.html(fetched, content, budget)
    return reader.text(fetched, content, _text_type(response), budget)


def identities_of(crawler: Crawler, request: Request, final_url: str) -> tuple[bytes, ...]:
    """Return the identities of a page: of its *request*, and for GET of its *final_url*; one URL answers many POSTs.

    A page is where its redirects end: a page that only led to it, here or on another host, can neither end nor replace
    it. Scrapy requests each step of a redirect by itself; of a browser, only the final URL shows that there was one.
    """
    fingerprint, end = crawler.request_fingerprinter.fingerprint(request), url_identity(final_url)
    was_redirected = url_identity(request.url) != end
    if request.method == "GET":
        return (end,) if was_redirected else (request_identity(fingerprint), end)
    return (request_identity(fingerprint + end if was_redirected else fingerprint),)
