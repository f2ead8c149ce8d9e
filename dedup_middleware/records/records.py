"""Records: one JSON line for every verdict that is not "new".

The only home of the log's format. A line is pure ASCII and holds one record, whatever a title holds.
"""

from __future__ import annotations

import errno
import json
import os
import re
import time
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import TYPE_CHECKING, Any

from dedup_middleware import permissions
from dedup_middleware.bounded import loads
from dedup_middleware.errors import PATH_ERRORS, RecordsError
from dedup_middleware.model import VerdictKind
from dedup_middleware.urls import host_of, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

#: Evidence in a record: enough to see at a glance why; `scrapy dedup explain` shows every sentence.
EVIDENCE_SENTENCES = 5
EVIDENCE_CHARACTERS = 200
MAX_DIFFERENCES = 5
DIFFERENCE_CHARACTERS = 100
TITLE_CHARACTERS = 200
#: Bytes of a line: its texts are cut, and its URLs as long as pages make them.
MAX_LINE = 2**20
# Values of a record, of which it has some forty.
_MAX_VALUES = 1_000
# Bytes of a file that show what it is, some thirty records, and how each of these begins.
_START, _FIRST = 32_768, b'{"time": "'


@dataclass(frozen=True, slots=True)
class Record:
    """What was decided about one page, and what came of it."""

    time: str
    """UTC, ISO 8601."""
    spider: str
    run: str
    url: str
    verdict: str
    outcome: str
    """``kept``, ``dropped``, ``tagged``, ``would_drop``, ``links_last`` for a duplicate without items, or
    ``released`` for one whose dropped items were released."""
    original_url: str | None = None
    original_run: str | None = None
    """The crawl that kept the original; another than ``run`` when the original is of an earlier crawl."""
    score: float | None = None
    """Share of the page's non-boilerplate text that the original already holds, 0-1."""
    reason: str = ""
    """A code, see `reasons`."""
    message: str = ""
    """The reason for people."""
    difference: list[str] = field(default_factory=list)
    """At most five pieces of the page or item that the original lacks."""
    evidence: list[str] = field(default_factory=list)
    """Repeated sentences, at most five, as this page wrote them."""
    items_dropped: int = 0
    items_kept: int = 0
    title: str = ""
    """What the page is called, at most 200 characters."""
    bytes: int = 0
    """How long its body was, unpacked; 0 for an item."""
    canonical: str | None = None
    """The address that the page names as its story's own, where that is another one."""

    @property
    def is_duplicate(self) -> bool:
        """Whether the page only repeats another one; keep all others."""
        return self.verdict == VerdictKind.DUPLICATE.value

    @property
    def host(self) -> str:
        """The host of ``url``, without port; empty for a URL that has none."""
        return host_of(self.url)

    def to_line(self) -> str:
        """Return the record as one line of JSON, ASCII only, without its line end."""
        return json.dumps(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values. `dataclasses.asdict` copies them, and takes ten times as long."""
        return {name: getattr(self, name) for name in self.__slots__}


class RecordLog:
    """Append records to a file, each at once, so that a reader may follow."""

    def __init__(self, path: Path, *, redact: bool = False) -> None:
        """Open *path* for appending, with its folders; :class:`RecordsError` if that cannot be done.

        URLs are written without user and password, and with *redact* without the values in their queries.
        """
        self.path = path
        self._redact = redact
        try:
            permissions.make_folder(path.parent)
            permissions.make_file(path)
            if path.is_file() and not _is_ours(path):
                raise _foreign(path)
            torn = ends_torn(path)
            # Without a buffer: what several processes append stays a line each.
            self._file = path.open("ab", buffering=0)
            if torn:
                self._file.write(b"\n")
        except (OSError, ValueError) as error:  # ValueError: a NUL or a lone surrogate in the path
            raise _unwritable(path, error) from error

    def append(self, record: Record) -> None:
        """Write one line; :class:`RecordsError` if the medium fails."""
        # Those of pages were redacted when the pages were read; others stand in the pages.
        if record.canonical:
            record = replace(record, canonical=without_secrets(record.canonical, redact=self._redact))
        line = f"{record.to_line()}\n".encode("ascii")
        try:
            written = self._file.write(line)
        except OSError as error:
            raise self._refusal(error.strerror or str(error)) from error
        if written != len(line):
            raise self._refusal(os.strerror(errno.ENOSPC))

    def _refusal(self, detail: str) -> RecordsError:
        return RecordsError(f"DEDUP_LOG {self.path} cannot be written ({detail}); make room on its disk")

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        except OSError as error:
            raise RecordsError(f"DEDUP_LOG {self.path} could not be closed ({error.strerror})") from error


def _unwritable(path: Path, error: OSError | ValueError) -> RecordsError:
    misnamed = not isinstance(error, OSError) or error.errno in PATH_ERRORS
    remedy = "give another path" if misnamed else "give another path, or make it and its folder writable"
    detail = getattr(error, "strerror", None) or error
    refusal = RecordsError(f"DEDUP_LOG = {str(path)!r} cannot be written ({detail}); {remedy}")
    refusal.misnamed = misnamed
    return refusal


def log_exists(path: Path) -> bool:
    """Return whether there is a log at *path*; :class:`RecordsError` where that may not be looked at."""
    try:
        return path.exists()
    except OSError as error:
        raise RecordsError(f"the log {path} cannot be read ({error.strerror}); ask its owner") from error


def read_records(path: Path, *, follow: bool = False, idle: Callable[[], None] | None = None) -> Iterator[Record]:
    """Yield the records of a log, oldest first; lines that hold none (a torn last line) are passed over.

    With *follow*, never end: at the end of the file call *idle* (default: sleep a quarter of a second) and look again.
    """
    idle = idle or (lambda: time.sleep(0.25))
    try:
        with path.open(encoding="utf8", errors="replace") as file:
            torn = ""
            while True:
                line = file.readline(MAX_LINE)
                if line.endswith("\n"):
                    if len(torn) <= MAX_LINE and (record := parse_record(torn + line)) is not None:
                        yield record
                    torn = ""
                    continue
                torn = (torn + line)[: MAX_LINE + 1]
                if len(line) < MAX_LINE:
                    if not follow:
                        return
                    idle()
    except FileNotFoundError:
        raise RecordsError(
            f"there is no log at {path}; crawl first, or name it: -s DEDUP_LOG=PATH, or --spider NAME"
        ) from None
    except OSError as error:
        raise RecordsError(f"the log {path} cannot be read ({error.strerror})") from error


def remove_log(path: Path) -> bool:
    """Remove a log and return whether there was one; :class:`RecordsError` if it is not a log, or cannot be removed."""
    try:
        refuse_foreign_log(path)
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise RecordsError(f"the log {path} cannot be removed ({error.strerror})") from error
    return True


def refuse_foreign_log(path: Path) -> None:
    """Raise :class:`RecordsError` if *path* is there, and no log of ours that may be removed; ``OSError``."""
    # A link is removed, and not what it leads to.
    if os.path.lexists(path) and not (path.is_file() and _is_ours(path)):
        raise RecordsError(f"the log {path} cannot be removed (it is no log of records); remove it yourself")


def observer_log(path: Path) -> Path:
    """Return where this process writes its records when another one writes to the log *path*."""
    return path.with_name(f"{path.stem}.observer-{os.getpid()}{path.suffix}")


def observer_logs_beside(path: Path) -> list[Path]:
    """Return the logs that observers have written beside the log *path*."""
    name = re.compile(rf"{re.escape(path.stem)}\.observer-\d+{re.escape(path.suffix)}")
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    files = (file for file in beside if name.fullmatch(file.name) and file.is_file() and not file.is_symlink())
    return sorted(filter(_is_ours, files))


def _is_ours(path: Path) -> bool:
    """Return whether the file *path* is a log of records, by its beginning; an empty one is, and a torn record."""
    with path.open("rb") as file:
        *whole_lines, rest = file.read(_START).split(b"\n")
    if not whole_lines:
        return rest[: len(_FIRST)] == _FIRST[: len(rest)]
    return any(parse_record(line.decode("ascii", "replace")) is not None for line in whole_lines)


def _foreign(path: Path) -> RecordsError:
    refusal = RecordsError(f"DEDUP_LOG = {str(path)!r} holds something else than records; give another path")
    refusal.misnamed = True
    return refusal


def ends_torn(path: Path) -> bool:
    """Tell whether the last line of the file *path* lacks its end, because its writer was killed."""
    if not path.is_file() or not path.stat().st_size:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def parse_record(line: str) -> Record | None:
    """Return the record that is in *line*; ``None`` if it holds none."""
    try:
        fields: dict[str, Any] = loads(line, values=_MAX_VALUES)
        record = Record(**{k: v for k, v in fields.items() if k in Record.__slots__})
    except (ValueError, TypeError, AttributeError):
        return None
    if not (isinstance(record.evidence, list) and isinstance(record.difference, list)):
        return None
    texts = (
        record.time,
        record.url,
        record.verdict,
        record.outcome,
        record.reason,
        record.message,
        record.spider,
        record.run,
        record.title,
        *record.evidence,
        *record.difference,
    )
    counts = (record.items_dropped, record.items_kept, record.bytes)
    is_ours = (
        all(isinstance(text, str) for text in texts)
        and isinstance(record.original_url, (str, NoneType))
        and isinstance(record.original_run, (str, NoneType))
        and isinstance(record.canonical, (str, NoneType))
        and isinstance(record.score, (float, int, NoneType))
        and all(isinstance(count, int) for count in counts)
    )
    return record if is_ours else None
