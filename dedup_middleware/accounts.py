"""What is counted, and written into the log, of a page that has been seen to its end.

Law of this file: it tells what has happened and changes nothing of it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from dedup_middleware.alarm import Alarms
from dedup_middleware.model import VerdictKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from dedup_middleware.case import Case
    from dedup_middleware.lookup import Lookup
    from dedup_middleware.protocols import Listener
    from dedup_middleware.records import RecordLog
    from dedup_middleware.takingback import TakenBack


class Accounts:
    """The accounts of one crawl, *run*, of *spider*; *guard* notes what fails inside it."""

    def __init__(
        self,
        spider: str,
        run: str,
        log: RecordLog | None,
        listener: Listener,
        guard: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._spider = spider
        self._run = run
        self._log = log
        self._count = listener.count
        self._guard = guard
        self._alarms = Alarms(listener)
        # Drops by the number of their owner, where the owner is another crawl's so far.
        self._drops_for_earlier: Counter[int] = Counter()

    def dropped(self, case: Case) -> None:
        """Count an item of *case* that is dropped now."""
        self._count("items/dropped", 1)
        match = case.verdict.match
        if match is not None and match.owner.run != self._run:
            self._drops_for_earlier[match.owner.number] += 1

    def finished(self, case: Case, evidence: Callable[[Case], list[str]]) -> None:
        """Count *case*; record it, with its *evidence*, unless it is new."""
        verdict = case.verdict
        self._count("pages", 1)
        self._count(f"verdict/{verdict.kind.value}", 1)
        if case.items_would_drop:
            self._count("items/would_drop", case.items_would_drop)
        if verdict.kind is VerdictKind.UNJUDGED:
            self._count(f"unjudged/{verdict.reason.replace(' ', '_')}", 1)
        if verdict.witness is not None and not case.is_duplicate:
            self._count(f"kept/{verdict.witness.value}/{verdict.reason.replace(' ', '_')}", 1)
        self._alarms.finished(case)
        if verdict.kind is not VerdictKind.NEW and self._log is not None:
            with self._guard():
                self._log.append(case.record(spider=self._spider, run=self._run, evidence=evidence(case)))

    def taken_back(self, taken: Sequence[TakenBack]) -> None:
        """Count and record the pages that are taken back."""
        again = [page for page in taken if page.entry is not None]
        self._count("taken_back", len(again))
        if self._log is not None:
            with self._guard():
                for page in again:
                    self._log.append(page.record(self._spider, self._run))

    def close(self, index: Lookup) -> None:
        """Count what was dropped for earlier crawls, of which *index* knows the owners; close the log."""
        with self._guard():
            for number, drops in self._drops_for_earlier.items():
                owner = index.page(number)
                # An owner that this crawl has delivered too, after the drop, bears this crawl's name by now.
                if owner is None or owner.run != self._run:
                    self._count("items/dropped_for_earlier_crawls", drops)
        if self._log is not None:
            with self._guard():
                self._log.close()
