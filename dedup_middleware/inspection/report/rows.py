"""Dropped pages as rows of CSV, for a spreadsheet or a program."""

from __future__ import annotations

import csv
from typing import IO, TYPE_CHECKING

from dedup_middleware.inspection.chosen_records import RecordFilter, log_of, records, run_named
from dedup_middleware.model import VerdictKind
from dedup_middleware.text.clauses import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dedup_middleware.inspection.records import Record
    from dedup_middleware.settings.config import Config

_FIELDS = (
    *("time", "spider", "run", "outcome", "url", "title", "owner_url", "owner_run", "score", "reason", "witness"),
    *("items_dropped", "bytes"),
)
# What a spreadsheet takes for a formula: = + - @, and what it passes over before one.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def are_rows(start: bytes) -> bool:
    """Return whether a file that begins so is one of :func:`write_rows`, of this or another version."""
    return start.decode("utf-8-sig", "replace").startswith("time,spider,run,")


def write_rows(file: IO[str], config: Config, run: str | None) -> int:
    """Write the duplicates of the log of *config* to *file*, oldest first, and return how many there are."""
    writer = csv.writer(file)
    writer.writerow((*_FIELDS[:5], "host", *_FIELDS[5:], "evidence"))
    count = 0
    for record in _duplicates(config, run):
        writer.writerow(map(cell, _values(record)))
        count += 1
    return count


def cell(value: object) -> str:
    """Return *value* for a cell: text that a spreadsheet would compute has an apostrophe in front."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return str(value)
    text = one_line(value)
    return f"'{text}" if value.startswith(_FORMULA) or text.startswith(_FORMULA) else text


def _duplicates(config: Config, run: str | None) -> Iterator[Record]:
    wanted = RecordFilter(run=run_named(log_of(config), run), everything=True)
    return (record for record in records(config, wanted) if record.verdict == VerdictKind.DUPLICATE.value)


def _values(record: Record) -> tuple[object, ...]:
    fields = [getattr(record, name) for name in _FIELDS]
    return (*fields[:5], record.host, *fields[5:], " | ".join(record.evidence))
