"""Waiting for what servers answer, while the event loop turns: it tells when there is something to read."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from scrapy.utils.asyncio import call_later, is_asyncio_available, run_in_thread
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.index.shared_ahead import Fetch
    from dedup_middleware.stores.protocol import Arriving


def arrivals_here() -> Arrivals:
    """Return what the event loop that turns here waits for: several crawls of one process may share a connection."""
    loop = asyncio.get_running_loop() if is_asyncio_available() else _reactor()
    return _BY_LOOP.setdefault(loop, Arrivals())


class Arrivals:
    """What one event loop waits for, of any reactor, and where there is none."""

    def __init__(self) -> None:
        self._ways: dict[int, _Way] = {}
        self._is_watched = False
        # Not every event loop can tell: Windows has one that waits for other things only.
        self._can_tell = True

    async def fetched(self, fetch: Fetch) -> None:
        """Return when what *fetch* asks for is at hand, or cannot be had."""
        arriving = fetch.begin() if self._can_tell else None
        # What could not be sent may have closed the way of what was.
        self._look(time.monotonic())
        if arriving is None or not await self._arrived(arriving):
            await run_in_thread(fetch.run)

    async def _arrived(self, arriving: Arriving) -> bool:
        way = self._ways.get(arriving.fileno())
        if way is None:
            try:
                way = self._ways[arriving.fileno()] = _Way(arriving.fileno(), self._ways)
            except (NotImplementedError, AttributeError):
                self._can_tell = False
                arriving.give_up()
                return False
        if not self._is_watched:
            self._watch(arriving.timeout)
        outcome: Deferred[None] = Deferred()
        way.expect(arriving, time.monotonic() + arriving.timeout, outcome)
        await maybe_deferred_to_future(outcome)
        return arriving.end()

    def _watch(self, seconds: float) -> None:
        # One for all: to set and to cancel one for each would cost more than to wait.
        self._is_watched = True
        call_later(seconds, self._look_and_watch, seconds)

    def _look_and_watch(self, seconds: float) -> None:
        self._is_watched = False
        self._look(time.monotonic())
        for way in [*self._ways.values()]:
            way.leave_if_idle()
        if self._ways:
            self._watch(seconds)

    def _look(self, now: float) -> None:
        """Give up what should be there by *now*, and end what will never be."""
        for way in [*self._ways.values()]:
            late = [arriving for arriving, deadline, _ in way.waiting if deadline <= now]
            for arriving in late:
                arriving.give_up()
            if late or any(arriving.is_over for arriving, *_ in way.waiting):
                way.doRead()


class _Way:
    """One descriptor, and what is to come there; to Twisted, something to read.

    It is watched from one page to the next: to begin and to end that for each takes 60 µs.
    """

    def __init__(self, number: int, ways: dict[int, _Way]) -> None:
        """Watch the descriptor *number*, as one of the *ways*, until nobody has waited there for a while."""
        self.waiting: list[tuple[Arriving, float, Deferred[None]]] = []
        # Keeps the connection, lest its descriptor become another's while it is watched.
        self._latest: Arriving | None = None
        self._number = number
        self._ways = ways
        self._end: Callable[[], object]
        if is_asyncio_available():
            loop = asyncio.get_running_loop()
            loop.add_reader(number, self.doRead)
            # Arrivals are kept for as long as their loop is, and must not be what keeps it.
            self._end = partial(_end_watching, ref(loop), number)
        else:
            reactor = _reactor()
            reactor.addReader(self)
            self._end = partial(reactor.removeReader, self)

    def expect(self, arriving: Arriving, deadline: float, outcome: Deferred[None]) -> None:
        """Let *outcome* come when *arriving* is over."""
        self._latest = arriving
        self.waiting.append((arriving, deadline, outcome))

    def doRead(self) -> None:  # noqa: N802 - as Twisted calls it; so are the next two
        """Read what is there."""
        if not self.waiting:
            # Most probably the connection is closed, from here or from there.
            self.leave_if_idle()
            return
        self.waiting[0][0].receive()
        over = [each for each in self.waiting if each[0].is_over]
        self.waiting = [each for each in self.waiting if not each[0].is_over]
        for *_, outcome in over:
            outcome.callback(None)

    def leave_if_idle(self) -> None:
        """Watch it no more, if nobody waits."""
        if not self.waiting and self._ways.get(self._number) is self:
            del self._ways[self._number]
            self._end()

    def connectionLost(self, reason: object) -> None:  # noqa: N802, ARG002
        """Hear that nothing more is to come."""
        for arriving, *_ in self.waiting:
            arriving.give_up()
        self.doRead()
        self.leave_if_idle()

    def logPrefix(self) -> str:  # noqa: N802
        """Return what Twisted calls this in its log."""
        return "dedup"

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._number


def _end_watching(loop: ref[asyncio.AbstractEventLoop], number: int) -> None:
    if (there := loop()) is not None:
        there.remove_reader(number)


def _reactor() -> Any:
    from twisted.internet import reactor  # noqa: PLC0415 - to import it installs one

    return reactor


_BY_LOOP: WeakKeyDictionary[object, Arrivals] = WeakKeyDictionary()
