"""What a crawl does while its store is away: everything is delivered, and the store is asked for until it is back."""

from __future__ import annotations

import logging
import time
from math import ceil
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

from dedup_middleware.errors import DedupError
from dedup_middleware.plugin import messages
from dedup_middleware.session.reopening import Reopening

if TYPE_CHECKING:
    from dedup_middleware.plugin.extension import DedupExtension
    from dedup_middleware.session.opening import Resources

logger = logging.getLogger(__name__)

# Seconds after which the event loop looks again whether the store is open.
_LOOK_AGAIN = 0.1


class Absence:
    """The times at which the store of one crawl is away, one after the other."""

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension
        self._reopening: Reopening | None = None
        self._began = 0.0
        self._told: set[str] = set()

    def begin(self) -> None:
        """Open what the crawl has lost as soon as that can be done; then it goes on with that."""
        lost = self._extension.opened
        assert lost is not None
        self._began = time.monotonic()
        self._reopening = Reopening(lost)
        call_later(_LOOK_AGAIN, self._look)

    def end(self) -> None:
        """Await the store no longer: the crawl has ended, or drops nothing for another reason."""
        if self._reopening is not None:
            self._extension.count("away_seconds", ceil(time.monotonic() - self._began))
            self._reopening.end()
            self._reopening = None

    def _look(self) -> None:
        if self._reopening is None:
            return
        try:
            opened = self._reopening.opened()
        except DedupError as error:
            self.end()
            self._extension.count("failures")
            self._say(logging.ERROR, messages.cannot_come_back(error))
        except Exception as error:  # noqa: BLE001 - a defect of ours costs nobody a crawl
            self.end()
            self._extension.defect(error, "the opening of the store")
        else:
            if opened is None:
                self._tell_trouble(self._reopening.trouble)
                call_later(_LOOK_AGAIN, self._look)
            else:
                self._go_on(opened)

    def _go_on(self, opened: Resources) -> None:
        seconds = time.monotonic() - self._began
        self.end()
        self._extension.go_on(opened)
        self._say(logging.WARNING, messages.back(opened, seconds))

    def _tell_trouble(self, trouble: str) -> None:
        if trouble and trouble not in self._told:
            self._told.add(trouble)
            self._say(logging.WARNING, messages.not_yet_back(trouble))

    def _say(self, level: int, line: str) -> None:
        logger.log(level, "dedup: %s", line, extra={"spider": self._extension.crawler.spider})
