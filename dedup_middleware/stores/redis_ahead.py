"""What pages are going to ask a server for, asked beforehand: one question a page, for whose answer nobody need stand.

Where an event loop can tell when there is something to read, the question is sent by it, and the answer read; a thread
does both where the connection has to be opened first, or it cannot tell. Threads that do hand the interpreter to and
fro cost as much as all else of the question, 0.4 ms.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from dedup_middleware.errors import StoreError
from dedup_middleware.stores import redis_scripts, refusals
from dedup_middleware.stores.protocol import Question
from dedup_middleware.stores.redis_layout import PAGE_BEGINNING, VALUE_TYPES, places
from dedup_middleware.stores.redis_link import Link
from dedup_middleware.stores.redis_wire import ServerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.stores.redis_address import Address
    from dedup_middleware.stores.redis_memory import Memory
    from dedup_middleware.stores.redis_wire import Answer, Wire

_NOTHING = Question((), (), (), b"", 0)


class Ahead:
    """The questions of one worker, whose answers *memory* is brought."""

    def __init__(self, address: Address, memory: Memory, failed: Callable[[StoreError], object]) -> None:
        """Tell *failed* of a server that does not answer any more."""
        self._address = address
        self._memory = memory
        self._failed = failed
        # The event loop has the one; any thread may have the other.
        self._sent = Link(address)
        self._asked = Link(address)

    def fetch(self, question: Question) -> None:
        """Ask, and wait for the answer; from any thread. From then on others may be sent."""
        self._bring(question, self._asked.script(redis_scripts.FETCH, _packed(question)))
        # A server that has no room for another connection will do with the one that has asked just now.
        with suppress(StoreError):
            self._sent.open_for(redis_scripts.FETCH, _packed(_NOTHING))

    def begin(self, question: Question) -> Arriving | None:
        """Send a question; ``None`` where :meth:`fetch` must be called first."""
        sent = self._sent.begin_script(redis_scripts.FETCH, _packed(question))
        return None if sent is None else Arriving(*sent, partial(self.end, question), self._address.timeout)

    def close(self) -> None:
        """Close the connections."""
        self._sent.close()
        self._asked.close()

    def end(self, question: Question, answer: Answer) -> bool:
        """Take the *answer* to a *question*; tell whether there is nothing more to ask."""
        try:
            self._bring(question, answer.value())
        except TimeoutError as error:
            self._failed(refusals.away(self._address.uri, str(error)))
        except (ServerError, StoreError, OSError):
            return False
        return True

    def _bring(self, question: Question, answered: Any) -> None:
        keys = [*question.named, *question.lists, *question.others]
        try:
            version, *answer = answered
            followed = answer[len(keys) :]
            found = dict(zip([*keys, *followed[::2]], [*answer[: len(keys)], *followed[1::2]], strict=True))
            number = int(version)
        except (TypeError, ValueError):
            raise refusals.foreign(self._address.uri) from None
        if not ({*map(type, found)} == {bytes} and {*map(type, found.values())} <= VALUE_TYPES):
            raise refusals.foreign(self._address.uri)
        self._memory.bring(number, found)


class Arriving:
    """See `protocol.Arriving`."""

    def __init__(self, wire: Wire, answer: Answer, end: Callable[[Answer], bool], timeout: float) -> None:
        self.timeout = timeout
        self._wire = wire
        self._answer = answer
        self._end = end

    def fileno(self) -> int:
        """See Arriving."""
        return self._wire.fileno()

    @property
    def is_over(self) -> bool:
        """See Arriving."""
        return self._answer.is_over

    def receive(self) -> None:
        """See Arriving."""
        self._wire.receive()

    def give_up(self) -> None:
        """See Arriving."""
        self._wire.fail(TimeoutError("timed out"))

    def end(self) -> bool:
        """See Arriving."""
        return self._end(self._answer)


def _packed(question: Question) -> bytes:
    keys = [*question.named, *question.lists, *question.others]
    leading = len(question.named) + len(question.lists)
    how = [len(question.named), leading, question.kinds, question.most, PAGE_BEGINNING]
    return redis_scripts.packed([*how, places(keys)])
