"""Reads WARCs: the records, the pages in them, and their bodies as the servers meant them.

What is not read is counted: a record that is not a page, or is broken, is a `NotAPageError`.
"""

from __future__ import annotations

import re
import zlib
from contextlib import suppress
from functools import partial
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from dedup_middleware.errors import UnreadableError
from dedup_middleware.extraction.plain import PLAIN, text_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Bytes of a line, or of a page: more than twice of what a crawl checks by default.
MAX_BYTES = 24 * 2**20
# Bytes of a line and of the headers of a record of a WARC, or of a response; bytes that are skipped at once.
_MAX_LINE, _MAX_HEADERS, _SKIPPED = 2**16, 2**20, 2**20
# What begins a record, and a chunk.
_RECORD, _CHUNK = re.compile(rb"WARC/\d\.\d+\s*\Z"), re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;.*)?\r\n\Z")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([^\s;\"']+)")
# Records of a WARC that may be pages, and those that belong to others.
_PAGES, _NO_PAGES = {"response", "resource", "conversion"}, {"warcinfo", "request", "metadata"}


class NotAPageError(ValueError):
    """A record is not a page, for a *reason*, of which there are few, with a *detail*."""

    def __init__(self, reason: str, detail: object = "") -> None:
        # The arguments are what another process makes it of.
        super().__init__(reason, f"{detail!s:.200}")
        self.reason = reason

    def __str__(self) -> str:
        reason, detail = self.args
        return f"{reason} ({detail})" if detail else reason


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


def records(opened: BinaryIO) -> Iterator[tuple[dict[str, str], bytes, bool] | NotAPageError]:
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


def page(record: tuple[dict[str, str], bytes, bool]) -> dict[str, Any] | None:
    """Return the fields of the page in a *record*, or nothing if it belongs to others; `NotAPageError`."""
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
