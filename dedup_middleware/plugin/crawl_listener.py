"""What happens in a crawl, told to a person: in its log, and in its stats."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dedup_middleware.errors import StoreAwayError, StoreError
from dedup_middleware.plugin import messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dedup_middleware.errors import DedupError
    from dedup_middleware.model import StoredPage
    from dedup_middleware.plugin.extension import DedupExtension

logger = logging.getLogger(__name__)


class CrawlListener:
    """The Listener of a crawl; see there for its methods."""

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension

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

    def released(self, pages: Sequence[StoredPage]) -> None:
        logger.info("dedup: %s", messages.template_found(pages), extra={"spider": self._extension.spider})
        self._extension.releases.request()

    def not_keepable(self, kind: type, left_out: Mapping[str, type]) -> None:
        self._warn(messages.not_keepable(kind, left_out))

    def tag_refused(self, kind: type) -> None:
        self._warn(messages.tag_refused(kind))

    def _warn(self, line: str) -> None:
        logger.warning("dedup: %s", line, extra={"spider": self._extension.crawler.spider})
