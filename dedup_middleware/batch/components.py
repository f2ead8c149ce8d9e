"""Which pages are judged together: in one world, one after the other.

Pages that belong together are in one world, so that the first guess at what other worlds do is nearly right; else
neighbours of the archive are. Any other division would lead to the same verdicts, later.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dedup_middleware.batch.postings import PAIR

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Pages of a world, unless more belong together.
WORLD_PAGES = 4


class Components:
    """Sets of pages that belong together; 8 bytes a page."""

    def __init__(self, pages: int) -> None:
        self._parents = array("q", range(pages))

    def of(self, page: int) -> int:
        """Return the first page of the component of *page*. O(1), amortised."""
        parents = self._parents
        while parents[page] != page:
            parents[page] = parents[parents[page]]
            page = parents[page]
        return page

    def join(self, one: int, other: int) -> None:
        """Let the components of two pages be one."""
        one, other = self.of(one), self.of(other)
        self._parents[max(one, other)] = min(one, other)

    def roots(self) -> array[int]:
        """Return the component of each page."""
        return array("q", map(self.of, range(len(self._parents))))


@dataclass
class Division:
    """Pages, and guests of whom a world only knows what they say, by world."""

    component: array[int]
    world: array[int]
    """That of each page when the batch began."""
    guests: defaultdict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Page -> the worlds that know it though it is none of theirs."""
    merged: dict[int, int] = field(default_factory=dict)
    """World -> the one that it is part of by now."""

    @classmethod
    def of(cls, pages: int, packed: Iterable[bytes], *, world_pages: int = WORLD_PAGES) -> Division:
        """Divide so many *pages*, of which `postings.pairs` has *packed* what is known of two."""
        components = Components(pages)
        looked_at = array("Q")
        for value in packed:
            for later, earlier, together in PAIR.iter_unpack(value):
                if together:
                    components.join(later, earlier)
                else:
                    looked_at.extend((later, earlier))
        roots = components.roots()
        division = cls(roots, _crates(roots, world_pages))
        for later, earlier in zip(looked_at[::2], looked_at[1::2], strict=True):
            division.invite(earlier, division.world[later])
        return division

    def world_of(self, page: int) -> int:
        """Return the world that judges *page*."""
        return self.now(self.world[page])

    def now(self, world: int) -> int:
        """Return *world*, or that of which it is part by now."""
        while (other := self.merged.get(world)) is not None:
            world = other
        return world

    def invite(self, page: int, world: int) -> None:
        """Let *world* know what *page* says."""
        if self.world_of(page) != self.now(world):
            self.guests[page].add(self.now(world))

    def merge(self, one: int, other: int) -> None:
        """Let two worlds be one."""
        one, other = self.now(one), self.now(other)
        if one != other:
            self.merged[max(one, other)] = min(one, other)

    def worlds_knowing(self, page: int) -> set[int]:
        """Return the worlds that have *page* as a guest."""
        return {self.now(world) for world in self.guests.get(page, ())} - {self.world_of(page)}


def _crates(roots: array[int], limit: int) -> array[int]:
    """Return the world of each page: some whole components, in the order of their first pages, *limit* pages or one."""
    sizes: defaultdict[int, int] = defaultdict(int)
    for root in roots:
        sizes[root] += 1
    world_of_root: dict[int, int] = {}
    world, room = -1, 0
    for root, size in sizes.items():
        if size > room:
            world, room = world + 1, limit
        world_of_root[root] = world
        room -= size
    return array("q", (world_of_root[root] for root in roots))
