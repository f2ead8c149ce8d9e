"""What another threshold would have done: the verdicts of a log, replayed from their scores.

Pure functions over records. A page that was dropped stays so up to its score. One that was kept for being below the
threshold would be dropped below its score at most, without a check. What a check has kept stays.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.model import VerdictKind
from dedup_middleware.reasons import Outcome, Reason
from dedup_middleware.text.clauses import one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from dedup_middleware.records.log import Record
    from dedup_middleware.report.answers import Answer

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
    original_url: str
    score: float
    is_dropped: bool
    """Whether it is a duplicate; else it was kept for being below the threshold."""
    items: int
    """Those dropped, tagged or counted of a duplicate; those kept of a page that was kept."""

    @property
    def pair(self) -> tuple[str, str]:
        """Which two pages it is about."""
        return self.url, self.original_url


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
    if record.original_url is None or record.score is None or not 0 <= record.score <= 1:
        return None
    items = record.items_dropped
    if not is_dropped or record.outcome in _HELD_BACK:
        items += record.items_kept
    return Case(number, record.url, record.original_url, record.score, is_dropped, items)


def replay(cases: Iterable[Case], threshold: float) -> Row:
    """Return what *threshold*, 0.5-1, would have done to *cases*."""
    line = round(threshold, _DIGITS)
    cases = list(cases)
    drops = [case.items for case in cases if case.is_dropped and case.score >= line]
    # A score below the line may have been rounded up to it.
    perhaps = [case.items for case in cases if not case.is_dropped and case.score > line]
    return Row(threshold, len(drops), sum(drops), len(drops) + len(perhaps), sum(drops) + sum(perhaps))


def checked_elsewhere(cases: Iterable[Case], today: float) -> int:
    """Return how many *cases* another threshold than *today*'s has decided: an earlier setting, a request's own."""
    line = round(today, _DIGITS)
    return sum(case.score < line if case.is_dropped else case.score > line for case in cases)


def borderline(cases: Iterable[Case], today: float, count: int, *, checked: Collection[Answer] = ()) -> list[Case]:
    """Return the *count* pairs on either side of *today*'s threshold that are nearest to it, the nearest first.

    Left out is what has been *checked*. A pair that was met several times counts as it was met last, and of pages that
    have the same original and the same score, most likely one text at several addresses, only one is returned.
    """
    pairs = {answer.pair for answer in checked}
    texts = {(answer.original_url, answer.score) for answer in checked}
    last = {case.pair: case for case in cases if case.pair not in pairs}.values()
    left = {
        (case.original_url, case.score): case for case in last if (case.original_url, case.score) not in texts
    }.values()
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
        "checked_elsewhere": checked_elsewhere(found.cases, today),
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
        lines.append("At most these would be dropped: a check may keep some of them.")
    if elsewhere := checked_elsewhere(found.cases, today):
        lines.append(f"{elsewhere} were checked at another threshold: by an earlier setting, or a request's own.")
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


#: Fewer answers than this suggest nothing.
ENOUGH = 10
#: So many pairs of the same stories must be won by a lower threshold.
ENOUGH_TO_LOWER = 5
# Of the bound on errors.
_CONFIDENCE = 0.95
# The threshold is above one half.
_LOWEST = 0.5
# Scores are counted in ten-thousandths, as records have them, and thresholds are suggested in hundredths.
_UNITS, _STEP = 10_000, 100


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What the answers speak for."""

    today: float
    threshold: float | None
    """To be set; ``None`` with too few answers, and where none would keep all different stories apart."""
    missing: int
    """How many answers are to be given before anything is suggested."""
    same_above: int
    """Pairs of the same story with today's threshold or more."""
    same_below: int
    different_above: int
    different_below: int
    above: float
    """No pair of different stories has more than this score,"""
    up_to: float
    """and none of the same story has less than this one. Between both no answer contradicts a threshold, if above is
    less."""
    asked: int = 0
    """Pairs that were checked, none of them different, and that the threshold drops; if it is lowered, those that it
    drops and today's does not."""
    still_twice: int = 0
    """Pairs of the same story that the threshold leaves below it."""

    @property
    def wrong_at_most(self) -> float:
        """The share of wrong drops among such pairs that is not exceeded, 0-1: Clopper and Pearson's bound, 95 %."""
        return 1.0 - (1 - _CONFIDENCE) ** (1 / self.asked) if self.asked else 1.0

    @property
    def is_lowered(self) -> bool:
        """Whether it would drop more than today."""
        return self.threshold is not None and self.threshold < self.today

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self) | {"wrong_at_most": round(self.wrong_at_most, 4) if self.asked else None}


def suggestion(answers: Collection[Answer], today: float) -> Suggestion:
    """Return what *answers*, one a pair, speak for where *today*'s threshold is set."""
    same = [answer.score for answer in answers if answer.same]
    different = [answer.score for answer in answers if not answer.same]
    same_above, different_above = (sum(score >= today for score in scores) for scores in (same, different))
    missing = max(0, ENOUGH - len(answers))
    threshold = None if missing else _threshold(same, different, today)
    asked = still_twice = 0
    if threshold is not None:
        end = today if threshold < today else 2.0
        asked = sum(threshold <= score < end for score in same)
        still_twice = sum(score < threshold for score in same)
    return Suggestion(
        today=today,
        threshold=threshold,
        missing=missing,
        same_above=same_above,
        same_below=len(same) - same_above,
        different_above=different_above,
        different_below=len(different) - different_above,
        above=max(different, default=_LOWEST),
        up_to=min(same, default=1.0),
        asked=asked,
        still_twice=still_twice,
    )


def _threshold(same: list[float], different: list[float], today: float) -> float | None:
    """Return the threshold nearest *today*'s that drops no pair of *different* stories, or ``None``."""
    highest = max(different, default=_LOWEST)
    least = _units(highest) // _STEP * _STEP + _STEP
    if least > _UNITS:
        return None
    if highest >= today:
        return least / _UNITS
    won = [_units(score) for score in same if least <= _units(score) and score < today]
    if len(won) < ENOUGH_TO_LOWER:
        return today
    return max(least, min(won) // _STEP * _STEP) / _UNITS


def _units(score: float) -> int:
    return round(score * _UNITS)


def suggestion_text(found: Suggestion) -> str:
    """Return the suggestion, and what it rests on, for a person."""
    return "\n".join(_lines(found))


def _lines(found: Suggestion) -> Iterator[str]:
    answers = found.same_above + found.same_below + found.different_above + found.different_below
    yield f"answers: {answers}" + (
        f"; from {found.today:g} on {found.same_above} the same and {found.different_above} different,"
        f" below {found.same_below} the same and {found.different_below} different"
        if answers
        else ""
    )
    if found.missing:
        yield f"{found.missing} more, and a threshold is suggested"
        return
    if found.above < found.up_to:
        yield f"no answer contradicts a threshold above {found.above:g} and up to {found.up_to:g}"
    else:
        yield (
            f"no threshold agrees with all answers: different stories have scores up to {found.above:g},"
            f" and the same ones from {found.up_to:g} on"
        )
    if found.threshold is None:
        yield (
            "no threshold keeps all different stories apart, for one is in its original nearly letter by letter:"
            " let an item have what differs, or keep such pages out by meta={'dedup': False}"
        )
        return
    yield from _basis(found)
    if found.threshold == found.today:
        yield f"suggested: leave DEDUP_THRESHOLD = {found.today:g}"
    else:
        yield f"suggested: DEDUP_THRESHOLD = {found.threshold:g}"


def _basis(found: Suggestion) -> Iterator[str]:
    assert found.threshold is not None
    scores = f"from {found.threshold:g} on" + f" and below {found.today:g}" * found.is_lowered
    if found.asked:
        yield (
            f"of the {found.asked} pairs {scores} that you have checked, none is different: if others are like them,"
            f" at most {found.wrong_at_most:.0%} of such drops are wrong, with {_CONFIDENCE:.0%} confidence"
        )
    else:
        yield f"you have checked no pair {scores} to be the same, so nothing tells how many such drops are wrong"
    if found.still_twice:
        yield f"{found.still_twice} that you call the same stay below it, and are kept"
    if found.threshold == found.today and found.same_below:
        yield f"it would be lowered for {ENOUGH_TO_LOWER} such pairs that no different one reaches"
