"""Collects the pages that were kept although they share text with another page, the most doubtful first."""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING

from dedup_middleware.reasons import DIFFERENCES, Outcome, Reason
from dedup_middleware.records.signs import score_of

if TYPE_CHECKING:
    from dedup_middleware.records.file import Record

_RELEASED = Outcome.RELEASED.value
# The text or the item decided; for the other reasons, a page is kept although it may be a duplicate.
_BY_TEXT = DIFFERENCES | {Reason.BELOW_THRESHOLD}


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
