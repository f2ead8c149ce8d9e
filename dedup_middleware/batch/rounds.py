"""An archive -> its verdicts, made side by side, and equal to those of one process that reads it from end to end.

What a page is depends on earlier pages only. So once all worlds have been judged, and none would be told anything else
than it was, every page has been judged as it would have been in order: the first of all pages was; and if all before a
page were, then what its world was told of them is what a crawl would have known. Worlds that were told something wrong
are judged once more. Each round settles the first page at least that was judged wrongly, and nearly all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.batch import steps
from dedup_middleware.batch.archive import Refused
from dedup_middleware.batch.components import WORLD_PAGES, Division
from dedup_middleware.batch.reading import ReadPart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dedup_middleware.batch.archive import Part
    from dedup_middleware.batch.engine import Engine
    from dedup_middleware.batch.judging import Job


class Judged(NamedTuple):
    """An archive that has been judged."""

    data: list[Any]
    """What an engine has made; ``world`` are `WorldEnd`."""
    last_round: dict[int, int]
    """The round in which a world was judged last, if that is not the first."""
    gone: frozenset[int]
    """Worlds that are part of others."""
    pages: int
    refused: Refused
    rounds: list[int]
    """How many worlds were judged in each."""


def judge_all(
    engine: Engine, job: Job, parts: Sequence[Part], *, world_pages: int = WORLD_PAGES, tell: Callable[[str], None]
) -> Judged:
    """Judge the pages of *parts*, in their order, and *tell* how far that has come."""
    read = engine.read(parts, ReadPart(job))
    reports = sorted(engine.collect(read, "report"), key=lambda report: report[0])
    refused = Refused()
    for _, _, others in reports:
        refused.add(others)
    offsets = [0, *accumulate(count for _, count, _ in reports)]
    pages = offsets.pop()
    tell(f"{pages} pages read")
    found = engine.gathered([read], ("clauses", "ties"), steps.Find(job, offsets))
    paired = engine.gathered([found], ("edges",), steps.pairs)
    division = Division.of(pages, engine.collect(paired, "pairs"), world_pages=world_pages)
    sites = engine.gathered([read], ("sites",), steps.Know(offsets))
    state = engine.each(found, "shared", steps.Guess(job, division.component))
    rounds = _Rounds(engine, job, division, offsets, read, sites)
    active: frozenset[int] | None = None
    while active is None or active:
        judged = rounds.judge(state, active)
        tell(f"round {len(rounds.sizes)}: {rounds.sizes[-1]} groups of pages judged")
        if rounds.sizes == [1]:
            break
        state, active = rounds.settle(state, judged, active)
    return Judged(rounds.data, rounds.last_round, frozenset(division.merged), pages, refused, rounds.sizes)


@dataclass
class _Rounds:
    """Rounds of one batch, and what they have made so far."""

    engine: Engine
    job: Job
    division: Division
    offsets: list[int]
    read: Any
    sites: Any
    data: list[Any] = field(default_factory=list)
    last_round: dict[int, int] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    """How many worlds were judged in each."""

    def judge(self, state: Any, active: frozenset[int] | None) -> Any:
        """Judge the *active* worlds, or all."""
        division, job = self.division, self.job
        number = len(self.sizes) + 1
        self.sizes.append(len({*division.world}) if active is None else len(active))
        if active is not None:
            self.last_round |= dict.fromkeys(active, number)
        engine = self.engine
        rows = engine.each(self.read, "pages", steps.Route(job, division, self.offsets, active))
        told = engine.each(state, "state", steps.Tell(job, division, active))
        known_here = engine.each(self.sites, "known", steps.RouteKnown(job, division, active))
        judged = engine.gathered([rows, told, known_here], ("rows", "told", "knowns"), steps.Judge(job, number))
        self.data.append(judged)
        return judged

    def settle(self, state: Any, judged: Any, active: frozenset[int] | None) -> tuple[Any, frozenset[int]]:
        """Return what is known of all clauses now, and which worlds have to be judged once more."""
        engine, division = self.engine, self.division
        again: set[int] = set()
        asked = list(engine.collect(judged, "asked"))
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
        state = engine.gathered([state, judged], ("state", "held"), steps.Settle(self.job, division, active))
        for value in engine.collect(state, "changed"):
            again |= value
        return state, frozenset(map(division.now, again))
