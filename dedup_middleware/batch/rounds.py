"""An archive -> its verdicts, made side by side, and equal to those of one process that reads it from end to end.

What a page is depends on earlier pages only. So once all worlds have been judged, and none would be told anything else
than it was, every page has been judged as it would have been in order: the first of all pages was; and if all before a
page were, then what its world was told of them is what a crawl would have known. Worlds that were told something wrong
are judged once more. Each round settles the first page at least that was judged wrongly, and nearly all of them.
"""

from __future__ import annotations

import pickle
from array import array
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.batch import postings
from dedup_middleware.batch.archive import Refused
from dedup_middleware.batch.components import WORLD_PAGES, Division
from dedup_middleware.batch.engine import Element
from dedup_middleware.batch.known import NOTHING, known
from dedup_middleware.batch.postings import EDGE, Holding
from dedup_middleware.batch.reading import ReadPart
from dedup_middleware.batch.world import Asked, World, Written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dedup_middleware.batch.archive import Part
    from dedup_middleware.batch.bench import Job
    from dedup_middleware.batch.engine import Engine, Values
    from dedup_middleware.batch.known import Known
    from dedup_middleware.batch.reading import Row

    Holdings = dict[bytes, list[Holding]]


class Judged(NamedTuple):
    """An archive that has been judged."""

    data: list[Any]
    """What an engine has made; ``world`` are pickled, see `WorldEnd`."""
    last_round: dict[int, int]
    """The round in which a world was judged last, if that is not the first."""
    gone: frozenset[int]
    """Worlds that are part of others."""
    pages: int
    refused: Refused
    rounds: list[int]
    """How many worlds were judged in each."""


class WorldEnd(NamedTuple):
    """What came of a world."""

    world: int
    round: int
    written: Written


def judge_all(
    engine: Engine, job: Job, parts: Sequence[Part], *, world_pages: int = WORLD_PAGES, tell: Callable[[str], None]
) -> Judged:
    """Judge the pages of *parts*, in their order, and *tell* how far that has come."""
    read = engine.read(parts, ReadPart(job))
    counts, refused = [], Refused()
    for value in engine.collect(read, "report"):
        count, others = pickle.loads(value)  # noqa: S301 - what this batch has pickled; so is all that follows
        counts.append(count)
        refused.add(others)
    offsets = [0, *accumulate(counts)]
    pages = offsets.pop()
    tell(f"{pages} pages read")
    found = engine.gathered([read], ("clauses", "ties"), _Find(job, offsets))
    paired = engine.gathered([found], ("edges",), _pairs)
    division = Division.of(pages, engine.collect(paired, "pairs"), world_pages=world_pages)
    sites = engine.gathered([read], ("sites",), _Know(offsets))
    state = engine.each(found, "shared", _Guess(job, division.component))
    rounds = _Rounds(engine, job, division, offsets, read, sites)
    active: frozenset[int] | None = None
    while active is None or active:
        judged = rounds.judge(state, active)
        tell(f"round {len(rounds.sizes)}: {rounds.sizes[-1]} groups of pages judged")
        if active is None and len({*division.world}) == 1:
            break
        state, active = rounds.settle(state, judged, active)
    return Judged(
        rounds.data, rounds.last_round, frozenset(division.merged), pages, refused, rounds.sizes
    )


class _Rounds:
    """Rounds of one batch, and what they have made so far."""

    def __init__(
        self, engine: Engine, job: Job, division: Division, offsets: list[int], read: Any, sites: Any
    ) -> None:
        self.data: list[Any] = []
        self.last_round: dict[int, int] = {}
        self.sizes: list[int] = []
        self._engine, self._job, self._division = engine, job, division
        self._offsets, self._read, self._sites = offsets, read, sites

    def judge(self, state: Any, active: frozenset[int] | None) -> Any:
        """Judge the *active* worlds, or all."""
        division, job = self._division, self._job
        number = len(self.sizes) + 1
        self.sizes.append(len({*division.world}) if active is None else len(active))
        if active is not None:
            self.last_round |= dict.fromkeys(active, number)
        engine = self._engine
        rows = engine.each(self._read, "pages", _Route(job, division, self._offsets, active))
        told = engine.each(state, "state", _Tell(job, division, active))
        known_here = engine.each(self._sites, "known", _RouteKnown(job, division, active))
        judged = engine.gathered([rows, told, known_here], ("rows", "told", "knowns"), _Judge(job, number))
        self.data.append(judged)
        return judged

    def settle(self, state: Any, judged: Any, active: frozenset[int] | None) -> tuple[Any, frozenset[int]]:
        """Return what is known of all clauses now, and which worlds have to be judged once more."""
        engine, division = self._engine, self._division
        again: set[int] = set()
        asked = [pickle.loads(value) for value in engine.collect(judged, "asked")]  # noqa: S301
        for world, each in asked:
            for position in each.joins:
                again |= {division.now(world), division.world_of(position)}
                division.merge(world, division.world_of(position))
            for position in each.guests:
                division.invite(position, division.now(world))
                again.add(world)
        for _, each in asked:
            for position in each.revised:
                for world in division.worlds_knowing(position):
                    again |= {world, division.world_of(position)}
                    division.merge(world, division.world_of(position))
        state = engine.gathered([state, judged], ("state", "held"), _Settle(self._job, division, active))
        for value in engine.collect(state, "changed"):
            again |= pickle.loads(value)  # noqa: S301
        return state, frozenset(map(division.now, again))


# --- the steps


@dataclass(frozen=True)
class _Find:
    """Postings of some clauses -> those that are ``shared``, and ``edges`` between pages."""

    job: Job
    offsets: Sequence[int]

    def __call__(self, key: int, values: Values) -> Iterator[Element]:
        shared, shares = postings.shared_clauses(values["clauses"], self.offsets)
        packed: defaultdict[int, bytearray] = defaultdict(bytearray)
        found = (postings.tied(values["ties"], self.offsets), postings.edges(shared, shares, self.job.config.common_clause))
        for edge in (edge for each in found for edge in each):
            packed[EDGE.unpack(edge)[0] % self.job.buckets] += edge
        for bucket, edges in packed.items():
            yield Element("edges", bucket, bytes(edges))
        yield Element("shared", key, pickle.dumps(shared, pickle.HIGHEST_PROTOCOL))


def _pairs(key: int, values: Values) -> Iterator[Element]:
    yield Element("pairs", key, b"".join(postings.pairs(values["edges"])))


@dataclass(frozen=True)
class _Know:
    """What pages of some hosts have around them -> ``known`` of each."""

    offsets: Sequence[int]

    def __call__(self, key: int, values: Values) -> Iterator[Element]:
        yield Element("known", key, pickle.dumps([*known(values["sites"], self.offsets)], pickle.HIGHEST_PROTOCOL))


@dataclass(frozen=True)
class _Guess:
    """Clauses that are shared -> their first ``state``: who has them, and who may be holding them."""

    job: Job
    component: array[int]

    def __call__(self, element: Element) -> Iterator[Element]:
        shared: postings.Shared = pickle.loads(element.value)  # noqa: S301
        most = self.job.config.common_clause + 2
        held = {clause: postings.guess(pages, self.component, most) for clause, pages in shared.items()}
        yield Element("state", element.key, pickle.dumps((shared, held), pickle.HIGHEST_PROTOCOL))


@dataclass(frozen=True)
class _Tell:
    """A state -> what each active world is ``told`` of clauses that others have too."""

    job: Job
    division: Division
    active: frozenset[int] | None

    def __call__(self, element: Element) -> Iterator[Element]:
        shared, held = pickle.loads(element.value)  # noqa: S301
        most = self.job.config.common_clause + 2
        told: defaultdict[int, dict[int, dict[bytes, Any]]] = defaultdict(lambda: defaultdict(dict))
        for clause, pages in shared.items():
            there = postings.listed(held.get(clause, ()), most)
            for world, holdings in postings.told(pages, there, self.division.world_of).items():
                if self.active is None or world in self.active:
                    # A clause's hash is shorter here than the place for one.
                    told[world % self.job.buckets][world][clause[: self.job.header.hash_bytes]] = tuple(holdings)
        for bucket, by_world in told.items():
            yield Element("told", bucket, pickle.dumps(dict(by_world), pickle.HIGHEST_PROTOCOL))


@dataclass(frozen=True)
class _Route:
    """Pages -> ``rows`` of the worlds that judge them, and of those that have them as guests."""

    job: Job
    division: Division
    offsets: Sequence[int]
    active: frozenset[int] | None

    def __call__(self, element: Element) -> Iterator[Element]:
        part, start, rows = pickle.loads(element.value)  # noqa: S301
        found: defaultdict[int, list[tuple[int, int, bool, bytes]]] = defaultdict(list)
        for position, row in enumerate(rows, self.offsets[part] + start):
            own = self.division.world_of(position)
            for world in (own, *self.division.worlds_knowing(position)):
                if self.active is None or world in self.active:
                    found[world % self.job.buckets].append((world, position, world != own, row))
        for bucket, routed in found.items():
            yield Element("rows", bucket, pickle.dumps(routed, pickle.HIGHEST_PROTOCOL))


@dataclass(frozen=True)
class _RouteKnown:
    """What is known of pages -> the same as ``knowns``, where their worlds are judged."""

    job: Job
    division: Division
    active: frozenset[int] | None

    def __call__(self, element: Element) -> Iterator[Element]:
        found: defaultdict[int, list[tuple[int, Known]]] = defaultdict(list)
        for position, each in pickle.loads(element.value):  # noqa: S301
            world = self.division.world_of(position)
            if self.active is None or world in self.active:
                found[world % self.job.buckets].append((position, each))
        for bucket, routed in found.items():
            yield Element("knowns", bucket, pickle.dumps(routed, pickle.HIGHEST_PROTOCOL))


@dataclass(frozen=True)
class _Judge:
    """Rows, and what is told and known of them -> the ``world`` of each; what it ``asked``, and what pages ``held``."""

    job: Job
    round: int

    def __call__(self, key: int, values: Values) -> Iterator[Element]:
        told: defaultdict[int, dict[bytes, tuple[Holding, ...]]] = defaultdict(dict)
        for value in values["told"]:
            for world, clauses in pickle.loads(value).items():  # noqa: S301
                told[world] |= clauses
        sites = {position: each for value in values["knowns"] for position, each in pickle.loads(value)}  # noqa: S301
        rows: defaultdict[int, list[tuple[int, bool, bytes]]] = defaultdict(list)
        for value in values["rows"]:
            for world, *row in pickle.loads(value):  # noqa: S301
                rows[world].append(tuple(row))
        held: defaultdict[int, list[tuple[int, bytes, Holding]]] = defaultdict(list)
        for number in sorted(rows):
            end, holdings, asked = self._world(number, told[number], sites, sorted(rows.pop(number)))
            yield Element("world", key, pickle.dumps(end, pickle.HIGHEST_PROTOCOL))
            yield Element("asked", key, pickle.dumps((number, asked)))
            for clause, holding in holdings:
                held[int.from_bytes(clause[:4], "big") % self.job.buckets].append((number, clause, holding))
        for bucket, found in held.items():
            yield Element("held", bucket, pickle.dumps(found, pickle.HIGHEST_PROTOCOL))

    def _world(
        self,
        number: int,
        told: dict[bytes, tuple[Holding, ...]],
        sites: dict[int, Known],
        rows: list[tuple[int, bool, bytes]],
    ) -> tuple[WorldEnd, list[tuple[bytes, Holding]], Asked]:
        loaded: list[tuple[int, bool, Row]] = [(place, is_guest, pickle.loads(row)) for place, is_guest, row in rows]  # noqa: S301
        world = World(self.job, told, [(place, row) for place, is_guest, row in loaded if is_guest])
        verdicts = [
            (place, world.judge(place, row, sites.get(place, NOTHING))) for place, is_guest, row in loaded if not is_guest
        ]
        holdings = [*world.end()]
        return WorldEnd(number, self.round, world.written(verdicts)), holdings, world.asked


@dataclass(frozen=True)
class _Settle:
    """A state, and what the pages of some worlds ``held`` -> the ``state`` after it, and which worlds it has ``changed``."""

    job: Job
    division: Division
    active: frozenset[int] | None

    def __call__(self, key: int, values: Values) -> Iterator[Element]:
        (state,) = values["state"]
        shared, before = pickle.loads(state)  # noqa: S301
        most, world_of = self.job.config.common_clause + 2, self.division.world_of
        after: defaultdict[bytes, list[Holding]] = defaultdict(list)
        judged = None if self.active is None else {*map(self.division.now, self.active)}
        if judged is not None:
            for clause, holdings in before.items():
                after[clause] = [each for each in holdings if world_of(each.since) not in judged]
        for value in values["held"]:
            for _, clause, holding in pickle.loads(value):  # noqa: S301
                after[clause.ljust(8, b"\0")].append(holding)
        changed: set[int] = set()
        for clause, pages in shared.items():
            old, new = (postings.listed(held.get(clause, ()), most) for held in (before, after))
            if old != new:
                changed |= postings.changed(pages, old, new, world_of, self.job.config.common_clause)
        yield Element("state", key, pickle.dumps((shared, dict(after)), pickle.HIGHEST_PROTOCOL))
        yield Element("changed", key, pickle.dumps(changed))
