"""What another threshold would have done: the verdicts of a log, replayed from their scores.

Pure functions over records. A page that was dropped stays so up to its score. One that was kept for being below the
threshold would be dropped below its score at most: no witness was asked about it. What a witness has kept stays.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.model import VerdictKind
from dedup_middleware.reasons import Outcome, Reason
from dedup_middleware.text.clauses import one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from dedup_middleware.inspection.answers import Answer
    from dedup_middleware.inspection.records import Record

#: Thresholds that are shown beside today's.
THRESHOLDS = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
# Records have so many digits of a score.
_DIGITS = 4
#: What became of items that the threshold has withheld, or would have.
_HELD_BACK = frozenset({Outcome.TAGGED.value, Outcome.WOULD_DROP.value})
_REASONS_SHOWN = 5


class Case(NamedTuple):
    """A verdict that hangs on the threshold."""

    number: int
    """The place of its record among those that were read."""
    url: str
    owner_url: str
    score: float
    is_dropped: bool
    """Whether it is a duplicate; else it was kept for being below the threshold."""
    items: int
    """Those dropped, tagged or counted of a duplicate; those delivered of a page that was kept."""

    @property
    def pair(self) -> tuple[str, str]:
        """Which two pages it is about."""
        return self.url, self.owner_url


@dataclass(frozen=True, slots=True)
class Recorded:
    """What records tell of thresholds."""

    cases: list[Case]
    kept: Counter[str]
    """Pages whose text is known and that are kept at any threshold, by the reason."""
    runs: int
    """How many crawls they are of."""


class Row(NamedTuple):
    """What a threshold does; where it would drop more than was dropped, that is an upper bound."""

    threshold: float
    pages: int
    """Dropped for certain, as far as scores tell."""
    items: int
    pages_at_most: int
    items_at_most: int


def recorded(records: Iterable[Record]) -> Recorded:
    """Sum up *records*, oldest first. 300 bytes and some of the addresses are kept of each that counts."""
    cases: list[Case] = []
    kept: Counter[str] = Counter()
    runs: set[str] = set()
    released: dict[str, int] = {}
    for number, record in enumerate(records):
        runs.add(record.run)
        if record.outcome == Outcome.RELEASED.value:
            released[record.url] = number
        elif (case := _case(number, record)) is not None:
            cases.append(case)
        elif record.verdict == VerdictKind.RELATED.value:
            kept[record.reason] += 1
    # The second visit of a page whose items were released has a record of its own.
    cases = [case for case in cases if case.number > released.get(case.url, -1)]
    return Recorded(cases, kept, len(runs))


def _case(number: int, record: Record) -> Case | None:
    is_dropped = record.verdict == VerdictKind.DUPLICATE.value
    if not is_dropped and record.reason != Reason.BELOW_THRESHOLD.value:
        return None
    if record.owner_url is None or record.score is None or not 0 <= record.score <= 1:
        return None
    items = record.items_dropped
    if not is_dropped or record.outcome in _HELD_BACK:
        items += record.items_delivered
    return Case(number, record.url, record.owner_url, record.score, is_dropped, items)


def replay(cases: Iterable[Case], threshold: float) -> Row:
    """Return what *threshold*, 0.5-1, would have done to *cases*."""
    line = round(threshold, _DIGITS)
    cases = list(cases)
    drops = [case.items for case in cases if case.is_dropped and case.score >= line]
    # A score below the line may have been rounded up to it.
    perhaps = [case.items for case in cases if not case.is_dropped and case.score > line]
    return Row(threshold, len(drops), sum(drops), len(drops) + len(perhaps), sum(drops) + sum(perhaps))


def judged_elsewhere(cases: Iterable[Case], today: float) -> int:
    """Return how many *cases* another threshold than *today*'s has decided: an earlier setting, a request's own."""
    line = round(today, _DIGITS)
    return sum(case.score < line if case.is_dropped else case.score > line for case in cases)


def borderline(cases: Iterable[Case], today: float, count: int, *, judged: Collection[Answer] = ()) -> list[Case]:
    """Return the *count* pairs on either side of *today*'s threshold that are nearest to it, the nearest first.

    Left out is what has been *judged*. A pair that was met several times counts as it was met last, and of pages that
    have the same owner and the same score, most likely one text at several addresses, only one is returned.
    """
    pairs = {answer.pair for answer in judged}
    texts = {(answer.owner_url, answer.score) for answer in judged}
    last = {case.pair: case for case in cases if case.pair not in pairs}.values()
    left = {(case.owner_url, case.score): case for case in last if (case.owner_url, case.score) not in texts}.values()
    line = round(today, _DIGITS)
    sides = [case for case in left if case.score >= line], [case for case in left if case.score < line]
    near = [case for side in sides for case in nsmallest(count, side, key=lambda case: abs(case.score - line))]
    return sorted(near, key=lambda case: abs(case.score - line))


def rows_of(cases: Sequence[Case], today: float, thresholds: Iterable[float]) -> list[Row]:
    """Return a row for each of *thresholds* and for *today*'s, the lowest first."""
    return [replay(cases, threshold) for threshold in sorted({*thresholds, today})]


def as_dict(found: Recorded, rows: Sequence[Row], today: float) -> dict[str, Any]:
    """Return the table as plain values."""
    return {
        "threshold": today,
        "crawls": found.runs,
        "judged_elsewhere": judged_elsewhere(found.cases, today),
        "kept": dict(found.kept.most_common()),
        "rows": [row._asdict() for row in rows],
    }


def tuning_text(found: Recorded, rows: Sequence[Row], today: float) -> str:
    """Return the table for a person."""
    now = next(row for row in rows if row.threshold == today)
    crawls = f"{found.runs} crawl{'s' * (found.runs != 1)}"
    lines = [f"{'threshold':>9} {'pages dropped':>15} {'their items':>15}   against today's, in {crawls}"]
    for row in rows:
        mark = "*" if row.threshold == today else " "
        pages, items = _range(row.pages, row.pages_at_most), _range(row.items, row.items_at_most)
        lines.append(f"{mark} {_shown(row.threshold):<7} {pages:>15} {items:>15}   {_change(row, now)}".rstrip())
    lines.append("")
    if rows[0].pages_at_most > rows[0].pages:
        lines.append("What would be dropped more is that at most: a witness may keep it, and none was asked.")
    if elsewhere := judged_elsewhere(found.cases, today):
        lines.append(f"{elsewhere} were judged at another threshold: by an earlier setting, or a request's own.")
    if kept := found.kept.total():
        lines.append(f"{kept} are kept at any threshold:")
        lines += [f"{count:>9}  {one_line(reason)}" for reason, count in found.kept.most_common(_REASONS_SHOWN)]
    return "\n".join(lines)


def _shown(threshold: float) -> str:
    """Return *threshold* with two digits, or as many as it has."""
    return max(f"{threshold:.2f}", f"{threshold:g}", key=len)


def _range(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def _change(row: Row, now: Row) -> str:
    if row.threshold == now.threshold:
        return "today's"
    fewer, more = now.pages - row.pages, row.pages_at_most - now.pages_at_most
    return f"{fewer} fewer" if fewer > 0 else f"up to {more} more" if more > 0 else ""
