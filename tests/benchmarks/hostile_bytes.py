"""Bytes that mean harm, as a store, an archive or a log that others can write may have them: a table of attacks.

Each makes a harmful and a harmless input in a folder, and reads one of them as the product does. The suite
reads small ones, and `benchmarks/hostile.py --bytes` measures them at full size.
"""

from __future__ import annotations

import gzip
import io
import json
import socket
import zlib
from collections import Counter
from functools import partial
from itertools import islice
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from scrapy.settings import Settings

from dedup_middleware.batch.archive import NotAPageError, entry, records
from dedup_middleware.cli.compare import recorded_pages
from dedup_middleware.errors import DedupError, UnreadableError
from dedup_middleware.index import dropped_items, schema
from dedup_middleware.index.overrides import Override
from dedup_middleware.index.shared import index_of
from dedup_middleware.index.transfer import FORMAT, opened_copy
from dedup_middleware.methods.compare.corpus import read_pages
from dedup_middleware.methods.method import unpacked as unpacked_print
from dedup_middleware.methods.shingling import Heintze
from dedup_middleware.methods.simhash import SimHash
from dedup_middleware.model import Kept, StoredPage
from dedup_middleware.records.file import Records, last_line, lines_with, parse_record
from dedup_middleware.report.answers import Answers
from dedup_middleware.stores import open_store
from dedup_middleware.stores.base import Header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

MB = 2**20
#: The fields of a dropped item, but for its data.
HEAD = (1, 1, "s", "r", "", False, "t", "u", "o", 1.0, "x")


def zeros(size: int) -> Iterable[bytes]:
    """Yield *size* zero bytes, in pieces."""
    return (bytes(min(MB, size - at)) for at in range(0, size, MB))


def deflated(size: int, before: bytes = b"", after: bytes = b"", wbits: int = 15) -> bytes:
    """Return *before*, *size* spaces and *after* as zlib packs them."""
    packer = zlib.compressobj(9, wbits=wbits)
    parts = [packer.compress(before), *(packer.compress(b" " * len(zero)) for zero in zeros(size))]
    return b"".join([*parts, packer.compress(after), packer.flush()])


def nested(size: int) -> bytes:
    """Return *size* bytes of a JSON list of lists: each of three bytes takes sixty in memory."""
    return b"[" + b"[]," * (size // 3) + b"0]"


class Kind(NamedTuple):
    """What harm is done to: a harmless content of the file *name*, and how the product reads it."""

    harmless: bytes | Callable[[], bytes]
    read: Callable[[Path], Any]
    name: str = "value"


class Attack(NamedTuple):
    """One kind of harm: what to write into the file of its kind."""

    kind: Kind
    harmful: Callable[[int], bytes]
    full: int = 512 * MB
    """The size that does the most harm."""
    small: int = 3000
    """A size that is quick to make, and need not do harm."""

    def make(self, folder: Path, size: int) -> Path:
        """Write the harmful input of this *size*, or the harmless one for 0."""
        path = folder / self.kind.name
        path.parent.mkdir(parents=True, exist_ok=True)
        harmless = self.kind.harmless
        path.write_bytes(self.harmful(size) if size else harmless if isinstance(harmless, bytes) else harmless())
        return path

    def outcome(self, path: Path) -> str:
        """Return what comes of reading *path*, on one line; only an error of the package is one."""
        try:
            found = self.kind.read(path)
        except (DedupError, UnreadableError) as error:
            return f"{type(error).__name__}: {error}"[:100]
        return repr(found)[:100]


def value(decode: Callable[[bytes], Any]) -> Callable[[Path], str]:
    """Return a reader of one stored value."""

    def read(path: Path) -> str:
        return type(decode(path.read_bytes())).__name__

    return read


def msgpack_list(length: int, value: bytes) -> bytes:
    """Return the list of *length* times *value*, which is packed, as MessagePack."""
    return b"\xdd" + length.to_bytes(4, "big") + value * length


def dropped_item(data: bytes) -> Any:
    """Return the dropped item that a store has as *data*."""
    return dropped_items._decoded(b"key", data).item


def item(data: bytes) -> Any:
    """Return the item that a dropped item has as *data*."""
    return dropped_items.DroppedItem(*HEAD, data).item


def item_value(record: bytes) -> bytes:
    """Return a dropped item as it is stored: its page, its original, and the packed *record*."""
    return schema.encode_number(1) * 2 + zlib.compress(record)


def counter(data: bytes) -> int:
    """Return the number of the next page of a store whose counter is *data*."""
    store = open_store("memory:", fingerprint_scheme="test")
    store.write([(schema.NEXT_PLACE_KEY, data)])
    return index_of(store).number_of("http://a/")


def page_of_clauses(size: int) -> bytes:
    """Return a page of *size* clauses, of which its items have each second one."""
    record = schema.decode(schema._Page, schema.encode_page(_page()))
    record.hashes = b"".join(number.to_bytes(6, "big") for number in range(size))
    record.items = (False, record.hashes[::2], b"", True)
    return schema.encode(record)


def _page() -> Any:
    return StoredPage(
        schema.page_number(1, 1),
        "http://a/1",
        (b"i" * 16,),
        b"d" * 16,
        frozenset({b"c" * 6}),
        Kept("r", "2024-01-01T00:00:00+00:00", None),
    )


def archive(path: Path) -> str:
    """Return how many pages an archive has, and what was refused of it."""
    found = [entry(path, number, record) for number, record in islice(records(path), 1000)]
    refused = [each.reason for each in found if isinstance(each, NotAPageError)]
    return f"{len(found) - len(refused)} pages, refused {dict(Counter(refused))}"


def imported(path: Path) -> str:
    """Return how many pairs an export has."""
    with opened_copy(path) as (_, pairs):
        return f"{sum(1 for _ in pairs)} pairs"


def corpus(path: Path) -> str:
    """Return how many pages a corpus has."""
    return f"{sum(1 for _ in read_pages(path))} pages"


def searched(path: Path) -> str:
    """Return how many lines of a log a search finds, and whether its end has a record."""
    return f"{sum(1 for _ in lines_with(path, b'x'))} lines, {last_line(path) is not None}"


def recorded(path: Path) -> str:
    """Return how many pages the cache has that *path* is the `meta` of."""
    return f"{sum(1 for _ in recorded_pages(path.parents[2], Settings(), lambda _: None))} pages"


def asked(path: Path) -> str:
    """Return what comes of the answer of a server, *path*, that is no Redis server."""
    from redis import Redis  # noqa: PLC0415 - optional
    from redis.exceptions import RedisError  # noqa: PLC0415

    from dedup_middleware.stores import redis as ours  # noqa: PLC0415

    size = int(path.read_bytes())
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(MB)
                        connection.sendall(b"$%d\r\n" % size)
                        for piece in zeros(size):
                            connection.sendall(piece)
                except OSError:  # noqa: PERF203 - the server is closed
                    return

        Thread(target=answer, daemon=True).start()
        port = server.getsockname()[1]
        parser = {"parser_class": kind} if (kind := getattr(ours, "BoundedParser", None)) else {}
        client = Redis.from_url(f"redis://127.0.0.1:{port}", protocol=2, retry=None, **parser)
        try:
            return f"{len(client.get('x') or b'')} bytes"
        except RedisError as error:
            return f"{type(error).__name__}: {error}"


def warc(http: bytes, before: bytes = b"", length: int | None = None) -> bytes:
    """Return a WARC of one response, which begins with *before*."""
    head = b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a/\r\n" + before
    head += b"Content-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n" % (length or len(http))
    return head + http + b"\r\n\r\n"


def response(body: bytes, encoding: str = "") -> bytes:
    """Return an HTTP response."""
    packed = f"Content-Encoding: {encoding}\r\n" if encoding else ""
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{packed}\r\n".encode("ascii") + body


def brotli(size: int) -> bytes:
    """Return *size* zeros, packed by Brotli."""
    import brotli as library  # noqa: PLC0415 - optional

    packer = library.Compressor(quality=5, lgwin=24)
    return b"".join([*(packer.process(zero) for zero in zeros(size)), packer.finish()])


def parquet(size: int, *, rows: int, dictionary: bool) -> bytes:
    """Return a table of *rows* texts of *size* bytes."""
    import pyarrow as pa  # noqa: PLC0415 - optional
    from pyarrow import parquet as library  # noqa: PLC0415

    file, text = io.BytesIO(), pa.array(["x" * size])
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int8()), text)
    table = pa.table({"url": ["http://a/"] * rows, "html": texts if dictionary else texts.cast(pa.string())})
    library.write_table(table, file, compression="zstd", use_dictionary=dictionary, store_schema=False)
    return file.getvalue()


def export(pairs: Iterable[bytes] = (), count: int = 0) -> bytes:
    """Return an export with the lines of these *pairs*."""
    header = json.dumps({"format": FORMAT, **json.loads(Header.new("clauses").encode())}).encode("ascii")
    return b"".join([header + b"\n", *pairs, b"%d\n" % count])


META = repr(
    {"url": "u", "response_url": "http://a/", "method": "GET", "status": 200, "timestamp": 1.0},
).encode("ascii")
RECORD = b'{"time":"t", "spider": "s", "crawl": "r", "url": "x", "verdict": "new", "outcome": "kept"}\n'
CORPUS = b'{"html": "<p>one", "cluster": "a"}\n'
JSON_PAGE = b'{"url": "http://a/", "html": "<p>one"}\n'

TEXT = Kind(schema.encode_text(["one"], 99), value(schema.decode_text))
ITEM = Kind(b'{"dict":[]}', value(item))
DROPPED_ITEM = Kind(item_value(schema.encode([*HEAD, b'{"dict":[]}'])), value(dropped_item))
PAGE = Kind(schema.encode_page(_page()), value(lambda data: schema.decode_page(1, data)))
COUNTER = Kind(schema.encode_number(9), value(counter))
OVERRIDE = Kind(
    Override("u", "o", "t", (b"i" * 16,), (b"j" * 16,)).encode()[1], value(partial(schema.decode, Override))
)
HEADER = Kind(Header.new("clauses").encode(), value(Header.decode))
WARC = Kind(warc(response(b"<p>one")), archive, "a.warc")
WARC_GZ = Kind(gzip.compress(warc(response(b"<p>one"))), archive, "a.warc.gz")
PARQUET = Kind(lambda: parquet(9, rows=1, dictionary=True), archive, "a.parquet")
JSONL_GZ = Kind(gzip.compress(JSON_PAGE), archive, "a.jsonl.gz")
EXPORT = Kind(gzip.compress(export()), imported, "a.jsonl.gz")
RECORDED = Kind(META, recorded, "spider/00/0000/meta")
LOG = Kind(RECORD, lambda path: f"{sum(1 for _ in Records(path))} records")

ATTACKS: dict[str, Attack] = {
    # --- values of a store
    "a text that unpacks to 500 MB": Attack(TEXT, deflated),
    "a text of as many lines as it may have": Attack(TEXT, lambda size: zlib.compress(b"\n" * size), 256 * MB),
    "a dropped item that unpacks to 500 MB": Attack(
        DROPPED_ITEM, lambda size: schema.encode_number(1) * 2 + deflated(size)
    ),
    "a dropped item of empty lists": Attack(
        DROPPED_ITEM, lambda size: item_value(schema.encode([*HEAD, nested(size)])), 250 * MB
    ),
    "an item of empty lists, as large as it may be": Attack(ITEM, nested, 8 * MB),
    "an item of lists in lists": Attack(ITEM, lambda size: b"[" * size, 10**6),
    "a page of a million clauses": Attack(PAGE, page_of_clauses, 10**6),
    "a page of 100 MB": Attack(PAGE, lambda size: page_of_clauses(size // 6), 100 * MB),
    "a posting list of 100 MB": Attack(
        Kind(schema.encode_postings([1]), value(schema.decode_postings)), lambda size: b"\1" * (size // 7 * 7), 100 * MB
    ),
    "a counter at its end": Attack(COUNTER, lambda _: b"\xff" * 7, 1),
    "a counter that is cut off": Attack(COUNTER, lambda _: b"\xff", 1),
    "an override of 100 MB": Attack(
        OVERRIDE, lambda size: b"\x95\xa1u\xa1o\xa1t" + msgpack_list(size // 3, b"\xc4\1x") + b"\x91\xc4\1x", 100 * MB
    ),
    "a header of lists in lists": Attack(HEADER, lambda size: b"[" * size, 10**6),
    "frequencies of words that unpack to 500 MB": Attack(
        Kind(lambda: SimHash().learned(), value(lambda data: SimHash().recall(data))),
        lambda size: deflated(size, b"[1,{}", b"]"),
    ),
    "frequent shingles of 200 MB": Attack(
        Kind(lambda: Heintze().learned(), value(lambda data: Heintze().recall(data))),
        lambda size: zlib.compress(b'["' + b'00","' * (size // 5) + b'00"]'),
        200 * MB,
    ),
    "a fingerprint of 100 MB": Attack(
        Kind(b"s" + b"12345678\x3f\x80\0\0", value(unpacked_print)),
        lambda size: b"s" + b"".join(n.to_bytes(8, "big") + b"\x3f\x80\0\0" for n in range(size // 12)),
        100 * MB,
    ),
    "an answer of a server, of 500 MB": Attack(Kind(b"9", asked), lambda size: b"%d" % size),
    # --- archives
    "a WARC, its response packed by Brotli": Attack(
        WARC, lambda size: warc(response(brotli(size), "br")), 2048 * MB, MB
    ),
    "a WARC, its response packed by gzip": Attack(WARC, lambda size: warc(response(deflated(size, wbits=31), "gzip"))),
    "a WARC.gz with a header of 500 MB": Attack(
        WARC_GZ, lambda size: deflated(size, b"WARC/1.0\r\nWARC-Type: response\r\nX: ", wbits=31)
    ),
    "a WARC without headers": Attack(
        WARC,
        lambda _: warc(b"", length=0).replace(b"WARC-Target-URI: http://a/\r\n", b"") + warc(response(b"<p>one")),
        1,
    ),
    "Parquet, one text in 100 rows": Attack(PARQUET, lambda size: parquet(size, rows=100, dictionary=True), 20 * MB),
    "Parquet, one text of 500 MB": Attack(PARQUET, lambda size: parquet(size, rows=1, dictionary=False)),
    "JSON Lines.gz, a line of 500 MB": Attack(
        JSONL_GZ, lambda size: deflated(size, b'{"url": "http://a/", "html": "', b'"}\n' + JSON_PAGE, 31)
    ),
    "JSON Lines.gz, a line of empty lists": Attack(
        JSONL_GZ,
        lambda size: gzip.compress(b'{"url": "http://a/", "x": ' + nested(size) + b"}\n" + JSON_PAGE),
        60 * MB,
    ),
    "an export.gz, a line of empty lists": Attack(
        EXPORT, lambda size: gzip.compress(export([b'["cDE=", ' + nested(size) + b"]\n"])), 120 * MB
    ),
    "an export.gz that unpacks to 500 MB": Attack(
        EXPORT, lambda size: gzip.compress(export(_pairs(size // 10_000), size // 10_000), 1)
    ),
    "a corpus.gz, a line of 500 MB": Attack(
        Kind(gzip.compress(CORPUS), corpus, "a.jsonl.gz"),
        lambda size: deflated(size, CORPUS + b'{"html": "', b'"}\n', 31),
    ),
    "a recorded crawl, 500 MB of notes": Attack(RECORDED, lambda size: deflated(size, b"{'x': '", b"'}", 31)),
    "a recorded crawl, notes of empty lists": Attack(RECORDED, nested, 20 * MB),
    # --- logs
    "a log, a line of 500 MB": Attack(LOG, lambda size: b"".join(zeros(size)) + b"\n" + RECORD),
    "a log, a line of 500 MB, searched": Attack(
        LOG._replace(read=searched), lambda size: b"".join(zeros(size)) + b"\n" + RECORD
    ),
    "a log, a line of lists in lists": Attack(
        LOG._replace(read=lambda path: parse_record(path.read_bytes())), lambda size: b"[" * size, 10**6
    ),
    "answers, a line of 500 MB": Attack(
        Kind(b"", lambda path: f"{len(Answers(path).about())} answers"), lambda size: b"".join(zeros(size)) + b"\n"
    ),
}


def _pairs(count: int) -> Iterable[bytes]:
    for number in range(count):
        yield msgspec.json.encode((schema.text_key(number), b"x" * 7500)) + b"\n"
