"""The plugin's life within one crawl: open, refuse, count, sum up, close."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from functools import partial
from math import ceil
from threading import Event, Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.extensions.feedexport import FeedExporter
from scrapy.utils.asyncio import call_later

from dedup_middleware import item_codec
from dedup_middleware.errors import (
    DedupError,
    FeedError,
    StoreAwayError,
    StoreCorruptError,
    StoreError,
    StoreLockedError,
    StoreVersionError,
)
from dedup_middleware.opening import deduplication_of, open_again, open_for_crawl, run_id
from dedup_middleware.plugin import messages
from dedup_middleware.plugin.feeds import Feeds
from dedup_middleware.plugin.items import Entry, ItemSignals, Passing, Releases
from dedup_middleware.plugin.project import read_config
from dedup_middleware.plugin.threads import DiskThreads, OriginalWait, in_thread, sleep
from dedup_middleware.releases import Releaser
from dedup_middleware.settings import Config, is_enabled, unknown_settings
from dedup_middleware.visit import Listener

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.extensions.feedexport import FeedSlot
    from scrapy.http import HtmlResponse, Response
    from typing_extensions import Self

    from dedup_middleware.deduplicator import Deduplication
    from dedup_middleware.model import StoredPage
    from dedup_middleware.opening import Resources
    from dedup_middleware.records.records import RecordLog
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
            self._warn(f"{error}; until it is back every page is kept, and nothing is dropped")
            self.absence.begin()
            return
        if not isinstance(error, StoreError):
            self.absence.end()
        line = "dedup: %s; from now on every page is kept and nothing is dropped"
        logger.error(line, error, extra={"spider": self.crawler.spider})

    def one_original(self, host: str, original: str, repeats: int, pages: int) -> None:
        self._warn(messages.one_original(self.config, host, original, repeats, pages))

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
        """Tell of a defect of ours at *where*, which is kept: the crawl goes on. The *visit* owns nothing."""
        with suppress(Exception):  # where one thing of ours is broken, so may be others
            self.count("defects")
        with suppress(Exception):
            if visit is not None and self.deduplication is not None:
                self.deduplication.item_failed(visit)
        logger.error(
            "dedup: %r at %s, which is kept; please report it",
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


#: Seconds between two attempts to open the store.
PAUSE = 2.0
# Seconds after which the event loop looks again whether the store is open.
_LOOK_AGAIN = 0.1
# Crawlers of one process that share the store share what is in memory of it, too: the next one finds it whole.
_turn = Lock()


class Absence:
    """The times at which the store of one crawl is away, one after the other."""

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension
        self._opening: Future[Resources | None] | None = None
        self._ended = Event()
        self._began = 0.0
        self._troubles: list[str] = []
        self._told: set[str] = set()

    def begin(self) -> None:
        """Open what the crawl has lost as soon as that can be done; then it goes on with that."""
        lost = self._extension.opened
        assert lost is not None
        self._began, self._ended = time.monotonic(), Event()
        self._opening = in_thread(partial(_opened_again, lost, self._ended, self._troubles))
        call_later(_LOOK_AGAIN, self._look, self._opening)

    def end(self) -> None:
        """Await the store no longer: the crawl has ended, or drops nothing for another reason."""
        if (opening := self._over()) is not None:
            opening.add_done_callback(_close)

    def _over(self) -> Future[Resources | None] | None:
        opening, self._opening = self._opening, None
        if opening is not None:
            self._ended.set()
            self._extension.count("away_seconds", ceil(time.monotonic() - self._began))
        return opening

    def _look(self, opening: Future[Resources | None]) -> None:
        if opening is not self._opening:
            return
        if not opening.done():
            while self._troubles:
                if (trouble := self._troubles.pop(0)) not in self._told:
                    self._told.add(trouble)
                    self._say(
                        logging.WARNING, f"{trouble}; that is tried again, and nothing is dropped until it succeeds"
                    )
            call_later(_LOOK_AGAIN, self._look, opening)
            return
        self._over()
        try:
            opened = opening.result()
        except DedupError as error:
            self._extension.count("failures")
            self._say(logging.ERROR, f"{error}; to the end of this crawl every page is kept and nothing is dropped")
        except Exception as error:  # noqa: BLE001 - a defect of ours costs nobody a crawl
            self._extension.defect(error, "the opening of the store")
        else:
            assert opened is not None
            self._extension.go_on(opened)
            self._say(logging.WARNING, messages.back(opened, time.monotonic() - self._began))

    def _say(self, level: int, line: str) -> None:
        logger.log(level, "dedup: %s", line, extra={"spider": self._extension.crawler.spider})


def _opened_again(lost: Resources, ended: Event, troubles: list[str]) -> Resources | None:
    """Return what is open once the store is back; ``None`` if the wait has *ended*.

    Raises what only a person can mend; *troubles* gets what else fails. The store of *lost* is closed, unless it is an
    observer's own.
    """
    if lost.awaited is None:
        with suppress(StoreError):
            lost.store.close()
    while not ended.wait(PAUSE):
        try:
            with _turn:
                return open_again(lost)
        except (StoreCorruptError, StoreVersionError):  # noqa: PERF203 - an attempt every other second
            raise
        except (StoreAwayError, StoreLockedError):
            pass
        except StoreError as error:
            troubles.append(str(error))
    return None


def _close(opening: Future[Resources | None]) -> None:
    """Close what was opened after its waiting has ended."""
    if opening.exception() is None and (opened := opening.result()) is not None:
        opened.store.close()
