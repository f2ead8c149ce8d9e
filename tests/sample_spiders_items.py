"""Items of all kinds, as projects define them, and spiders that yield them."""

from __future__ import annotations

import dataclasses
import random
import time
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from itertools import count
from typing import Any
from uuid import UUID, uuid4

import attrs
import pydantic
import scrapy
from sample_spiders import Articles
from scrapy.extensions.feedexport import ItemFilter


class ScrapyStory(scrapy.Item):
    url = scrapy.Field()
    title = scrapy.Field()
    extra = scrapy.Field()


@dataclasses.dataclass
class DataStory:
    url: str
    title: str
    extra: Any = None


@attrs.define
class AttrsStory:
    url: str
    title: str
    extra: Any = None


class ModelStory(pydantic.BaseModel):
    url: str
    title: str
    extra: Any = None


KINDS = [dict, ScrapyStory, DataStory, AttrsStory, ModelStory]


class Stories(scrapy.Spider):
    """An item a page, one page after the other, of each kind in turn."""

    name = "stories"
    urls = ""

    async def start(self):
        for position, url in enumerate(self.urls.split(",")):
            yield scrapy.Request(url, priority=-position, cb_kwargs={"position": position // 2})

    def parse(self, response, position):
        kind = KINDS[position % len(KINDS)]
        yield kind(url=response.url, title=response.css("title::text").get(), extra=self.extra(response))

    def extra(self, response):
        return {"seen": datetime(2026, 1, 2, tzinfo=timezone.utc), "price": Decimal("1.50"), "tags": ("a", None)}


class Timed(Stories):
    """Each item has values that no JSON feed takes."""

    name = "timed"

    def extra(self, response):
        return {"lasts": timedelta(minutes=90), "tags": frozenset({"a", ("b", 1)}), "key": 2**64, "of": UUID(int=1)}


class Nothing(scrapy.Spider):
    """No page: what its crawl keeps was released."""

    name = "stories"

    async def start(self):
        for request in ():
            yield request


class Unstorable(Stories):
    """Each item has a field that cannot be stored: the response."""

    name = "unstorable"

    def extra(self, response):
        return response


class Stamped(Stories):
    """Each page has *parts* items, with what differs at each fetch: its time, a serial number, a random key, a set."""

    name = "stamped"
    parts = 1

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.numbers = count(time.time_ns())

    def parse(self, response, position):
        now = datetime.now(timezone.utc)
        for part in range(self.parts):
            yield {
                "url": response.url,
                "title": response.css("title::text").get(),
                "part": part,
                "text": "\n".join(response.css("p::text").getall()[part :: self.parts]),
                "scraped_at": now.isoformat(),
                "seen": {"at": now, "seconds": now.timestamp()},
                "id": next(self.numbers),
                "key": str(uuid4()),
                "tags": {f"tag {n}" for n in range(9)},
            }


class StampedParts(Stamped):
    parts = 3


class ForeignStory(dict):
    """An item of a class that may do more than a dict does."""


class Filed(Articles):
    """Items whose class depends on the page, ``/STORY/COPY``: one for all copies of a story, or several."""

    name = "filed"
    classes: tuple[tuple[type, ...], ...] = (
        (ScrapyStory,),
        (DataStory,),
        (AttrsStory,),
        (ScrapyStory, ScrapyStory, DataStory),
        (AttrsStory, DataStory, ScrapyStory),
    )

    @classmethod
    def class_of(cls, url):
        story, copy = map(int, url.split("/")[-2:])
        of_story = cls.classes[story % len(cls.classes)]
        return of_story[copy % len(of_story)]

    def parse(self, response):
        yield self.class_of(response.url)(url=response.url, title=response.css("title::text").get())


class ScrapyStories(ItemFilter):
    """A filter of the project's own, for a feed."""

    def accepts(self, item):
        return isinstance(item, ScrapyStory)


class PartlyStorable(Filed):
    """A third of the stories cannot be stored, a third have a field that cannot: the response."""

    name = "partly-storable"
    classes = ((ForeignStory,), (DataStory,), (dict,))

    def parse(self, response):
        for item in super().parse(response):
            if isinstance(item, DataStory):
                item.extra = response
            yield item


class Bulky(Stories):
    """Each item has 30 kB that do not compress; the items of a story have the same."""

    name = "bulky"

    def parse(self, response, position):
        yield {"url": response.url, "picture": random.Random(position).randbytes(30_000)}


class Foreign(Stories):
    """Each item is of a class that cannot be stored."""

    name = "foreign"

    def parse(self, response):
        yield ForeignStory(url=response.url)

    async def start(self):
        for position, url in enumerate(self.urls.split(",")):
            yield scrapy.Request(url, priority=-position)


class Passing(Stories):
    """Each item is of a class that only this process has."""

    def parse(self, response, position):
        kind = globals().setdefault("PassingStory", dataclasses.make_dataclass("PassingStory", ["url"]))
        kind.__module__ = __name__
        yield kind(url=response.url)
