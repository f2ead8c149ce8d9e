"""Archives -> pages: JSON Lines, Parquet and WARC, in the order in which they are named.

What an archive holds is hostile until it has been read here. A record that is no page is counted, with the reason, and
the first of them are named; a file that cannot be read at all ends the command.
"""

from __future__ import annotations

import gzip
import json
import lzma
import zlib
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.errors import ConfigError
from dedup_middleware.session.reading import PageContent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
_JSON, _PARQUET, _WARC = (".jsonl", ".ndjson", ".jl", ".json"), (".parquet",), (".warc",)
#: Bytes of a plain file of JSON Lines that are read as one.
SPLIT = 64 * 2**20
#: Bytes of a line; one that is longer is no page that anybody judges.
MAX_LINE = 64 * 2**20
_NAMED = 20
_HTML = ("html", "body")
_UNPACKING = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
_EXTRA = 'pip install "dedup-middleware[archive]"'


class Part(NamedTuple):
    """A piece of an archive that is read by itself."""

    path: Path
    start: int = 0
    """Of a plain file of JSON Lines, its first byte; of Parquet, its row group."""
    stop: int = -1
    """The byte, or row group, that it ends before; -1 for all there is."""


class Entry(NamedTuple):
    """A page of an archive."""

    content: PageContent
    time: str = ""
    """When it was fetched, if the archive says: ISO 8601, UTC, to the second."""


@dataclass
class Refused:
    """What of an archive is no page."""

    counts: Counter[str] = field(default_factory=Counter)
    """By reason."""
    first: list[str] = field(default_factory=list)
    """The first of them: where, and why."""

    def note(self, where: str, why: str, detail: str = "") -> None:
        """Note one more, for the reason *why*."""
        self.counts[why] += 1
        if len(self.first) < _NAMED:
            self.first.append(f"{where}: {why}{detail and f' ({detail:.200})'}")

    def add(self, other: Refused) -> None:
        """Note what *other* has."""
        self.counts += other.counts
        self.first = [*self.first, *other.first][:_NAMED]


class _NoPageError(ValueError):
    """A record is no page, for a reason that there are few of, and in detail."""


def parts_of(paths: Iterable[Path], *, split: int = SPLIT) -> list[Part]:
    """Return the files at *paths*, those of a folder by name, in parts; :class:`ConfigError` for what cannot be read.

    A plain file of JSON Lines has a part for each *split* bytes, a Parquet file one for each row group.
    """
    return [part for path in paths for file in _files(path) for part in _split(file, split)]


def entries(part: Part, refused: Refused) -> Iterator[Entry]:
    """Yield the pages of *part*, and tell *refused* what is none; :class:`ConfigError` if the file cannot be read."""
    try:
        for where, record in _records(part, refused):
            try:
                yield _entry(record)
            except _NoPageError as error:  # noqa: PERF203 - each for itself
                refused.note(where, *map(str, error.args))
    except OSError as error:
        raise _unreadable(part.path, error) from error


def _files(path: Path) -> list[Path]:
    try:
        if path.is_dir():
            found = sorted(file for file in path.rglob("*") if file.is_file() and _kind(file) is not None)
            if not found:
                raise ConfigError(f"{path} has no archive in it: a file must end in {_endings()}")
            return found
        with path.open("rb"):
            pass
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise _unreadable(path, error) from error
    if _kind(path) is None:
        raise ConfigError(f"{path} is no archive that can be read: it must end in {_endings()}")
    return [path]


def _kind(path: Path) -> tuple[str, ...] | None:
    name = path.name.lower().removesuffix(".gz").removesuffix(".xz")
    return next((kind for kind in (_JSON, _PARQUET, _WARC) if name.endswith(kind)), None)


def _endings() -> str:
    return ".jsonl, .jsonl.gz, .jsonl.xz, .parquet, .warc or .warc.gz"


def _unreadable(path: Path, error: Exception) -> ConfigError:
    return ConfigError(f"{path} cannot be read ({getattr(error, 'strerror', None) or error}); name another file")


def _split(path: Path, split: int) -> list[Part]:
    kind = _kind(path)
    if kind is _PARQUET:
        return [Part(path, group, group + 1) for group in range(_parquet(path).num_row_groups)]
    if kind is _WARC:
        _package("warcio", path)
    if kind is _WARC or path.suffix in _OPENERS:
        return [Part(path)]
    size = path.stat().st_size
    return [Part(path, start, min(start + split, size)) for start in range(0, size, split)]


def _records(part: Part, refused: Refused) -> Iterator[tuple[str, dict[str, Any]]]:
    kind = _kind(part.path)
    if kind is _PARQUET:
        return _rows(part)
    return _responses(part, refused) if kind is _WARC else _lines(part, refused)


# --- JSON Lines


def _lines(part: Part, refused: Refused) -> Iterator[tuple[str, dict[str, Any]]]:
    opener = _OPENERS.get(part.path.suffix, open)
    with opener(part.path, "rb") as file:
        place, number = part.start, 0
        if place:
            # The line that is under way is the part's before.
            file.seek(place - 1)
            place += len(file.readline()) - 1
        try:
            while (part.stop < 0 or place < part.stop) and (line := _line(file)):
                where = f"{part.path}, byte {place}" if part.start else f"{part.path}, line {number + 1}"
                place, number = place + len(line), number + 1
                if line.strip():
                    try:
                        record = json.loads(line)
                    except (ValueError, RecursionError) as error:
                        refused.note(where, "no JSON", str(error))
                        continue
                    if isinstance(record, dict):
                        yield where, record
                    else:
                        refused.note(where, "no JSON object")
        except _UNPACKING as error:
            refused.note(str(part.path), "what follows cannot be unpacked", str(error))


def _line(file: IO[bytes]) -> bytes:
    """Return the next line; of one that is too long, so much that it is no JSON, and go to its end."""
    line = file.readline(MAX_LINE)
    rest = line
    while len(rest) == MAX_LINE and not rest.endswith(b"\n"):
        rest = file.readline(MAX_LINE)
    return line


# --- Parquet


def _parquet(path: Path) -> Any:
    module = _package("pyarrow.parquet", path)
    try:
        return module.ParquetFile(path)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def _rows(part: Part) -> Iterator[tuple[str, dict[str, Any]]]:
    file = _parquet(part.path)
    names = [name for name in file.schema_arrow.names if name in _COLUMNS]
    number = 0
    for batch in file.iter_batches(batch_size=256, row_groups=range(part.start, part.stop), columns=names):
        for record in batch.to_pylist():
            number += 1
            yield f"{part.path}, row {number} of group {part.start}", record


# --- WARC


def _responses(part: Part, refused: Refused) -> Iterator[tuple[str, dict[str, Any]]]:
    warcio = _package("warcio.archiveiterator", part.path)
    failures = _package("warcio.exceptions", part.path).ArchiveLoadFailed
    number = 0
    with part.path.open("rb") as file:
        try:
            for record in warcio.ArchiveIterator(file):
                number += 1
                where = f"{part.path}, record {number}"
                if record.rec_type != "response" or record.http_headers is None:
                    continue
                try:
                    yield where, _response(record)
                except (ValueError, zlib.error) as error:
                    refused.note(where, "its body cannot be unpacked", str(error))
        except (failures, EOFError, ValueError, zlib.error) as error:
            refused.note(f"{part.path}, after record {number}", "what follows is no WARC", str(error))


def _response(record: Any) -> dict[str, Any]:
    http, warc = record.http_headers, record.rec_headers
    kind, _, charset = http.get_header("Content-Type", "").lower().partition("charset=")
    return {
        "url": warc.get_header("WARC-Target-URI"),
        "html": record.content_stream().read() if "html" in kind else None,
        "kind": kind,
        "encoding": charset.strip(" '\";") or None,
        "status": http.get_statuscode(),
        "time": warc.get_header("WARC-Date"),
    }


# --- records


_COLUMNS = frozenset([*_HTML, "url", "text", "title", "encoding", "status", "time"])


def _entry(record: dict[str, Any]) -> Entry:
    """Return the page that *record* is; `_NoPageError`."""
    status = record.get("status")
    if status is not None and str(status)[:1] != "2":
        raise _NoPageError("a status other than 2xx", f"{status!r}")
    html = next((record[name] for name in _HTML if record.get(name) is not None), None)
    if html is None and record.get("text") is None:
        raise _NoPageError("no page of HTML" if "kind" in record else "neither html nor body nor text")
    rest = {name: record[name] for name in ("text", "title", "encoding") if record.get(name) is not None}
    try:
        return Entry(PageContent.of(record.get("url"), html, rest), _time(record.get("time")))
    except ConfigError as error:
        raise _NoPageError("a field that is no page's", str(error)) from error


def _time(said: object) -> str:
    """Return the time that a record has, in UTC; empty where nobody can tell."""
    try:
        if isinstance(said, str):
            said = datetime.fromisoformat(said.strip().replace("Z", "+00:00").replace("z", "+00:00"))
        elif isinstance(said, (int, float)) and not isinstance(said, bool):
            said = datetime.fromtimestamp(said, timezone.utc)
        if isinstance(said, datetime):
            zoned = said if said.tzinfo else said.replace(tzinfo=timezone.utc)
            return zoned.astimezone(timezone.utc).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        pass
    return ""


def _package(module: str, path: Path) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ConfigError(f"{path} needs {package}, which is not installed: {_EXTRA}") from error
