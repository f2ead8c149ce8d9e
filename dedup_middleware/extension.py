"""The plugin's life within one crawl: open, refuse, count, sum up, close. ★ Scrapy glue."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.extensions.feedexport import FeedExporter
from scrapy.http import Response

from dedup_middleware import messages
from dedup_middleware.collector import TunedCollector
from dedup_middleware.config import Config, is_enabled, unknown_settings
from dedup_middleware.crawl import Crawl
from dedup_middleware.detector import Detector
from dedup_middleware.errors import DedupError, FeedError
from dedup_middleware.feeds import Feeds
from dedup_middleware.fingerprints import FINGERPRINTERS
from dedup_middleware.index import index_of
from dedup_middleware.records import RecordLog
from dedup_middleware.requests import identities_of, unpack
from dedup_middleware.runs import run_id
from dedup_middleware.stores import open_store

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.extensions.feedexport import FeedSlot
    from typing_extensions import Self

    from dedup_middleware.case import Case
    from dedup_middleware.claims import Claim
    from dedup_middleware.stores import OpenStore

logger = logging.getLogger(__name__)

#: The claim of the item that is in the pipelines. Scrapy runs the pipelines on an item and sends the signal of their
#: outcome in one context; the signal alone does not tell, for a pipeline may return another object.
item_claim: ContextVar[Claim | None] = ContextVar("item_claim", default=None)

#: The reason a crawl is closed with when the plugin cannot start.
CLOSE_REASON = "dedup_error"


class DedupExtension:
    """Hold what the middlewares and the pipeline of one crawl share.

    ``crawl`` is ``None`` wherever the plugin must stay out of the way: before the spider opens, after it has closed, in
    ``scrapy shell``, ``fetch``, ``view``, ``parse`` and ``check``, and when the start has failed.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.crawl: Crawl | None = None
        self.cases: WeakKeyDictionary[Response, Case] = WeakKeyDictionary()
        self.item_sources: dict[int, tuple[Any, Case, bytes, Request]] = {}
        """By ``id()``, for items are often not hashable: an item between spider and pipeline, its page, its request."""
        self._feeds = Feeds(crawler)
        self._config: Config | None = None
        self._store: OpenStore | None = None
        self._error: DedupError | None = None
        self._collector = TunedCollector()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls(crawler)
        crawler.signals.connect(extension.spider_opened, signals.spider_opened)
        crawler.signals.connect(extension.engine_started, signals.engine_started)
        crawler.signals.connect(extension.item_scraped, signals.item_scraped)
        crawler.signals.connect(extension.item_dropped, signals.item_dropped)
        crawler.signals.connect(extension.item_failed, signals.item_error)
        crawler.signals.connect(extension.feed_slot_closed, signals.feed_slot_closed)
        crawler.signals.connect(extension.spider_closed, signals.spider_closed)
        crawler.signals.connect(extension.feeds_closed, signals.feed_exporter_closed)
        crawler.signals.connect(extension.engine_stopped, signals.engine_stopped)
        return extension

    @property
    def config(self) -> Config:
        """The checked settings; only once the spider is open."""
        assert self._config is not None
        return self._config

    @property
    def spider(self) -> Spider:
        """The spider; only while it is open."""
        assert self.crawler.spider is not None
        return self.crawler.spider

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a ``dedup/*`` stat."""
        self.crawler.stats.inc_value(f"dedup/{name}", amount)

    # --- start

    def spider_opened(self, spider: Spider) -> None:
        if _only_looks(self.crawler, spider):
            logger.debug("dedup is off: this command only looks at pages")
            return
        try:
            self._open(spider)
        except DedupError as error:
            self._error = error
        except Exception as error:  # a crawl that runs on without the plugin would look as if all were well
            logger.exception("dedup: it cannot start", extra={"spider": spider})
            self._error = DedupError(f"it cannot start ({error!r}); DEDUP_ENABLED=False crawls without it")

    def _open(self, spider: Spider) -> None:
        settings = self.crawler.settings
        for line in unknown_settings(settings):
            logger.warning(line, extra={"spider": spider})
        if not is_enabled(settings):
            return
        config = self._config = Config.from_settings(settings, spider.name)
        fingerprinter = FINGERPRINTERS[config.fingerprint]
        store = self._store = open_store(config.store, fingerprint_scheme=fingerprinter.scheme)
        fingerprint = fingerprinter(store.header.key)
        log = RecordLog(config.log) if config.log else None
        index = index_of(
            store, common=config.common_clause, text_limit=config.text_limit, distance=config.simhash_reach
        )
        index.recover()
        self.crawl = Crawl(
            spider=spider.name,
            run=run_id(config.jobdir),
            detector=Detector(
                index,
                fingerprint.hash,
                config.threshold,
                config.scope,
                lease=config.lease,
                preferred_hosts=config.preferred_hosts,
            ),
            fingerprint=fingerprint,
            log=log,
            count=self.count,
            on_failure=self._failed,
            flush=self._feeds.flush if self._feeds.exist else None,
            seal_interval=config.seal_interval,
        )
        self._feeds.begin()
        self._announce(config, store)
        if config.tune_gc:
            self._collector.begin()

    def _announce(self, config: Config, store: OpenStore) -> None:
        for line in messages.at_start(config, store, self._feeds.overwritten):
            logger.info("dedup: %s", line, extra={"spider": self.spider})

    async def engine_started(self) -> None:
        """End a crawl that cannot start before its first request, with exit status 1 and no traceback.

        An exception raised in ``spider_opened`` would only be logged, and the crawl would run on without the plugin;
        one raised earlier ends it with a traceback. An engine without a spider is what Scrapy calls a failed bootstrap.
        """
        if self._error is None:
            self._request_again()
            return
        crawler = self.crawler
        logger.error("dedup: %s", self._error, extra={"spider": crawler.spider})
        feeds = crawler.get_extension(FeedExporter)
        if feeds is not None:
            # A crawl that never began must not overwrite the feed of the one before.
            feeds.slots.clear()
        if self._store is not None:
            self._store.close()
        await crawler.engine.close_spider_async(reason=CLOSE_REASON)
        await crawler.engine.stop_async()
        crawler.spider = None

    def _request_again(self) -> None:
        """Request the pages that were dropped in favour of what a crash may have lost."""
        if self.crawl is None:
            return
        for entry in self.crawl.safety.journal.hand_out(self.spider.name):
            request = unpack(entry.request, self.spider)
            if request is None:
                self.count("journal/unreadable")
                continue
            self.crawl.safety.requested_again(entry.identity, identities_of(self.crawler, request, request.url))
            # Where runs share a JOBDIR the request has been seen; where they do not, the crawl may come by it itself.
            request.dont_filter = self.config.jobdir is not None
            self.crawler.engine.crawl(request)
            self.count("journal/requested_again")
        if again := self.crawler.stats.get_value("dedup/journal/requested_again"):
            logger.info(
                "dedup: %d dropped pages are requested again, after a crash or at the wish of `restore`",
                again,
                extra={"spider": self.spider},
            )

    # --- items

    def item_scraped(self, response: Response | None) -> None:
        if self.crawl is None:
            return
        self.count("items/delivered")
        taken = self._feeds.took()
        if (claim := self._claim(response)) is not None:
            if taken:
                claim.item_scraped()
            else:
                claim.item_failed()

    def item_dropped(self, response: Response | None) -> None:
        if (claim := self._claim(response)) is not None:
            claim.item_dropped()

    def item_failed(self, response: Response | None) -> None:
        if (claim := self._claim(response)) is not None:
            claim.item_failed()

    def _claim(self, response: object) -> Claim | None:
        """Return the claim that the item of a signal belongs to: its own, or that of its page."""
        claim = item_claim.get()
        if claim is not None:
            item_claim.set(None)
            return claim
        # The response of an item from an errback is a Failure, and of one from start() None: neither has a case.
        case = self.cases.get(response) if isinstance(response, Response) else None
        return None if case is None else case.claim

    # --- end

    def _failed(self, error: DedupError) -> None:
        logger.error(
            "dedup: %s; from now on every page is delivered and nothing is dropped",
            error,
            extra={"spider": self.crawler.spider},
        )

    def feed_slot_closed(self, slot: FeedSlot) -> None:
        if self.crawl is None:
            return
        try:
            self._feeds.closed(slot)
        except FeedError as error:
            self.crawl.fail(error)
        else:
            self.crawl.safety.stored(slot)

    def spider_closed(self) -> None:
        """Close, unless there are feeds: Scrapy stores them after this signal, and then they say so."""
        if not self._feeds.exist:
            self._close()

    def feeds_closed(self) -> None:
        if self.crawl is None:
            return
        try:
            self._feeds.end()
        except FeedError as error:
            self.crawl.fail(error)
        self._close()

    def engine_stopped(self) -> None:
        """Close what is still open, because a feed's end failed in a way that nobody told of."""
        if self.crawl is not None:
            self.crawl.fail(FeedError("the feeds did not come to an end"))
            self._close()

    def _close(self) -> None:
        if self.crawl is None:
            return
        spider = self.crawler.spider
        self._collector.end()
        self.crawl.close()
        self.cases.clear()
        self.item_sources.clear()
        if self._store is not None:
            try:
                self._store.close()
            except DedupError as error:
                logger.error("dedup: %s", error, extra={"spider": spider})
        self.crawl = None
        stats = self.crawler.stats
        summary = messages.at_end(self.config, lambda name: int(stats.get_value(f"dedup/{name}", 0)))
        logger.info(summary, extra={"spider": spider})


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
