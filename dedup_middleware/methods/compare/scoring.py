"""How right it was to drop just these pages.

Of a cluster's n pages one must be kept and n - 1 should go, whichever they are. Optional pages may go either way
and are not counted, but one that was kept has told its story: then all the others may go.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from dedup_middleware.methods.compare.corpus import CorpusPage

# Digits of a score.
_DIGITS = 4


class Scores(NamedTuple):
    """What came of a corpus."""

    precision: float
    """Right drops / drops, 0-1; 1 where nothing was dropped."""
    recall: float
    """Right drops / pages that should go, 0-1; 1 where none should."""
    f1: float
    """Their harmonic mean."""
    lost: int
    """Clusters of which nothing was kept."""


def scores(pages: Sequence[CorpusPage], originals: Sequence[int]) -> Scores:
    """Return the scores of *originals*, which has the number of the page for which each one was dropped, or its own."""
    dropped: dict[str | None, list[bool]] = defaultdict(list)
    told = set()
    for number, (page, original) in enumerate(zip(pages, originals, strict=True)):
        if not page.is_optional:
            dropped[page.cluster].append(original != number)
        elif original == number:
            told.add(page.cluster)
    drops = right = due = lost = 0
    for cluster, gone in dropped.items():
        drops += sum(gone)
        right += min(sum(gone), len(gone) - (cluster not in told))
        due += len(gone) - 1
        lost += all(gone) and cluster not in told
    precision = right / drops if drops else 1.0
    # A story that an optional page has told may lose one page more than it should.
    recall = min(1.0, right / due) if due else 1.0
    both = precision + recall
    f1 = 2 * precision * recall / both if both else 0.0
    return Scores(round(precision, _DIGITS), round(recall, _DIGITS), round(f1, _DIGITS), lost)


class Pair(NamedTuple):
    """Two methods side by side."""

    method: str
    other: str
    both: int
    """Pages that both drop."""
    either: int
    """Pages that at least one of them drops."""

    @property
    def agreement(self) -> float:
        """Drops in common / drops of either, 0-1; 1 where neither drops anything."""
        return round(self.both / self.either, 4) if self.either else 1.0


def dropped(originals: Sequence[int]) -> set[int]:
    """Return the numbers of the pages that were not kept."""
    return {number for number, original in enumerate(originals) if original != number}


def pairs(drops: Mapping[str, AbstractSet[int]]) -> list[Pair]:
    """Return each two of the methods whose *drops* these are, in their order."""
    return [
        Pair(one, other, len(drops[one] & drops[other]), len(drops[one] | drops[other]))
        for one, other in combinations(drops, 2)
    ]


def disputed(drops: Mapping[str, AbstractSet[int]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the pages on which methods disagree, in their order, and who drops each."""
    for number in sorted(set().union(*drops.values())):
        by = [name for name, numbers in drops.items() if number in numbers]
        if len(by) < len(drops):
            yield number, by
