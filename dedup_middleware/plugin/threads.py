"""Runs what blocks in threads of its own, so that the event loop goes on: on a bad disk a sync takes seconds."""

from __future__ import annotations

from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from scrapy.utils.asyncio import call_later

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.durability import Wait

_T = TypeVar("_T")
# Seconds after which the event loop looks whether a wait is over.
_LOOK_AGAIN = 0.02


def in_thread(work: Callable[[], _T]) -> Future[_T]:
    """Call *work* in a daemon thread: a disk or a server that never answers must not keep the process from ending."""
    outcome: Future[_T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except Exception as error:  # noqa: BLE001 - it is raised where the outcome is used
            outcome.set_exception(error)

    Thread(target=run, name="dedup", daemon=True).start()
    return outcome


class DiskThreads:
    """See `DiskWaits`; on every reactor, and without one."""

    def __init__(self, defect: Callable[[Exception, object], None]) -> None:
        """Report to *defect* what should never be raised, and where."""
        self._defect = defect
        self._under_way: list[tuple[Future[None], Callable[[Wait], None]]] = []
        self._is_to_look = False

    def begin(self, wait: Wait, then: Callable[[Wait], None]) -> None:
        """See DiskWaits."""
        self._under_way.append((in_thread(wait), then))
        self._look_later()

    def finish(self) -> None:
        """See DiskWaits; blocks."""
        while self._under_way:
            self._end(*self._under_way[0])

    def _look_later(self) -> None:
        # One at a time: what follows a wait may begin another, and each would look for all.
        if self._under_way and not self._is_to_look:
            self._is_to_look = True
            call_later(_LOOK_AGAIN, self._look)

    def _look(self) -> None:
        self._is_to_look = False
        for outcome, then in [each for each in self._under_way if each[0].done()]:
            self._end(outcome, then)
        self._look_later()

    def _end(self, outcome: Future[None], then: Callable[[Wait], None]) -> None:
        self._under_way.remove((outcome, then))
        try:
            outcome.exception()  # waits until it is over
            then(outcome.result)
        except Exception as error:  # noqa: BLE001 - what waits for it stays in doubt
            self._defect(error, "a disk")
