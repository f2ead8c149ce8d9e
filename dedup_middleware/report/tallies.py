"""Sums up records for the report, in one pass, without the store.

A page counts once, as its last record has it; its bytes count each time.
"""

from __future__ import annotations

from collections import Counter, deque
from heapq import nsmallest
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.reasons import DIFFERENCES, Outcome, Reason
from dedup_middleware.records.counts import host_at
from dedup_middleware.records.signs import Signs, score_of

if TYPE_CHECKING:
    from dedup_middleware.records.file import Record


_RELEASED = Outcome.RELEASED.value
# The text or the item decided; for the other reasons, a page is kept although it may be a duplicate.
_BY_TEXT = DIFFERENCES | {Reason.BELOW_THRESHOLD}


class Repeat(NamedTuple):
    """The last record of a page, a duplicate, in short."""

    host: str
    original: str
    """The URL of the page that it repeats."""
    score: float | None


class Tallies:
    """Add records, oldest first; the last *rows* duplicates are kept as they are."""

    def __init__(self, rows: int) -> None:
        self.records = 0
        self.duplicates: deque[Record] = deque(maxlen=rows)
        self.duplicates_met = 0
        self._last: dict[str, Repeat] = {}
        self.released: set[str] = set()
        """URLs of duplicates whose dropped items were released."""
        self.signs = Signs()
        self.outcomes: Counter[str] = Counter()
        self.bytes = 0
        """Of the bodies of duplicates."""

    def add(self, record: Record) -> None:
        """Take *record* into account."""
        self.records += 1
        self.signs.add(record)
        before = None if record.key else self._last.pop(record.url, None)
        if before is not None and record.outcome == _RELEASED:
            self.signs.repeat(*before, count=-1)
            self.released.add(record.url)
        if record.is_duplicate:
            self.duplicates.append(record)
            self.released.discard(record.url)
            self.duplicates_met += 1
            self.outcomes[record.outcome] += 1
            self.bytes += record.bytes
            if not record.is_item:
                self._last[record.url] = Repeat(host_at(record.url), record.original_url or "", score_of(record))

    def pairs_of_hosts(self) -> Counter[tuple[str, str]]:
        """Return how many pages of the first host repeat one of the second."""
        return Counter((page.host, host_at(page.original)) for page in self._last.values())


class NearMisses:
    """Add records, oldest first. A page counts once, as its last record has it; *most* records are kept."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._records: dict[str, Record] = {}
        self.urls: set[str] = set()
        """Of all near misses."""

    def add(self, record: Record) -> None:
        """Take *record* into account."""
        before = self._records.pop(record.url, None)
        self.urls.discard(record.url)
        if record.is_related and record.outcome != _RELEASED:
            self.urls.add(record.url)
            self._records[record.url] = record.standing_on(before)
            if len(self._records) > 2 * self._most:
                self._records = {each.url: each for each in self.queue()}

    def queue(self) -> list[Record]:
        """Return the most doubtful: those that a check or the threshold kept, the highest scores first."""
        return nsmallest(self._most, self._records.values(), key=_certainty)


def _certainty(record: Record) -> tuple[bool, float]:
    return record.reason not in _BY_TEXT, -(score_of(record) or 0.0)
