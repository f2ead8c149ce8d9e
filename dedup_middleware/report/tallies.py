"""Sums up records for the report, in one pass, without the store.

A page counts once, as its last record has it; its bytes count each time.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.checks.items import field_of
from dedup_middleware.reasons import DIFFERENCES, Outcome, Reason
from dedup_middleware.records.recorder import MIN_PAGES, NEARLY_ALL
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dedup_middleware.records.log import Record

#: Bins of the histogram of scores, from 0 to 1.
BINS = 50
_EXAMPLES = 5
host_at = lru_cache(maxsize=100_000)(host_of)


class Last(NamedTuple):
    """The last record of a page, in short."""

    host: str
    original: str | None
    """The URL of the page that it repeats; ``None`` if it is not a duplicate."""
    score: float | None


@dataclass(slots=True)
class Kept:
    """Pages that were kept for one reason, though another page has their text."""

    pages: int = 0
    examples: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=_EXAMPLES))


class Tallies:
    """Add records, oldest first; the last *rows* duplicates are kept as they are."""

    def __init__(self, rows: int) -> None:
        self.records = 0
        self.duplicates: deque[Record] = deque(maxlen=rows)
        self.duplicates_met = 0
        self.last: dict[str, Last] = {}
        self.outcomes: Counter[str] = Counter()
        self.kept: defaultdict[str, Kept] = defaultdict(Kept)
        self.fields: Counter[str] = Counter()
        self.compared = 0
        """Pages whose items were compared: duplicates, and pages that a field of their item kept."""
        self.dropped_by_score = [0] * BINS
        self.kept_by_score = [0] * BINS
        self.bytes = 0
        """Of the bodies of duplicates."""

    def add(self, record: Record) -> None:
        """Take *record* into account."""
        score = score_of(record)
        is_duplicate = record.is_duplicate
        self.records += 1
        self.last[record.url] = Last(host_at(record.url), record.original_url if is_duplicate else None, score)
        if is_duplicate:
            self._add_duplicate(record)
        elif record.outcome != Outcome.RELEASED.value and record.reason in DIFFERENCES:
            self._add_kept(record)
        if score is not None and record.outcome != Outcome.RELEASED.value:
            bins = self.dropped_by_score if is_duplicate else self.kept_by_score
            bins[min(int(score * BINS), BINS - 1)] += 1

    def _add_duplicate(self, record: Record) -> None:
        self.duplicates.append(record)
        self.duplicates_met += 1
        self.compared += 1
        self.outcomes[record.outcome] += 1
        self.bytes += record.bytes

    def _add_kept(self, record: Record) -> None:
        kept = self.kept[record.reason]
        kept.pages += 1
        kept.examples.append({"url": record.url, "original": record.original_url, "difference": record.difference})
        if record.reason == Reason.ITEM_FIELD_DIFFERS.value:
            self.compared += 1
            self.fields.update(set(map(field_of, record.difference)))

    def pairs_of_hosts(self) -> Counter[tuple[str, str]]:
        """Return how many pages of the first host repeat one of the second."""
        return Counter((page.host, host_at(page.original)) for page in self.last.values() if page.original)

    def clusters(self) -> dict[str, list[str]]:
        """Return the URLs of the pages that repeat each original."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for url, page in self.last.items():
            if page.original:
                found[page.original].append(url)
        return found


def score_of(record: Record) -> float | None:
    """Return the score of *record*; ``None`` if it is not a share, as in a log that was edited by hand."""
    score = record.score
    return score if score is not None and math.isfinite(score) and 0 <= score <= 1 else None


#: From this score on, on average, the pages of a host are those of another one.
_MIRRORED = 0.9


@dataclass(slots=True)
class Host:
    """The pages of one host that repeat others, each counted once."""

    pages: int
    """Those in the log."""
    originals: Counter[str]
    scores: defaultdict[str, list[float]]
    """By host of the original, of other hosts only."""


def suspects(tallies: Tallies) -> dict[str, Host]:
    """Return the hosts most of whose pages in the log repeat one page, or one other host.

    The log does not contain new pages: the hosts may have more pages than that.
    """
    seen = Counter(page.host for page in tallies.last.values())
    hosts = {name: Host(count, Counter(), defaultdict(list)) for name, count in seen.items() if count >= MIN_PAGES}
    for page in tallies.last.values():
        host = hosts.get(page.host)
        if host is None or not page.original:
            continue
        host.originals[page.original] += 1
        if (other := host_at(page.original)) != page.host:
            host.scores[other].append(page.score or 0.0)
    return {name: host for name, host in hosts.items() if _one_original(host) or _mirrored(host)}


def signs(tallies: Tallies, hosts: Mapping[str, Host]) -> dict[str, list[dict[str, Any]]]:
    """Return the warnings by kind, the worst first; *hosts* are the suspects with all their pages."""
    one_original = [
        {"host": name, "original": found[0], "repeats": found[1], "pages": host.pages}
        for name, host in hosts.items()
        if (found := _one_original(host)) is not None
    ]
    return {
        "one_original": sorted(one_original, key=lambda sign: -sign["repeats"]),
        "fields": [
            {"field": name, "kept": count, "pages": tallies.compared}
            for name, count in tallies.fields.most_common()
            if tallies.compared >= MIN_PAGES and count >= NEARLY_ALL * tallies.compared
        ],
        "mirrors": sorted(_mirrors(hosts), key=lambda sign: -sign["repeats"]),
    }


def _one_original(host: Host) -> tuple[str, int] | None:
    ((original, repeats),) = host.originals.most_common(1) or [("", 0)]
    return (original, repeats) if host.pages >= MIN_PAGES and 2 * repeats > host.pages else None


def _mirrored(host: Host) -> tuple[str, list[float]] | None:
    other, scores = max(host.scores.items(), key=lambda item: len(item[1]), default=("", []))
    is_most = len(scores) >= MIN_PAGES and 2 * len(scores) > host.pages
    return (other, scores) if is_most and sum(scores) >= _MIRRORED * len(scores) else None


def _mirrors(hosts: Mapping[str, Host]) -> list[dict[str, Any]]:
    # A host that repeats one page has a warning already.
    found = ((name, host, _mirrored(host)) for name, host in hosts.items() if _one_original(host) is None)
    return [
        {
            "host": name,
            "of": mirrored[0],
            "repeats": len(mirrored[1]),
            "pages": host.pages,
            "score": round(sum(mirrored[1]) / len(mirrored[1]), 4),
        }
        for name, host, mirrored in found
        if mirrored is not None
    ]
