"""Replays the verdicts of records at other thresholds, and suggests a threshold from labelled pairs.

Pure functions over records. A dropped page stays dropped up to its score. A page that was kept below the threshold
may be dropped up to its score, if no check keeps it. A page that a check has kept stays.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.reasons import Outcome, Reason
from dedup_middleware.text.clauses import one_line
from dedup_middleware.text.terminal import Table, columns, plural, rendered

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from dedup_middleware.records.file import Record
    from dedup_middleware.report.answers import Answer

#: Thresholds that are evaluated besides the current one.
THRESHOLDS = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
# Of a score in a record.
_DIGITS = 4
# Of pages whose verdict depends on the threshold.
_OF_THRESHOLD = frozenset({"", Reason.NEAR_MATCH.value, Reason.CROSS_HOST.value, Reason.BELOW_THRESHOLD.value})
_REASONS_SHOWN = 5


class Case(NamedTuple):
    """A verdict that depends on the threshold."""

    number: int
    """Of its record, counted from 0."""
    url: str
    original_url: str
    score: float
    is_dropped: bool
    """Whether it is a duplicate; else it was kept below the threshold."""
    items: int
    """Those that are dropped if the page is a duplicate."""

    @property
    def pair(self) -> tuple[str, str]:
        """The URLs of the page and the original."""
        return self.url, self.original_url


@dataclass(frozen=True, slots=True)
class Recorded:
    """Records, summed up for a replay."""

    cases: list[Case]
    kept: Counter[str]
    """Related pages that are kept at any threshold, by reason."""
    crawls: int


class ThresholdRow(NamedTuple):
    """The drops at a threshold: at least those that were dropped, at most those with a sufficient score."""

    threshold: float
    pages: int
    items: int
    pages_at_most: int
    items_at_most: int


def recorded(records: Iterable[Record]) -> Recorded:
    """Return *records*, oldest first, summed up for a replay. Some 300 bytes and the URLs stay in memory per case."""
    cases: list[Case] = []
    kept: Counter[str] = Counter()
    crawls: set[str] = set()
    released: dict[str, int] = {}
    for number, record in enumerate(records):
        crawls.add(record.crawl)
        if record.outcome == Outcome.RELEASED.value:
            released[record.url] = number
        elif (case := _case(number, record)) is not None:
            cases.append(case)
        elif record.is_related:
            kept[record.reason] += 1
    # The second visit of a page whose items were released has a record of its own.
    cases = [case for case in cases if case.number > released.get(case.url, -1)]
    return Recorded(cases, kept, len(crawls))


def _case(number: int, record: Record) -> Case | None:
    is_dropped = record.is_duplicate
    if not is_dropped and record.reason != Reason.BELOW_THRESHOLD.value:
        return None
    if record.original_url is None or record.score is None or not 0 <= record.score <= 1:
        return None
    items = record.items_dropped + (record.items_would_drop if is_dropped else record.items_kept)
    return Case(number, record.url, record.original_url, record.score, is_dropped, items)


def replay(cases: Iterable[Case], threshold: float) -> ThresholdRow:
    """Return the drops of *cases* at *threshold*."""
    line = round(threshold, _DIGITS)
    cases = list(cases)
    drops = [case.items for case in cases if case.is_dropped and case.score >= line]
    # A score below the line may have been rounded up to it.
    perhaps = [case.items for case in cases if not case.is_dropped and case.score > line]
    return ThresholdRow(threshold, len(drops), sum(drops), len(drops) + len(perhaps), sum(drops) + sum(perhaps))


def borderline(cases: Iterable[Case], threshold: float, count: int, *, labelled: Collection[Answer] = ()) -> list[Case]:
    """Return the *count* pairs on either side of *threshold* with the nearest scores, the nearest first.

    Without the *labelled* pairs. Of a pair, the last case counts. Of pages with the same original and the same score,
    which most likely have one text at several URLs, only one is returned.
    """
    pairs = {label.pair for label in labelled}
    texts = {(label.original_url, label.score) for label in labelled}
    last = {case.pair: case for case in cases if case.pair not in pairs}.values()
    left = {text: case for case in last if (text := (case.original_url, case.score)) not in texts}.values()
    line = round(threshold, _DIGITS)
    by_distance = sorted(left, key=lambda case: abs(case.score - line))
    above = islice((case for case in by_distance if case.score >= line), count)
    below = islice((case for case in by_distance if case.score < line), count)
    return sorted([*above, *below], key=lambda case: abs(case.score - line))


def rows_of(cases: Sequence[Case], current: float, thresholds: Iterable[float]) -> list[ThresholdRow]:
    """Return a row for each of *thresholds* and for the *current* one, the lowest first."""
    return [replay(cases, threshold) for threshold in sorted({*thresholds, current})]


def as_dict(found: Recorded, rows: Sequence[ThresholdRow], current: float) -> dict[str, Any]:
    """Return the table as plain values."""
    return {
        "threshold": current,
        "crawls": found.crawls,
        "kept": dict(found.kept.most_common()),
        "rows": [row._asdict() for row in rows],
    }


def tuning_text(found: Recorded, rows: Sequence[ThresholdRow], current: float) -> str:
    """Return the table for a person."""
    now = next(row for row in rows if row.threshold == current)
    cells = [
        (
            max(f"{row.threshold:.2f}", f"{row.threshold:g}", key=len),
            _range(row.pages, row.pages_at_most),
            _range(row.items, row.items_at_most),
            _change(row, now),
        )
        for row in rows
    ]
    lines = [rendered(Table(("threshold", "pages dropped", "items dropped", "change"), cells, names=0), columns()), ""]
    if rows[0].pages_at_most > rows[0].pages:
        lines.append("The upper numbers are bounds: a check may keep some of these pages.")
    if kept := found.kept.total():
        lines.append(f"{plural(kept, 'related page')} in {plural(found.crawls, 'crawl')} kept at any threshold:")
        lines += [f"  {one_line(reason)} {count}" for reason, count in found.kept.most_common(_REASONS_SHOWN)]
    return "\n".join(lines).rstrip()


def _range(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def _change(row: ThresholdRow, now: ThresholdRow) -> str:
    if row.threshold == now.threshold:
        return "current"
    fewer, more = now.pages - row.pages, row.pages_at_most - now.pages_at_most
    return f"{fewer} fewer" if fewer > 0 else f"up to {more} more" if more > 0 else "none"


#: Labels from which a threshold is suggested.
ENOUGH = 10
#: Labelled duplicates that a lower threshold must gain.
ENOUGH_TO_LOWER = 5
# Of the bound on errors.
_CONFIDENCE = 0.95
# The threshold is above one half.
_LOWEST = 0.5
# Scores are counted in ten-thousandths, as records have them, and thresholds are suggested in hundredths.
_UNITS, _STEP = 10_000, 100


class Suggestion(NamedTuple):
    """The threshold that labels suggest, and its basis."""

    current: float
    threshold: float | None
    """``None`` with too few labels, and if no threshold keeps all pairs that are labelled different."""
    missing: int
    """Labels that are needed before a threshold is suggested."""
    duplicates: int
    """Pairs that are labelled duplicates,"""
    different: int
    """and pairs that are labelled different."""
    checked: int = 0
    """Labelled duplicates that the threshold drops; if it is lower than the current one, only the additional ones."""
    kept: int = 0
    """Labelled duplicates below the threshold."""
    by_checks: int = 0
    """Labels that do not count: of pages that a check keeps at any threshold,"""
    by_checks_same: int = 0
    """and those of them that are labelled duplicates."""

    @property
    def wrong_at_most(self) -> float:
        """The share of wrong drops among such pairs, with 95 % confidence, 0-1: the bound of Clopper and Pearson."""
        return 1.0 - (1 - _CONFIDENCE) ** (1 / self.checked) if self.checked else 1.0

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return self._asdict() | {"wrong_at_most": round(self.wrong_at_most, 4) if self.checked else None}


def suggestion(labels: Collection[Answer], current: float) -> Suggestion:
    """Return the threshold that *labels*, one a pair, suggest instead of the *current* one."""
    by_checks = [label.same for label in labels if label.reason not in _OF_THRESHOLD]
    counted = [label for label in labels if label.reason in _OF_THRESHOLD]
    same = [label.score for label in counted if label.same]
    different = [label.score for label in counted if not label.same]
    missing = max(0, ENOUGH - len(counted))
    found = Suggestion(current, None, missing, len(same), len(different), 0, 0, len(by_checks), sum(by_checks))
    threshold = None if missing else _threshold(same, different, current)
    if threshold is None:
        return found
    return found._replace(
        threshold=threshold,
        checked=_between(same, threshold, current if threshold < current else 2.0),
        kept=_between(same, 0, threshold),
    )


def _between(scores: Iterable[float], least: float, end: float) -> int:
    return sum(least <= score < end for score in scores)


def _threshold(same: list[float], different: list[float], current: float) -> float | None:
    """Return the threshold nearest the *current* one that drops no pair that is labelled *different*, or ``None``."""
    highest = max(different, default=_LOWEST)
    least = _units(highest) // _STEP * _STEP + _STEP
    if least > _UNITS:
        return None
    if highest >= current:
        return least / _UNITS
    gained = [_units(score) for score in same if least <= _units(score) and score < current]
    if len(gained) < ENOUGH_TO_LOWER:
        return current
    return max(least, min(gained) // _STEP * _STEP) / _UNITS


def _units(score: float) -> int:
    return round(score * _UNITS)


def suggestion_text(found: Suggestion) -> str:
    """Return the suggestion and its basis for a person."""
    lines = [f"Labelled pairs: {plural(found.duplicates, 'duplicate')}, {found.different} different."]
    if found.by_checks:
        more = f"{plural(found.by_checks, 'label')}, {plural(found.by_checks_same, 'duplicate')}"
        lines.insert(0, f"Pages that a check keeps at any threshold: {more}.")
    if found.missing:
        lines[-1] += f" Label {found.missing} more to get a suggestion."
        return "\n".join(lines)
    if found.threshold is None:
        lines += [
            "No threshold keeps all pairs labelled different: one of them is nearly identical.",
            "Scrape the difference into a field of the item, or set meta={'dedup': False} for such pages.",
        ]
        return "\n".join(lines)
    scores = f"from {found.threshold:g}" + f" to {found.current:g}" * (found.threshold < found.current)
    if found.checked:
        lines += [
            f"All {found.checked} labelled pairs with scores {scores} are duplicates:",
            f"at most {found.wrong_at_most:.0%} of such drops are wrong, with {_CONFIDENCE:.0%} confidence.",
        ]
    else:
        lines.append(f"No pair with a score {scores} is labelled: the share of wrong drops is unknown.")
    if found.kept:
        lines.append(f"{plural(found.kept, 'labelled duplicate')} below it would be kept.")
    keep = "keep " * (found.threshold == found.current)
    return "\n".join([*lines, f"Suggested: {keep}DEDUP_THRESHOLD = {found.threshold:g}"])
