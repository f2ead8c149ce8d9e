"""Makes small archives of the kinds that other programs write, with what is to be found in each."""

from __future__ import annotations

import gzip
import zlib
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

HTML = b"<p>caf\xc3\xa9 and some words"
HTTP, URL = "application/http", "http://a.example/"


class Archive(NamedTuple):
    name: str
    data: bytes
    pages: dict[str, bytes]
    """What is read, by URL."""
    refused: int = 0
    """Records that are counted with a reason."""


def record(of: str, url: str, content: bytes, kind: str = HTTP, *, off: int = 0, more: bytes = b"") -> bytes:  # noqa: PLR0913 - of a record
    """Return a record, whose length is wrong by *off*, with *more* header lines."""
    head = f"WARC/1.0\r\nWARC-Type: {of}\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2020-01-02T03:04:05Z\r\n"
    head += f"Content-Type: {kind}\r\nContent-Length: {len(content) + off}\r\n"
    return head.encode() + more + b"\r\n" + content + b"\r\n\r\n"


def http(body: bytes = HTML, more: bytes = b"", kind: bytes = b"text/html", status: bytes = b"200 OK") -> bytes:
    """Return a response."""
    return b"HTTP/1.1 " + status + b"\r\nContent-Type: " + kind + b"\r\n" + more + b"\r\n" + body


def _encoded(encoding: str, body: bytes) -> bytes:
    return record("response", URL, http(body, f"Content-Encoding: {encoding}\r\n".encode()))


def _chunked(body: bytes, *cuts: int) -> bytes:
    parts = [body[a:b] for a, b in pairwise((0, *cuts, len(body)))]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


ONE = {URL: HTML}
PACKED = gzip.compress(HTML)
PAGE = record("response", URL, http())
BEFORE, AFTER = (record("response", f"{URL}{n}", http(HTML + n.encode())) for n in ("before", "after"))
AROUND = {f"{URL}{n}": HTML + n.encode() for n in ("before", "after")}


def _forms() -> Iterator[Archive]:
    """Yield archives of one member for each record, and of others."""
    for name, members in {"plain": PAGE, "member": gzip.compress(PAGE)}.items():
        yield Archive(name, members, ONE)
    yield Archive("members", gzip.compress(BEFORE) + gzip.compress(PAGE) + gzip.compress(AFTER), ONE | AROUND)
    yield Archive("one member", gzip.compress(BEFORE + PAGE + AFTER), ONE | AROUND)


def _types() -> Iterator[Archive]:
    """Yield records that are pages without HTTP, and those that are not pages."""
    yield Archive("resource", record("resource", URL, HTML, "text/html"), ONE)
    yield Archive("resource charset", record("resource", URL, HTML, 'text/html; charset="utf-8"'), ONE)
    yield Archive("resource image", record("resource", URL, b"\x89PNG", "image/png"), {}, 1)
    yield Archive("resource dns", record("response", "dns:a.example", b"20200102\n", "text/dns"), {}, 1)
    yield Archive(
        "wet", record("conversion", URL, b"caf\xc3\xa9\nsome words", "text/plain"), {URL: b"caf\xc3\xa9\nsome words"}
    )
    yield Archive("wet data", record("conversion", URL, b"[1] words", "text/plain"), {URL: b"[1] words"})
    yield Archive("revisit", PAGE + record("revisit", f"{URL}2", http(b"")), ONE, 1)
    yield Archive("no http", record("response", URL, HTML), {}, 1)
    segment = record("response", f"{URL}2", http(), more=b"WARC-Segment-Number: 1\r\n")
    rest = record("continuation", f"{URL}2", HTML, more=b"WARC-Segment-Number: 2\r\n")
    yield Archive("segments", PAGE + segment + rest, ONE, 2)
    others = [record(of, URL, b"a: b\r\n", "application/warc-fields") for of in ("warcinfo", "metadata")]
    yield Archive("others", others[0] + record("request", URL, b"GET / HTTP/1.1\r\n\r\n") + others[1] + PAGE, ONE)
    yield Archive("another type", PAGE + record("screenshot", URL, b"x", "image/png"), ONE, 1)


def _encodings() -> Iterator[Archive]:
    """Yield bodies that are packed and in chunks."""
    for name in ("gzip", "x-gzip", "GZIP"):
        yield Archive(name, _encoded(name, PACKED), ONE)
    yield Archive("gzip twice", _encoded("gzip, gzip", gzip.compress(PACKED)), ONE)
    twice = http(gzip.compress(PACKED), b"Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n")
    yield Archive("gzip in two headers", record("response", URL, twice), ONE)
    yield Archive("gzip members", _encoded("gzip", gzip.compress(HTML[:9]) + gzip.compress(HTML[9:])), ONE)
    yield Archive("gzip unpacked", _encoded("gzip", HTML), ONE)
    yield Archive("gzip broken", _encoded("gzip", PACKED[:12] + b"\xff" * 9), {}, 1)
    yield Archive("deflate", _encoded("deflate", zlib.compress(HTML)), ONE)
    yield Archive("deflate raw", _encoded("deflate", zlib.compress(HTML)[2:-4]), ONE)
    yield Archive("identity", _encoded("identity", HTML), ONE)
    yield Archive("unknown", _encoded("compress", b"\x1f\x9d\x90\0\0"), {}, 1)
    chunked = b"Transfer-Encoding: chunked\r\n"
    yield Archive("chunks", record("response", URL, http(_chunked(HTML, 5), chunked)), ONE)
    yield Archive("chunks joined", record("response", URL, http(HTML, chunked)), ONE)
    text = http(b"Face\r\nof a page", chunked, b"text/plain")
    yield Archive("no chunk", record("response", URL, text), {URL: b"Face\r\nof a page"})
    gzip_chunks = http(_chunked(PACKED, 5, 9), chunked + b"Content-Encoding: gzip\r\n")
    yield Archive("gzip chunks", record("response", URL, gzip_chunks), ONE)


def _headers() -> Iterator[Archive]:
    """Yield headers that are many, long, folded and broken."""
    many = b"".join(b"X-%d: y\r\n" % n for n in range(150))
    yield Archive("150 headers", record("response", URL, http(more=many), more=many), ONE)
    yield Archive("no colon", record("response", URL, http(more=b"nothing\r\n"), more=b"nothing\r\n"), ONE)
    yield Archive("folded", record("response", URL, http(more=b"X-A: b\r\n c: d\r\n")), ONE)
    lines = record("response", URL, http().replace(b"\r\n", b"\n")).replace(b"\r\n", b"\n")
    yield Archive("line feeds", lines, ONE)
    yield Archive("angle brackets", record("response", f"<{URL}>", http()), ONE)
    yield Archive("404", PAGE + record("response", f"{URL}2", http(status=b"404 Gone")), ONE, 1)
    yield Archive("long headers", record("response", URL, http(), more=b"X: " + b"y" * 2**21 + b"\r\n") + AFTER,
                  {f"{URL}after": AROUND[f"{URL}after"]}, 1)  # fmt: skip


def _lengths() -> Iterator[Archive]:
    """Yield wrong lengths, each of which costs its record."""
    for off in (-40, -9, 10, 50, 150, 10**9):
        wrong = record("response", URL, http(), off=off)
        yield Archive(f"wrong length {off}", BEFORE + wrong + AFTER, AROUND, 1)
        yield Archive(f"wrong length {off} in members", b"".join(map(gzip.compress, (BEFORE, wrong, AFTER))), AROUND, 1)
    yield Archive("no length", BEFORE + PAGE.replace(b"Content-Length: ", b"X: ") + AFTER, AROUND, 1)
    yield Archive("no number", BEFORE + PAGE.replace(b"Length: ", b"Length: x") + AFTER, AROUND, 1)
    yield Archive("cut off", BEFORE + PAGE[:-20], {f"{URL}before": AROUND[f"{URL}before"]}, 1)
    yield Archive("rubbish behind", gzip.compress(PAGE) + b"rubbish", ONE, 1)


def archives() -> list[Archive]:
    """Return all, more than 35."""
    return [*_forms(), *_types(), *_encodings(), *_headers(), *_lengths()]
