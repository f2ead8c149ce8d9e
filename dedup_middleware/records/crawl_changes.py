"""Finds what became of pages between two crawls: new, changed, moved, gone, not seen. A fold over records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dedup_middleware.errors import NothingFoundError
from dedup_middleware.model import Scope, VerdictKind
from dedup_middleware.reasons import Outcome, Reason
from dedup_middleware.records.file import Record, RecordFilter, lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NEW, CHANGED, MOVED, GONE, NOT_SEEN = "new", "changed", "moved", "gone", "not seen"
NOT_COMPARED, UNCHANGED = "not compared", "unchanged"
# Before and after.
ABSENT = "absent"
#: The reason of a crawl that has fetched all there was.
FINISHED = "finished"
#: What can become of a page, in the order in which it is shown.
KINDS = (NEW, CHANGED, MOVED, GONE, NOT_SEEN, NOT_COMPARED, UNCHANGED)
_AS_BEFORE = (UNCHANGED, NOT_COMPARED)
# Verdicts of pages that were compared with what the store has of them.
_COMPARED = frozenset({VerdictKind.UNCHANGED.value, VerdictKind.DUPLICATE.value})


@dataclass(slots=True)
class PageChange:
    """What became of one page."""

    url: str
    kind: str
    record: Record | None = None
    """The record that shows it; ``None`` for a page that was not seen, or is unchanged."""
    moved_from: str | None = None
    """Where it was before, if it has moved."""
    key: str = ""
    """The key of an item that has one; then `url` is that of its page."""
    has_items: bool = True
    """Whether a page that was not compared gave an item: without one, it is not stored."""


@dataclass(slots=True)
class _Span:
    """The pages of the crawls before and after a point in time."""

    before: dict[str, tuple[str, str] | None] = field(default_factory=dict[str, tuple[str, str] | None])
    """URL (empty for items of ``start()``) and key of each thing that was there; ``None`` for a page that was gone."""
    after: dict[str, PageChange] = field(default_factory=dict[str, PageChange])
    left: set[str] = field(default_factory=set[str])
    """URLs that pages have left for others."""
    seen: dict[str, int] = field(default_factory=dict[str, int])
    """The place, in the order of crawls, of the last one after it that has seen a thing."""
    finished: int = -1
    """The place of the last crawl after it that has run to its end: what it has not fetched was not there for it."""

    def add(self, record: Record, *, is_after: bool, compares: bool) -> None:
        """Note the *record* of a page, of a crawl before or after; a page is new or changed once for all of these.

        *compares*: whether its crawl compares pages with those of earlier ones.
        """
        url, former = record.thing, record.moved_from
        if record.reason == Reason.ITEMS_HAVE_KEYS:
            # What its items are has records of its own.
            self.left |= {record.url} if is_after else set()
            return
        if not is_after:
            self.before.pop(former or "", None)
            self.before[url] = None if record.verdict == VerdictKind.GONE.value else (record.url, record.key)
            return
        if former is not None:
            self.left.add(former)
            # What became of it under its former URL; under this one, it may have been taken for a copy.
            known = self.after.pop(former, None) or PageChange(url, MOVED, record)
            if known.kind in _AS_BEFORE:
                known = PageChange(url, MOVED, record)
            came_from = None if known.kind == NEW else known.moved_from or former
            self.before[url], self.after[url] = (url, ""), PageChange(url, known.kind, known.record, came_from)
        kind, now = self._kind_of(record, compares=compares), self.after.get(url)
        is_new = now is not None and now.kind == NEW
        if kind == ABSENT:
            self.after.pop(url, None)
        elif now is None or GONE in {kind, now.kind} or (kind == CHANGED and not is_new):
            moved_from = None if now is None or kind == GONE else now.moved_from
            shown = None if kind in _AS_BEFORE else record
            has_items = bool(record.items_kept or record.items_dropped)
            self.after[url] = PageChange(record.url, kind, shown, moved_from, record.key, has_items)

    def has_lost(self, thing: str) -> bool:
        """Return whether a *thing* that was there has not been seen by the last crawl that has run to its end."""
        change = self.after.get(thing)
        is_shown = thing in self.left or (change is not None and change.kind in {NEW, GONE})
        return not is_shown and self.seen.get(thing, -1) < self.finished

    def _kind_of(self, record: Record, *, compares: bool) -> str:
        # The store may have a page that the records have not: those of new pages may be left out.
        is_stored = record.verdict in {VerdictKind.GONE.value, VerdictKind.UNCHANGED.value}
        was_there = self.before[record.thing] is not None if record.thing in self.before else is_stored
        if record.verdict == VerdictKind.GONE.value:
            return GONE if was_there else ABSENT
        if record.changes is not None:
            return CHANGED
        if not was_there:
            return NEW
        return UNCHANGED if compares and record.verdict in _COMPARED else NOT_COMPARED


def changes_since(path: Path, crawl: str | None = None, wanted: RecordFilter | None = None) -> Iterator[PageChange]:
    """Yield what became of each page that is *wanted*, or of all, after *crawl*, by the records at *path*.

    Items with keys stand for themselves, and their pages are left out. Without *crawl*, it is the last crawl of the
    latest spider compared with the one before it. A page that was crawled before was ``not seen`` if the last crawl of
    its spider that has finished since then, and those after that, have not seen it. Memory: the URLs and keys.
    `NothingFoundError` where there are not two crawls.
    """
    order = _crawls(path)
    if len(order) < 2:  # noqa: PLR2004
        raise NothingFoundError(f"There are no two crawls of one spider in {path} to compare.")
    if crawl is not None and crawl not in order[:-1]:
        raise NothingFoundError(f"No crawl {crawl} in {path}, or none after it", f"Its crawls: {', '.join(order)}.")
    place = len(order) - 2 if crawl is None else order.index(crawl)
    places = {name: n for n, name in enumerate(order)}
    span, compares = _Span(), dict[str, bool]()
    for line in lines(path):
        if (n := places.get(line.crawl)) is None:
            continue
        if not isinstance(line, Record):
            span.finished = max(span.finished, n) if n > place and line.reason == FINISHED else span.finished
            compares[line.crawl] = line.scope != Scope.CRAWL.value
        elif (line.outcome != Outcome.RELEASED.value or line.moved_from) and (wanted is None or wanted.has(line)):
            span.add(line, is_after=n > place, compares=compares.get(line.crawl, True))
            span.seen[line.thing] = n
    vanished = {thing for thing, was in span.before.items() if was is not None and span.has_lost(thing)}
    yield from (change for thing, change in span.after.items() if thing not in vanished)
    missing = ((span.before[thing] or ("", "")) for thing in vanished)
    yield from (PageChange(url, NOT_SEEN, key=key) for url, key in sorted(missing))


def _crawls(path: Path) -> list[str]:
    """Return the crawls of the spider that has crawled last, oldest first."""
    spiders: dict[str, str] = {}
    for line in lines(path):
        spiders.setdefault(line.crawl, line.spider)
    last = next(reversed(spiders.values()), None)
    return [crawl for crawl, spider in spiders.items() if spider == last]
