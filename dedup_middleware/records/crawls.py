"""Writes and reads the counts of crawls, a file of JSON Lines beside the log: the log has no record of new pages.

A crawl appends a line with its settings when its first page has ended, and then, about once a minute, what it has
counted since its last line.
"""

from __future__ import annotations

import errno
import json
import os
import time
from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated

import msgspec

from dedup_middleware import permissions
from dedup_middleware.errors import RecordsError
from dedup_middleware.records.log import LAST, MAX_LINE, blocks, ends_torn, opened, run_named

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Kinds of page. Each page has one; the first three and tagged duplicates are kept.
KINDS = ("new", "related", "unchanged", "duplicate", "without_items", "lists", "unchecked", "skipped")
#: Hosts of a line; the pages of all further hosts are counted together, as those of `OTHERS`.
MAX_HOSTS = 1_000
OTHERS, NO_HOST = "", "?"
#: Forms of a line.
MAX_FORMS = 100
# Characters of a host name.
_MAX_HOST = 253
# Seconds between two lines: a twentieth of the time since the first one, within these bounds.
_SHORTEST, _LONGEST = 1.0, 60.0
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class Begin(msgspec.Struct, tag_field="event", tag="begin"):
    """The first line of a crawl, and of each process that goes on with it."""

    run: str
    time: str
    """UTC, ISO 8601."""
    spider: str = ""
    project: str = ""
    """The BOT_NAME."""
    version: str = ""
    settings: dict[str, str] = {}
    """Those that differ from their defaults."""


class FormLast(msgspec.Struct):
    """The requests of one form, shape and names of parameters, that a crawl has fetched last."""

    form: str
    requests: _Count
    pages: _Count
    """Those of the form that were fetched."""
    nothing: _Count
    """Those that brought nothing new."""


class Counts(msgspec.Struct, tag_field="event", tag="counts"):
    """What a crawl has counted since its last line."""

    run: str
    since: str = ""
    time: str = ""
    """When the first and the last of these pages have ended."""
    is_last: bool = False
    items_dropped: _Count = 0
    items_released: _Count = 0
    hosts: dict[str, dict[str, _Count]] = {}
    """The pages of each kind, by host."""
    requests: dict[str, _Count] = {}
    """Those that were fetched last (``last``)."""
    last: list[FormLast] = []
    """Of the whole crawl until now."""


class CrawlCounts:
    """Counts the pages of one crawl, and appends the counts to its file; at most a minute of them is in memory alone.

    The file is opened for each line, and created with the first one.
    """

    def __init__(self, path: Path, begin: Begin) -> None:
        self._path = path
        self._begin: Begin | None = begin
        self._began, self._due = time.monotonic(), 0.0
        self._counts, self._since, self._until = Counts(begin.run), 0.0, 0.0

    def add(self, host: str, kind: str, dropped: int) -> None:
        """Count a page, so many of whose items were *dropped*. O(1).

        :class:`RecordsError` if a line is due and the disk fails: what it has is written with the next line.
        """
        counts = self._counts
        self._until = time.time()
        self._since = self._since or self._until
        counts.items_dropped += dropped
        host = (host or NO_HOST) if len(host) <= _MAX_HOST else OTHERS
        if host not in counts.hosts and len(counts.hosts) >= MAX_HOSTS:
            host = OTHERS
        pages = counts.hosts.setdefault(host, {})
        pages[kind] = pages.get(kind, 0) + 1
        if time.monotonic() >= self._due:
            self._write()

    def add_released(self, items: int) -> None:
        """Count dropped *items* that were released."""
        self._counts.items_released += items

    def add_requests(self, what: str, amount: int) -> None:
        """Count requests; see `Counts.requests`."""
        self._counts.requests[what] = self._counts.requests.get(what, 0) + amount

    def fetched_last(self, forms: list[FormLast]) -> None:
        """Note which *forms* were fetched last."""
        self._counts.last = forms

    def close(self) -> None:
        """Write what is left; :class:`RecordsError` if the disk fails."""
        self._counts.is_last = True
        self._write()

    def _write(self) -> None:
        now = time.monotonic()
        self._due = now + min(_LONGEST, max(_SHORTEST, (now - self._began) / 20))
        counts = self._counts
        counts.since, counts.time = _as_time(self._since or time.time()), _as_time(self._until or time.time())
        lines = [line for line in (self._begin, counts) if line is not None]
        text = "".join(f"{json.dumps(msgspec.to_builtins(line))}\n" for line in lines)
        try:
            _append(self._path, text.encode("ascii"))
        except OSError as error:
            text = f"The counts {self._path} cannot be written ({error.strerror}). Make room on its disk."
            raise RecordsError(text) from error
        self._begin, self._counts, self._since = None, Counts(counts.run), 0.0


def _append(path: Path, lines: bytes) -> None:
    if path.exists() and not _is_ours(path):
        raise permissions.NotOursError(path)
    permissions.make_file(path)
    # One write: what several processes append stays a line each.
    with path.open("ab", buffering=0) as file:
        if file.write(data := b"\n" * ends_torn(path) + lines) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _as_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds")


def counts_beside(log: Path) -> Path:
    """Return the path of the counts of the crawls that write to *log*."""
    return log.with_name(f"{log.stem}.crawls.jsonl")


def remove_counts(log: Path) -> None:
    """Remove the counts beside *log*, if there are any; :class:`RecordsError` if they cannot be removed."""
    path = counts_beside(log)
    try:
        if path.is_file() and _is_ours(path):
            path.unlink()
    except OSError as error:
        raise RecordsError(f"The counts {path} cannot be removed ({error.strerror}).") from error


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        first = file.readline(MAX_LINE)
    # The first line may be torn.
    return first.startswith(b'{"event": "'[: len(first)])


# --- reading

_decoder = msgspec.json.Decoder(Begin | Counts)


def read_counts(log: Path) -> Iterator[Begin | Counts]:
    """Yield the lines of the counts beside *log*, oldest first, if there are any; other lines are left out."""
    if not (path := counts_beside(log)).exists():
        return
    with opened(path) as file:
        for block in blocks(file):
            for line in block.splitlines():
                with suppress(msgspec.MsgspecError, ValueError, RecursionError):
                    read = _decoder.decode(line)
                    if isinstance(read, Counts):
                        for host, kinds in read.hosts.items():
                            read.hosts[host] = {kind: kinds[kind] for kind in KINDS if kind in kinds}
                    yield read


def last_begin(log: Path) -> Begin | None:
    """Return the beginning of the last crawl that wrote to *log*; ``None`` if it is unknown."""
    last = None
    with suppress(OSError, RecordsError):
        for line in read_counts(log):
            last = line if isinstance(line, Begin) else last
    return last


def crawl_named(log: Path, run: str | None) -> str | None:
    """Return the name of the crawl *run*: ``last`` is the last one that began, or else that of the last record."""
    begun = [line.run for line in read_counts(log) if isinstance(line, Begin)] if run == LAST else []
    return begun[-1] if begun else run_named(log, run)
