"""The steps of a batch on its pages, as an `Engine` runs them: elements of some kinds -> elements of others."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.batch import postings
from dedup_middleware.batch.engine import Element
from dedup_middleware.batch.known import NOTHING, known
from dedup_middleware.batch.postings import EDGE, Holding
from dedup_middleware.batch.world import World

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator, Sequence

    from dedup_middleware.batch.components import Division
    from dedup_middleware.batch.engine import Values
    from dedup_middleware.batch.judging import Job
    from dedup_middleware.batch.known import Known
    from dedup_middleware.batch.reading import Row
    from dedup_middleware.batch.world import Asked, Written


class WorldEnd(NamedTuple):
    """What came of a world."""

    world: int
    round: int
    written: Written


@dataclass(frozen=True)
class Find:
    """Postings of some clauses -> those that are ``shared``, and ``edges`` between pages."""

    job: Job
    offsets: Sequence[int]

    def __call__(self, key: int, values: Values) -> Iterator[Element]:
        shared, shares = postings.shared_clauses(values["clauses"], self.offsets)
        packed: defaultdict[int, bytearray] = defaultdict(bytearray)
        found = (
            postings.tied(values["ties"], self.offsets),
            postings.edges(shared, shares, self.job.config.common_clause),
        )
        for edge in (edge for each in found for edge in each):
            packed[EDGE.unpack(edge)[0] % self.job.buckets] += edge
        for bucket, edges in packed.items():
            yield Element("edges", bucket, bytes(edges))
        yield Element("shared", key, shared)


def pairs(key: int, values: Values) -> Iterator[Element]:
    """Edges between some pages and earlier ones -> `postings.pairs` of them."""
    yield Element("pairs", key, b"".join(postings.pairs(values["edges"])))


@dataclass(frozen=True)
class Know:
    """What pages of some hosts have around them -> ``known`` of each."""

    offsets: Sequence[int]

    def __call__(self, key: int, values: Values) -> Iterator[Element]:
        yield Element("known", key, [*known(values["sites"], self.offsets)])


@dataclass(frozen=True)
class Guess:
    """Clauses that are shared -> their first ``state``: who has them, and who may be holding them."""

    job: Job
    component: array[int]

    def __call__(self, element: Element) -> Iterator[Element]:
        shared: postings.Shared = element.value
        most = self.job.config.common_clause + 2
        held = {clause: postings.guess(pages, self.component, most) for clause, pages in shared.items()}
        yield Element("state", element.key, (shared, held))


@dataclass(frozen=True)
class Tell:
    """A state -> what each active world is ``told`` of clauses that others have too."""

    job: Job
    division: Division
    active: frozenset[int] | None

    def __call__(self, element: Element) -> Iterator[Element]:
        shared, held = element.value
        most = self.job.config.common_clause + 2
        told: defaultdict[int, dict[int, dict[bytes, Any]]] = defaultdict(lambda: defaultdict(dict))
        for clause, pages in shared.items():
            there = postings.listed(held.get(clause, ()), most)
            for world, holdings in postings.told(pages, there, self.division.world_of).items():
                if self.active is None or world in self.active:
                    # A clause's hash is shorter here than the place for one.
                    told[world % self.job.buckets][world][clause[: self.job.header.hash_bytes]] = tuple(holdings)
        for bucket, by_world in told.items():
            yield Element("told", bucket, dict(by_world))


@dataclass(frozen=True)
class Route:
    """Pages -> ``rows`` of the worlds that judge them, and of those that have them as guests."""

    job: Job
    division: Division
    offsets: Sequence[int]
    active: frozenset[int] | None

    def __call__(self, element: Element) -> Iterator[Element]:
        part, start, rows = element.value
        found: defaultdict[int, list[tuple[int, int, bool, Row]]] = defaultdict(list)
        for position, row in enumerate(rows, self.offsets[part] + start):
            own = self.division.world_of(position)
            for world in (own, *self.division.worlds_knowing(position)):
                if self.active is None or world in self.active:
                    found[world % self.job.buckets].append((world, position, world != own, row))
        for bucket, routed in found.items():
            yield Element("rows", bucket, routed)


@dataclass(frozen=True)
class RouteKnown:
    """What is known of pages -> the same as ``knowns``, where their worlds are judged."""

    job: Job
    division: Division
    active: frozenset[int] | None

    def __call__(self, element: Element) -> Iterator[Element]:
        found: defaultdict[int, list[tuple[int, Known]]] = defaultdict(list)
        for position, each in element.value:
            world = self.division.world_of(position)
            if self.active is None or world in self.active:
                found[world % self.job.buckets].append((position, each))
        for bucket, routed in found.items():
            yield Element("knowns", bucket, routed)


@dataclass(frozen=True)
class Judge:
    """Rows, and what is told and known of them -> the ``world`` of each; what it ``asked``, and what pages ``held``."""

    job: Job
    round: int

    def __call__(self, key: int, values: Values) -> Iterator[Element]:
        told: defaultdict[int, dict[bytes, tuple[Holding, ...]]] = defaultdict(dict)
        for value in values["told"]:
            for world, clauses in value.items():
                told[world] |= clauses
        sites = {position: each for value in values["knowns"] for position, each in value}
        rows: defaultdict[int, list[tuple[int, bool, Row]]] = defaultdict(list)
        for value in values["rows"]:
            for world, *row in value:
                rows[world].append(tuple(row))
        held: defaultdict[int, list[tuple[int, bytes, Holding]]] = defaultdict(list)
        for number in sorted(rows):
            end, holdings, asked = self._world(number, told[number], sites, sorted(rows.pop(number), key=itemgetter(0)))
            yield Element("world", key, end)
            yield Element("asked", key, (number, asked))
            for clause, holding in holdings:
                held[int.from_bytes(clause[:4], "big") % self.job.buckets].append((number, clause, holding))
        for bucket, found in held.items():
            yield Element("held", bucket, found)

    def _world(
        self,
        number: int,
        told: dict[bytes, tuple[Holding, ...]],
        sites: dict[int, Known],
        rows: list[tuple[int, bool, Row]],
    ) -> tuple[WorldEnd, list[tuple[bytes, Holding]], Asked]:
        world = World(self.job, told, [(place, row) for place, is_guest, row in rows if is_guest])
        verdicts = [
            (place, world.judge(place, row, sites.get(place, NOTHING))) for place, is_guest, row in rows if not is_guest
        ]
        holdings = [*world.end()]
        return WorldEnd(number, self.round, world.written(verdicts)), holdings, world.asked


@dataclass(frozen=True)
class Settle:
    """A state, and what pages of some worlds ``held`` -> the ``state`` after it, and the worlds that it ``changed``."""

    job: Job
    division: Division
    active: frozenset[int] | None

    def __call__(self, key: int, values: Values) -> Iterator[Element]:
        (state,) = values["state"]
        shared, before = state
        most, world_of = self.job.config.common_clause + 2, self.division.world_of
        after: defaultdict[bytes, list[Holding]] = defaultdict(list)
        judged = None if self.active is None else {*map(self.division.now, self.active)}
        if judged is not None:
            for clause, holdings in before.items():
                after[clause] = [each for each in holdings if world_of(each.since) not in judged]
        for value in values["held"]:
            for _, clause, holding in value:
                after[clause.ljust(8, b"\0")].append(holding)
        changed: set[int] = set()
        for clause, pages in shared.items():
            old, new = (postings.listed(held.get(clause, ()), most) for held in (before, after))
            if old != new:
                changed |= postings.changed(pages, old, new, world_of, self.job.config.common_clause)
        yield Element("state", key, (shared, dict(after)))
        yield Element("changed", key, changed)
