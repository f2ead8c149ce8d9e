"""Waits for a store that is away: everything is kept, and a thread tries to open the store until it is back."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from functools import partial
from math import ceil
from threading import Event, Lock
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

from dedup_middleware.errors import (
    DedupError,
    StoreAwayError,
    StoreCorruptError,
    StoreError,
    StoreLockedError,
    StoreVersionError,
)
from dedup_middleware.plugin import messages
from dedup_middleware.plugin.threads import in_thread
from dedup_middleware.session.opening import open_again

if TYPE_CHECKING:
    from concurrent.futures import Future

    from dedup_middleware.plugin.extension import DedupExtension
    from dedup_middleware.session.opening import Resources

logger = logging.getLogger(__name__)

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
            self._say(
                logging.ERROR, f"{error}; to the end of this crawl every page is delivered and nothing is dropped"
            )
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
