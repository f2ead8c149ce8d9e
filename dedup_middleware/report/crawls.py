"""Sums up the counts of crawls for the report: in all, by crawl, by host and over time.

Pages that ended after the last line of their crawl, and all pages of a crawl without counts, are counted by their
records. Then the new pages are missing, because the log has no record of them.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from dedup_middleware.reasons import Outcome
from dedup_middleware.records.counts import kind_of
from dedup_middleware.records.crawls import KINDS, MAX_FORMS, NO_HOST, OTHERS, Begin, Counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dedup_middleware.records.crawls import FormLast
    from dedup_middleware.records.log import Record

#: Bars of the chart over time, at the most.
BARS = 90
#: Spans of time that a bar may stand for, in seconds; longer ones are days of 86 400.
_SPANS = (1, 5, 15, 60, 300, 900, 3_600, 21_600, 86_400)
# Lines and records in the chart over time: the latest, for lines more than two months without a pause.
_MAX_TIMES = 100_000
# Processes of one crawl that were killed: the last of them.
_MAX_GAPS = 100
# Rules that are listed: those that changed last.
_MAX_LAST = 1_000
# Crawls that are listed: the latest. The latest of these are compared host by host.
_MAX_CRAWLS, _COMPARED = 1_000, 30
# Hosts that are counted at once, in all and of a crawl, and those that are shown, with most pages.
_MAX_HOSTS, _MAX_HOSTS_OF_A_CRAWL = 50_000, 5_000
_HOSTS, _HOSTS_OF_A_CRAWL = 2_000, 300


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
        return self._found.get(host, Counter()).total()


@dataclass(slots=True)
class Crawl:
    """What a crawl has counted, or all of them."""

    begin: Begin
    until: str = ""
    """The time of its last line; empty if it has none."""
    is_closed: bool = False
    gaps: list[tuple[str, str]] = field(default_factory=list)
    """From the last line of a process that was killed to the first one of the next."""
    times: list[int] = field(default_factory=list)
    """When it began, and the last time that it was running, in seconds since 1970; empty if that is not known."""
    pages: Counter[str] = field(default_factory=Counter)
    items_dropped: int = 0
    items_released: int = 0
    requests: Counter[str] = field(default_factory=Counter)
    hosts: Hosts = field(default_factory=lambda: Hosts(_MAX_HOSTS_OF_A_CRAWL))

    def count(self, host: str, kinds: Mapping[str, int]) -> None:
        """Count pages of *host*."""
        self.pages.update(kinds)
        self.hosts.add(host, kinds)

    def note(self, time: str) -> int | None:
        """Note that it was running at *time*, and return that in seconds since 1970."""
        if (seconds := seconds_of(time)) is not None:
            self.times = [min([seconds, *self.times]), max([seconds, *self.times])]
        return seconds

    def as_dict(self) -> dict[str, Any]:
        """Return its numbers as plain values."""
        pages = {kind: self.pages[kind] for kind in KINDS}
        return {"pages": pages, "items_dropped": self.items_dropped, "items_released": self.items_released}

    def in_list(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        begin, end = self.times or (None, None)
        about = {name: getattr(self.begin, name) for name in ("run", "spider", "project", "version", "settings")}
        states = {"begin": begin, "end": end, "is_counted": bool(self.until), "is_closed": self.is_closed}
        return self.as_dict() | about | states | {"hosts": self.hosts.rows(_HOSTS_OF_A_CRAWL)}


class Crawls:
    """The crawls of these lines, and of the records that are added then; sums are of the crawl *run*, or of all."""

    def __init__(self, lines: Iterable[Begin | Counts], run: str | None = None) -> None:
        self.sum = Crawl(Begin("", ""), hosts=Hosts(_MAX_HOSTS))
        self._run = run
        self._found: dict[str, Crawl] = {}
        self._times: deque[tuple[int, int, Mapping[str, int]]] = deque(maxlen=_MAX_TIMES)
        self._last: dict[str, list[FormLast]] = {}
        for line in lines:
            self._add(line)

    def _add(self, line: Begin | Counts) -> None:
        crawl = self._crawl(line.run)
        last = crawl.note(line.time)
        if isinstance(line, Begin):
            # A later process that goes on with the crawl may have other settings.
            if crawl.until and not crawl.is_closed:
                crawl.gaps = [*crawl.gaps[-_MAX_GAPS:], (crawl.until, line.time)]
            crawl.begin, crawl.is_closed = line, False
            return
        crawl.until, crawl.is_closed = max(crawl.until, line.time), line.is_last
        for each in self._sums(crawl):
            each.items_dropped += line.items_dropped
            each.items_released += line.items_released
            each.requests.update(line.requests)
            for host, kinds in line.hosts.items():
                each.count(host, kinds)
        if line.last and self._run in (None, line.run):
            self._last[line.run] = line.last
            if len(self._last) > _MAX_LAST:
                del self._last[next(iter(self._last))]
        if last is not None and self._run in (None, line.run):
            first, kinds = seconds_of(line.since), sum(map(Counter, line.hosts.values()), Counter())
            self._times.append((last if first is None else min(first, last), last, kinds))

    def add_record(self, record: Record) -> None:
        """Count the page of *record*, if no line of its crawl has counted it."""
        crawl = self._crawl(record.run, record.spider)
        if record.time <= crawl.until and not any(killed < record.time < again for killed, again in crawl.gaps):
            return
        time, is_released = crawl.note(record.time), record.outcome == Outcome.RELEASED.value
        has_items = bool(record.items_kept or record.items_dropped)
        kinds = {} if is_released else {kind_of(record.verdict, record.reason, has_items=has_items): 1}
        for each in self._sums(crawl):
            if kinds:
                each.count(record.host or NO_HOST, kinds)
            each.items_dropped += record.items_dropped
            each.items_released += record.items_kept if is_released else 0
        if time is not None:
            self._times.append((time, time, kinds))

    def _crawl(self, run: str, spider: str = "") -> Crawl:
        if run not in self._found:
            if len(self._found) >= _MAX_CRAWLS:
                del self._found[next(iter(self._found))]
            if len(self._found) >= _COMPARED:
                [*self._found.values()][-_COMPARED].hosts = Hosts(0)
            self._found[run] = Crawl(Begin(run, "", spider))
        return self._found[run]

    def __contains__(self, run: str | None) -> bool:
        """Return whether there is the crawl *run*, or any."""
        return bool(self._found) if run is None else run in self._found

    def _sums(self, crawl: Crawl) -> list[Crawl]:
        return [crawl, self.sum] if self._run in (None, crawl.begin.run) else [crawl]

    def uncounted(self) -> int:
        """Return the number of crawls whose new pages are not known."""
        return sum(not crawl.until for run, crawl in self._found.items() if self._run in (None, run))

    def summary(self) -> dict[str, Any]:
        """Return what the report shows, as plain data: the crawls latest first."""
        return {
            "kinds": KINDS,
            "sum": self.sum.as_dict(),
            "uncounted": self.uncounted(),
            "list": [crawl.in_list() for crawl in reversed(self._found.values())],
            "hosts": self.sum.hosts.rows(_HOSTS),
            "over_time": self.over_time(),
            "requests": self.sum.requests,
            "last": self._forms(),
        }

    def _forms(self) -> list[dict[str, Any]]:
        """Return the forms that were fetched last, summed over the crawls."""
        sums: dict[str, Counter[str]] = {}
        for form in (form for forms in self._last.values() for form in forms):
            counts = {"requests": form.requests, "pages": form.pages, "nothing": form.nothing}
            sums.setdefault(form.form, Counter()).update(counts)
        rows = sorted(sums.items(), key=lambda row: -row[1]["requests"])
        return [{"form": form, **counts} for form, counts in rows[:MAX_FORMS]]

    def over_time(self) -> dict[str, Any]:
        """Return the pages of each kind in each span of time, from the first to the last."""
        begin = min((first for first, *_ in self._times), default=0)
        end = max((last for _, last, _ in self._times), default=0)
        span = _span(end - begin)
        start = begin // span * span
        bars = {kind: [0] * ((end - start) // span + 1) for kind in KINDS}
        for first, last, kinds in self._times:
            place, parts = (first - start) // span, (last - first) // span + 1
            for kind, n in kinds.items():
                for part in range(parts):
                    # Rounded so that the parts of a number have its sum.
                    bars[kind][place + part] += n * (part + 1) // parts - n * part // parts
        return {"span": span, "start": start, "pages": bars}


def _span(seconds: int) -> int:
    for span in _SPANS:
        if seconds < span * BARS:
            return span
    day = _SPANS[-1]
    return math.ceil((seconds + 1) / (BARS * day)) * day


def seconds_of(time: str) -> int | None:
    """Return the seconds since 1970 of a record's *time*; ``None`` if it is not a time."""
    try:
        read = datetime.fromisoformat(time)
        return int((read if read.tzinfo else read.replace(tzinfo=timezone.utc)).timestamp())
    except (ValueError, OverflowError):
        return None
