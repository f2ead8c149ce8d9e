"""Sums up records for the report, in one pass, without the store.

A page counts once, as its last record has it; its bytes count each time.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.items.reading import field_of
from dedup_middleware.reasons import Outcome, Reason
from dedup_middleware.records.counts import host_at
from dedup_middleware.records.recorder import MIN_PAGES, NEARLY_ALL

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.records.file import Record


_RELEASED, _FIELD_DIFFERS = Outcome.RELEASED.value, Reason.ITEM_FIELD_DIFFERS.value


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
        self.repeats: Counter[tuple[str, str]] = Counter()
        """By host and original: duplicates that were not released."""
        self.repeats_of_others: Counter[tuple[str, str]] = Counter()
        """By host and host of the original: those of other hosts."""
        self.scores_of_others: defaultdict[tuple[str, str], float] = defaultdict(float)
        """The sum of their scores."""
        self.outcomes: Counter[str] = Counter()
        self.fields: Counter[str] = Counter()
        self.compared = 0
        """Pages whose items were compared: duplicates, and pages that a field of their item kept."""
        self.bytes = 0
        """Of the bodies of duplicates."""

    def add(self, record: Record) -> None:
        """Take *record* into account."""
        self.records += 1
        before = None if record.key else self._last.pop(record.url, None)
        if before is not None and record.outcome == _RELEASED:
            self._add_repeat(before, -1)
            self.released.add(record.url)
        if record.is_duplicate:
            self._add_duplicate(record)
        # Items of one response repeat those of another one as a rule.
        if record.is_duplicate and not record.is_item:
            now = self._last[record.url] = Repeat(host_at(record.url), record.original_url or "", score_of(record))
            self._add_repeat(now, 1)
        elif record.reason == _FIELD_DIFFERS and record.difference:
            self.compared += 1
            self.fields.update(set(map(field_of, record.difference)))

    def _add_duplicate(self, record: Record) -> None:
        self.duplicates.append(record)
        self.released.discard(record.url)
        self.duplicates_met += 1
        self.compared += 1
        self.outcomes[record.outcome] += 1
        self.bytes += record.bytes

    def _add_repeat(self, page: Repeat, count: int) -> None:
        self.repeats[page.host, page.original] += count
        if (other := host_at(page.original)) != page.host:
            self.repeats_of_others[page.host, other] += count
            self.scores_of_others[page.host, other] += count * (page.score or 0.0)

    def pairs_of_hosts(self) -> Counter[tuple[str, str]]:
        """Return how many pages of the first host repeat one of the second."""
        return Counter((page.host, host_at(page.original)) for page in self._last.values())


def score_of(record: Record) -> float | None:
    """Return the score of *record*; ``None`` if it is not a share, as in records that were edited by hand."""
    score = record.score
    return score if score is not None and math.isfinite(score) and 0 <= score <= 1 else None


#: From this score on, on average, the pages of a host are those of another one.
_MIRRORED = 0.9


def signs(tallies: Tallies, pages_of: Callable[[str], int]) -> dict[str, list[dict[str, Any]]]:
    """Return the warnings by kind, the worst first; *pages_of* returns how many pages a host has."""
    one_original = [
        {"host": host, "original": original, "repeats": repeats, "pages": pages}
        for host, (original, repeats) in _most(tallies.repeats).items()
        if (pages := pages_of(host)) >= MIN_PAGES and 2 * repeats > pages
    ]
    # A host that repeats one page has a warning already.
    mirrors = _mirrors(tallies, pages_of, {sign["host"] for sign in one_original})
    return {
        "one_original": sorted(one_original, key=lambda sign: -sign["repeats"]),
        "fields": [
            {"field": name, "kept": count, "pages": tallies.compared}
            for name, count in tallies.fields.most_common()
            if tallies.compared >= MIN_PAGES and count >= NEARLY_ALL * tallies.compared
        ],
        "mirrors": sorted(mirrors, key=lambda sign: -sign["repeats"]),
    }


def _mirrors(tallies: Tallies, pages_of: Callable[[str], int], warned: set[object]) -> list[dict[str, Any]]:
    return [
        {"host": host, "of": other, "repeats": repeats, "pages": pages, "score": round(score, 4)}
        for host, (other, repeats) in _most(tallies.repeats_of_others).items()
        if repeats >= MIN_PAGES and 2 * repeats > (pages := pages_of(host)) and host not in warned
        if (score := tallies.scores_of_others[host, other] / repeats) >= _MIRRORED
    ]


def _most(counts: Counter[tuple[str, str]]) -> dict[str, tuple[str, int]]:
    """Return the most frequent second part of each first part, and how often it is there."""
    return {first: (second, count) for (first, second), count in reversed(counts.most_common())}
