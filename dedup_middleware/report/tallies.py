"""Sums up records for the report, in one pass, without the store.

In `Tallies` a page counts once, as its last record has it, and its bytes count each time; in `Crawls`, each time: in
all, by crawl, by host and over time.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING, Any

from dedup_middleware.model import VerdictKind
from dedup_middleware.order.forms import MAX_FORMS, forms_of
from dedup_middleware.reasons import DIFFERENCES, Outcome, Reason
from dedup_middleware.records.counts import (
    KINDS,
    NOT_COUNTED,
    OF_ITEMS,
    OF_PAGES,
    counted_as,
    host_at,
    kept,
    skipped,
    unchecked,
)
from dedup_middleware.records.crawl_lines import CrawlLine
from dedup_middleware.records.file import EVIDENCE_CHARACTERS, MAX_CHANGES, TEXT
from dedup_middleware.records.signs import Signs, score_of
from dedup_middleware.text.clauses import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.order.forms import FormLast
    from dedup_middleware.records.file import Record

#: Bars of the chart over time, at the most.
BARS = 90
#: Spans of time that a bar may stand for, in seconds; longer ones are days of 86 400.
_SPANS = (1, 5, 15, 60, 300, 900, 3_600, 21_600, 86_400)
# Spans of time that are counted at once.
_MAX_SPANS = 20_000
# Crawls whose forms are summed up, and crawls that are listed: the latest. Of these, the latest are compared by host.
_MAX_LAST, _MAX_CRAWLS, _COMPARED = 1_000, 1_000, 30
# Hosts that are counted at once, in all and of a crawl, and those that are shown, with most pages.
_MAX_HOSTS, _MAX_HOSTS_OF_A_CRAWL = 50_000, 5_000
_HOSTS, _HOSTS_OF_A_CRAWL = 2_000, 300
# Pages that have changed or are gone: the latest.
_MAX_CHANGED = 2_000
_GONE = VerdictKind.GONE.value
#: Stands for the hosts that are counted together.
OTHERS = ""
_RELEASED = Outcome.RELEASED.value
# The text or the item decided; for the other reasons, a page is kept although it may be a duplicate.
_BY_TEXT = DIFFERENCES | {Reason.BELOW_THRESHOLD}


class Hosts:
    """Counts pages by host and kind. Of more than *most* hosts, those with fewest pages are counted together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: dict[str, Counter[str]] = {}

    def add(self, host: str, kind: str, pages: int = 1) -> None:
        """Count *pages* of *host*."""
        kinds = self._found.get(host)
        if kinds is None:
            kinds = self._found[host] = Counter()
        kinds[kind] += pages
        if len(self._found) > 2 * self._most:
            self._found = self._largest(self._most)

    def _largest(self, count: int) -> dict[str, Counter[str]]:
        ordered = sorted(self._found.items(), key=lambda item: (item[0] == OTHERS, -item[1].total()))
        rest: Counter[str] = sum((kinds for _, kinds in ordered[count:]), Counter())
        return dict(ordered[:count]) | ({OTHERS: rest} if rest else {})

    def rows(self, count: int) -> list[list[Any]]:
        """Return the *count* hosts with most pages, and the rest as `OTHERS`, each with its pages of each kind."""
        return [[host, *(kinds[kind] for kind in KINDS)] for host, kinds in self._largest(count).items()]


@dataclass(slots=True)
class Crawl:
    """What was counted of a crawl, or of all of them."""

    begin: CrawlLine | None = None
    is_closed: bool = False
    times: list[int] = field(default_factory=list)
    """When it began, and the last time that it was running, in seconds since 1970; empty if that is not known."""
    pages: Counter[str] = field(default_factory=Counter)
    items: Counter[str] = field(default_factory=Counter)
    """By kind: those that were checked by themselves."""
    numbers: Counter[str] = field(default_factory=Counter)
    spider: str = ""
    hosts: Hosts = field(default_factory=lambda: Hosts(_MAX_HOSTS_OF_A_CRAWL))

    def add(self, record: Record, kind: str | None, numbers: Iterable[tuple[str, int]]) -> None:
        """Count *record*, which is `counted_as` this."""
        if kind is not None and record.is_item:
            self.items[kind] += 1
        elif kind is not None:
            self.pages[kind] += 1
            self.hosts.add(host_at(record.url), kind)
        for name, number in numbers:
            self.numbers[name] += number

    def note(self, seconds: int | None) -> None:
        """Note that it was running at a time."""
        if seconds is not None:
            self.times = [min(seconds, *self.times[:1]), max(seconds, *self.times[1:])] if self.times else [seconds] * 2

    def as_dict(self) -> dict[str, Any]:
        """Return its numbers as plain values."""
        pages, items = ({kind: counted[kind] for kind in KINDS} for counted in (self.pages, self.items))
        of_items = {f"items_{name}": self.numbers[f"items/{name}"] for name in ("dropped", "released")}
        not_counted = {reason.value: skipped(self.numbers, reason.value) for reason in NOT_COUNTED}
        return {"pages": pages, "skipped": not_counted, "items": items, "reasons": self.reasons(), **of_items}

    def reasons(self) -> list[dict[str, Any]]:
        """Return why pages, and items that were checked by themselves, were kept or unchecked, most frequent first."""
        rows = []
        for what, counted in (("kept", kept), ("unchecked", unchecked)):
            pages, items = (counted(self.numbers, of) for _, of in (OF_PAGES, OF_ITEMS))
            rows += [
                {"what": what, "reason": reason, "pages": pages[reason], "items": items[reason]}
                for reason, _ in (pages + items).most_common()
            ]
        return rows

    def in_list(self, name: str) -> dict[str, Any]:
        """Return all of it as plain values, under its *name*."""
        begin, end = self.times or (None, None)
        line = self.begin or CrawlLine(event="begin", time="", spider=self.spider, crawl=name)
        about = {key: getattr(line, key) for key in ("spider", "project", "version", "settings")}
        states = {"begin": begin, "end": end, "is_closed": self.is_closed or self.begin is None}
        return self.as_dict() | about | states | {"crawl": name, "hosts": self.hosts.rows(_HOSTS_OF_A_CRAWL)}


class Crawls:
    """Counts all crawls of some lines, oldest first; sums are of the one *crawl*, or of all."""

    def __init__(self, crawl: str | None = None) -> None:
        self.sum = Crawl(hosts=Hosts(_MAX_HOSTS))
        self._crawl = crawl
        self._found: dict[str, Crawl] = {}
        self._span = 1
        self._spans: Counter[tuple[int, str]] = Counter()
        """Pages by the number of their span, since 1970, and kind."""
        self._changed: deque[Record] = deque(maxlen=_MAX_CHANGED)
        self._requests_last = 0
        self._last: dict[str, list[FormLast]] = {}

    def add(self, line: Record | CrawlLine) -> None:
        """Count *line*."""
        seconds = seconds_of(line.time)
        crawl = self._found.get(line.crawl) or self._new(line)
        crawl.note(seconds)
        is_in_sum = self._crawl is None or self._crawl == line.crawl
        if isinstance(line, CrawlLine):
            crawl.is_closed = line.event == "end"
            # A later process that goes on with the crawl may have other settings.
            crawl.begin = line
            if is_in_sum:
                self._add_last(line)
            return
        has_changed = line.changes is not None or line.moved_from is not None or line.verdict == _GONE
        # Items with keys have records of their own.
        if has_changed and line.reason != Reason.ITEMS_HAVE_KEYS:
            self._changed.append(line)
        kind, numbers = counted_as(line)
        crawl.add(line, kind, numbers)
        if is_in_sum:
            self.sum.add(line, kind, numbers)
            if seconds is not None and kind is not None and not line.is_item:
                self._spans[seconds // self._span, kind] += 1
                while len(self._spans) > _MAX_SPANS:
                    self._widen()

    def _new(self, line: Record | CrawlLine) -> Crawl:
        if len(self._found) >= _MAX_CRAWLS:
            del self._found[next(iter(self._found))]
        if len(self._found) >= _COMPARED:
            [*self._found.values()][-_COMPARED].hosts = Hosts(0)
        crawl = self._found[line.crawl] = Crawl(spider=line.spider)
        return crawl

    def _add_last(self, line: CrawlLine) -> None:
        self._requests_last += line.requests_last
        if forms := forms_of(line):
            self._last[line.crawl] = forms
            if len(self._last) > _MAX_LAST:
                del self._last[next(iter(self._last))]

    def __contains__(self, crawl: str | None) -> bool:
        """Return whether there is this *crawl*, or any."""
        return bool(self._found) if crawl is None else crawl in self._found

    def without_new(self) -> int:
        """Return the number of crawls whose new pages have no records."""
        chosen = (crawl for name, crawl in self._found.items() if self._crawl in (None, name))
        return sum(crawl.begin is not None and not crawl.begin.has_new for crawl in chosen)

    def summary(self) -> dict[str, Any]:
        """Return what the report shows, as plain data: the crawls latest first."""
        return {
            "kinds": KINDS,
            "sum": self.sum.as_dict(),
            "without_new": self.without_new(),
            "list": [crawl.in_list(name) for name, crawl in reversed(self._found.items())],
            "changed": [_changed(record) for record in reversed(self._changed)],
            "hosts": self.sum.hosts.rows(_HOSTS),
            "over_time": self.over_time(),
            "requests_last": self._requests_last,
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

    def _widen(self) -> None:
        """Count by the next longer span of time: each is a multiple of the one before."""
        span = next((longer for longer in _SPANS if longer > self._span), 2 * self._span)
        spans: Counter[tuple[int, str]] = Counter()
        for (number, kind), pages in self._spans.items():
            spans[number * self._span // span, kind] += pages
        self._span, self._spans = span, spans

    def over_time(self) -> dict[str, Any]:
        """Return the pages of each kind in each span of time, from the first to the last."""
        first, last = (most((number for number, _ in self._spans), default=0) for most in (min, max))
        while last - first >= BARS:
            self._widen()
            first, last = (most(number for number, _ in self._spans) for most in (min, max))
        bars = {kind: [self._spans[number, kind] for number in range(first, last + 1)] for kind in KINDS}
        return {"span": self._span, "start": first * self._span, "pages": bars}


def _changed(record: Record) -> dict[str, Any]:
    """Return what is shown of a page that has changed, or is gone: rows of a sentence as it was and as it is."""
    changes = record.changes
    rows = [] if changes is None else [*islice(changes.by_field(), 3 * MAX_CHANGES)]
    cut = [
        [one_line(text if name == TEXT else f"{name}: {text}", EVIDENCE_CHARACTERS) if text else None for text in pair]
        for name, *pair in rows
        if any(pair)
    ]
    is_otherwise = changes is not None and (changes.shown_otherwise or len(cut) < len(rows))
    return {
        "url": record.url,
        "key": record.key,
        "crawl": record.crawl,
        "moved_from": record.moved_from,
        "rows": cut,
        "is_shown_otherwise": is_otherwise,
    }


@lru_cache(maxsize=10_000)
def _minute(text: str) -> int | None:
    try:
        time = datetime.fromisoformat(text).replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    return int(time.timestamp())


def seconds_of(time: str) -> int | None:
    """Return the seconds since 1970 of a UTC *time*; ``None`` if it is not one."""
    minute, seconds = _minute(time[:16]), time[17:19]
    if minute is None or not (seconds.isdecimal() and seconds.isascii()):
        return minute
    return minute + int(seconds)


class Tallies:
    """Add records, oldest first; the last *rows* duplicates are kept as they are."""

    def __init__(self, rows: int) -> None:
        self.records = 0
        self.duplicates: deque[Record] = deque(maxlen=rows)
        self.duplicates_met = 0
        self._last: dict[str, tuple[str, str, float | None]] = {}
        """URL of a page whose last record is one of a duplicate -> its host, the URL of its original, and the score."""
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
                self._last[record.url] = host_at(record.url), record.original_url or "", score_of(record)

    def pairs_of_hosts(self) -> Counter[tuple[str, str]]:
        """Return how many pages of the first host repeat one of the second."""
        return Counter((host, host_at(original)) for host, original, _ in self._last.values())


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
        records = self._records.values()
        return nsmallest(self._most, records, key=lambda each: (each.reason not in _BY_TEXT, -(score_of(each) or 0.0)))
