"""Waits for disks and servers without holding up the event loop."""

from __future__ import annotations

from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING, Any

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from collections.abc import Callable

# Seconds after which the event loop looks whether a thread has ended.
_LOOK_AGAIN = 0.02


class Threads:
    """Calls what blocks in daemon threads, with every reactor and without one; see `DiskWaits`."""

    def __init__(self, defect: Callable[[Exception, object], None]) -> None:
        """Report to *defect* what `begin` is not meant to raise."""
        self._defect = defect
        self._under_way: list[tuple[Future[Any], Callable[[Callable[[], Any]], None]]] = []
        self._is_to_look = False

    def begin(self, work: Callable[[], Any], then: Callable[[Callable[[], Any]], None]) -> None:
        """Call *work* in a thread, then *then* in this one with a function that returns or raises what *work* did.

        A disk or a server that never answers does not keep the process from ending.
        """
        outcome: Future[Any] = Future()

        def run() -> None:
            try:
                outcome.set_result(work())
            except Exception as error:  # noqa: BLE001 - raised where the outcome is used
                outcome.set_exception(error)

        Thread(target=run, name="dedup", daemon=True).start()
        self._under_way.append((outcome, then))
        self._look_later()

    def finish(self) -> None:
        """Return when all has ended; blocks."""
        while self._under_way:
            self._end(*self._under_way[0])

    def _look_later(self) -> None:
        # One timer for all: *then* may begin another wait.
        if self._under_way and not self._is_to_look:
            self._is_to_look = True
            call_later(_LOOK_AGAIN, self._look)

    def _look(self) -> None:
        self._is_to_look = False
        for outcome, then in [each for each in self._under_way if each[0].done()]:
            self._end(outcome, then)
        self._look_later()

    def _end(self, outcome: Future[Any], then: Callable[[Callable[[], Any]], None]) -> None:
        self._under_way.remove((outcome, then))
        try:
            outcome.exception()  # waits until it is over
            then(outcome.result)
        except Exception as error:  # noqa: BLE001 - a plugin bug
            self._defect(error, "a thread")


async def sleep(seconds: float) -> None:
    """Let the event loop turn for *seconds*."""
    over: Deferred[None] = Deferred()
    call_later(seconds, over.callback, None)
    await maybe_deferred_to_future(over)
