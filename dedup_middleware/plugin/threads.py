"""Waits for disks and servers without holding up the event loop.

Scrapy has functions for both that follow, which do not serve: a process does not end before the threads of its
`run_in_thread` have, and `sleep` came with Scrapy 2.18.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from scrapy.utils.asyncio import call_later, is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from dedup_middleware.driver.opening import open_at_once
from dedup_middleware.errors import StoreAwayError, StoreCorruptError, StoreError, StoreLockedError, StoreVersionError

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from dedup_middleware.driver.opening import Resources

#: Seconds between two attempts to open a store that is away.
PAUSE = 2.0
# Crawlers of one process that share a store open it one after the other: then they share it again.
_turn = Lock()


class Threads:
    """Calls what blocks in daemon threads, with every reactor and without one; see `DiskWaits`."""

    def __init__(self, defect: Callable[[Exception, object], None]) -> None:
        """Report to *defect* what `begin` is not meant to raise."""
        self._defect = defect
        self._under_way: dict[Future[Any], Callable[[Callable[[], Any]], None]] = {}

    def begin(self, work: Callable[[], Any], then: Callable[[Callable[[], Any]], None]) -> None:
        """Call *work* in a thread, then *then* in this one with a function that returns or raises what *work* did.

        A disk or a server that never answers does not keep the process from ending.
        """
        outcome: Future[Any] = Future()
        in_loop = _caller_from_threads()

        def run() -> None:
            try:
                outcome.set_result(work())
            except Exception as error:  # noqa: BLE001 - raised where the outcome is used
                outcome.set_exception(error)
            with suppress(RuntimeError):  # the loop has ended: `finish` was called
                in_loop(partial(self._end, outcome))

        self._under_way[outcome] = then
        Thread(target=run, name="dedup", daemon=True).start()

    def finish(self) -> None:
        """Return when all has ended; blocks."""
        while self._under_way:
            self._end(next(iter(self._under_way)))

    def _end(self, outcome: Future[Any]) -> None:
        then = self._under_way.pop(outcome, None)
        if then is None:
            return  # `finish` has waited for it
        try:
            outcome.exception()  # waits until it is over
            then(outcome.result)
        except Exception as error:  # noqa: BLE001 - a plugin bug
            self._defect(error, "a thread")


def _caller_from_threads() -> Callable[[Callable[[], None]], object]:
    """Return what calls a function in the event loop of this thread, from another thread."""
    if is_asyncio_available():
        return asyncio.get_event_loop().call_soon_threadsafe
    from twisted.internet import reactor  # noqa: PLC0415 - importing it installs one

    call: Callable[[Callable[[], None]], object] = reactor.callFromThread
    return call


async def sleep(seconds: float) -> None:
    """Let the event loop turn for *seconds*."""
    over: Deferred[None] = Deferred()
    call_later(seconds, over.callback, None)
    await maybe_deferred_to_future(over)


def opened_again(lost: Resources, is_over: Event, warn: Callable[[str], None]) -> Resources | None:
    """Return what is open once the store is back; ``None`` once the wait *is over*. In a thread.

    Raises what only a person can mend; *warn* gets each other trouble once. The store of *lost* is closed, unless it is
    the one in memory of a crawl that passes through.
    """
    if lost.awaited is None:
        with suppress(StoreError):
            lost.store.close()
    warned: set[str] = set()
    while not is_over.wait(PAUSE):
        try:
            with _turn:
                opened = open_at_once(lost.awaited or lost.config, lost=lost)
        except (StoreCorruptError, StoreVersionError):  # noqa: PERF203 - an attempt every other second
            raise
        except (StoreAwayError, StoreLockedError):
            pass
        except StoreError as error:
            if str(error) not in warned:
                warned.add(str(error))
                warn(f"{error} The plugin tries again, and drops nothing until it succeeds")
        else:
            if is_over.is_set():
                opened.store.close()
            return opened
    return None
