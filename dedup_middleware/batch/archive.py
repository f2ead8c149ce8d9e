"""Reads archives: JSON Lines, Parquet and WARC.

Nothing in an archive is trusted. A record that is not a page is counted with the reason, and the first of them are
named; only a file that cannot be opened ends the command.
"""

from __future__ import annotations

import json
import marshal
import math
import zlib
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timezone
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import xxhash

from dedup_middleware import bounded
from dedup_middleware.api import PageContent, Reading
from dedup_middleware.checks.detector import MIN_DISTINCTIVE_WEIGHT, Preferences
from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.extraction import extractor
from dedup_middleware.fingerprints import instance_of
from dedup_middleware.index.lookup import TEXT_LIMIT
from dedup_middleware.index.schema import whole_text_key
from dedup_middleware.model import Fingerprint, Page, PageFeatures
from dedup_middleware.reading import PageReader
from dedup_middleware.reasons import Reason
from dedup_middleware.registry import required
from dedup_middleware.urls import host_of, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from io import BufferedReader
    from pathlib import Path

    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.settings import Config
    from dedup_middleware.stores.base import Header

_ENDINGS = ".jsonl, .jsonl.gz, .jsonl.xz, .parquet, .warc or .warc.gz"
#: Bytes of a line, or of a page: more than twice of what a crawl checks by default.
MAX_BYTES = 24 * 2**20
# Bytes of the headers of a record of a WARC and of the response in it, with what is read ahead.
_MAX_HEADERS = 2**20
# A column of Parquet may unpack to so many times its size, or bytes, in a row group: Parquet packs in pages of 1 MB.
_MAX_COLUMN_RATIO, _MAX_COLUMN = 100, 64 * 2**20
# Refused records that are named.
_NAMED = 20
_COLUMNS = frozenset({"url", "html", "body", "text", "title", "encoding", "status", "time"})


@dataclass
class Refused:
    """The records of an archive that are not pages."""

    counts: Counter[str] = field(default_factory=Counter)
    """By reason."""
    first: list[str] = field(default_factory=list)
    """Where the first of them are, and why they are refused."""

    def add(self, where: str, reason: str, detail: str = "") -> None:
        """Add the record at *where*, refused for *reason*."""
        self.counts[reason] += 1
        if len(self.first) < _NAMED:
            self.first.append(f"{where}: {reason}{detail and f' ({detail:.200})'}")

    def update(self, counts: dict[str, int], first: list[str]) -> None:
        """Add the records of another archive."""
        self.counts.update(counts)
        self.first = [*self.first, *first][:_NAMED]


class _NotAPageError(ValueError):
    """A record is not a page; its arguments are a reason, of which there are few, and a detail."""


def files_of(paths: Iterable[Path]) -> list[Path]:
    """Return the archives at *paths*, those in a folder by name; :class:`ConfigError` if one cannot be opened."""
    found: list[Path] = []
    for path in paths:
        try:
            files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
            files = [file for file in files if _ending_of(file) in _FORMATS]
            for file in files:
                with file.open("rb"):
                    pass
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            why = getattr(error, "strerror", None) or error
            raise ConfigError(f"{path} cannot be read ({why}); name another file") from error
        if not files:
            raise ConfigError(f"{path} is not an archive and contains none; a file must end in {_ENDINGS}")
        found += files
    # Rather than after an hour of other files.
    for file, (_, _, *modules) in ((file, _FORMATS[_ending_of(file)]) for file in found):
        for module in modules:
            required(module, file, extra="archive")
    return found


def _ending_of(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz").removesuffix(".xz")
    return name[name.rfind(".") :] if "." in name else ""


def entries(path: Path, refused: Refused) -> Iterator[tuple[PageContent, str]]:
    """Yield the pages of the archive at *path* with their times, and add all other records to *refused*.

    A time is empty, or ISO 8601, UTC, to the second.
    """
    read, parse, *_ = _FORMATS[_ending_of(path)]
    number = 0
    try:
        for number, record in enumerate(read(path), 1):
            try:
                if record:
                    yield _entry(parse(record))
                elif record is None:
                    refused.add(f"{path}:{number}", "too long", f"more than {MAX_BYTES} bytes")
            except _NotAPageError as error:  # noqa: PERF203 - each for itself
                refused.add(f"{path}:{number}", *map(str, error.args))
            except Exception as error:  # noqa: BLE001 - headers, encodings and times of others
                refused.add(f"{path}:{number}", "cannot be parsed", str(error))
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - what the readers of three formats raise for broken files
        refused.add(f"{path}:{number + 1}", "broken from here on", str(error))


def _lines(path: Path) -> Iterator[bytes | None]:
    with bounded.opened(path) as file:
        for line in bounded.lines(file, MAX_BYTES):
            yield line and line.strip()


def _object(line: bytes) -> dict[str, Any]:
    try:
        record = bounded.loads(line)
    except UnreadableError as error:
        raise _NotAPageError("not JSON", error) from error
    if not isinstance(record, dict):
        raise _NotAPageError("not a JSON object")
    return record


def _rows(path: Path) -> Iterator[dict[str, Any] | None]:
    arrow = required("pyarrow", path, extra="archive")
    parquet = required("pyarrow.parquet", path, extra="archive")
    names = [name for name in parquet.read_schema(path).names if name in _COLUMNS]
    # What many rows share is in memory once, and only what is needed next of a column.
    file = parquet.ParquetFile(path, read_dictionary=names, buffer_size=2**20)
    for group in range(file.num_row_groups):
        columns = file.metadata.row_group(group)
        for column in map(columns.column, range(columns.num_columns)):
            most = max(_MAX_COLUMN, _MAX_COLUMN_RATIO * column.total_compressed_size)
            if column.path_in_schema in names and column.total_uncompressed_size > most:
                raise UnreadableError(f"its column {column.path_in_schema} unpacks to more than {most} bytes")
        for batch in file.iter_batches(batch_size=256, row_groups=[group], columns=names):
            for row in range(batch.num_rows):
                scalars = {name: batch.column(name)[row] for name in names}
                is_too_long = any(_size(arrow, scalar) > MAX_BYTES for scalar in scalars.values())
                yield None if is_too_long else {name: scalar.as_py() for name, scalar in scalars.items()}


def _size(arrow: Any, scalar: Any) -> float:
    """Return how many bytes a *scalar* of Arrow has; without end, if it is a list or the like."""
    value = scalar.value if isinstance(scalar, arrow.DictionaryScalar) else scalar
    if arrow.types.is_nested(value.type):
        return math.inf
    buffer = value.as_buffer() if hasattr(value, "as_buffer") else None
    return 0 if buffer is None else int(buffer.size)


def _responses(path: Path) -> Iterator[Any]:
    with bounded.opened(path) as file:
        source = _Source(file)
        records = required("warcio.archiveiterator", path, extra="archive").ArchiveIterator(source)
        while (record := source.limited(records)) is not None:
            yield record if record.rec_type == "response" and record.http_headers is not None else ()
            records.read_to_end(record)


class _Source:
    """A WARC, unpacked, as warcio reads it: which has no limit of its own for the lines of headers."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self._left: float = math.inf

    def read(self, size: int) -> bytes:
        """Return up to *size* bytes; none at the end."""
        self._left -= size
        if self._left < 0:
            raise UnreadableError(f"the headers of a record have more than {_MAX_HEADERS} bytes")
        # Not read(): where the file is broken, that would lose what precedes.
        return self._file.read1(size)

    def limited(self, records: Iterator[Any]) -> Any:
        """Return the next one of *records*, up to its content, if there is one."""
        self._left = _MAX_HEADERS
        record = next(records, None)
        self._left = math.inf
        return record


def _response(record: Any) -> dict[str, Any]:
    http, warc = record.http_headers, record.rec_headers
    kind, _, charset = (http.get_header("Content-Type") or "").lower().partition("charset=")
    return {
        "url": warc.get_header("WARC-Target-URI"),
        "html": _body(record) if "html" in kind else None,
        "kind": kind,
        "encoding": charset.strip(" '\";") or None,
        "status": http.get_statuscode(),
        "time": warc.get_header("WARC-Date"),
    }


def _body(record: Any) -> bytes:
    http, stream = record.http_headers, record.raw_stream
    if (http.get_header("Transfer-Encoding") or "").lower() == "chunked":
        stream = required("warcio.bufferedreaders", "a WARC", extra="archive").ChunkedDataReader(stream)
    packed = stream.read(MAX_BYTES)
    return _as_sent(packed, (http.get_header("Content-Encoding") or "").strip().lower(), MAX_BYTES)


def _entry(record: dict[str, Any]) -> tuple[PageContent, str]:
    status = record.get("status")
    if status is not None and str(status)[:1] != "2":
        raise _NotAPageError("status is not 2xx", f"{status!r}")
    html = record.get("body") if record.get("html") is None else record["html"]
    if html is None and record.get("text") is None:
        raise _NotAPageError("not HTML" if "kind" in record else "no html, body or text")
    rest = {name: record[name] for name in ("text", "title", "encoding") if record.get(name) is not None}
    try:
        return PageContent.of(record.get("url"), html, rest), _time(record.get("time"))
    except ConfigError as error:
        raise _NotAPageError("invalid field", str(error)) from error


def _time(value: object) -> str:
    """Return the time of a record in UTC; empty if it is not a time."""
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip().replace("Z", "+00:00").replace("z", "+00:00"))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            value = datetime.fromtimestamp(value, timezone.utc)
        if isinstance(value, datetime):
            zoned = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
            return zoned.astimezone(timezone.utc).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        pass
    return ""


# Of each ending: a reader of records, a parser of one, and the packages that they need.
_FORMATS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys((".jsonl", ".ndjson", ".jl", ".json"), (_lines, _object)),
    ".parquet": (_rows, dict, "pyarrow"),
    ".warc": (_responses, _response, "warcio"),
}

#: Pages of one file, and files.
FILE_PAGES, MAX_FILES = 2**22, 2**18
#: The id of a preferred page is its position in the archive. Those of other pages are greater by this number, for
#: originals are found in the order of ids.
POSITIONS = FILE_PAGES * MAX_FILES
#: The share of a clause that is all of a page's text. The text as a whole outweighs any number of clauses.
WHOLE, EQUAL = 1_000_000, 2_000_000


class Row(NamedTuple):
    """A page as the steps exchange it: numbers, signed and of 64 bits, and the page as :meth:`Job.decoded` reads it.

    A row with the id -1 is the report on a file, with the refused records as its content. ``text`` is the hash of the
    text, or ``None`` if the page has too little text to be an original; ``shares`` has the share of each clause in the
    text, of `WHOLE`.
    """

    page: int
    host: int
    url: int
    text: int | None
    content: bytes
    clauses: list[int]
    shares: list[int]


class Read(NamedTuple):
    """A page that was read."""

    url: str
    page: Page | None
    reason: str = ""
    """Why there is no page."""
    time: str = ""


@dataclass(frozen=True)
class Job:
    """The settings of one batch, and the header of the store that it makes, whose key all fingerprints have."""

    config: Config
    header: Header
    run: str

    @cached_property
    def fingerprint(self) -> Fingerprinter:
        """The fingerprinter of the store."""
        return instance_of(self.config.fingerprint, self.header.key)

    @cached_property
    def reader(self) -> PageReader:
        """The reader of a crawl with these settings."""
        return PageReader(self.run, self.fingerprint, extractor(self.config.extractor), None)

    def __getstate__(self) -> dict[str, Any]:
        # A fingerprinter cannot be sent to another process.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def rows(self, number: int, path: Path) -> Iterator[Row]:
        """Yield the pages of the file at *path*, the *number*-th of the archive, and a report. 1 to 6 ms a page."""
        refused, count = Refused(), 0
        for content, time in entries(path, refused):
            if count == FILE_PAGES:
                raise ConfigError(f"{path} has more than {FILE_PAGES} pages; split it into several files")
            yield self._row(number * FILE_PAGES + count, self._read(content, time))
            count += 1
        report = json.dumps([number, count, refused.counts, refused.first])
        yield Row(-1, 0, 0, None, report.encode("ascii"), [], [])

    def _row(self, position: int, read: Read) -> Row:
        page, is_preferred = read.page, Preferences(self.config.preferred).include(read.url)
        shares = {} if page is None else _shares(page)
        return Row(
            page=position if is_preferred else POSITIONS + position,
            host=_hash(host_of(read.url)),
            url=_hash(read.url if page is None else page.identities[0].hex()),
            text=number_of(page.fingerprint.digest) if page is not None and shares else None,
            content=_encoded(read),
            clauses=[*shares],
            shares=[*shares.values()],
        )

    def _read(self, content: PageContent, time: str) -> Read:
        try:
            reading = Reading(content, self.reader, self.config)
        except Exception:  # noqa: BLE001 - a hostile page must not end the batch
            return Read(without_secrets(content.url, redact=self.config.redact_query), None, Reason.ERROR, time)
        return Read(reading.url, reading.page, reading.reason, time)

    def decoded(self, content: bytes) -> Read:
        """Return the page that a row has as *content*."""
        url, reason, time, values = marshal.loads(content)  # noqa: S302 - of this batch, and it makes no objects of ours
        if values is None:
            return Read(url, None, reason, time)
        identities, paragraphs, fingerprint, features, is_doubtful, is_boilerplate = values
        page = Page(url, identities, Fingerprint(*fingerprint), paragraphs, self.run)
        page = replace(page, features=PageFeatures(*features), is_doubtful=is_doubtful, is_boilerplate=is_boilerplate)
        return Read(url, page, reason, time)

    def kept_text(self, page: Page) -> list[str]:
        """Return the text of *page* as far as a store keeps it."""
        return "\n".join(page.paragraphs)[:TEXT_LIMIT].split("\n")


def _encoded(read: Read) -> bytes:
    values, page = None, read.page
    if page is not None:
        hashed, features = page.fingerprint, page.features or PageFeatures()
        values = (
            page.identities,
            page.paragraphs,
            (
                dict(hashed.weights),
                dict(hashed.masked_hashes),
                hashed.digest,
                hashed.exact_digest,
                None,
                hashed.portions,
            ),
            (features.title, features.heading, features.texts, features.facts, features.canonical),
            page.is_doubtful,
            page.is_boilerplate,
        )
    return marshal.dumps((read.url, str(read.reason), read.time, values))


def _shares(page: Page) -> dict[int, int]:
    """Return the clauses of *page* with their shares; none if it has too little text to be an original."""
    total = page.fingerprint.weight
    if total < MIN_DISTINCTIVE_WEIGHT:
        return {}
    shares = {number_of(clause): WHOLE * weight // total for clause, weight in page.fingerprint.weights.items()}
    if (key := whole_text_key(page.fingerprint.exact_digest, page.features)) is not None:
        shares[number_of(key[1:])] = EQUAL
    return shares


def number_of(digest: bytes) -> int:
    """Return the first 8 bytes of a hash as a number."""
    return int.from_bytes(digest[:8], "big", signed=True)


def _hash(text: str) -> int:
    return number_of(xxhash.xxh3_64_digest(text.encode("utf8", "surrogatepass")))


def _as_sent(body: bytes, encoding: str, most: int) -> bytes:
    """Return the *body* of a response with this Content-Encoding as its server meant it, at most *most* bytes of it.

    A body that is not packed, as its archive may have unpacked it, is returned as it is.
    """
    for form in {"gzip": (16 + zlib.MAX_WBITS,), "deflate": (zlib.MAX_WBITS, -zlib.MAX_WBITS)}.get(encoding, ()):
        stream = zlib.decompressobj(form)
        try:
            return stream.decompress(body, most)
        except zlib.error:
            continue
    return _from_brotli(body, most) if encoding == "br" else body[:most]


def _from_brotli(body: bytes, most: int) -> bytes:
    try:
        brotli: Any = import_module("brotli")
    except ImportError as error:
        raise UnreadableError("it is packed by Brotli, which needs the package brotli") from error
    stream = brotli.Decompressor()
    found, more = b"", body
    try:
        # Before 1.2 it has no limit: TypeError.
        while len(found) < most and not stream.is_finished():
            some = stream.process(more, output_buffer_limit=most)
            if not some:
                break
            found, more = found + some, b""
    except TypeError as error:
        raise UnreadableError("it is packed by Brotli, which needs brotli 1.2 or later") from error
    except brotli.error:
        return body[:most]
    return found[:most]
