"""Requests once more what a crash may have taken, what `restore` asks for, what is taken back.

For the first two it waits until the spider has nothing else to do. Before that, the spider may request a page itself,
with what it needs today (a login, a token, other arguments), and whatever came first would be the only request that
Scrapy lets through.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import TYPE_CHECKING

from scrapy import signals

from dedup_middleware.index.packing import RECOVERED
from dedup_middleware.plugin.requests import unpack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy import Request

    from dedup_middleware.index.journal import JournalEntry
    from dedup_middleware.plugin.extension import DedupExtension

logger = logging.getLogger(__name__)


class Recovery:
    """Requests pages of this spider that an unclean shutdown left in the journal and that it has not met since.

    And, at once, those whose verdict is taken back.
    """

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension
        extension.crawler.signals.connect(self.idle, signals.spider_idle)

    def idle(self) -> None:
        session = self._extension.session
        if session is None:
            return
        # Items of one page were each dropped with its request.
        keys_of: defaultdict[bytes, list[bytes]] = defaultdict(list)
        for key, entry in session.safety.to_request_again():
            keys_of[entry.request].append(key)
        again = sum(self._request(packed, keys) for packed, keys in keys_of.items())
        self._tell(again, len(keys_of) - again)

    def take_back(self, entries: Sequence[JournalEntry]) -> None:
        """Request once more, at once, what this crawl has dropped for a template."""
        # Scrapy's default queues are last in, first out; the first entry is to be fetched first, for its copies are
        # judged against it.
        for entry in reversed(entries):
            self._request(entry.request, [entry.key])

    def _request(self, packed: bytes, keys: list[bytes]) -> bool:
        """Request a page again, for which the journal has entries with these *keys*; tell whether that can be done."""
        request = unpack(packed, self._extension.spider)
        if request is None:
            return False
        request.meta[RECOVERED] = keys
        request.dont_filter = True
        self._extension.crawler.engine.crawl(request)
        return True

    def _tell(self, again: int, unreadable: int) -> None:
        extra = {"spider": self._extension.spider}
        if again:
            self._extension.count("journal/requested_again", again)
            logger.info(
                "dedup: %d dropped pages are requested again: after a crash, for `scrapy dedup restore`, or taken back",
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


def take_recovered(request: Request) -> frozenset[bytes]:
    """Take the journal keys that *request* is made for out of its meta, for it leaves the downloader; return them."""
    keys = request.meta.pop(RECOVERED, None)
    return frozenset(keys) if isinstance(keys, (list, tuple)) else frozenset()
