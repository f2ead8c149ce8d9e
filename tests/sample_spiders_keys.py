"""Spiders whose items have keys: a shop, and rows that a test has written."""

from __future__ import annotations

import dataclasses

import scrapy


@dataclasses.dataclass
class Offer:
    sku: str | None = None
    price: object = None
    fate: str = ""


class OtherOffer(scrapy.Item):
    sku = scrapy.Field()
    price = scrapy.Field()


KINDS = {"dict": dict, "Offer": Offer, "OtherOffer": OtherOffer}


class Rows(scrapy.Spider):
    """Yields what the ``rows`` of each JSON page are, and its ``links``; one page after the other unless *together*."""

    name = "rows"
    urls = ""
    kind = "dict"
    together = ""
    meta: dict[str, object] | None = None

    async def start(self):
        urls = self.urls.split(",")
        for url in urls if self.together else urls[:1]:
            rest = [] if self.together else urls[1:]
            yield scrapy.Request(url, cb_kwargs={"rest": rest}, dont_filter=True, meta=self.meta or {})

    def parse(self, response, rest=()):
        found = response.json() if response.text[:1] == "{" else {"rows": response.css("data::attr(value)").getall()}
        for row in found["rows"]:
            yield KINDS[self.kind](**row)
        for link in found.get("links", ()):
            yield response.follow(link, self.parse)
        if found.get("fails"):
            raise ValueError("the callback fails")
        if rest:
            yield scrapy.Request(rest[0], cb_kwargs={"rest": rest[1:]}, dont_filter=True)


class Other(Rows):
    name = "other"


class FromStart(scrapy.Spider):
    """Yields rows from ``start()`` and from an errback, and a row of a page."""

    name = "from-start"
    url = ""

    async def start(self):
        yield {"id": 1, "name": "of start"}
        yield scrapy.Request(self.url, self.parse, errback=self.failed)

    def parse(self, response):
        yield {"id": 1, "name": "of start"}
        yield {"id": 2, "name": "of the page"}
        raise ValueError("the callback fails")

    def failed(self, failure):
        yield {"id": 2, "name": "of the page"}


class OnlyStart(scrapy.Spider):
    """Yields items with these *ids* from ``start()``."""

    name = "only-start"
    ids = ()

    async def start(self):
        for n in self.ids:
            yield {"id": n, "name": f"Lamp {n}"}


class Shop(scrapy.Spider):
    """Crawls lists of cards, the products behind them, whose URLs have a session, and an API with rows of both."""

    name = "shop"
    url = ""

    async def start(self):
        yield scrapy.Request(self.url)

    def parse(self, response):
        for card in response.css("li"):
            yield response.follow(card.css("a")[0], self.parse_product)
            yield {
                "product_id": card.attrib["data-id"],
                "name": card.css("a::text").get(),
                "price": card.css("b::text").get(),
                "url": response.urljoin(card.css("a").attrib["href"]),
            }
        yield from response.follow_all(css="a.list")
        yield from response.follow_all(css="a.api", callback=self.parse_api)

    def parse_product(self, response):
        for variant in response.css("tr"):
            yield {
                "product_id": variant.attrib["data-id"],
                "name": variant.css("td::text").get().strip(),
                "price": variant.css("b::text").get(),
                "url": response.url,
            }

    def parse_api(self, response):
        for row in response.json()["rows"]:
            yield {**row, "url": response.url}


class Plain(scrapy.Spider):
    """Yields an item with a key from one page, and two without from another."""

    name = "plain"
    steps = ()

    async def start(self):
        first, second = self.steps
        yield scrapy.Request(first["url"], self.parse_keyed, cb_kwargs={"second": second["url"]})

    def parse_keyed(self, response, second):
        yield {"id": 1, "text": " ".join(response.css("p::text").getall())}
        yield scrapy.Request(second, self.parse_plain)

    def parse_plain(self, response):
        yield {"text": "\n".join(response.css("p::text").getall())}
        yield {"nothing": response.url}
