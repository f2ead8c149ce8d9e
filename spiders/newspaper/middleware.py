"""Sends the demo's requests to the newspaper, whose hosts no name service has."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from typing_extensions import Self


class NewspaperMiddleware:
    """Downloads through the newspaper while it runs: all requests of such a crawl, also those for robots.txt."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        newspaper = getattr(self._crawler.spider, "newspaper", None)
        if newspaper is not None:
            request.meta["proxy"] = newspaper.proxy
