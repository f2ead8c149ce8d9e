"""Reads archives: JSON Lines, Parquet and WARC.

Nothing in an archive is trusted. A record that is not a page is counted with the reason, and the first of them are
named; only a file that cannot be opened ends the command.
"""

from __future__ import annotations

import json
import pickle
import re
import zipfile
import zlib
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime, timezone
from functools import cached_property, partial
from importlib import import_module
from io import BytesIO
from pathlib import PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

import xxhash

from dedup_middleware.api import PageContent, Reading
from dedup_middleware.checks.detector import Preferences
from dedup_middleware.common import bounded
from dedup_middleware.common.plain_files import open_file
from dedup_middleware.common.registry import required
from dedup_middleware.common.urls import host_of, without_secrets
from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.extraction import extractor
from dedup_middleware.extraction.plain import PLAIN, text_type
from dedup_middleware.fingerprints import instance_of
from dedup_middleware.index.schema import whole_text_key
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
#: Bytes of a line, or of a page: more than twice of what a crawl checks by default.
MAX_BYTES = 24 * 2**20
# Bytes of a line and of the headers of a record of a WARC, or of a response; bytes that are skipped at once.
_MAX_LINE, _MAX_HEADERS, _SKIPPED = 2**16, 2**20, 2**20
# What begins a record, and a chunk.
_RECORD, _CHUNK = re.compile(rb"WARC/\d\.\d+\s*\Z"), re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;.*)?\r\n\Z")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([^\s;\"']+)")
# Records of a WARC that may be pages, and those that belong to others.
_PAGES, _NO_PAGES = {"response", "resource", "conversion"}, {"warcinfo", "request", "metadata"}
# A column of Parquet may unpack to so many times its size, or bytes, in a row group: Parquet packs in pages of 1 MB.
_MAX_COLUMN_RATIO, _MAX_COLUMN = 100, 64 * 2**20
# s3://bucket, of which a path has one slash; a drive of Windows has one letter.
_URL = re.compile(r"[A-Za-z][\w.+-]+:[/\\]")
#: Records that are not pages and that are named.
NAMED = 20
_COLUMNS = frozenset({"url", "html", "body", "text", "title", "encoding", "status", "time"})


class NotAPageError(ValueError):
    """A record is not a page, for a *reason*, of which there are few, with a *detail*."""

    def __init__(self, reason: str, detail: object = "") -> None:
        # The arguments are what another process makes it of.
        super().__init__(reason, f"{detail!s:.200}")
        self.reason = reason

    def __str__(self) -> str:
        reason, detail = self.args
        return f"{reason} ({detail})" if detail else reason


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


class _Rereadable:
    """A file, of which what was read last can be read again."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._again = BytesIO()

    def read(self, size: int) -> bytes:
        found = self._again.read(size)
        return found + self._file.read(size - len(found)) if len(found) < size else found

    def line(self) -> bytes:
        found = self._again.readline(_MAX_LINE)
        is_whole = found.endswith(b"\n") or len(found) == _MAX_LINE
        return found if is_whole else found + self._file.readline(_MAX_LINE - len(found))

    def again(self, data: bytes) -> None:
        self._again = BytesIO(data + self._again.read())


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
                    yield from _records_in(bounded.unpacking(cast("BinaryIO", member)))
            except UnreadableError as error:
                yield NotAPageError("broken from here on", f"{name}: {error}")


def _records(path: Path) -> Iterator[tuple[dict[str, str], bytes, bool] | NotAPageError]:
    with bounded.opened(path) as file:
        yield from _records_in(file)


def _records_in(opened: BinaryIO) -> Iterator[tuple[dict[str, str], bytes, bool] | NotAPageError]:
    """Yield headers, content, and whether it is cut at `MAX_BYTES`, of each record of a WARC, or what is wrong.

    The readers of other libraries end at a wrong length, or take the next records as content. Here the next line that
    begins a record is looked for, first in what was read.
    """
    file = _Rereadable(opened)
    line = _begin(file)
    if line and not _RECORD.match(line):
        raise UnreadableError("it is not a WARC")
    while line:
        content, line, left = b"", b"", 0
        try:
            headers = _headers(file)
            length = headers.get("content-length", "")
            left = int(length) if length.isascii() and length.isdigit() else 0
            content = file.read(min(left, MAX_BYTES))
            left -= len(content)
            is_short = left > 0 and len(content) == MAX_BYTES
            while left and (skipped := file.read(min(left, _SKIPPED))):
                left -= len(skipped)
            try:
                line = _begin(file)
            except UnreadableError:
                # Only the next record is broken.
                yield headers, content, is_short
                raise
            _check_end(line, left, length)
            yield headers, content, is_short
        except NotAPageError as error:
            yield error
            file.again(content + line)
            while (line := file.line()) and not _RECORD.match(line):
                pass


def _check_end(line: bytes, left: int, length: str) -> None:
    """Raise `NotAPageError` unless a record of this *length* has no bytes *left*, and *line* begins the next one."""
    if left or not length.isdigit() or (line and not _RECORD.match(line)):
        raise NotAPageError("wrong Content-Length", length)


def _begin(file: _Rereadable) -> bytes:
    """Return the next line that is not empty."""
    while (line := file.line()) and not line.strip():
        pass
    return line


def _headers(file: _Rereadable | BytesIO) -> dict[str, str]:
    """Return the headers that *file* goes on with, by their names in lower case; of equal names, the first.

    Encodings are listed. Lines without a colon are left out.
    """
    found, name, left = dict[str, str](), "", _MAX_HEADERS
    read = file.line if isinstance(file, _Rereadable) else partial(file.readline, _MAX_LINE)
    while (line := read()).strip():
        if (left := left - len(line)) < 0:
            raise NotAPageError("too long", f"headers of more than {_MAX_HEADERS} bytes")
        text = str(line, "latin-1")
        if text[0] in " \t" and name:
            found[name] += f" {text.strip()}"
            continue
        name, colon, value = text.partition(":")
        name, value = name.strip().lower(), value.strip()
        if not colon:
            name = ""
        elif name in found and name.endswith("-encoding"):
            found[name] += f", {value}"
        else:
            name = name if found.setdefault(name, value) == value else ""
    return found


def _response(record: tuple[dict[str, str], bytes, bool]) -> dict[str, Any] | None:
    warc, content, is_short = record
    of, kind = warc.get("warc-type", "").lower(), warc.get("content-type", "").lower()
    if of in _NO_PAGES:
        return None
    if of not in _PAGES:
        raise NotAPageError("a record that is not a page", of)
    if "warc-segment-number" in warc:
        raise NotAPageError("a segment of a record", warc["warc-segment-number"])
    if is_short:
        raise NotAPageError("too long", f"more than {MAX_BYTES} bytes")
    # Headers are decoded as Latin-1; some writers put a URL in angle brackets.
    url = warc.get("warc-target-uri", "").strip("<>").encode("latin-1").decode("utf8", "replace")
    found = _of_http(content, kind) if of == "response" else _content(content, kind)
    if of == "conversion" and text_type(kind) == PLAIN:
        # Its lines are the paragraphs of the page that it was made of.
        found = {"text": str(content, "utf8", "replace")}
    return {"url": url, "time": warc.get("warc-date"), **found}


def _content(content: bytes, kind: str) -> dict[str, Any]:
    charset = _CHARSET.search(kind)
    is_page = "html" in kind or text_type(kind)
    return {"html": content if is_page else None, "kind": kind, "encoding": charset[1] if charset else None}


def _of_http(content: bytes, kind: str) -> dict[str, Any]:
    stream = BytesIO(content)
    line = stream.readline(_MAX_LINE)
    if not line.startswith(b"HTTP/"):
        raise NotAPageError("not a response of HTTP", kind)
    http = _headers(stream)
    found = _content(stream.read(), http.get("content-type", "").lower())
    found["status"] = str(line.split()[1], "ascii")
    if found["html"] is not None and found["status"].startswith("2"):
        found["html"] = _body(http, found["html"])
    return found


def _body(http: dict[str, str], body: bytes) -> bytes:
    """Return the *body* of a response as its server meant it; its archive may have unpacked it."""
    if "chunked" in http.get("transfer-encoding", "").lower():
        body = _joined(body)
    for encoding in reversed(http.get("content-encoding", "").lower().split(",")):
        body = _unpacked(body, encoding.strip())
        if len(body) > MAX_BYTES:
            raise NotAPageError("too long", f"more than {MAX_BYTES} bytes")
    return body


def _unpacked(body: bytes, encoding: str) -> bytes:
    """Return *body* without its *encoding*, up to a byte more than `MAX_BYTES`; *body* if it is not packed."""
    unpack = _UNPACKERS.get(encoding)
    is_packed = b"\0" in body[:1024] if unpack is None else unpack is _of_deflate or not body.lstrip().startswith(b"<")
    if not is_packed:
        return body
    try:
        if unpack is not None:
            return unpack(body)
    except ImportError:
        pass
    except Exception as error:
        raise NotAPageError("cannot be unpacked", error) from error
    raise NotAPageError("packed in a way that cannot be unpacked here", encoding)


def _of_gzip(body: bytes) -> bytes:
    return _inflated(body, 16 + zlib.MAX_WBITS) if body.startswith(b"\x1f\x8b") else body


def _of_deflate(body: bytes) -> bytes:
    for form in (zlib.MAX_WBITS, -zlib.MAX_WBITS):
        with suppress(zlib.error):
            return _inflated(body, form)
    if body.lstrip().startswith(b"<"):
        return body
    raise UnreadableError("neither zlib nor deflate")


def _inflated(body: bytes, form: int) -> bytes:
    """Return what the members of *body* unpack to; what follows the last one is left out."""
    found = b""
    while body and len(found) <= MAX_BYTES:
        member = zlib.decompressobj(form)
        try:
            found += member.decompress(body, MAX_BYTES + 1 - len(found))
        except zlib.error:
            if not found:
                raise
            break
        if not member.eof and len(found) <= MAX_BYTES:
            raise UnreadableError("it is cut off")
        body = member.unused_data
    return found


def _of_brotli(body: bytes) -> bytes:
    brotli = import_module("brotli")
    stream = brotli.Decompressor()
    found = cast("bytes", stream.process(body, output_buffer_limit=MAX_BYTES + 1))
    if not stream.is_finished() and len(found) <= MAX_BYTES:
        raise UnreadableError("it is cut off")
    return found


def _of_zstd(body: bytes) -> bytes:
    try:
        opened = import_module("compression.zstd").ZstdFile(BytesIO(body))
    except ImportError:
        opened = import_module("zstandard").ZstdDecompressor().stream_reader(body, read_across_frames=True)
    return cast("bytes", opened.read(MAX_BYTES + 1))


_UNPACKERS: dict[str, Callable[[bytes], bytes]] = {
    **dict.fromkeys(("gzip", "x-gzip"), _of_gzip),
    "deflate": _of_deflate,
    "br": _of_brotli,
    "zstd": _of_zstd,
}


def _joined(body: bytes) -> bytes:
    """Return the chunks of *body* as one; *body*, or what is left of it, as it is where it has none."""
    stream, chunks, start = BytesIO(body), list[bytes](), 0
    while size := _CHUNK.match(stream.readline(_MAX_LINE)):
        length = int(size[1], 16)
        if not length:
            return b"".join(chunks)
        chunk, end = stream.read(length), stream.readline(2)
        # Only a later chunk may be cut off: a first line that looks like a length is text.
        if end != b"\r\n" and (end or not chunks):
            break
        chunks.append(chunk)
        start = stream.tell()
    return b"".join([*chunks, body[start:]])


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
    ".warc": (_records, _response),
    ".wacz": (_collected, _response),
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

    def __getstate__(self) -> dict[str, Any]:
        # A fingerprinter cannot be sent to another process.
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def rows(self, files: Sequence[Path], found: Iterable[tuple[int, int, Any]]) -> Iterator[Row]:
        """Yield the pages in the records *found*, with the numbers of file and record, and a report on other records.

        1 to 6 ms a page.
        """
        counts, first = Counter[str](), list[tuple[int, int, str]]()
        for file, number, record in found:
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
