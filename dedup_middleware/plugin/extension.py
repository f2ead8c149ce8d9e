"""The plugin's life within one crawl: open, refuse, count, sum up, close."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.extensions.feedexport import FeedExporter

from dedup_middleware.errors import DedupError, FeedError, StoreAwayError, StoreError
from dedup_middleware.index import item_codec
from dedup_middleware.listener import Listener
from dedup_middleware.plugin import messages
from dedup_middleware.plugin.absence import Absence
from dedup_middleware.plugin.feeds import Feeds
from dedup_middleware.plugin.item_signals import Entry, ItemSignals, Passing
from dedup_middleware.plugin.project import read_config
from dedup_middleware.plugin.releases import Releases
from dedup_middleware.plugin.threads import DiskThreads
from dedup_middleware.plugin.waiting import OriginalWait, sleep
from dedup_middleware.releaser import Releaser
from dedup_middleware.session.opening import deduplication_of, open_for_crawl
from dedup_middleware.session.runs import run_id
from dedup_middleware.settings.config import Config, is_enabled, unknown_settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.extensions.feedexport import FeedSlot
    from scrapy.http import HtmlResponse, Response
    from typing_extensions import Self

    from dedup_middleware.deduplicator import Deduplication
    from dedup_middleware.inspection.records import RecordLog
    from dedup_middleware.model import StoredPage
    from dedup_middleware.session.opening import Resources
    from dedup_middleware.stores import OpenStore
    from dedup_middleware.visit import Visit

logger = logging.getLogger(__name__)

#: The reason a crawl is closed with when the plugin cannot start.
CLOSE_REASON = "dedup_error"


class DedupExtension(Listener):
    """Hold what the middlewares and the pipeline of one crawl share, and report what happens in its log and its stats.

    ``deduplication`` is ``None`` wherever the plugin must stay out of the way: before the spider opens, after it has
    closed, in ``scrapy shell``, ``fetch``, ``view``, ``parse`` and ``check``, and when the start has failed.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.deduplication: Deduplication | None = None
        self.releaser: Releaser | None = None
        self.opened: Resources | None = None
        self.visits: WeakKeyDictionary[Response, Entry] = WeakKeyDictionary()
        self.passing: dict[int, Passing] = {}
        """The items between spider and pipelines that the pipeline is to know again, by ``id()``."""
        self.feeds = Feeds(crawler)
        self.wait = OriginalWait(self)
        self._error: DedupError | None = None
        self.absence = Absence(self)
        self._disks = DiskThreads(self.defect)
        # Scrapy holds those who listen by weak references only.
        self._item_signals = ItemSignals(self)
        self.releases = Releases(self)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls(crawler)
        crawler.signals.connect(extension.spider_opened, signals.spider_opened)
        crawler.signals.connect(extension.engine_started, signals.engine_started)
        crawler.signals.connect(extension.feed_slot_closed, signals.feed_slot_closed)
        crawler.signals.connect(extension.spider_closed, signals.spider_closed)
        crawler.signals.connect(extension.feeds_closed, signals.feed_exporter_closed)
        crawler.signals.connect(extension.engine_stopped, signals.engine_stopped)
        return extension

    @property
    def config(self) -> Config:
        """The checked settings; only once the spider is open."""
        assert self.opened is not None
        return self.opened.config

    @property
    def spider(self) -> Spider:
        """The spider; only while it is open."""
        assert self.crawler.spider is not None
        return self.crawler.spider

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a ``dedup/*`` stat."""
        self.crawler.stats.inc_value(f"dedup/{name}", amount)

    def body_digest(self, response: HtmlResponse) -> bytes:
        """Return what tells the bytes of *response*, as they would be read, from any others."""
        assert self.opened is not None
        kind = type(response)
        return self.opened.body_digest(response.body, response.encoding, kind.__module__, kind.__qualname__)

    # --- start

    async def spider_opened(self, spider: Spider) -> None:
        if _only_looks(self.crawler, spider):
            logger.debug("dedup is off: this command only looks at pages")
            return
        try:
            await self._open(spider)
        except DedupError as error:
            self._error = error
        except Exception:
            # A defect of ours is no reason to cost anybody a crawl.
            logger.exception(
                "dedup: the plugin failed to start; the crawl goes on without it", extra={"spider": spider}
            )
            self.count("failures")
        else:
            return
        self.deduplication = None
        self._close_files()

    async def _open(self, spider: Spider) -> None:
        settings = self.crawler.settings
        for line in unknown_settings(settings):
            self._warn(line)
        if not is_enabled(settings):
            return
        opened = self.opened = await open_for_crawl(read_config(settings, str(spider.name)), sleep)
        self.feeds.snapshot()
        self._begin(opened, run_id(opened.config.jobdir))
        self._announce(opened)
        if opened.awaited is not None:
            self.absence.begin()

    def _begin(self, opened: Resources, run: str) -> None:
        self.deduplication = deduplication_of(
            opened,
            run,
            self,
            feeds=self.feeds.kinds,
            flush=self.feeds.flush if self.feeds.exist else None,
            disks=self._disks,
            feeds_wanting=self.feeds.wanting,
            continues=opened.config.jobdir is not None,
            stores_items=True,
        )
        item_codec.PROJECT.give([type(self.spider)])
        self.releaser = Releaser(self.deduplication)

    def _announce(self, opened: Resources) -> None:
        for line in messages.at_start(opened):
            logger.info("dedup: %s", line, extra={"spider": self.spider})
        for line in messages.warnings_at_start(opened):
            self._warn(line)
        if opened.trouble:
            self.count("observer" if opened.awaited is None else "away")

    async def engine_started(self) -> None:
        """End a crawl that cannot start before its first request, with exit status 1 and no traceback.

        An exception raised in ``spider_opened`` would only be logged, and the crawl would run on without the plugin;
        one raised earlier ends it with a traceback. An engine without a spider is what Scrapy calls a failed bootstrap.
        """
        if self._error is None:
            return
        crawler = self.crawler
        logger.error("dedup: %s", self._error, extra={"spider": crawler.spider})
        feeds = crawler.get_extension(FeedExporter)
        if feeds is not None:
            # A crawl that never began must not overwrite the feed of the one before.
            feeds.slots.clear()
        await crawler.engine.close_spider_async(reason=CLOSE_REASON)
        await crawler.engine.stop_async()
        crawler.spider = None

    # --- a store that is away

    def go_on(self, opened: Resources) -> None:
        """Go on with what is *opened*, as the same crawl; pages on their way end in the session that they are in."""
        assert self.deduplication is not None
        before, self.opened = self.deduplication, opened
        self._begin(opened, before.run)
        self.deduplication.go_on_from(before)

    # --- what is reported: see Listener

    def failed(self, error: DedupError) -> None:
        if isinstance(error, StoreAwayError):
            self._warn(f"{error}; until it is back every page is delivered, and nothing is dropped")
            self.absence.begin()
            return
        if not isinstance(error, StoreError):
            self.absence.end()
        line = "dedup: %s; from now on every page is delivered and nothing is dropped"
        logger.error(line, error, extra={"spider": self.crawler.spider})

    def one_owner(self, host: str, owner: str, repeats: int, pages: int) -> None:
        self._warn(messages.one_owner(self.config, host, owner, repeats, pages))

    def one_other_host(self, host: str, other: str, repeats: int, pages: int) -> None:
        self._warn(messages.one_other_host(self.config, host, other, repeats, pages))

    def field_that_keeps(self, field: str, kept: int, pages: int) -> None:
        self._warn(messages.field_that_keeps(field, kept, pages))

    def released(self, pages: Sequence[StoredPage]) -> None:
        logger.info("dedup: %s", messages.template_found(pages), extra={"spider": self.spider})
        self.releases.request()

    def not_keepable(self, kind: type, left_out: Mapping[str, type]) -> None:
        self._warn(messages.not_keepable(kind, left_out))

    def tag_refused(self, kind: type) -> None:
        self._warn(messages.tag_refused(kind))

    def _warn(self, line: str) -> None:
        logger.warning("dedup: %s", line, extra={"spider": self.crawler.spider})

    # --- end

    def defect(self, error: Exception, where: object, visit: Visit | None = None) -> None:
        """Tell of a defect of ours at *where*, which is delivered: the crawl goes on. The *visit* owns nothing."""
        with suppress(Exception):  # where one thing of ours is broken, so may be others
            self.count("defects")
        with suppress(Exception):
            if visit is not None and self.deduplication is not None:
                self.deduplication.item_failed(visit)
        logger.error(
            "dedup: %r at %s, which is delivered; please report it",
            error,
            where,
            exc_info=error,
            extra={"spider": self.crawler.spider},
        )

    def feed_slot_closed(self, slot: FeedSlot) -> None:
        if self.deduplication is None:
            return
        try:
            self.deduplication.durability.stored(slot, self.feeds.closed(slot))
        except FeedError as error:
            self.deduplication.fail(error)
        except Exception as error:  # noqa: BLE001 - a defect of ours
            self.defect(error, slot.uri)
            self.deduplication.fail(FeedError("it is not known whether a feed was stored"))

    def spider_closed(self) -> None:
        """Close, unless there are feeds: Scrapy stores them after this signal, and then they say so."""
        if not self.feeds.exist:
            self._close()

    def feeds_closed(self) -> None:
        if self.deduplication is None:
            return
        try:
            self.feeds.end()
        except FeedError as error:
            self.deduplication.fail(error)
        self._close()

    def engine_stopped(self) -> None:
        """Close what is still open, because a feed's end failed in a way that nobody told of."""
        if self.deduplication is not None:
            self.deduplication.fail(FeedError("the feeds did not come to an end"))
            self._close()

    def _close(self) -> None:
        if self.deduplication is None:
            return
        self.absence.end()
        self.deduplication.close()
        self.visits.clear()
        self.passing.clear()
        self._close_files()
        is_away, self.deduplication = self.deduplication.awaits_store, None
        stats = self.crawler.stats
        assert self.opened is not None

        def stat(name: str) -> int:
            return int(stats.get_value(f"dedup/{name}", 0))

        summary = messages.at_end(self.opened, stat, is_away=is_away)
        logger.info(summary, extra={"spider": self.crawler.spider})
        if (warning := messages.warning_at_end(stat)) is not None:
            self._warn(warning)

    def _close_files(self) -> None:
        """Close the log and the store. Closing one again does nothing."""
        if self.opened is not None:
            for file in (self.opened.log, self.opened.store):
                if file is not None:
                    self._close_file(file)

    def _close_file(self, file: RecordLog | OpenStore) -> None:
        try:
            file.close()
        except DedupError as error:
            logger.error("dedup: %s", error, extra={"spider": self.crawler.spider})


def extension_of(crawler: Crawler) -> DedupExtension:
    """Return the plugin's extension in *crawler*; where it is disabled, so is whoever asks."""
    extension = crawler.get_extension(DedupExtension)
    if extension is None:
        raise NotConfigured
    return extension


def _only_looks(crawler: Crawler, spider: Spider) -> bool:
    """Tell whether this is ``scrapy shell``, ``fetch``, ``view``, ``parse``, ``check`` or ``bench``, not a crawl.

    The shell drives the engine without ``crawl()``; the others replace the spider's ``start``.
    """
    return not crawler.crawling or type(spider).start.__module__.startswith("scrapy.commands.")
