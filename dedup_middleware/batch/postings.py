"""Which clauses several pages have, who holds them when, and what that says of pages that are judged elsewhere.

Of a clause nothing is kept but where it stands: time and memory go with the number of postings, never with that of
pairs of pages, however many pages have it. What a world (see `world`) is told of a clause is bounded as a posting list
of the store is: by what `Index` would have there.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.batch.reading import POSTING, TIE, WHOLE, part_of
from dedup_middleware.index import codec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    Shared = dict[bytes, list[tuple[int, int]]]
    """Clause -> position and mark of the host of each page that has it, in order; two pages at least."""

#: A later page, an earlier one, and how much of the former's text may lead to the latter, and be common to both.
EDGE = struct.Struct("<QQHH")
#: A pair of pages that is told to the driver: whether they belong together, or the earlier is only to be looked at.
PAIR = struct.Struct("<QQ?")
_TIED = 60_000
#: From this share of its text on a page is taken to belong together with an earlier one. It only saves time.
_TOGETHER = 0.3
#: Less than this, and a page is not looked at more closely for it: `detector.CANDIDATE_SHARE`.
_LOOK = 0.02
# Earlier pages that one is probably compared with, beside those that it belongs together with.
_LOOKED_AT = 6


class Holding(NamedTuple):
    """That a page is found by a clause, or would be if there were room, as far as a later page can tell."""

    since: int
    """The position of the page that was kept then: itself, but for one that came again."""
    number: int
    """That of the page."""
    until: int = -1
    """The position of the page at which that ended; -1 if it did not."""


def number_of(position: int, mark: int) -> int:
    """Return the number of the page that is first met at *position*, with the *mark* of its host."""
    return (position + 1) << 16 | mark


def position_of(number: int) -> int:
    """Return the position at which the page with this number was first met."""
    return codec.place_of(number) - 1


def shared_clauses(packed: Iterable[bytes], offsets: Sequence[int]) -> tuple[Shared, dict[tuple[bytes, int], int]]:
    """Return the clauses that several pages have, and the share of them that each has in its page, by position."""
    alone: dict[bytes, tuple[int, int, int]] = {}
    shared: Shared = {}
    shares: dict[tuple[bytes, int], int] = {}
    for value in packed:
        part, postings = part_of(value)
        offset = offsets[part]
        for clause, index, mark, share in POSTING.iter_unpack(postings):
            position = index + offset
            if (others := shared.get(clause)) is not None:
                others.append((position, mark))
            elif (other := alone.get(clause)) is not None:
                shared[clause] = [other[:2], (position, mark)]
                shares[clause, other[0]] = other[2]
            else:
                alone[clause] = (position, mark, share)
                continue
            shares[clause, position] = share
    for others in shared.values():
        others.sort()
    return shared, shares


def tied(packed: Iterable[bytes], offsets: Sequence[int]) -> Iterator[bytes]:
    """Yield an `EDGE` to the first page with each tie, from each other one."""
    found: defaultdict[bytes, list[int]] = defaultdict(list)
    for value in packed:
        part, each = part_of(value)
        for tie, index in TIE.iter_unpack(each):
            found[tie].append(index + offsets[part])
    for positions in found.values():
        first = min(positions)
        yield from (EDGE.pack(position, first, 0, _TIED) for position in positions if position != first)


def edges(shared: Shared, shares: Mapping[tuple[bytes, int], int], common: int) -> Iterator[bytes]:
    """Yield an `EDGE` from each page to the first with a clause; and to those few by which it is found, probably."""
    for clause, pages in shared.items():
        first = pages[0][0]
        for place, (position, _) in enumerate(pages[1:], 1):
            share = shares[clause, position]
            is_live = place <= common
            yield EDGE.pack(position, first, share if is_live else 0, share)
            if is_live:
                yield from (EDGE.pack(position, other, share, 0) for other, _ in pages[1:place])


def pairs(packed: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a `PAIR` for each two pages that belong together, or are probably compared, of all edges of some pages."""
    found: defaultdict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
    for value in packed:
        for later, earlier, live, total in EDGE.iter_unpack(value):
            before = found[later].get(earlier, (0, 0))
            found[later][earlier] = (before[0] + live, before[1] + total)
    for later, others in found.items():
        looked_at = []
        for earlier, (live, total) in others.items():
            if total >= _TOGETHER * WHOLE:
                yield PAIR.pack(later, earlier, True)  # noqa: FBT003 - a struct
            elif live >= _LOOK * WHOLE:
                looked_at.append((-live, earlier))
        yield from (PAIR.pack(later, earlier, False) for _, earlier in sorted(looked_at)[:_LOOKED_AT])  # noqa: FBT003


def guess(pages: Sequence[tuple[int, int]], component: Sequence[int], most: int) -> list[Holding]:
    """Return who may hold a clause that these *pages* have: the first of each component, and *most* in all."""
    seen: set[int] = set()
    found: list[Holding] = []
    for position, mark in pages:
        if component[position] not in seen:
            seen.add(component[position])
            found.append(Holding(position, number_of(position, mark)))
            if len(found) == most:
                break
    return found


def listed(holdings: Iterable[Holding], most: int) -> list[Holding]:
    """Return those of the *holdings* of a clause for which a posting list of *most* places has had room."""
    there: list[Holding] = []
    found: list[Holding] = []
    for each in sorted(holdings):
        there = [other for other in there if not -1 < other.until <= each.since]
        if len(there) < most and all(other.number != each.number for other in there):
            there.append(each)
            found.append(each)
    return found


def told(
    pages: Sequence[tuple[int, int]], holdings: Sequence[Holding], world_of: Callable[[int], int]
) -> dict[int, tuple[Holding, ...]]:
    """Return, by world, what each world with one of these *pages* is told of their clause; nothing if it has all."""
    last: dict[int, int] = {}
    for position, _ in pages:
        last[world_of(position)] = position
    if len(last) == 1:
        return {}
    held = [(world_of(each.since), each) for each in holdings]
    return {
        world: tuple(each for other, each in held if other != world and each.since < end) for world, end in last.items()
    }


def changed(
    pages: Sequence[tuple[int, int]],
    before: Sequence[Holding],
    after: Sequence[Holding],
    world_of: Callable[[int], int],
    common: int,
) -> set[int]:
    """Return the worlds with some of these *pages* for which it matters that holdings of their clause are others.

    A page that meets more than *common* holders elsewhere sees boilerplate, whoever they are.
    """
    was, is_ = (told(pages, held, world_of) for held in (before, after))
    differ = {world for world in is_ if was[world] != is_[world]}
    found: set[int] = set()
    for position, _ in pages:
        world = world_of(position)
        if world in differ and world not in found:
            here = [{h.number for h in held[world] if _is_there(h, position)} for held in (was, is_)]
            if here[0] != here[1] and min(map(len, here)) <= common:
                found.add(world)
    return found


def _is_there(each: Holding, position: int) -> bool:
    """Tell whether the page at *position* meets this holder."""
    return each.since < position and not -1 < each.until < position
