"""The threshold that a person's answers speak for, and what that rests on.

Precision comes first: a page delivered twice is a nuisance, one that was lost is a loss. So one pair of different
stories is enough to raise the threshold above it, and it takes several of the same story to lower it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from dedup_middleware.inspection.answers import Answer

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
    """Pairs that were judged, none of them different, and that the threshold drops; if it is lowered, those that it
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
    """Return the threshold nearest *today*'s that drops no pair of *different* stories; ``None`` if there is none."""
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
            "no threshold keeps all different stories apart, for one of them is in its owner nearly letter by letter:"
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
            f"of the {found.asked} pairs {scores} that you have judged, none is different: if others are like them,"
            f" at most {found.wrong_at_most:.0%} of such drops are wrong, with {_CONFIDENCE:.0%} confidence"
        )
    else:
        yield f"you have judged no pair {scores} to be the same, so nothing tells how many such drops are wrong"
    if found.still_twice:
        yield f"{found.still_twice} that you call the same stay below it, and are delivered"
    if found.threshold == found.today and found.same_below:
        yield f"it would be lowered for {ENOUGH_TO_LOWER} such pairs that no different one reaches"
