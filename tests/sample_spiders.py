"""Spiders, pipelines and items as strangers write them. None of them knows the plugin."""

# ruff: noqa: ARG002 - callbacks and hooks have the arguments that Scrapy gives

from __future__ import annotations

import asyncio
import dataclasses
import functools
import heapq
import json
import logging
import pathlib
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import attrs
import pydantic
import scrapy
from itemadapter import ItemAdapter
from local_site import PATIENCE
from scrapy import signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.dupefilters import RFPDupeFilter
from scrapy.exceptions import DontCloseSpider, DropItem
from scrapy.extensions.feedexport import BlockingFeedStorage
from scrapy.http import JsonRequest, JsonResponse
from scrapy.http.request import NO_CALLBACK
from scrapy.linkextractors import LinkExtractor
from scrapy.logformatter import LogFormatter
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.conf import build_component_list
from scrapy.utils.defer import ensure_awaitable, maybe_deferred_to_future
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


class FromStartUrls(scrapy.Spider):
    """An item a page of ``start_urls``, without a method that makes requests."""

    name = "articles"

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get()}


class OwnProcessor:
    """The ``ITEM_PROCESSOR`` of a project: it knows nothing of ``from_crawler``."""

    def __init__(self, crawler):
        self._pipelines = [kind() for kind in build_component_list(crawler.settings.getwithbase("ITEM_PIPELINES"))]

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    async def open_spider_async(self):
        pass

    async def close_spider_async(self):
        pass

    async def process_item_async(self, item):
        for pipeline in self._pipelines:
            item = await ensure_awaitable(pipeline.process_item(item))
        return item


class OldTemplate:
    """The spider middleware of a project that an old Scrapy began: it has no ``process_start``."""

    def process_spider_input(self, response, spider):
        return None

    def process_start_requests(self, start_requests, spider):
        yield from start_requests


class OldTemplateWithOutput(OldTemplate):
    """The same with a method that Scrapy 2.16 refuses."""

    def process_spider_output(self, response, result, spider):
        yield from result


class AllText(Articles):
    """An item of what a spider of articles asks a page for: two more walks over it than its title takes."""

    def parse(self, response):
        text = "".join(response.xpath("//body//text()").getall())
        yield {"url": response.url, "title": response.css("title::text").get(), "characters": len(text)}


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


class Addresses(OneByOne):
    """Items of URLs alone, for any page."""

    name = "addresses"

    def parse(self, response, rest):
        yield {"url": response.url}
        if rest:
            yield scrapy.Request(rest[0], cb_kwargs={"rest": rest[1:]}, dont_filter=True)


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


class HeapScheduler(BaseScheduler):
    """A scheduler of a project's own, as scrapy-redis is one: it sorts by priority, and knows no queues of Scrapy."""

    def __init__(self, dupefilter):
        self.dupefilter, self.heap, self.count = dupefilter, [], 0

    @classmethod
    def from_crawler(cls, crawler):
        crawler.signals.connect(lambda: cls.check(crawler), signals.spider_idle)
        return cls(RFPDupeFilter.from_crawler(crawler))

    @staticmethod
    def check(crawler):
        engine = crawler.engine
        scheduler = engine.scheduler if hasattr(engine, "scheduler") else engine._slot.scheduler
        assert vars(scheduler).keys() == {"dupefilter", "heap", "count"}

    def has_pending_requests(self):
        return bool(self.heap)

    def enqueue_request(self, request):
        if not request.dont_filter and self.dupefilter.request_seen(request):
            return False
        self.count += 1
        heapq.heappush(self.heap, (-request.priority, self.count, request))
        return True

    def next_request(self):
        return heapq.heappop(self.heap)[-1] if self.heap else None


class Recovery:
    """A spider middleware that gives an item where a callback raised."""

    def process_spider_exception(self, response, exception):
        return [{"url": response.url, "recovered": True}]


class Doorkeeper:
    """A spider middleware that lets no page with a closed door reach its callback."""

    def process_spider_input(self, response):
        if "/closed" in response.url:
            raise Mishap


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


class DropWitness:
    """Note of each drop whether its original is in feed.jsonl by then."""

    def __init__(self):
        self.seen = []

    @classmethod
    def from_crawler(cls, crawler):
        witness = cls()
        crawler.signals.connect(witness.dropped, signal=signals.item_dropped)
        crawler.signals.connect(witness.closed, signal=signals.spider_closed)
        return witness

    def dropped(self, exception):
        original = str(exception).split(" repeats ")[1].split(" ")[0]
        self.seen.append(f'"{original}"' in pathlib.Path("feed.jsonl").read_text(encoding="utf8"))

    def closed(self):
        pathlib.Path("witness.json").write_text(json.dumps(self.seen), encoding="utf8")


class SlowPipeline:
    async def process_item(self, item):
        await nap(0.02)
        return item


class LoudFormatter(LogFormatter):
    def dropped(self, item, exception, response, spider):
        return {"level": logging.WARNING, "msg": "LOUD: %(why)s", "args": {"why": exception}}


class BrokenFormatter(LogFormatter):
    def dropped(self, item, exception, response, spider):
        raise Mishap


class OnlyTheFirst:
    """A feed's filter: items of pages whose path ends in /a."""

    def __init__(self, feed_options):
        pass

    def accepts(self, item):
        return item["url"].endswith("/a")


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


class Everything(Steps):
    """Every way of writing a callback, and all that may be around it."""

    name = "everything"

    async def start(self):
        yield {"url": "from start"}
        async for request in super().start():
            yield request

    async def async_generator(self, response):
        await nap(0.01)
        yield self.item(response)
        for link in response.css("a.next"):
            await nap(0)
            yield response.follow(link)

    async def coroutine_of_list(self, response):
        await nap(0.01)
        return [self.item(response), *response.follow_all(css="a.next")]

    async def coroutine_of_none(self, response):
        await nap(0.01)

    def single_item(self, response):
        return self.item(response)

    def list_of_items(self, response):
        return [self.item(response)]

    def nothing(self, response):
        pass

    def with_picture(self, response):
        pictures = [response.urljoin(src) for src in response.css("img::attr(src)").getall()]
        yield {**self.item(response), "image_urls": pictures}

    def post_form(self, response, url, story):
        yield scrapy.FormRequest(url, formdata={"story": str(story)}, callback=self.answer)

    def post_json(self, response, url, story):
        yield JsonRequest(url, data={"story": story}, callback=self.answer)

    def answer(self, response):
        yield {"url": f"{response.url} {response.request.body.decode()}"}

    def may_fail(self, response, url):
        yield scrapy.Request(url, errback=self.failed, meta={"handle_httpstatus_list": []})

    def failed(self, failure):
        yield {"url": "from errback", "status": failure.value.response.status}


class SomeBecomeStories:
    """A pipeline that makes other items of some: of those whose path ends in /b."""

    def process_item(self, item):
        return TagDataItem(item["url"], item["title"]) if item["url"].endswith("/b") else item


class FeedReader:
    """An extension that reads FEED_TO_READ, a named pipe, to its end and puts what came into another file."""

    def __init__(self, path):
        self.path = path
        threading.Thread(target=self.read, daemon=True).start()

    @classmethod
    def from_crawler(cls, crawler):
        return cls(pathlib.Path(crawler.settings["FEED_TO_READ"]))

    def read(self):
        told = self.path.read_bytes()
        self.path.with_suffix(".read").write_bytes(told)


class BatchMover:
    """An extension that takes every batch away as soon as it is there."""

    @classmethod
    def from_crawler(cls, crawler):
        mover = cls()
        crawler.signals.connect(mover.take, signals.feed_slot_closed)
        return mover

    def take(self, slot):
        path = pathlib.Path(slot.storage.path)
        path.rename(path.with_suffix(".taken"))


class BrowserMiddleware:
    """Follow redirects as a browser does: in one request, whose response has the final URL."""

    def __init__(self, crawler):
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    async def process_response(self, request, response):
        if not request.meta.get("browser") or response.status != 302:
            return response
        target = scrapy.Request(response.headers["Location"].decode(), callback=NO_CALLBACK, dont_filter=True)
        end = await self._crawler.engine.download_async(target)
        return end.replace(request=request)
