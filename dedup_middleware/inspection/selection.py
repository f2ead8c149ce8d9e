"""The records of a log that are wanted: those of one crawl, of one host, or all.

It is the door for programs, too: ``dedup_middleware.open_records``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dedup_middleware.errors import ConfigError
from dedup_middleware.inspection.records import Record, last_record, read_records
from dedup_middleware.urls import as_in_urls, is_under

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

#: Names the crawl that has written the last record.
LAST = "last"


@dataclass(frozen=True, slots=True)
class Records:
    """The chosen records of a log, the oldest first, read anew whenever they are iterated over: one at a time."""

    path: Path
    run: str | None = None
    host: str | None = None
    """As URLs have it; its subdomains count."""

    def __iter__(self) -> Iterator[Record]:
        for record in read_records(self.path):
            is_of_run = self.run is None or record.run == self.run
            if is_of_run and (self.host is None or is_under(record.host, [self.host])):
                yield record


def open_records(path: str | PathLike[str], *, run: str | None = None, host: str | None = None) -> Records:
    """Open the log at *path*, to be read: the records of the crawl *run*, ``last`` for the latest, on *host*, or all.

    ``pandas.DataFrame(record.as_dict() for record in open_records(path))`` has a row for each.
    :class:`RecordsError` if there is no log, or it cannot be read; :class:`ConfigError` if *host* is no host name.
    """
    log = Path(path)
    last = last_record(log)
    if run == LAST:
        run = "" if last is None else last.run
    named = None if host is None else as_in_urls(host)
    if named == "":
        raise ConfigError(f"{host!r} is not a host name; use for example example.org")
    return Records(log, run, named)
