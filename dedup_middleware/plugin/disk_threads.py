"""Waiting for disks in threads of their own, so that the event loop goes on: on a bad disk a sync takes seconds."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.durability import Wait

# Seconds after which the event loop looks whether a wait is over.
_LOOK_AGAIN = 0.02


class DiskThreads:
    """See `DiskWaits`; on every reactor, and where there is none."""

    def __init__(self, defect: Callable[[Exception, object], None]) -> None:
        """Tell *defect* of what should never be raised, and where."""
        self._defect = defect
        self._under_way: list[_Waiting] = []
        self._is_to_look = False

    def begin(self, wait: Wait, then: Callable[[Wait], None]) -> None:
        """See DiskWaits."""
        self._under_way.append(_Waiting(wait, then))
        self._look_later()

    def finish(self) -> None:
        """See DiskWaits; blocks."""
        while self._under_way:
            self._end(self._under_way[0])

    def _look_later(self) -> None:
        # One at a time: what follows a wait may begin another, and each would look for all.
        if self._under_way and not self._is_to_look:
            self._is_to_look = True
            call_later(_LOOK_AGAIN, self._look)

    def _look(self) -> None:
        self._is_to_look = False
        for waiting in [each for each in self._under_way if each.is_over]:
            self._end(waiting)
        self._look_later()

    def _end(self, waiting: _Waiting) -> None:
        self._under_way.remove(waiting)
        try:
            waiting.end()
        except Exception as error:  # noqa: BLE001 - what waits for it stays in doubt
            self._defect(error, "a disk")


class _Waiting:
    """A wait that is under way, or over."""

    def __init__(self, wait: Wait, then: Callable[[Wait], None]) -> None:
        self._wait = wait
        self._then = then
        self._error: Exception | None = None
        # A daemon: a disk that never answers must not keep a process that was told twice to end.
        self._thread = threading.Thread(target=self._run, name="dedup-disk", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def end(self) -> None:
        """Do what is to follow, when it is over."""
        self._thread.join()
        self._then(self._outcome)

    def _run(self) -> None:
        try:
            self._wait()
        except Exception as error:  # noqa: BLE001 - whatever it is, what follows is to hear of it
            self._error = error

    def _outcome(self) -> None:
        if self._error is not None:
            raise self._error
