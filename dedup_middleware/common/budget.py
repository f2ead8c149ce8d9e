"""Bounds what one page may cost: elements, clauses and CPU time.

Nothing is interrupted: code that may run long checks the budget at each stage, and in loops that a page can make long.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from typing import overload

from dedup_middleware.reasons import Reason

#: Elements and comments of a page: a news page has 650.
MAX_ELEMENTS = 100_000
#: Different clauses of a page's main text: a news page has 50.
MAX_CLAUSES = 20_000
#: CPU time for a page and its items, comparisons included: a news page takes 3 ms, and the engine waits meanwhile.
MAX_MILLISECONDS = 1000
#: Characters that are looked at as one text: about twenty times a news page, 10 ms.
PORTION = 50_000


class UncheckableError(Exception):
    """A page cannot be checked, for the *reason* in its verdict."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Budget:
    """The elements, clauses and time that are left for a page. Time passes until :meth:`pause`.

    ``with budget:`` lets it pass in a block, and pauses it afterwards.
    """

    __slots__ = ("_deadline", "_left", "_since", "clauses", "elements")

    def __init__(
        self, *, elements: int = sys.maxsize, clauses: float = math.inf, milliseconds: float = math.inf
    ) -> None:
        """Allow so much, by default without limits. Time is the CPU time of this thread: waiting does not count."""
        self.elements = elements
        self.clauses = clauses
        self._left = milliseconds / 1000
        self._deadline: float | None = None
        self._since = 0.0
        self.resume()

    def pause(self, *_: object) -> None:
        """Stop the time, if it passes: the thread works for something else from now on."""
        if self._deadline is not None:
            self._left, self._deadline = self._deadline - time.thread_time(), None

    def resume(self) -> None:
        """Let time pass again, if it is paused."""
        if self._deadline is None and self._left != math.inf:
            self._deadline, self._since = time.thread_time() + self._left, time.perf_counter()

    __enter__ = resume
    __exit__ = pause

    def check_clauses(self, count: int) -> None:
        """Raise `UncheckableError` if *count* is more than the clauses that a page may have."""
        if count > self.clauses:
            raise UncheckableError(Reason.TOO_MANY_CLAUSES)

    def check_time(self) -> None:
        """Raise `UncheckableError` if the time is over."""
        if self._deadline is None or time.perf_counter() - self._since <= self._left:
            return  # No thread has had more CPU time than has passed; to ask the kernel for it takes ten times as long.
        if time.thread_time() > self._deadline:
            raise UncheckableError(Reason.TOO_SLOW)

    def watched(self, texts: Sequence[str]) -> Sequence[str]:
        """Return *texts* as a sequence that raises `UncheckableError` where it is read and the time is over.

        So all code that reads the text of a page or an item keeps to its budget. No text may be longer than `PORTION`.
        """
        return texts if self._left == math.inf else _Watched(texts, self)


class _Watched(Sequence[str]):
    """Texts, with a look at the time before the first one, and after each `PORTION` characters that are read."""

    __slots__ = ("_is_short", "_texts", "budget")

    def __init__(self, texts: Sequence[str], budget: Budget) -> None:
        self._texts = texts
        self._is_short = sum(map(len, texts)) <= PORTION
        self.budget = budget

    def __iter__(self) -> Iterator[str]:
        self.budget.check_time()
        # Nearly all pages: a generator is entered again for each text.
        return iter(self._texts) if self._is_short else self._in_portions()

    def _in_portions(self) -> Iterator[str]:
        characters = 0
        for text in self._texts:
            if characters >= PORTION:
                self.budget.check_time()
                characters = 0
            yield text
            characters += len(text)

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return self._texts[index]


UNLIMITED = Budget()


def page_budget(milliseconds: float | None = None) -> Budget:
    """Return the budget of a page or an item, from now on; *milliseconds* takes the place of `MAX_MILLISECONDS`."""
    time_left = MAX_MILLISECONDS if milliseconds is None else milliseconds
    return Budget(elements=MAX_ELEMENTS, clauses=MAX_CLAUSES, milliseconds=time_left)
