"""Who waits for disks, and what is done when these have what they were given.

A crawl has an event loop that must go on meanwhile; a program has none, and waits.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from contextlib import AbstractContextManager

    Wait = Callable[[], None]
    """Returns once a disk has something; raises a ``DedupError`` where it fails. In any thread, once."""
    Flush = Callable[[], tuple[set[Hashable], Wait]]
    """Hands what was delivered to its media; returns those that will have it later, and waits for the others."""
    Then = Callable[[Wait], None]
    """Is told, by what raises as the wait did, how that ended."""


class DiskWaits(Protocol):
    """Where the waits of one session go on."""

    def begin(self, wait: Wait, then: Then) -> None:
        """Call *wait*, somewhere, and *then* when it is over: where this was called, now or later, or in `finish`."""

    def finish(self) -> None:
        """Return when no wait is under way, and whatever was to follow has been done."""


class AtOnce:
    """Waits that are over before anything else is done."""

    def begin(self, wait: Wait, then: Then) -> None:
        """See DiskWaits."""
        then(wait)

    def finish(self) -> None:
        """See DiskWaits."""


class Waits:
    """The waits of one session on *disks*; *guard* notes what fails."""

    def __init__(self, disks: DiskWaits, guard: Callable[[], AbstractContextManager[None]]) -> None:
        self.under_way = 0
        """How many are not over."""
        self._disks = disks
        self._guard = guard

    def begin(self, wait: Wait | None, then: Callable[[], None] | None = None) -> None:
        """Do *then* once *wait*, if there is anything to wait for, has ended well."""
        if wait is not None:
            self.under_way += 1
            self._disks.begin(wait, partial(self._over, then))

    def finish(self) -> None:
        """Return when all are over."""
        self._disks.finish()

    def _over(self, then: Callable[[], None] | None, outcome: Wait) -> None:
        self.under_way -= 1
        with self._guard():
            outcome()
            if then is not None:
                then()
