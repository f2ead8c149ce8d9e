"""What methods agree on where nobody knows what is right: which pages they drop."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet


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


def dropped(owners: Sequence[int]) -> set[int]:
    """Return the numbers of the pages that were not kept."""
    return {number for number, owner in enumerate(owners) if owner != number}


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
