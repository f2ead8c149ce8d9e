"""A stranger's items of all kinds, and a spider that gives one kind or the other."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timezone
from decimal import Decimal
from enum import Enum
from typing import Any

import attrs
import pydantic
import scrapy
from scrapy import signals
from scrapy.exporters import BaseItemExporter

from dedup_middleware.plugin.extension import DedupExtension


class Genre(Enum):
    NEWS = "news"
    OPINION = ("opinion", 2)


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

    def extra(self, response):  # noqa: ARG002 - for others
        return {"seen": datetime(2026, 1, 2, tzinfo=timezone.utc), "price": Decimal("1.50"), "tags": ("a", None)}


class Unkeepable(Stories):
    """Each item has what is no value: the response."""

    name = "unkeepable"

    def extra(self, response):
        return response


class ForeignStory(dict):
    """An item of a class that may do more than a dict does."""


class Foreign(Stories):
    """Each item is of a class that the quarantine cannot store."""

    name = "foreign"

    def parse(self, response):
        yield ForeignStory(url=response.url)

    async def start(self):
        for position, url in enumerate(self.urls.split(",")):
            yield scrapy.Request(url, priority=-position)


class FullDisk:
    """An extension: the disk has no room for another page of the quarantine."""

    def __init__(self, crawler):
        self.crawler = crawler
        crawler.signals.connect(self.fill, signals.response_received)

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def fill(self):
        quarantine = self.crawler.get_extension(DedupExtension).opened.quarantine
        quarantine._database.execute("PRAGMA max_page_count = 1")


class Stuttering(BaseItemExporter):
    """An exporter that fails on its second item."""

    def __init__(self, file, **kwargs):
        super().__init__(dont_fail=True, **kwargs)
        self._file, self._any = file, False

    def export_item(self, item):  # noqa: ARG002 - Scrapy's hook
        if self._any:
            raise TypeError("the second item")
        self._any = True
        self._file.write(b"half\n")
