"""A stranger's items of all kinds, and a spider that gives one kind or the other."""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Any

import attrs
import pydantic
import scrapy


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
    kind = ""

    async def start(self):
        for position, url in enumerate(self.urls.split(",")):
            yield scrapy.Request(url, priority=-position, cb_kwargs={"position": position // 2})

    def parse(self, response, position):
        kind = KINDS[position % len(KINDS)]
        yield kind(url=response.url, title=response.css("title::text").get(), extra=[Genre.NEWS, ("a", 1)])
