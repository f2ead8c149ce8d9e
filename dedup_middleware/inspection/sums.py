"""What a log of records comes to, in numbers.

Of each record only the fields that are summed are read, and of a large log each half by a process of its own: a
million records in less than two seconds.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import msgspec

from dedup_middleware.inspection.log_search import blocks, opened, parts
from dedup_middleware.inspection.records import parse_record
from dedup_middleware.inspection.unchecked import is_unchecked
from dedup_middleware.model import VerdictKind
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from dedup_middleware.inspection.records import Record

# A smaller log is read before another process has begun.
_WORTH_A_PROCESS = 50_000_000
_MAX_PROCESSES = 8


class _Line(msgspec.Struct, gc=False):
    """The fields of a record that are summed."""

    run: str
    url: str
    verdict: str
    outcome: str
    owner_url: str | None = None
    reason: str = ""
    witness: str | None = None
    items_dropped: int = 0


@dataclass(slots=True)
class Sums:
    """How many records there are of each kind."""

    verdicts: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    kept: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By witness and reason: pages that were delivered though another one has their text."""
    unchecked: Counter[str] = field(default_factory=Counter)
    """By reason: pages that were not checked."""
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By host of the page and of its owner: duplicates."""
    items_dropped: int = 0

    def add(self, lines: Iterable[_Line | Record]) -> None:
        """Add these records."""
        found = [*lines]
        self.verdicts.update([line.verdict for line in found])
        self.outcomes.update([line.outcome for line in found])
        self.items_dropped += sum([line.items_dropped for line in found])
        self.unchecked.update([line.reason for line in found if is_unchecked(line.verdict, line.reason)])
        duplicate = VerdictKind.DUPLICATE.value
        repeats = [line for line in found if line.verdict == duplicate]
        self.pairs.update([(_host(line.url), _host(line.owner_url or "")) for line in repeats])
        self.kept.update([(line.witness, line.reason) for line in found if line.witness and line.verdict != duplicate])

    def merge(self, other: Sums) -> None:
        """Add what the *other* part of a log comes to."""
        for mine, theirs in (
            (self.verdicts, other.verdicts),
            (self.outcomes, other.outcomes),
            (self.kept, other.kept),
            (self.unchecked, other.unchecked),
            (self.pairs, other.pairs),
        ):
            mine.update(theirs)  # type: ignore[arg-type]
        self.items_dropped += other.items_dropped


def sums_of(path: Path, run: str | None = None) -> Sums:
    """Return what the log at *path*, or what the crawl *run* has left there, comes to.

    :class:`RecordsError` if it cannot be read.
    """
    with opened(path) as file:
        size = file.seek(0, os.SEEK_END)
    count = min(os.cpu_count() or 1, _MAX_PROCESSES, 1 + size // _WORTH_A_PROCESS)
    divided = parts(path, count)
    total = Sums()
    if len(divided) < 2:  # noqa: PLR2004
        for part in divided:
            total.merge(_sums_of_part(path, run, part))
        return total
    # A fork has all that is imported here; where there is none, that costs a new process half a second.
    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else None
    with ProcessPoolExecutor(len(divided) - 1, multiprocessing.get_context(method)) as others:
        rest = others.map(partial(_sums_of_part, path, run), divided[1:])
        total.merge(_sums_of_part(path, run, divided[0]))
        for part_sums in rest:
            total.merge(part_sums)
    return total


def _sums_of_part(path: Path, run: str | None, part: tuple[int, int]) -> Sums:
    found, decoder = Sums(), msgspec.json.Decoder(_Line)
    with opened(path) as file:
        file.seek(part[0])
        for block in blocks(file, part[1]):
            lines: Iterable[_Line | Record]
            try:
                lines = decoder.decode_lines(block)
            except (msgspec.MsgspecError, ValueError):
                # Half a character is JSON to Python alone; and a line may be torn, or no record.
                read = (parse_record(line.decode("utf8", "replace")) for line in block.splitlines(keepends=True))
                lines = [record for record in read if record is not None]
            found.add(lines if run is None else [line for line in lines if line.run == run])
    return found


@lru_cache(maxsize=100_000)
def _host_at(origin: str) -> str:
    return host_of(origin) or "?"


def _host(url: str) -> str:
    # Few hosts have many addresses.
    return _host_at("/".join(url.split("/", 3)[:3]))
