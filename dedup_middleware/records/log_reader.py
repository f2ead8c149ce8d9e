"""Reads a log of any size: the records of a URL, or those that a program asks for."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from dedup_middleware.errors import ConfigError, RecordsError
from dedup_middleware.model import VerdictKind
from dedup_middleware.records.records import MAX_LINE, parse_record, read_records
from dedup_middleware.urls import as_in_urls, is_under, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike
    from typing import BinaryIO

    from dedup_middleware.records.dropped import PageFilter
    from dedup_middleware.records.records import Record
    from dedup_middleware.settings import Config

# Fits in the cache of a processor: larger blocks take half as long again.
_AT_ONCE = 1 << 18


def as_written(text: str) -> bytes:
    """Return the bytes that stand for *text* in a record."""
    return json.dumps(text)[1:-1].encode("ascii")


def blocks(file: BinaryIO, stop: int) -> Iterator[bytes]:
    """Yield what follows in *file* up to the place *stop*, in whole lines of some megabytes together.

    The last one may be torn.
    """
    rest = b""
    while chunk := file.read(min(_AT_ONCE, stop - file.tell())):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield rest + chunk[:cut]
            rest = b""
        # The end of a line that is too long is no record.
        rest = rest + chunk[cut:] if len(rest) <= MAX_LINE else b""
    if rest:
        yield rest


def parts(path: Path, count: int) -> list[tuple[int, int]]:
    """Return where *count* parts of the log at *path* begin and end, whole lines each; fewer if it is short."""
    with opened(path) as file:
        size = file.seek(0, os.SEEK_END)
        edges = {0, size}
        for n in range(1, count):
            file.seek(size * n // count)
            file.readline(MAX_LINE)
            edges.add(min(file.tell(), size))
    return [*pairwise(sorted(edges))]


def lines_with(path: Path, wanted: bytes, *, ignore_case: bool = False) -> Iterator[bytes]:
    """Yield the lines of the log at *path* that have *wanted* somewhere, in lower case if *ignore_case*, in order.

    :class:`RecordsError` if the file cannot be read.
    """
    with opened(path) as file:
        for block in blocks(file, sys.maxsize):
            searched, start = block.lower() if ignore_case else block, 0
            while (found := searched.find(wanted, start)) >= 0:
                start = block.find(b"\n", found) + 1 or len(block)
                yield block[block.rfind(b"\n", 0, found) + 1 : start]


def last_lines_with(path: Path, wanted: bytes) -> Iterator[bytes]:
    """Yield the lines that have *wanted* somewhere, the last first. It reads no more than it must."""
    with opened(path) as file:
        end, behind = file.seek(0, os.SEEK_END), b""
        while end > 0:
            start = max(0, end - _AT_ONCE)
            file.seek(start)
            block = file.read(end - start) + behind
            # Its first line may have begun before.
            whole = block.find(b"\n") + 1 if start else 0
            if start and not whole:
                end, behind = start, block if len(block) <= MAX_LINE else b""
                continue
            stop = len(block)
            while (found := block.rfind(wanted, whole, stop)) >= 0:
                begin = max(block.rfind(b"\n", 0, found) + 1, whole)
                yield block[begin : block.find(b"\n", found) + 1 or len(block)]
                stop = begin
            end, behind = start, block[:whole] if whole <= MAX_LINE else b""


def opened(path: Path) -> BinaryIO:
    """Open the log at *path*; :class:`RecordsError` where there is none, or it cannot be read."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise RecordsError(
            f"there is no log at {path}; crawl first, or name it: -s DEDUP_LOG=PATH, or --spider NAME"
        ) from None
    except OSError as error:
        raise RecordsError(f"the log {path} cannot be read ({error.strerror})") from error
    except ValueError as error:  # a NUL or a lone surrogate
        raise RecordsError(f"the log {str(path)!r} cannot be read ({error}); name another path") from error


#: Names the crawl that has written the last record.
LAST = "last"
_SHOWN = frozenset({VerdictKind.DUPLICATE.value, VerdictKind.RELATED.value})


def records(config: Config, wanted: RecordFilter | None = None, *, follow: bool = False) -> Iterator[Record]:
    """Yield the records of the configured log that are *wanted*, oldest first; with *follow*, never end."""
    path = log_of(config)
    if wanted is None or follow:
        yield from (r for r in read_records(path, follow=follow) if wanted is None or wanted.has(r))
    else:
        yield from Records(path, wanted)


def log_of(config: Config) -> Path:
    """Return the path of the configured log; :class:`RecordsError` where there is none."""
    if config.log is None and config.log_is_default:
        raise RecordsError("no log is named; use --spider NAME, or -s DEDUP_LOG=PATH")
    if config.log is None:
        raise RecordsError("DEDUP_LOG is empty, so no records were kept; set it to a path, or leave it out")
    return config.log


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Which records: all that have every one of these."""

    host: str | None = None
    """Of the page, as in URLs; its subdomains count."""
    original: str | None = None
    """The URL of the page that it repeats, as records have it."""
    run: str | None = None
    min_score: float = 0.0
    everything: bool = False
    """Whether those count, too, that show no repeated text."""

    @classmethod
    def of(
        cls, config: Config, pages: PageFilter, run: str | None, *, min_score: float, everything: bool
    ) -> RecordFilter:
        """Return what a person means: *pages* of the crawl *run*, ``last`` for the latest one."""
        original = pages.original and without_secrets(pages.original, redact=config.redact_query)
        return cls(pages.host, original, run_named(log_of(config), run), min_score, everything)

    @property
    def needle(self) -> tuple[bytes, bool]:
        """What must be in the line of such a record, in lower case or not; the rarest of what is known."""
        if self.original:
            return as_written(self.original), False
        if self.host:
            return as_written(self.host), True
        return (as_written(self.run), False) if self.run else (b"{", False)

    def has(self, record: Record) -> bool:
        """Tell whether *record* is one of them."""
        if self.host and not is_under(record.host, [self.host]):
            return False
        if (self.original and record.original_url != self.original) or (self.run and record.run != self.run):
            return False
        if (record.score or 0.0) < self.min_score:
            return False
        return self.everything or record.verdict in _SHOWN


@dataclass(frozen=True, slots=True)
class Records:
    """The records of the log at *path* that are *wanted*, oldest first; read anew whenever one iterates over them."""

    path: Path
    wanted: RecordFilter

    def __iter__(self) -> Iterator[Record]:
        needle, ignore_case = self.wanted.needle
        for line in lines_with(self.path, needle, ignore_case=ignore_case):
            record = parse_record(line.decode("utf8", "replace"))
            if record is not None and self.wanted.has(record):
                yield record


def open_records(path: str | PathLike[str], *, run: str | None = None, host: str | None = None) -> Records:
    """Open the log at *path*, to be read: the records of the crawl *run*, ``last`` for the latest, on *host*, or all.

    ``pandas.DataFrame(record.as_dict() for record in open_records(path))`` has a row for each.
    :class:`RecordsError` if there is no log, or it cannot be read; :class:`ConfigError` if *host* is no host name.
    """
    opened(log := Path(path)).close()
    named = None if host is None else as_in_urls(host)
    if named == "":
        raise ConfigError(f"{host!r} is not a host name; use for example example.org")
    return Records(log, RecordFilter(named, run=run_named(log, run), everything=True))


def run_named(log: Path, run: str | None) -> str | None:
    """Return the crawl that a person calls *run*: ``last`` is that of the last record."""
    if run != LAST:
        return run
    for line in last_lines_with(log, b"{"):
        if (record := parse_record(line.decode("utf8", "replace"))) is not None:
            return record.run
    raise RecordsError(f"{log} has no record yet, so there is no last crawl")
