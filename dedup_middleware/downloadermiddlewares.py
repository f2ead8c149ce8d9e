"""A response -> its text and a provisional verdict. ★ Scrapy glue."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.http import HtmlResponse
from scrapy.http.request import NO_CALLBACK

from dedup_middleware.addresses import without_secrets
from dedup_middleware.config import PageOptions
from dedup_middleware.detector import with_surroundings
from dedup_middleware.errors import ConfigError
from dedup_middleware.extension import extension_of
from dedup_middleware.extraction import check_complete, paragraphs_of
from dedup_middleware.extraction.facts import numbers_of, title_of
from dedup_middleware.limits import UnjudgeableError
from dedup_middleware.model import VerdictKind
from dedup_middleware.requests import beginning, identities_of, note_beginning

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

    from dedup_middleware.case import Case
    from dedup_middleware.crawl import Crawl
    from dedup_middleware.extension import DedupExtension
    from dedup_middleware.model import Page

logger = logging.getLogger(__name__)

SWITCHED_OFF = "switched off"
NOT_TEXT = "not text"
TOO_LARGE = "too large"
CUT_OFF = "cut off"
#: How Scrapy flags a response that is not all there: DOWNLOAD_FAIL_ON_DATALOSS, StopDownload.
CUT_OFF_FLAGS = frozenset({"dataloss", "partial", "download_stopped"})
NO_CHARSET = "no charset"
#: Codecs of Python, as `codecs.lookup` names them, that turn no bytes of a page into text; punycode takes minutes for a
#: megabyte.
NO_CHARSETS = frozenset(["base64", "bz2", "hex", "idna", "punycode", "quopri", "rot-13", "undefined", "uu", "zlib"])
NOT_PARSED = "not parsed"
ERROR = "error"
#: Nothing is at the address any more, 404 and 410: who owned its text from there owns it no more.
GONE = frozenset({404, 410})


class DedupDownloaderMiddleware:
    """Judge every page on its way to the spider.

    It stands on the engine's side of all others and sees what the callback will see: decompressed, retried, redirected.
    It works on ``response.selector``, the tree that the callback gets, and alters nothing but ``response.flags``
    and a note in ``request.meta``.
    """

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension
        self._crawler = extension.crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(extension_of(crawler))

    def process_request(self, request: Request) -> None:
        if self._extension.crawl is not None:
            note_beginning(request)

    async def process_response(self, request: Request, response: Response) -> Response:
        crawl = self._extension.crawl
        if crawl is None or request.callback is NO_CALLBACK:
            return response
        identities = identities_of(self._crawler, request, beginning(request), response.url)
        if response.status in GONE:
            crawl.safety.gone(identities)
        if not 200 <= response.status < 300:  # noqa: PLR2004
            return response
        case = self._examine(crawl, request, response, identities)
        case.left = crawl.safety.left(identities)
        self._extension.cases[response] = case
        match = case.verdict.match
        if match is not None and case.verdict.kind in (VerdictKind.DUPLICATE, VerdictKind.RELATED):
            response.flags.append(f"dedup: {case.verdict.kind.value} {match.score:.0%}")
        return response

    def _examine(self, crawl: Crawl, request: Request, response: Response, identities: tuple[bytes, ...]) -> Case:
        config = self._extension.config
        wanted = request.meta.get("dedup")
        url = without_secrets(response.url, redact=config.redact_query)
        off = crawl.unjudged(url, SWITCHED_OFF, config.action, config.threshold)
        if wanted is False:
            return off
        try:
            options = PageOptions.from_meta(wanted, config)
        except ConfigError as error:
            logger.error("dedup: %s; %s is not judged", error, request, extra={"spider": self._crawler.spider})
            return off
        try:
            page = self._page(crawl, response, url, identities)
            return crawl.examine(page, options.action, options.threshold)
        except UnjudgeableError as error:
            reason = error.reason
        except Exception:  # whatever a page does to a parser, it is delivered and the crawl goes on
            logger.exception("dedup: %s cannot be judged", response, extra={"spider": self._crawler.spider})
            reason = ERROR
        return crawl.unjudged(url, reason, options.action, options.threshold)

    def _page(self, crawl: Crawl, response: Response, url: str, identities: tuple[bytes, ...]) -> Page:
        """Return *response* as a page; `UnjudgeableError` if it is none, not all there, or costs more than it may."""
        config = self._extension.config
        if not isinstance(response, HtmlResponse):
            raise UnjudgeableError(NOT_TEXT)
        if not CUT_OFF_FLAGS.isdisjoint(response.flags):
            raise UnjudgeableError(CUT_OFF)
        if len(response.body) > config.max_bytes:
            raise UnjudgeableError(TOO_LARGE)
        if response.encoding in NO_CHARSETS:
            raise UnjudgeableError(NO_CHARSET)
        budget = config.budget()
        try:
            root = response.selector.root
        except (LookupError, ValueError) as error:  # an encoding that does not decode, a base address that is none
            raise UnjudgeableError(NOT_PARSED) from error
        check_complete(root)
        budget.check_time()
        paragraphs = paragraphs_of(root, budget)
        page = crawl.page(url, identities, paragraphs, budget=budget)
        return with_surroundings(page, title_of(root), lambda: numbers_of(root))
