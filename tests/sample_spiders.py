"""Spiders, pipelines and items as strangers write them. None of them knows the plugin."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
import pathlib
import time
from typing import Any
from urllib.parse import urlsplit

import attrs
import pydantic
import scrapy
from itemadapter import ItemAdapter
from local_site import PATIENCE
from scrapy import signals
from scrapy.exceptions import DontCloseSpider, DropItem
from scrapy.extensions.feedexport import BlockingFeedStorage
from scrapy.http import JsonResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.task import deferLater


class Articles(scrapy.Spider):
    """One item a page, links followed; *urls* in order of priority, comma-separated."""

    name = "articles"
    urls = ""

    async def start(self):
        for position, url in enumerate(self.urls.split(",")):
            yield scrapy.Request(url, priority=-position)

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get()}
        yield from response.follow_all(css="a.next")


class OneByOne(Articles):
    """The next page is asked for when the one before has been parsed, so that the order is certain."""

    name = "one-by-one"

    async def start(self):
        first, *rest = self.urls.split(",")
        yield scrapy.Request(first, cb_kwargs={"rest": rest}, dont_filter=True)

    def parse(self, response, rest):
        yield {"url": response.url, "title": response.css("title::text").get()}
        yield from response.follow_all(css="a.next", cb_kwargs={"rest": []})
        if rest:
            yield scrapy.Request(rest[0], cb_kwargs={"rest": rest[1:]}, priority=10_000, dont_filter=True)


class Steps(scrapy.Spider):
    """Carry out *steps* (keyword arguments of a request, callbacks by name), one after the other.

    The next step begins when everything that the one before led to has ended; with *together*, all begin at once.
    """

    name = "steps"
    steps = ()
    together = False

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.waiting = [spider.request(step) for step in spider.steps]
        crawler.signals.connect(spider.next_step, signal=signals.spider_idle)
        return spider

    def request(self, step):
        if step.get("callback") == "nameless":
            return scrapy.Request(step["url"], callback=functools.partial(self.parse), dont_filter=True)
        named = {name: getattr(self, step[name]) for name in ("callback", "errback") if name in step}
        return scrapy.Request(**{"dont_filter": True, "callback": self.parse, **step, **named})

    async def start(self):
        begun = self.waiting if self.together else self.waiting[:1]
        self.waiting = self.waiting[len(begun) :]
        for request in begun:
            yield request

    def next_step(self):
        if self.waiting:
            self.crawler.engine.crawl(self.waiting.pop(0))
            raise DontCloseSpider

    # --- callbacks

    def parse(self, response, kind="dict", **fields):
        yield self.item(response, kind, **fields)
        yield from response.follow_all(css="a.next")

    def item(self, response, kind="dict", **fields):
        return ITEM_TYPES[kind](url=response.url, title=response.css("title::text").get(), **fields)

    def parse_rss(self, response):
        for item in response.xpath("//item"):
            yield {"title": item.xpath("title/text()").get(), "text": item.xpath("description/text()").get()}

    def parse_links(self, response):
        yield from response.follow_all(css="a.next")

    def parse_bulk(self, response):
        yield {"url": response.url, "text": "the council of old men, and so on; " * 250_000}

    def parse_nothing_but_number(self, response):
        return {"number": 7}

    def parse_text(self, response):
        yield {"url": response.url, "text": response.css("p::text").getall()}

    def strip_and_tell(self, response):
        """Empty the page's tree, as a spider may that has no more use for it, and say something of one's own."""
        title = response.css("title::text").get()
        response.css("body").drop()
        yield {
            "url": response.url,
            "title": title,
            "text": ", ".join(f"nobody has {chr(n) * 9} so far" for n in range(97, 122)),
        }

    def parse_headlines(self, response):
        for part in response.css("div.part"):
            yield {"url": response.url, "headline": part.css("p::text").get()}

    def parse_parts(self, response):
        for part in response.css("div.part"):
            yield {"url": response.url, "text": " ".join(part.css("p::text").getall())}

    def parse_api(self, response, kind="dict"):
        for fields in response.json():
            yield ITEM_TYPES[kind](**fields)

    def parse_script(self, response):
        for kind, fields in json.loads(response.css("script::text").get()):
            yield ITEM_TYPES[kind](url=response.url, **fields)

    def parse_detached(self, response):
        yield DetachedItem(response.url, text="".join(response.css("p::text").getall()))
        yield {"url": response.url, "second": True}

    def parse_unwritable(self, response):
        yield UnwritableItem(url=response.url, title=response.css("title::text").get())

    def begin_item(self, response, finish="finish_item"):
        """Hand an item on to the page that completes it."""
        item = {"url": response.url, "text": response.css("p::text").getall()}
        yield from response.follow_all(css="a.next", callback=getattr(self, finish), cb_kwargs={"item": item})

    def finish_item(self, response, item):
        yield {**item, "terms": response.css("title::text").get()}

    def parse_meta(self, response):
        yield {"url": response.url, "meta": [*response.meta]}

    def give_up_meta(self, failure):
        yield {"url": failure.request.url, "meta": [*failure.request.meta]}

    async def parse_inline(self, response, url):
        """Ask for one more page without leaving the callback."""
        answer = await self.crawler.engine.download_async(scrapy.Request(url))
        yield {"url": answer.url, "meta": [*answer.meta]}

    def give_up(self, failure):
        yield {"url": failure.request.url, "gave_up": True}

    def fill_disk(self, response, size):
        """From now on no file of this process can grow beyond *size* bytes."""
        import resource  # noqa: PLC0415 - Unix only

        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    # --- callbacks that fail

    def plain_raises(self, response):
        raise Mishap

    async def coroutine_raises(self, response):
        raise Mishap

    def generator_raises_first(self, response):
        raise Mishap
        yield self.item(response)

    async def async_generator_raises_first(self, response):
        raise Mishap
        yield self.item(response)

    def generator_raises_last(self, response):
        yield self.item(response)
        raise Mishap

    async def async_generator_raises_last(self, response):
        yield self.item(response)
        raise Mishap


class Followers(scrapy.Spider):
    """Follow all links from *url*, and give an item for each page with a story."""

    name = "followers"

    async def start(self):
        yield scrapy.Request(self.url)

    def parse(self, response):
        if isinstance(response, JsonResponse):
            yield from (response.follow(link, self.parse) for link in response.json()["products"])
            return
        if len(response.css("p")) > 1:
            yield {"url": response.url, "text": "\n".join(response.css("p::text").getall())}
        parse = functools.partial(self.parse) if self.settings.get("FOLLOW_BY") == "nameless" else self.parse
        for link in LinkExtractor().extract_links(response):
            yield scrapy.Request(link.url, parse, **self.settings.getdict("FOLLOW_WITH"))


class Mishap(Exception):  # noqa: N818 - what goes wrong is no error of ours
    """What goes wrong in a stranger's code."""


async def nap(seconds):
    """Let the event loop turn for a while, whichever it is."""
    if is_asyncio_available():
        await asyncio.sleep(seconds)
    else:
        from twisted.internet import reactor  # noqa: PLC0415 - importing it installs one

        await maybe_deferred_to_future(deferLater(reactor, seconds, lambda: None))


async def held(crawler):
    """Return once every stat that HOLD_UNTIL names has reached its value."""
    until = crawler.settings.getdict("HOLD_UNTIL")
    pathlib.Path("held").touch()  # noqa: ASYNC240 - a test waits for it
    deadline = time.monotonic() + PATIENCE
    while any(crawler.stats.get_value(name, 0) < least for name, least in until.items()):
        if time.monotonic() > deadline:
            raise AssertionError(f"never came: {until}")
        await nap(0.01)


class LateStorage(BlockingFeedStorage):
    """A feed storage that gets its file at the end, as S3 does, and puts it into the folder that the host names.

    At the host ``fails``, it never arrives.
    """

    def __init__(self, uri, *, feed_options=None):
        parts = urlsplit(uri)
        self.fails = parts.hostname == "fails"
        self.arrived = pathlib.Path(parts.hostname, parts.path.lstrip("/") or "feed")

    def _store_in_thread(self, file):
        file.seek(0)
        told = file.read()
        file.close()
        if self.fails:
            raise OSError("no such bucket")
        self.arrived.parent.mkdir(exist_ok=True)
        on_its_way = self.arrived.with_suffix(".part")
        on_its_way.write_bytes(told)
        on_its_way.rename(self.arrived)


class FatePipeline:
    """Do to an item what its ``fate`` says: drop, fail, fail-once, replace, or hold it until HOLD_UNTIL."""

    def __init__(self, crawler):
        self.crawler = crawler
        self.failed = False

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    async def process_item(self, item):
        fates = (ItemAdapter(item).get("fate") or "").split()
        if "hold" in fates:
            await held(self.crawler)
        if "drop" in fates:
            raise DropItem("unwanted")
        if "fail" in fates or ("fail-once" in fates and not self.failed):
            self.failed = True
            raise Mishap
        return {**ItemAdapter(item).asdict(), "replaced": True} if "replace" in fates else item


class SlowPipeline:
    async def process_item(self, item):
        await nap(0.02)
        return item


# --- items of every type that itemadapter knows, with and without a field for the tag


class Item(scrapy.Item):
    url = scrapy.Field()
    title = scrapy.Field()
    text = scrapy.Field()


class TagItem(Item):
    dedup = scrapy.Field()


def refuse(_value):
    raise Mishap


class UnwritableItem(Item):
    """An item that no feed can write."""

    title = scrapy.Field(serializer=refuse)


@dataclasses.dataclass
class DataItem:
    url: str
    title: str = ""
    text: str = ""


@dataclasses.dataclass
class TagDataItem(DataItem):
    dedup: Any = None


@dataclasses.dataclass(frozen=True)
class FrozenDataItem:
    url: str
    title: str = ""
    text: str = ""
    dedup: Any = None


@attrs.define
class AttrsItem:
    url: str
    title: str = ""
    text: str = ""


@attrs.define
class TagAttrsItem(AttrsItem):
    dedup: Any = None


class PydanticItem(pydantic.BaseModel):
    url: str
    title: str = ""
    text: str = ""


class TagPydanticItem(PydanticItem):
    dedup: Any = None


class StrictPydanticItem(PydanticItem, validate_assignment=True):
    dedup: int = 0


@dataclasses.dataclass
class DetachedItem(TagDataItem):
    """An item that looks up a part of itself where it is not any more, as those of databases do."""

    def __getattribute__(self, name):
        if name == "title":
            raise Mishap
        return super().__getattribute__(name)

    def __setattr__(self, name, value):
        if name == "dedup" and value is not None:
            raise Mishap
        super().__setattr__(name, value)

    def __repr__(self):
        return "DetachedItem()"


#: The items that can be tagged, then those that cannot.
TAGGABLE = {"dict": dict, "item": TagItem, "dataclass": TagDataItem, "attrs": TagAttrsItem, "pydantic": TagPydanticItem}
UNTAGGABLE = {
    "item without": Item,
    "dataclass without": DataItem,
    "attrs without": AttrsItem,
    "pydantic without": PydanticItem,
    "dataclass frozen": FrozenDataItem,
    "pydantic strict": StrictPydanticItem,
}
ITEM_TYPES = TAGGABLE | UNTAGGABLE


def text_of(response):
    return " ".join(response.css("p::text").getall())


class Witnesses(Steps):
    """Callbacks that give items of many kinds, by what these contain."""

    name = "witnesses"

    def parse_first_paragraph(self, response):
        yield {"url": response.url, "text": response.css("p::text").get()}

    def parse_article_text(self, response):
        yield {"url": response.url, "text": " ".join(response.css("article p::text").getall())}

    def parse_price(self, response):
        yield {"url": response.url, "price": response.css("span::text").re_first(r"[\d.]+"), "uid": id(response)}

    def parse_text_and_more(self, response, more):
        yield {"url": response.url, "text": text_of(response), "more": more}

    def parse_filename(self, response):
        yield {"url": response.url, "filename": response.url.rpartition("/")[2].partition(".")[0]}

    def finish_joined_item(self, response, item):
        yield {**item, "text": [*item["text"], *response.css("p::text").getall()]}

    def parse_sku(self, response):
        yield {"url": response.url, "sku": response.css("script::text").re_first("T-[0-9]")}
