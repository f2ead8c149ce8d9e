"""What one page may cost.

There are no signals and no threads: code that may run long checks the budget at each stage, and in each loop that a
page can make long.
"""

from __future__ import annotations

import math
import sys
import time
from typing import TYPE_CHECKING

from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

#: Elements and comments of a page: a news page has 650.
MAX_ELEMENTS = 100_000
#: Different clauses of a page's main text: a news page has 50.
MAX_CLAUSES = 20_000
#: CPU time until a page can be compared: a news page takes 3 ms, and the engine waits meanwhile.
MAX_MILLISECONDS = 1000


class UncheckableError(Exception):
    """A page cannot be checked, for a *reason* that its verdict names; nothing is wrong with the setup."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Budget:
    """What is left for one page, from now on: elements, clauses, and time; time passes until :meth:`pause`.

    Where time is unlimited the clock is not read: that is a system call, 3 µs on some virtual machines.
    """

    __slots__ = ("_deadline", "_left", "clauses", "elements")

    def __init__(
        self, *, elements: int = sys.maxsize, clauses: float = math.inf, milliseconds: float = math.inf
    ) -> None:
        """Allow so much, and by default anything. Time is this thread's on the CPU: waiting costs a page nothing."""
        self.elements = elements
        self.clauses = clauses
        self._left = milliseconds / 1000
        self._deadline = math.inf
        self.resume()

    def pause(self) -> None:
        """Let time stand still: what the thread does from now on is not for the page."""
        if self._left != math.inf:
            self._left = self._deadline - time.thread_time()

    def resume(self) -> None:
        """Let time pass again, from where it stood."""
        if self._left != math.inf:
            self._deadline = time.thread_time() + self._left

    def limited(self, shows: Callable[[str], bool]) -> Callable[[str], bool]:
        """Return *shows*, which takes its time from here and raises `UncheckableError` once that is over."""

        def shows_in_time(words: str) -> bool:
            self.resume()
            try:
                self.check_time()
                return shows(words)
            finally:
                self.pause()

        return shows_in_time

    def check_clauses(self, count: int) -> None:
        """Raise `UncheckableError` if *count* is more than the clauses that a page may have."""
        if count > self.clauses:
            raise UncheckableError(Reason.TOO_MANY_CLAUSES)

    def check_time(self) -> None:
        """Raise `UncheckableError` if the time is over. 0.4 µs."""
        if self._left != math.inf and time.thread_time() > self._deadline:
            raise UncheckableError(Reason.TOO_SLOW)


UNLIMITED = Budget()


def page_budget(milliseconds: float | None = None) -> Budget:
    """Return the budget of a page or an item, from now on; *milliseconds* takes the place of `MAX_MILLISECONDS`."""
    time_left = MAX_MILLISECONDS if milliseconds is None else milliseconds
    return Budget(elements=MAX_ELEMENTS, clauses=MAX_CLAUSES, milliseconds=time_left)
