"""Crawls news sites as it would without the plugin: nothing here is about duplicates.

``scrapy crawl news``
    crawls the English sites of the embedded newspaper, with ``-a language=zh`` the Chinese ones;
``scrapy crawl news -a url=https://example.com[,https://example.org]``
    crawls these sites, within their hosts, as far as links lead;
``-a limit=N``
    stops after N articles. Responses that are no articles are not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.exceptions import CloseSpider
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

from spiders.newspaper import SITES, Newspaper, Site
from spiders.reading import read_article

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self


class NewsSpider(Spider):
    """Yields ``title``, ``url``, ``published`` and ``text`` of each article, and follows all links of its hosts."""

    name = "news"
    links = LinkExtractor()

    def __init__(self, url: str | None = None, limit: str | None = None, language: str = "en", **kwargs: Any) -> None:
        """Raise :class:`ValueError` for an *url*, a *limit* or a *language* that cannot be used."""
        super().__init__(**kwargs)
        self.start_urls = [] if url is None else [part.strip() for part in url.split(",")]
        self.sites = _sites(language)
        self.allowed_domains = [_host(start) for start in self.start_urls] or [site.host for site in self.sites]
        self.limit = None if limit is None else _positive(limit)
        self.articles = 0
        self.newspaper: Newspaper | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        try:
            return super().from_crawler(crawler, *args, **kwargs)
        except ValueError as error:
            # Any other exception, UsageError and CloseSpider too, ends "scrapy crawl" with a traceback.
            message = f"scrapy crawl news: {error}"
            raise SystemExit(message) from None

    async def start(self) -> AsyncIterator[Any]:
        """Request the given URLs, or start the newspaper and request its first front page."""
        urls = self.start_urls
        if not urls:
            self.newspaper = Newspaper()
            self.newspaper.start()
            urls = [self.sites[0].front_page]
            self.logger.info("The demo's sites are served at %s, a proxy, while this crawl runs", self.newspaper.proxy)
        for url in urls:
            yield Request(url)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:  # noqa: ARG002 - Spider's signature
        """Yield the article, if *response* is one, and a request for each link."""
        if not isinstance(response, HtmlResponse) or self._limit_reached():
            return
        article = read_article(response.selector)
        if article is not None:
            self.articles += 1
            yield {"title": article["title"], "url": response.url, **article}
            if self._limit_reached():
                reason = "limit"
                raise CloseSpider(reason)
        for link in self.links.extract_links(response):
            yield Request(link.url)

    def _limit_reached(self) -> bool:
        return self.limit is not None and self.articles >= self.limit

    def closed(self, reason: str) -> None:  # noqa: ARG002 - Scrapy's hook
        """Stop the newspaper."""
        if self.newspaper is not None:
            self.newspaper.stop()


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname is not None and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        message = f"url={url!r} is not the URL of a site; write -a url=https://example.com, with commas between several"
        raise ValueError(message)
    return (parts.hostname or "").removeprefix("www.")


def _sites(language: str) -> list[Site]:
    sites = [site for site in SITES if site.language == language]
    if not sites:
        message = f"language={language!r} is not a language of the demo; write -a language=en or -a language=zh"
        raise ValueError(message)
    return sites


def _positive(limit: str) -> int:
    if not (limit.isascii() and limit.isdigit() and int(limit)):
        message = f"limit={limit!r} is not a number of articles; write -a limit=20, or leave it out"
        raise ValueError(message)
    return int(limit)
