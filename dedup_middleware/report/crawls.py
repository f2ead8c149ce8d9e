"""Sums up the counts of crawls for the report: in all, by crawl, by host and over time.

Pages that ended after the last line of their crawl, and all pages of a crawl without counts, are counted by their
records. Then the new pages are missing, because the log has no record of them.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from dedup_middleware.reasons import Outcome
from dedup_middleware.records.crawls import KINDS, OTHERS, Begin, Counts, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dedup_middleware.records.log import Record

#: Bars of the chart over time, at the most.
BARS = 90
#: Spans of time that a bar may stand for, in seconds; longer ones are days of 86 400. Each contains the one before.
_SPANS = (1, 5, 15, 60, 300, 900, 3_600, 21_600, 86_400)
# Spans that are counted at once; beyond that, longer ones are counted.
_MAX_SPANS = 4_000
# Crawls that are listed: the latest. The latest of these are compared host by host.
_MAX_CRAWLS, _COMPARED = 1_000, 30
# Hosts that are counted at once, in all and of a crawl, and those that are shown, with most pages.
_MAX_HOSTS, _MAX_HOSTS_OF_A_CRAWL = 50_000, 5_000
_HOSTS, _HOSTS_OF_A_CRAWL = 2_000, 300


@dataclass(slots=True)
class Crawl:
    """What one crawl has counted."""

    run: str
    begin: Begin | None = None
    until: str = ""
    """The time of its last line; empty if it has none."""
    is_closed: bool = False
    times: list[int] = field(default_factory=list)
    """When it began and ended, as far as that is known, in seconds since 1970."""
    pages: Counter[str] = field(default_factory=Counter)
    items_dropped: int = 0
    items_released: int = 0
    hosts: Hosts = field(default_factory=lambda: Hosts(_MAX_HOSTS_OF_A_CRAWL))

    def note_time(self, seconds: int | None) -> None:
        """Note that it was running then."""
        if seconds is not None:
            self.times = [min(self.times[0], seconds), max(self.times[1], seconds)] if self.times else [seconds] * 2


class Hosts:
    """Counts pages by host and kind. Of more than *most* hosts, those with fewest pages are counted together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: dict[str, Counter[str]] = {}

    def add(self, host: str, kinds: Mapping[str, int]) -> None:
        """Count pages of *host*."""
        self._found.setdefault(host, Counter()).update(kinds)
        if len(self._found) > 2 * self._most:
            self._found = self._largest(self._most)

    def _largest(self, count: int) -> dict[str, Counter[str]]:
        ordered = sorted(self._found.items(), key=lambda item: (item[0] == OTHERS, -item[1].total()))
        rest: Counter[str] = sum((kinds for _, kinds in ordered[count:]), Counter())
        return dict(ordered[:count]) | ({OTHERS: rest} if rest else {})

    def rows(self, count: int) -> list[list[Any]]:
        """Return the *count* hosts with most pages, and the rest as `OTHERS`, each with its pages of each kind."""
        return [[host, *(kinds[kind] for kind in KINDS)] for host, kinds in self._largest(count).items()]

    def pages(self, host: str) -> int:
        """Return how many pages *host* has."""
        return self._found[host].total() if host in self._found else 0


class OverTime:
    """Counts pages by span of time and kind."""

    def __init__(self) -> None:
        self._span = 0
        self._found: dict[int, Counter[str]] = {}

    def add(self, first: int, last: int, kinds: Mapping[str, int]) -> None:
        """Count pages that ended evenly from *first* to *last*, in seconds since 1970."""
        width = _SPANS[self._span]
        spans = min(max(last // width - first // width, 0) + 1, BARS)
        for number in range(spans):
            # Rounded so that the parts of a kind have its sum.
            part = {kind: n * (number + 1) // spans - n * number // spans for kind, n in kinds.items()}
            start = (last // width - spans + 1 + number) * width
            self._found.setdefault(start, Counter()).update(part)
        if len(self._found) > _MAX_SPANS and self._span + 1 < len(_SPANS):
            self._span += 1
            self._found = self._by(_SPANS[self._span])

    def _by(self, span: int) -> dict[int, Counter[str]]:
        found: dict[int, Counter[str]] = {}
        for start, kinds in self._found.items():
            found.setdefault(start // span * span, Counter()).update(kinds)
        return found

    def bars(self) -> dict[str, Any]:
        """Return the pages of each kind in each span of time, from the first to the last."""
        if not self._found:
            return {"span": 1, "start": 0, "pages": {}}
        first, last = min(self._found), max(self._found)
        span = max(_span(last - first), _SPANS[self._span])
        found, start = self._by(span), first // span * span
        places = range(start, last + 1, span)
        return {
            "span": span,
            "start": start,
            "pages": {kind: [found.get(place, _NONE)[kind] for place in places] for kind in KINDS},
        }


_NONE: Counter[str] = Counter()


def _span(seconds: int) -> int:
    for span in _SPANS:
        if seconds < span * BARS:
            return span
    day = _SPANS[-1]
    return math.ceil((seconds + 1) / (BARS * day)) * day


class Crawls:
    """Add all lines first, then the records; sums are of the crawl *run*, or of all."""

    def __init__(self, lines: Iterable[Begin | Counts], run: str | None = None) -> None:
        self.run = run
        self.hosts = Hosts(_MAX_HOSTS)
        self._found: dict[str, Crawl] = {}
        self._sum = Crawl("")
        self._over_time = OverTime()
        for line in lines:
            self._add(line)

    def _add(self, line: Begin | Counts) -> None:
        crawl = self._crawl(line.run)
        crawl.note_time(seconds_of(line.time))
        if isinstance(line, Begin):
            # A later process that goes on with the crawl may have other settings.
            crawl.begin, crawl.is_closed = line, False
            return
        crawl.until, crawl.is_closed = max(crawl.until, line.time), line.is_last
        last = seconds_of(line.time)
        first = seconds_of(line.since)
        for host, kinds in line.hosts.items():
            known = {kind: kinds[kind] for kind in KINDS if kind in kinds}
            self._count(crawl, host, known, last if first is None else first, last)
        self._count_items(crawl, line.items_dropped, line.items_released)

    def add_record(self, record: Record) -> None:
        """Count the page of *record*, if no line of its crawl has counted it."""
        crawl = self._crawl(record.run)
        if record.time <= crawl.until:
            return
        time = seconds_of(record.time)
        crawl.note_time(time)
        if crawl.begin is None:
            crawl.begin = Begin(record.run, record.time, record.spider)
        if record.outcome == Outcome.RELEASED.value:
            self._count_items(crawl, 0, max(record.items_kept, 0))
            return
        has_items = bool(record.items_kept or record.items_dropped)
        kind = kind_of(record.verdict, record.reason, has_items=has_items)
        self._count(crawl, record.host, {kind: 1}, time, time)
        self._count_items(crawl, max(record.items_dropped, 0), 0)

    def _crawl(self, run: str) -> Crawl:
        if run not in self._found:
            if len(self._found) >= _MAX_CRAWLS:
                del self._found[next(iter(self._found))]
            if len(self._found) >= _COMPARED:
                [*self._found.values()][-_COMPARED].hosts = Hosts(0)
            self._found[run] = Crawl(run)
        return self._found[run]

    def _count(self, crawl: Crawl, host: str, kinds: Mapping[str, int], first: int | None, last: int | None) -> None:
        crawl.pages.update(kinds)
        crawl.hosts.add(host, kinds)
        if self.run in (None, crawl.run):
            self._sum.pages.update(kinds)
            self.hosts.add(host, kinds)
            if first is not None and last is not None:
                self._over_time.add(first, last, kinds)

    def _count_items(self, crawl: Crawl, dropped: int, released: int) -> None:
        for each in [crawl, self._sum] if self.run in (None, crawl.run) else [crawl]:
            each.items_dropped += dropped
            each.items_released += released

    def found(self) -> bool:
        """Return whether there is a crawl to report."""
        return bool(self._found) if self.run is None else self.run in self._found

    def summary(self) -> dict[str, Any]:
        """Return what the report shows, as plain data: the crawls latest first."""
        crawls = [*reversed(self._found.values())]
        chosen = [crawl for crawl in crawls if self.run in (None, crawl.run)]
        return {
            "kinds": KINDS,
            "sum": _numbers(self._sum),
            "uncounted": sum(not crawl.until for crawl in chosen),
            "chosen": len(chosen),
            "list": [_shown(crawl) for crawl in crawls],
            "hosts": self.hosts.rows(_HOSTS),
            "over_time": self._over_time.bars(),
        }


def _shown(crawl: Crawl) -> dict[str, Any]:
    begin = crawl.begin or Begin(crawl.run, "")
    return _numbers(crawl) | {
        "run": crawl.run,
        "spider": begin.spider,
        "project": begin.project,
        "version": begin.version,
        "settings": begin.settings,
        "begin": crawl.times[0] if crawl.times else None,
        "end": crawl.times[1] if crawl.times else None,
        "is_counted": bool(crawl.until),
        "is_closed": crawl.is_closed,
        "hosts": crawl.hosts.rows(_HOSTS_OF_A_CRAWL),
    }


def _numbers(crawl: Crawl) -> dict[str, Any]:
    return {
        "pages": {kind: crawl.pages[kind] for kind in KINDS},
        "items_dropped": crawl.items_dropped,
        "items_released": crawl.items_released,
    }


def seconds_of(time: str) -> int | None:
    """Return the seconds since 1970 of a record's *time*; ``None`` if it is not a time."""
    try:
        read = datetime.fromisoformat(time)
        return int((read if read.tzinfo else read.replace(tzinfo=timezone.utc)).timestamp())
    except (ValueError, OverflowError):
        return None
