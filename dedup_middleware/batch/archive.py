"""Reads archives: JSON Lines, Parquet and WARC.

Nothing in an archive is trusted. A record that is not a page is counted with the reason, and the first of them are
named; only a file that cannot be opened ends the command.
"""

from __future__ import annotations

import json
import pickle
import re
import zipfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime, timezone
from functools import cached_property
from pathlib import PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

import xxhash

from dedup_middleware.api import PageContent, Reading
from dedup_middleware.batch import warc
from dedup_middleware.batch.warc import MAX_BYTES, NotAPageError
from dedup_middleware.checks.detector import Preferences
from dedup_middleware.common import bounded
from dedup_middleware.common.plain_files import open_file
from dedup_middleware.common.registry import required
from dedup_middleware.common.urls import host_of, without_secrets
from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.extraction import extractor
from dedup_middleware.extraction.plain import text_type
from dedup_middleware.fingerprints import instance_of
from dedup_middleware.index.schema import whole_text_key
from dedup_middleware.items.keys import ItemKeys
from dedup_middleware.model import TEXT_LIMIT
from dedup_middleware.reasons import Reason
from dedup_middleware.text.clauses import MIN_TEXT_WEIGHT
from dedup_middleware.visits.page_reader import PageReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.model import Page
    from dedup_middleware.settings import Config
    from dedup_middleware.stores.base import Header

_ENDINGS = ".jsonl, .jsonl.gz, .jsonl.xz, .parquet, .warc, .warc.gz or .wacz"
# A column of Parquet may unpack to so many times its size, or bytes, in a row group: Parquet packs in pages of 1 MB.
_MAX_COLUMN_RATIO, _MAX_COLUMN = 100, 64 * 2**20
# s3://bucket, of which a path has one slash; a drive of Windows has one letter.
_URL = re.compile(r"[A-Za-z][\w.+-]+:[/\\]")
#: Records that are not pages and that are named.
NAMED = 20
_COLUMNS = frozenset({"url", "html", "body", "text", "title", "encoding", "status", "time"})


def files_of(paths: Iterable[Path]) -> list[Path]:
    """Return the archives at *paths*, those in a folder by name; :class:`ConfigError` if one cannot be opened.

    Paths are absolute: the workers of a cluster have working directories of their own.
    """
    found = [file for path in paths for file in _files_at(path)]
    for file in found:
        # Rather than after an hour of other files.
        if _ending_of(file) == ".parquet":
            required("pyarrow", file, extra="archive")
    return found


def _files_at(path: Path) -> list[Path]:
    if _URL.match(str(path)):
        raise ConfigError(f"{path} is not a path of a file system", "mount it on every machine, or copy it")
    try:
        path = path.absolute()
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        files = [file for file in files if _ending_of(file) in _FORMATS]
        for file in files:
            open_file(file).close()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"{path} cannot be read ({why})", "name another file") from error
    if not files:
        raise ConfigError(f"{path} is not an archive and contains none", f"name a file that ends in {_ENDINGS}")
    return files


def _ending_of(path: PurePath) -> str:
    name = path.name.lower().removesuffix(".gz").removesuffix(".xz")
    return name[name.rfind(".") :] if "." in name else ""


def records(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield each record of the archive at *path*, as `entry` takes it, with its number; it can be pickled."""
    number = 0
    try:
        open_file(path).close()
    except OSError as error:
        # Of a worker that lacks the files of the others.
        raise ConfigError(f"{path} cannot be read ({error})", "mount it at this path on every machine") from error
    try:
        for number, record in enumerate(_FORMATS[_ending_of(path)][0](path), 1):
            yield number, record
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - what the readers of three formats raise for broken files
        yield number + 1, NotAPageError("broken from here on", error)


def entry(path: Path, number: int, record: Any) -> tuple[PageContent, str] | NotAPageError | None:
    """Return the page of a *record* of the archive at *path* and its time, what it is not, or nothing for no record.

    A time is empty, or ISO 8601, UTC, to the second.
    """
    if isinstance(record, NotAPageError):
        return record
    try:
        if number >= FILE_RECORDS:
            return NotAPageError("too many records in a file")
        fields = _FORMATS[_ending_of(path)][1](record)
        return None if fields is None else _page(fields)
    except NotAPageError as error:
        return error
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - headers, encodings and times of others
        return NotAPageError("cannot be parsed", error)


def _lines(path: Path) -> Iterator[bytes | None]:
    with bounded.opened(path) as file:
        yield from bounded.lines(file, MAX_BYTES)


def _object(line: bytes | None) -> dict[str, Any] | None:
    if line is None:
        raise NotAPageError("too long", f"more than {MAX_BYTES} bytes")
    # A feed of JSON has a bracket on the first and on the last line, and an item on each other one.
    line = line.strip().removesuffix(b",")
    if line in (b"", b"[", b"]"):
        return None
    try:
        record = bounded.loads(line)
    except UnreadableError as error:
        raise NotAPageError("not JSON", error.__cause__ or error) from error
    if not isinstance(record, dict):
        raise NotAPageError("not a JSON object")
    return {name: record[name] for name in _COLUMNS & record.keys()}


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    arrow = required("pyarrow", path, extra="archive")
    parquet = required("pyarrow.parquet", path, extra="archive")
    schema = parquet.read_schema(path)
    names = [each.name for each in schema if each.name in _COLUMNS and not arrow.types.is_nested(each.type)]
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
                yield {name: batch.column(name)[row].as_py() for name in names}


def _row(record: dict[str, Any]) -> dict[str, Any]:
    if any(isinstance(value, (str, bytes)) and len(value) > MAX_BYTES for value in record.values()):
        raise NotAPageError("too long", f"more than {MAX_BYTES} bytes")
    return record


def _collected(path: Path) -> Iterator[tuple[dict[str, str], bytes, bool] | NotAPageError]:
    """Yield the records of the WARCs in a WACZ, by name, as `_records` does."""
    with open_file(path) as file, zipfile.ZipFile(file) as collection:
        for name in sorted(collection.namelist()):
            if not name.startswith("archive/") or _ending_of(PurePosixPath(name)) != ".warc":
                continue
            try:
                info = collection.getinfo(name)
                if info.file_size > max(_MAX_COLUMN, _MAX_COLUMN_RATIO * info.compress_size):
                    raise UnreadableError(f"it unpacks to {info.file_size} bytes")  # noqa: TRY301 - counted as others
                with collection.open(info) as member:
                    yield from warc.records(bounded.unpacking(cast("BinaryIO", member)))
            except UnreadableError as error:
                yield NotAPageError("broken from here on", f"{name}: {error}")


def _records(path: Path) -> Iterator[tuple[dict[str, str], bytes, bool] | NotAPageError]:
    with bounded.opened(path) as file:
        yield from warc.records(file)


def _page(record: dict[str, Any]) -> tuple[PageContent, str]:
    status = record.get("status")
    if status is not None and str(status)[:1] != "2":
        raise NotAPageError("status is not 2xx", f"{status!r}")
    html = record.get("body") if record.get("html") is None else record["html"]
    if html is None and record.get("text") is None:
        raise NotAPageError("neither HTML nor plain text" if "kind" in record else "no html, body or text")
    rest = {name: record[name] for name in ("text", "title", "encoding") if record.get(name) is not None}
    try:
        content = PageContent.of(record.get("url"), html, rest)
        return replace(content, media_type=text_type(record.get("kind", ""))), _time(record.get("time"))
    except ConfigError as error:
        raise NotAPageError("invalid field", str(error)) from error


def _time(value: object) -> str:
    """Return the time of a record in UTC; empty if it is not a time."""
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = datetime.fromtimestamp(value, timezone.utc)
        elif not isinstance(value, datetime):
            value = datetime.fromisoformat(str(value).strip().upper().replace("Z", "+00:00"))
        zoned = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        return zoned.astimezone(timezone.utc).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return ""


# Of each ending: a reader of records, and a parser of one.
_FORMATS: dict[str, tuple[Callable[[Path], Iterator[Any]], Callable[[Any], dict[str, Any] | None]]] = {
    **dict.fromkeys((".jsonl", ".ndjson", ".jl", ".json"), (_lines, _object)),
    ".parquet": (_rows, _row),
    ".warc": (_records, warc.page),
    ".wacz": (_collected, warc.page),
}

#: Records of one file, and files.
FILE_RECORDS, MAX_FILES = 2**22, 2**17
#: The id of a preferred page is its position in the archive. Those of other pages are greater by this number, for
#: originals are found in the order of ids.
POSITIONS = FILE_RECORDS * MAX_FILES
#: The share of a clause that is all of a page's text. The text as a whole outweighs any number of clauses.
WHOLE, EQUAL = 1_000_000, 2_000_000


class Row(NamedTuple):
    """A page as the steps exchange it: numbers, signed and of 64 bits, and its `Read`, pickled, as its content.

    A row with the id -1 is a report, with the refused records as its content. ``host`` is ``None`` if the page cannot
    be read. ``text`` is the hash of the text, or ``None`` if the page has too little text to be an original.
    ``shares`` has the share of each clause in the text, of `WHOLE`.
    """

    page: int
    host: int | None
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

    @classmethod
    def of(cls, content: bytes) -> Read:
        """Return the page that a row of this batch has as its *content*."""
        read: Read = pickle.loads(content)  # noqa: S301 - in a folder of this batch, or of Spark
        return read


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
        return PageReader(self.run, self.fingerprint, extractor(self.config.extractor))

    @cached_property
    def keys(self) -> ItemKeys:
        """The keys of items."""
        return ItemKeys("", self.config.key)

    def keyed_item(self, record: Any) -> dict[str, Any] | None:
        """Return the item of a *record*, a line of JSON, that has a key; ``None`` for other records."""
        item = None
        if self.config.key and isinstance(record, bytes):
            with suppress(UnreadableError):
                item = bounded.loads(record.strip().removesuffix(b","))
        return item if isinstance(item, dict) and self.keys.of(item) is not None else None

    def __getstate__(self) -> dict[str, Any]:
        # A fingerprinter cannot be sent to another process.
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def rows(self, files: Sequence[Path], found: Iterable[tuple[int, int, Any]]) -> Iterator[Row]:
        """Yield the pages in the records *found*, with the numbers of file and record, and a report on other records.

        1 to 6 ms a page.
        """
        counts, first = Counter[str](), list[tuple[int, int, str]]()
        for file, number, record in found:
            if self.keyed_item(record) is not None:
                continue
            page = entry(files[file], number, record)
            if isinstance(page, NotAPageError):
                counts[page.reason] += 1
                if len(first) < NAMED:
                    first.append((file, number, f"{files[file]}:{number}: {page}"))
            elif page is not None:
                yield self._row(file * FILE_RECORDS + number, self._read(*page))
        yield Row(-1, 0, 0, None, json.dumps([counts, first]).encode("ascii"), [], [])

    def _row(self, position: int, read: Read) -> Row:
        page, is_preferred = read.page, Preferences(self.config.preferred).include(read.url)
        shares = {} if page is None else _shares(page)
        return Row(
            page=position if is_preferred else POSITIONS + position,
            host=None if page is None else _hash(host_of(read.url)),
            url=_hash(read.url if page is None else page.identities[0].hex()),
            text=number_of(page.fingerprint.digest) if page is not None and shares else None,
            content=pickle.dumps(read),
            clauses=[*shares],
            shares=[*shares.values()],
        )

    def _read(self, content: PageContent, time: str) -> Read:
        try:
            reading = Reading(content, self.reader, self.config)
        except Exception:  # noqa: BLE001 - a hostile page must not end the batch
            return Read(without_secrets(content.url, redact=self.config.redact_query), None, Reason.ERROR, time)
        return Read(reading.url, reading.page, reading.reason, time)


def kept_text(page: Page) -> list[str]:
    """Return the text of *page* as far as a store keeps it."""
    return "\n".join(page.paragraphs)[:TEXT_LIMIT].split("\n")


def _shares(page: Page) -> dict[int, int]:
    """Return the clauses of *page* with their shares; none if it has too little text to be an original."""
    total = page.fingerprint.weight
    if total < MIN_TEXT_WEIGHT:
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
