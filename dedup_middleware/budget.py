"""Bounds what one page may cost: elements, clauses and CPU time.

Nothing is interrupted: code that may run long checks the budget at each stage, and in loops that a page can make long.
"""

from __future__ import annotations

import math
import sys
import time

from dedup_middleware.reasons import Reason

#: Elements and comments of a page: a news page has 650.
MAX_ELEMENTS = 100_000
#: Different clauses of a page's main text: a news page has 50.
MAX_CLAUSES = 20_000
#: CPU time until a page can be compared: a news page takes 3 ms, and the engine waits meanwhile.
MAX_MILLISECONDS = 1000


class UncheckableError(Exception):
    """A page cannot be checked, for the *reason* in its verdict."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Budget:
    """The elements, clauses and time that are left for a page. Time passes until :meth:`pause`."""

    __slots__ = ("_deadline", "_left", "clauses", "elements")

    def __init__(
        self, *, elements: int = sys.maxsize, clauses: float = math.inf, milliseconds: float = math.inf
    ) -> None:
        """Allow so much, by default without limits. Time is the CPU time of this thread: waiting does not count."""
        self.elements = elements
        self.clauses = clauses
        self._left = milliseconds / 1000
        self._deadline = math.inf
        self.resume()

    def pause(self) -> None:
        """Stop the time: the thread works for something else from now on."""
        if self._left != math.inf:
            self._left = self._deadline - time.thread_time()

    def resume(self) -> None:
        """Let time pass again."""
        if self._left != math.inf:
            self._deadline = time.thread_time() + self._left

    def check_clauses(self, count: int) -> None:
        """Raise `UncheckableError` if *count* is more than the clauses that a page may have."""
        if count > self.clauses:
            raise UncheckableError(Reason.TOO_MANY_CLAUSES)

    def check_time(self) -> None:
        """Raise `UncheckableError` if the time is over."""
        if self._left != math.inf and time.thread_time() > self._deadline:
            raise UncheckableError(Reason.TOO_SLOW)


UNLIMITED = Budget()


def page_budget(milliseconds: float | None = None) -> Budget:
    """Return the budget of a page or an item, from now on; *milliseconds* takes the place of `MAX_MILLISECONDS`."""
    time_left = MAX_MILLISECONDS if milliseconds is None else milliseconds
    return Budget(elements=MAX_ELEMENTS, clauses=MAX_CLAUSES, milliseconds=time_left)
