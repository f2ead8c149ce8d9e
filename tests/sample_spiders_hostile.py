"""A spider that takes a page's address for its item, whatever the page is."""

from __future__ import annotations

import scrapy


class Addresses(scrapy.Spider):
    """One item a page; *urls* one after the other, comma-separated."""

    name = "addresses"
    urls = ""

    async def start(self):
        yield self.request(self.urls.split(","))

    def parse(self, response, rest):
        yield {"url": response.url}
        if rest:
            yield self.request(rest)

    def request(self, urls):
        return scrapy.Request(urls[0], cb_kwargs={"rest": urls[1:]}, dont_filter=True)
