"""Opens the store of a crawl, counts and reports what happens, sums up and closes."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from functools import partial
from math import ceil
from threading import Event
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.utils.misc import load_object

from dedup_middleware.driver.deduplicator import Deduplication
from dedup_middleware.driver.opening import name_of_jobdir, new_crawl, open_for_crawl
from dedup_middleware.driver.releases import Releaser
from dedup_middleware.errors import DedupError, FeedError, RecordsError, StoreAwayError, StoreError
from dedup_middleware.index import item_codec
from dedup_middleware.model import Action
from dedup_middleware.plugin import messages
from dedup_middleware.plugin.addon import ADDONS, COMPONENTS, annex
from dedup_middleware.plugin.feeds import Feeds, read_config
from dedup_middleware.plugin.item_flow import OriginalWait, Releases, item_entry, item_type
from dedup_middleware.plugin.shared_state import Entry, SharedState, logger
from dedup_middleware.plugin.threads import Threads, opened_again, sleep
from dedup_middleware.records.counts import mostly_unchecked
from dedup_middleware.records.file import last_crawl_line
from dedup_middleware.settings import is_enabled, unknown_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.extensions.feedexport import FeedSlot
    from typing_extensions import Self

    from dedup_middleware.driver.opening import Resources

#: The reason a crawl is closed with when the plugin cannot start.
CLOSE_REASON = "dedup_error"
# Those of Scrapy's signals for which the extension has a method.
_SIGNALS = (
    *("spider_opened", "engine_started", "request_dropped", "item_scraped", "item_dropped", "item_error"),
    *("feed_slot_closed", "spider_closed", "feed_exporter_closed", "engine_stopped"),
)


class DedupExtension(SharedState):
    """Opens and closes the store of one crawl."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.opened: Resources | None = None
        self.components: set[type[Component]] = set()
        """What is at work of the plugin, beside this extension."""
        self.feeds = Feeds(crawler)
        self.wait = OriginalWait(self)
        self.releases = Releases(self, self.wait)
        self._error: DedupError | None = None
        self._disks = Threads(self.defect)
        self._reopening = Threads(self.defect)
        # Set once the store is not awaited any more; and since when it is away.
        self._is_over = Event()
        self._is_over.set()
        self._away_since = 0.0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls(crawler)
        for name in _SIGNALS:
            crawler.signals.connect(getattr(extension, name), getattr(signals, name))
        return extension

    # --- start

    async def spider_opened(self, spider: Spider) -> None:
        # The shell drives the engine without crawl(); fetch, view, parse, check and bench replace the spider's start.
        if not self.crawler.crawling or type(spider).start.__module__.startswith("scrapy.commands."):
            logger.debug("dedup is off: this command only looks at pages")
            return
        try:
            await self._open(str(spider.name))
        except DedupError as error:
            self._error = error
        except Exception:  # noqa: BLE001 - a plugin bug must not end a crawl
            self._log(logging.ERROR, "the plugin failed to start; the crawl goes on without it", exc_info=True)
            self.count("failures")
        else:
            return
        self.deduplication = None
        self._close_files()

    async def _open(self, spider: str) -> None:
        settings = self.crawler.settings
        for line in unknown_settings(settings):
            self.warn(line)
        if not is_enabled(settings):
            self.inform("off, because DEDUP_ENABLED is false: no page is checked, and nothing is dropped")
            return
        self._warn_of_gaps()
        config = read_config(settings, spider)
        before = None
        if config.log is not None:
            with suppress(OSError, RecordsError):
                before = last_crawl_line(config.log)
        opened = self.opened = await open_for_crawl(config, sleep)
        self.feeds.snapshot()
        for line in messages.of_feeds(torn=self.feeds.end_torn_lines(), pipes=self.feeds.pipes):
            self.inform(line)
        overwritten = opened.config.overwritten
        jobdir, is_resumed = name_of_jobdir(opened.config.jobdir)
        # The items that the earlier runs of the JOBDIR kept are not in a feed that is overwritten.
        self._begin(opened, new_crawl() if overwritten or not jobdir else jobdir, jobdir)
        for line in messages.at_start(opened):
            self.inform(line)
        for line in messages.warnings_at_start(opened, before):
            self.warn(line)
        if is_resumed and overwritten:
            self.warn(messages.overwritten_again(overwritten))
        if opened.trouble:
            self.count("pass_through" if opened.awaited is None else "away")
        if opened.awaited is not None:
            self._reopen()

    def _warn_of_gaps(self) -> None:
        """Warn if components are missing that the add-on registers: a person has named some by hand."""
        wanted = [kind for _, path, _ in COMPONENTS if issubclass(kind := load_object(path), Component)]
        missing = [c.__name__ for c in wanted if not any(issubclass(own, c) for own in self.components)]
        if missing:
            self.warn(f"pages or items are not checked without {' and '.join(missing)}: set {ADDONS}, which adds all")

    def _begin(self, opened: Resources, run: str, jobdir: str) -> Deduplication:
        self.opened, self.config = opened, opened.config
        deduplication = self.deduplication = Deduplication(
            opened,
            run,
            self,
            jobdir=jobdir,
            feeds=self.feeds.kinds,
            flush=self.feeds.flush if self.feeds.exporter else None,
            disks=self._disks,
            feeds_wanting=self.feeds.wanting,
            feeds_end_late=self.feeds.end_late,
        )
        item_codec.PROJECT.give([type(self.crawler.spider)])
        # A dry run changes nothing that another crawl sees, and a crawl that passes through is one.
        is_dry = opened.config.action is Action.DRY_RUN
        self.releaser = None if is_dry else Releaser(deduplication)
        if self.requests is None and opened.config.priority_adjust and not is_dry:
            try:
                if (requests := annex("requests")) is not None:
                    self.requests = requests.RequestOrder(self, opened.store.header.key)
            except Exception as error:  # noqa: BLE001 - a plugin bug
                self.goes_without("order of requests", error)
        return deduplication

    async def engine_started(self) -> None:
        """End a crawl that cannot start before its first request, with exit status 1 and no traceback.

        An exception raised in ``spider_opened`` would only be logged, and the crawl would run on without the plugin;
        one raised earlier ends it with a traceback. An engine without a spider is what Scrapy calls a failed bootstrap.
        """
        if self._error is None:
            return
        self._log(logging.ERROR, str(self._error))
        if self.feeds.exporter is not None:
            # A crawl that never began must not overwrite the feed of the one before.
            self.feeds.exporter.slots.clear()
        await self.crawler.engine.close_spider_async(reason=CLOSE_REASON)
        await self.crawler.engine.stop_async()
        self.crawler.spider = None

    # --- a store that is away

    def _reopen(self) -> None:
        """Open the store as soon as it is back; then the crawl goes on with it."""
        assert self.opened is not None
        self._away_since, self._is_over = time.monotonic(), Event()
        work = partial(opened_again, self.opened, self._is_over, self.warn)
        self._reopening.begin(work, partial(self._reopened, self._is_over))

    def _await_no_more(self) -> None:
        if not self._is_over.is_set():
            self._is_over.set()
            self.count("away_seconds", ceil(time.monotonic() - self._away_since))

    def _reopened(self, is_over: Event, outcome: Callable[[], Resources | None]) -> None:
        """Go on with what was opened, as the same crawl; pages on their way end in the deduplication they are in."""
        if is_over.is_set():
            with suppress(DedupError):
                if (opened := outcome()) is not None:
                    opened.store.close()  # again, if the thread has closed it
            return
        self._await_no_more()
        try:
            opened = outcome()
        except DedupError as error:
            self.count("failures")
            self._log(logging.ERROR, f"{error} To the end of this crawl every page is kept and nothing is dropped")
            return
        before = self.deduplication
        assert opened is not None
        assert before is not None
        self._begin(opened, before.run, before.jobdir).resume_from(before)
        self.warn(messages.back(opened, time.monotonic() - self._away_since))

    def failed(self, error: DedupError) -> None:
        if isinstance(error, StoreAwayError):
            self.warn(f"{error} Until it is back every page is kept, and nothing is dropped")
            self._reopen()
            return
        if not isinstance(error, StoreError):
            self._await_no_more()
        self._log(logging.ERROR, f"{error} From now on every page is kept and nothing is dropped")

    def request_dropped(self, request: Request) -> None:
        """Note where a redirect leads that Scrapy does not follow, because the crawl has asked for that page."""
        urls, deduplication = request.meta.get("redirect_urls"), self.deduplication
        if urls and deduplication is not None:
            deduplication.redirected(urls, request.url)

    # --- items that have left the pipelines

    def item_scraped(self, item: Any, response: Response | None) -> None:
        if self.deduplication is None:
            return
        came_as, entry = item_type.get(), self._entry(response)
        item_type.set(None)
        try:
            taken = self.feeds.took(item, came_as)
            if entry is None:
                return
            if taken is None:
                entry.deduplication.claims.void(entry.visit)
                return
            entry.deduplication.claims.item_left(entry.visit, taken)
            if entry.released is not None:
                is_as_dropped = came_as is not None and item_codec.name_of(came_as) == entry.released.type
                entry.deduplication.released_item_left(entry.released, taken if is_as_dropped else None)
        except Exception as error:  # noqa: BLE001 - a plugin bug: the claim must not stay open
            self.defect(error, response, entry)

    def item_dropped(self, response: Response | None) -> None:
        if (entry := self._entry(response)) is not None:
            entry.deduplication.claims.void(entry.visit)
            if entry.released is not None:
                entry.deduplication.released_item_left(entry.released)

    def item_error(self, response: Response | None) -> None:
        if (entry := self._entry(response)) is not None:
            entry.deduplication.claims.void(entry.visit)

    def _entry(self, response: object) -> Entry | None:
        """Return the entry of the item of a signal: its own, or that of its page."""
        entry = item_entry.get()
        if entry is not None:
            item_entry.set(None)
            return entry
        # The response of an item from an errback is a Failure, and of one from start() None.
        return self.visits.get(response) if isinstance(response, Response) else None

    # --- end

    def feed_slot_closed(self, slot: FeedSlot) -> None:
        if self.deduplication is None:
            return
        try:
            self.deduplication.claims.durability.wait_for_disk(self.feeds.closed(slot), slot)
        except FeedError as error:
            self.deduplication.fail(error)
        except Exception as error:  # noqa: BLE001 - a plugin bug
            self.defect(error, slot.uri)
            self.deduplication.fail(FeedError("it is not known whether a feed was stored"))

    def spider_closed(self, reason: str) -> None:
        """Close, unless there are feeds: Scrapy stores them after this signal."""
        if self.deduplication is not None:
            self.deduplication.recorder.note(reason=reason)
        if self.feeds.exporter is None:
            self._close()

    def feed_exporter_closed(self) -> None:
        if self.deduplication is not None:
            try:
                self.feeds.end()
            except FeedError as error:
                self.deduplication.fail(error)
            self._close()

    def engine_stopped(self) -> None:
        """Close what is still open, because a feed's end failed and sent no signal."""
        if self.deduplication is not None:
            self.deduplication.fail(FeedError("the feeds did not come to an end"))
            self._close()

    def _close(self) -> None:
        deduplication, opened = self.deduplication, self.opened
        if deduplication is None or opened is None:
            return
        self._await_no_more()
        if self.requests is not None:
            self.requests.close()
        deduplication.close()
        self.visits.clear()
        self.passing.clear()
        self._close_files()
        self.deduplication = None
        stats = self.crawler.stats.get_stats()
        numbers = {name.removeprefix("dedup/"): value for name, value in stats.items() if name.startswith("dedup/")}
        # `scrapy dedup stats` counts the records; a stats collector of the project's own may count otherwise.
        numbers |= deduplication.recorder.counts.numbers
        summary = messages.at_end(opened, numbers, is_away=deduplication.awaits_store)
        logger.info(summary, extra={"spider": self.crawler.spider})
        # Without the keys that are wanted, pages are judged that should not be: to set the right key comes first.
        # Items of `start()` are of no page, and Scrapy alone counts them.
        has_items = stats.get("item_scraped_count", 0) > numbers.get("items/released", 0) or numbers.get("items/kept")
        is_keyless = deduplication.keys.are_missing and has_items
        first = messages.no_key(opened.config.key) if is_keyless else mostly_unchecked(numbers)
        fields = messages.fields_not_found(deduplication.item_check.fields_not_found or ())
        for warning in filter(None, (first, messages.originals_pending(numbers), fields)):
            self.warn(warning)

    def _close_files(self) -> None:
        """Close the records and the store; a second call does nothing."""
        for file in () if self.opened is None else (self.opened.log, self.opened.store):
            try:
                if file is not None:
                    file.close()
            except DedupError as error:  # noqa: PERF203 - two files
                self._log(logging.ERROR, str(error))


# The crawlers whose settings name a component, and not the extension.
_WITHOUT_EXTENSION: WeakSet[Crawler] = WeakSet()


class Component:
    """A middleware or a pipeline of the plugin; not configured in a crawl without the extension."""

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = crawler.get_extension(DedupExtension)
        if extension is None:
            # Each component comes here, and one line is enough.
            has_said = crawler in _WITHOUT_EXTENSION
            _WITHOUT_EXTENSION.add(crawler)
            raise NotConfigured(*[] if has_said else [f"without its extension dedup does nothing: set {ADDONS}"])
        extension.components.add(cls)
        return cls(extension)
