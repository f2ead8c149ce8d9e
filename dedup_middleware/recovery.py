"""Requests once more what a crash may have taken, or what `restore` asks for. ★ Scrapy glue.

It waits until the spider has nothing else to do. Before that, the spider may request a page itself, with what it needs
today (a login, a token, other arguments), and whatever came first would be the only request that Scrapy lets through.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import TYPE_CHECKING

from scrapy import signals

from dedup_middleware.packing import LEFTOVER
from dedup_middleware.requests import unpack

if TYPE_CHECKING:
    from scrapy import Request

    from dedup_middleware.extension import DedupExtension

logger = logging.getLogger(__name__)


class Recovery:
    """Requests the pages of this spider that an unclean shutdown left in the journal, and that it has not met since."""

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension
        extension.crawler.signals.connect(self.idle, signals.spider_idle)

    def idle(self) -> None:
        extension, crawl = self._extension, self._extension.crawl
        if crawl is None:
            return
        # Items of one page were each dropped with its request.
        keys_of: defaultdict[bytes, list[bytes]] = defaultdict(list)
        for key, entry in crawl.safety.to_request_again():
            keys_of[entry.request].append(key)
        requests = [(unpack(packed, extension.spider), keys) for packed, keys in keys_of.items()]
        again = [(request, keys) for request, keys in requests if request is not None]
        for request, keys in again:
            request.meta[LEFTOVER] = keys
            request.dont_filter = True
            extension.crawler.engine.crawl(request)
        self._tell(len(again), len(requests) - len(again))

    def _tell(self, again: int, unreadable: int) -> None:
        extra = {"spider": self._extension.spider}
        if again:
            self._extension.count("journal/requested_again", again)
            logger.info(
                "dedup: %d dropped pages are requested again, after a crash or for `scrapy dedup restore`",
                again,
                extra=extra,
            )
        if unreadable:
            self._extension.count("journal/unreadable", unreadable)
            logger.warning(
                "dedup: %d dropped pages cannot be requested again: their callback or a class in their meta cannot be "
                "found or read any more; they stay in the store's journal",
                unreadable,
                extra=extra,
            )


def take_leftover(request: Request) -> frozenset[bytes]:
    """Take the journal keys that *request* is made for out of its meta, for it leaves the downloader; return them."""
    keys = request.meta.pop(LEFTOVER, None)
    return frozenset(keys) if isinstance(keys, (list, tuple)) else frozenset()
