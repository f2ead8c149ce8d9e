"""Sums up records for the report, in one pass, without the store.

A page counts once, as its last record has it; its bytes count each time.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.reasons import Outcome
from dedup_middleware.records.counts import host_at
from dedup_middleware.records.signs import Signs, score_of

if TYPE_CHECKING:
    from dedup_middleware.records.file import Record


_RELEASED = Outcome.RELEASED.value


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
        before = self._last.pop(record.url, None)
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
