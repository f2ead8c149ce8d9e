"""Holds the state that the components of the plugin share in one crawl, and counts and logs what they report."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from dedup_middleware.plugin import messages
from dedup_middleware.visits.visit import Listener

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from dedup_middleware.driver.deduplicator import Deduplication
    from dedup_middleware.driver.releases import Releaser
    from dedup_middleware.index.dropped_items import DroppedItem
    from dedup_middleware.settings import Config
    from dedup_middleware.visits.visit import Visit

# The name that users see in Scrapy's log.
logger = logging.getLogger("dedup_middleware.plugin.extension")


class Entry(NamedTuple):
    """A page on its way, and the deduplication in which it ends, also after the store was away."""

    deduplication: Deduplication
    visit: Visit
    released: DroppedItem | None = None
    """The dropped item, of an item that is released."""


class Passing(NamedTuple):
    """An item between the spider middleware and the pipelines."""

    item: Any
    """A reference, so that no other item gets its ``id()``: items are often not hashable."""
    entry: Entry
    request: bytes | None
    """The identity of its request if the item is to be checked as a page, empty without one; ``None`` if it is
    released."""


class SharedState(Listener):
    """What the extension, the middlewares and the pipeline of one crawl share.

    ``deduplication`` is ``None`` wherever the plugin must not do anything: before the spider opens, after it has
    closed, in ``scrapy shell``, ``fetch``, ``view``, ``parse`` and ``check``, and when the start has failed.
    """

    config: Config
    """The checked settings; once the spider is open."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.deduplication: Deduplication | None = None
        self.releaser: Releaser | None = None
        self.requests: Any = None
        self.visits: WeakKeyDictionary[Response, Entry] = WeakKeyDictionary()
        self.passing: dict[int, Passing] = {}
        """The items that the pipeline is to recognise, by ``id()``."""

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a ``dedup/*`` stat."""
        self.crawler.stats.inc_value(f"dedup/{name}", amount)

    def warn(self, line: str) -> None:
        self._log(logging.WARNING, line)

    def inform(self, line: str) -> None:
        """Log a line at the level INFO."""
        self._log(logging.INFO, line)

    def one_original(self, host: str, original: str, repeats: int, pages: int) -> None:
        self.warn(messages.one_original(self.config, host, original, repeats, pages))

    def one_other_host(self, host: str, other: str, repeats: int, pages: int) -> None:
        self.warn(messages.one_other_host(self.config, host, other, repeats, pages))

    def defect(self, error: Exception, where: object, entry: Entry | None = None) -> None:
        """Log a plugin bug at *where*, which is kept: the crawl goes on. The page of *entry* owns nothing."""
        with suppress(Exception):  # where one thing of ours is broken, others may be
            self.count("defects")
        with suppress(Exception):
            if entry is not None:
                entry.deduplication.claims.void(entry.visit)
        self._log(logging.ERROR, f"{error!r} at {where}, which is kept; please report it", exc_info=error)

    def goes_without(self, part: str, error: Exception) -> None:
        """Warn that the crawl goes on without an optional *part* of the plugin, because of a bug."""
        self.count("defects")
        line = f"the {part} failed, and the crawl goes on without; please report it: {error!r}"
        self._log(logging.WARNING, line, exc_info=error)

    def _log(self, level: int, line: str, exc_info: Any = None) -> None:
        logger.log(level, "dedup: %s", line, exc_info=exc_info, extra={"spider": self.crawler.spider})
