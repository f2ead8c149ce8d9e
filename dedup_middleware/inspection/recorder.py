"""What is counted, and written into the log, of a page that has been seen to its end.

It tells what has happened and changes nothing of it.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from itertools import islice
from typing import TYPE_CHECKING

from dedup_middleware.budget import Budget
from dedup_middleware.inspection.alarms import Alarms
from dedup_middleware.inspection.records import (
    DIFFERENCE_CHARACTERS,
    DIFFERENCES,
    EVIDENCE_CHARACTERS,
    EVIDENCE_SENTENCES,
    TITLE_CHARACTERS,
    Record,
)
from dedup_middleware.model import VerdictKind, Witness
from dedup_middleware.reasons import Outcome, Reason
from dedup_middleware.text.clauses import one_line
from dedup_middleware.text.evidence import as_written, repeated_sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from dedup_middleware.checks.preferences import Preferences
    from dedup_middleware.index.lookup import Lookup
    from dedup_middleware.inspection.records import RecordLog
    from dedup_middleware.listener import Listener
    from dedup_middleware.model import StoredPage
    from dedup_middleware.visit import Visit

#: CPU time for the evidence of one page, beside its budget: ordinary pages take 1.
EVIDENCE_MILLISECONDS = 100


class Recorder:
    """The accounts of one crawl, *run*, of *spider*; *guard* notes what fails inside it."""

    def __init__(  # noqa: PLR0913 - what accounts are made of
        self,
        spider: str,
        run: str,
        log: RecordLog | None,
        listener: Listener,
        guard: Callable[[], AbstractContextManager[None]],
        *,
        hash_clause: Callable[[str], bytes],
        preferences: Preferences,
    ) -> None:
        self._spider = spider
        self._run = run
        self._log = log
        self._count = listener.count
        self._guard = guard
        self._hash_clause = hash_clause
        self._alarms = Alarms(listener, preferences)
        # Drops by the number of their owner, where the owner is another crawl's so far.
        self._drops_for_earlier: Counter[int] = Counter()

    def go_on_from(self, before: Recorder) -> None:
        """Go on with what *before* has counted in the same crawl; what it still counts is in it."""
        self._alarms, self._drops_for_earlier = before._alarms, before._drops_for_earlier

    def dropped(self, visit: Visit) -> None:
        """Count an item of *visit* that is dropped now."""
        self._count("items/dropped", 1)
        match = visit.verdict.match
        if match is not None and match.owner.run != self._run:
            self._drops_for_earlier[match.owner.number] += 1

    def finished(self, visit: Visit) -> None:
        """Count *visit*; record it unless it is new."""
        verdict = visit.verdict
        if visit.released:
            self._count("items/released", visit.items_delivered)
            self._record(visit)
            return
        self._count("pages", 1)
        self._count(f"verdict/{verdict.kind.value}", 1)
        if visit.items_would_drop:
            self._count("items/would_drop", visit.items_would_drop)
        if verdict.kind is VerdictKind.UNJUDGED:
            self._count(f"unjudged/{visit.reason.replace(' ', '_')}", 1)
        if verdict.witness is not None and not visit.is_duplicate:
            self._count(f"kept/{verdict.witness.value}/{verdict.reason.replace(' ', '_')}", 1)
        self._alarms.finished(visit)
        if verdict.kind is not VerdictKind.NEW:
            self._record(visit)

    def _record(self, visit: Visit) -> None:
        if self._log is not None:
            with self._guard():
                self._log.append(self.record(visit))

    def released(self, pages: Sequence[StoredPage]) -> None:
        """Record that these *pages* are not duplicates after all, in a program, which stores no dropped items."""
        if self._log is not None:
            with self._guard():
                for page in pages:
                    self._log.append(self._record_of_released(page))

    def close(self, index: Lookup) -> None:
        """Count what was dropped for earlier crawls, of which *index* knows the owners; close the log."""
        for number, drops in self._drops_for_earlier.items():
            owner = None
            with self._guard():
                owner = index.page(number)
            # An owner that this crawl has delivered too, after the drop, bears this crawl's name by now.
            if owner is None or owner.run != self._run:
                self._count("items/dropped_for_earlier_crawls", drops)
        if self._log is not None:
            with self._guard():
                self._log.close()

    def evidence(self, visit: Visit) -> list[str]:
        """Return the first repeated sentences of a page, as many as a record shows, in reading order."""
        if visit.verdict.match is None or visit.page is None:
            return []
        if visit.repeated is None:
            budget = Budget(milliseconds=EVIDENCE_MILLISECONDS)
            repeated = repeated_sentences(visit.page, visit.verdict.match.shared, self._hash_clause, budget)
            visit.repeated = list(islice(repeated, EVIDENCE_SENTENCES))
        return visit.repeated

    def record(self, visit: Visit) -> Record:
        """Return what the log says of *visit*."""
        match, witness = visit.verdict.match, visit.verdict.witness
        features = None if visit.page is None else visit.page.features
        if visit.is_duplicate and visit.agreed:
            witness = Witness.BOTH
        return Record(
            time=_now(),
            spider=self._spider,
            run=self._run,
            url=visit.url,
            verdict=visit.verdict.kind.value,
            outcome=visit.outcome.value,
            owner_url=match.owner.url if match else None,
            owner_run=match.owner.run if match else None,
            score=round(match.score, 4) if match else None,
            reason=str(visit.reason),
            witness=None if witness is None else witness.value,
            difference=[one_line(own, DIFFERENCE_CHARACTERS) for own in self._difference(visit)],
            evidence=[one_line(sentence, EVIDENCE_CHARACTERS) for sentence in self.evidence(visit)],
            items_dropped=visit.items_dropped,
            items_delivered=visit.items_delivered,
            title=one_line(features.title, TITLE_CHARACTERS) if features else "",
            bytes=visit.size,
            canonical=features.canonical or None if features else None,
        )

    @staticmethod
    def _difference(visit: Visit) -> list[str]:
        """Return what decided, as a person reads it: clauses have lost their spaces and marks."""
        own = visit.verdict.difference[:DIFFERENCES]
        if visit.verdict.reason == Reason.OWN_WORDS and visit.page is not None:
            return as_written(visit.page.paragraphs, own)
        return [*own]

    def _record_of_released(self, page: StoredPage) -> Record:
        return Record(
            time=_now(),
            spider=self._spider,
            run=self._run,
            url=page.url,
            verdict=VerdictKind.RELATED.value,
            outcome=Outcome.RELEASED.value,
            score=page.score,
            reason=Reason.RELEASED.value,
            title=one_line(page.features.title, TITLE_CHARACTERS) if page.features else "",
        )


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
