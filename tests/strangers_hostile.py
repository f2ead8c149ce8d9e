"""A spider that takes a page's address for its item, whatever the page is."""

from __future__ import annotations

import scrapy


class Addresses(scrapy.Spider):
    """One item a page; *urls* one after the other, comma-separated."""

    name = "addresses"
    urls = ""

    async def start(self):
        for position, url in enumerate(self.urls.split(",")):
            yield scrapy.Request(url, priority=-position, dont_filter=True)

    def parse(self, response):
        return {"url": response.url}
