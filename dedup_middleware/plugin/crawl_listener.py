"""What happens in a crawl, told to a person: in its log, and in its stats."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dedup_middleware.errors import StoreAwayError, StoreError
from dedup_middleware.plugin import messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dedup_middleware.delivery.taking_back import TakenBack
    from dedup_middleware.errors import DedupError
    from dedup_middleware.plugin.extension import DedupExtension
    from dedup_middleware.plugin.recovery import Recovery

logger = logging.getLogger(__name__)


class CrawlListener:
    """The Listener of a crawl; see there for its methods."""

    def __init__(self, extension: DedupExtension, recovery: Recovery) -> None:
        self._extension = extension
        self._recovery = recovery

    def count(self, name: str, amount: int = 1) -> None:
        self._extension.count(name, amount)

    def failed(self, error: DedupError) -> None:
        if isinstance(error, StoreAwayError):
            self._warn(messages.away(error))
            self._extension.absence.begin()
            return
        if not isinstance(error, StoreError):
            self._extension.absence.end()
        line = "dedup: %s; from now on every page is delivered and nothing is dropped"
        logger.error(line, error, extra={"spider": self._extension.crawler.spider})

    def one_owner(self, host: str, owner: str, repeats: int, pages: int) -> None:
        self._warn(messages.one_owner(self._extension.config, host, owner, repeats, pages))

    def field_that_keeps(self, field: str, kept: int, pages: int) -> None:
        self._warn(messages.field_that_keeps(field, kept, pages))

    def taken_back(self, taken: Sequence[TakenBack]) -> None:
        self._recovery.take_back([page.entry for page in taken if page.entry is not None and page.at_once])
        if again := [page for page in taken if page.entry is not None]:
            logger.info("dedup: %s", messages.taken_back(again), extra={"spider": self._extension.spider})
        if left := [page for page in taken if page.entry is None]:
            self._warn(messages.not_taken_back(self._extension.config, left))

    def not_keepable(self, kind: type, left_out: Mapping[str, type]) -> None:
        self._warn(messages.not_keepable(kind, left_out))

    def tag_refused(self, kind: type) -> None:
        self._warn(messages.tag_refused(kind))

    def _warn(self, line: str) -> None:
        logger.warning("dedup: %s", line, extra={"spider": self._extension.crawler.spider})
