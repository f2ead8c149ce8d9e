"""Copies a store to a file and back.

A file has lines of JSON, and may be compressed: first the header of the store, with its hashing key (with it, colliding
pages can be crafted); then a key and its value on each line, in base64, sorted by key; last, how many pairs there are.
What a file contains is hostile until it has been read here; its values, like those of any store, until they are used.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from dedup_middleware.common import bounded
from dedup_middleware.errors import ConfigError, StoreError, UnreadableError
from dedup_middleware.index import schema
from dedup_middleware.stores import open_store, refusals
from dedup_middleware.stores.base import HEADER_KEY, SCHEMA_VERSION, Header

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from dedup_middleware.stores import OpenStore

    KeyValue = tuple[bytes, bytes]

FORMAT = "dedup-middleware store"
#: Bytes of a line: an item, the longest value, has at most 8 MB.
MAX_LINE = 16 * 2**20
_MAX_KEY = 64
_ALL = b"\x01", b"\xff" * 64
# The kinds of keys that are copied: all but those that processes at work have.
_COPIED = frozenset(bytes((kind,)) for kind in b"bcehijklmnoprstvx")
# Pairs and bytes that are written at once.
_PAIRS_AT_ONCE, _BYTES_AT_ONCE = 5_000, 8 * 2**20

_decode = msgspec.json.Decoder(tuple[bytes, bytes] | int).decode


def is_copy(start: bytes) -> bool:
    """Return whether a file that begins so, unpacked, is a copy of a store."""
    return start.startswith(b'{"format": ' + json.dumps(FORMAT).encode("ascii"))


def lines_of(header: Header, pairs: Iterable[KeyValue]) -> Iterator[str]:
    """Yield the lines of a copy of a store with this *header* and these *pairs*, without their ends."""
    count = 0
    yield header_line(header)
    for count, pair in enumerate(pairs, 1):  # noqa: B007 - read after the loop
        yield line_of(pair).decode("ascii")
    yield str(count)


def header_line(header: Header) -> str:
    """Return the first line of a copy of a store with this *header*."""
    return json.dumps({"format": FORMAT, **json.loads(header.encode())})


def line_of(pair: KeyValue) -> bytes:
    """Return the line of a *pair* in a copy of a store."""
    return msgspec.json.encode(pair)


def pairs_of(store: OpenStore) -> Iterator[KeyValue]:
    """Yield what a copy of *store* has; `StoreLockedError` if a crawl is at work in it.

    The caller has swept it: then only a crawl at work has claims open.
    """
    others = store.changes_of_others()
    for pair in store.scan(*_ALL):
        if pair[0][:1] == schema.CLAIMED[0]:
            raise refusals.locked(store.uri)
        if pair[0][:1] in _COPIED:
            yield pair
    if store.changes_of_others() != others:
        raise refusals.locked(store.uri)


@contextmanager
def opened_copy(path: Path) -> Iterator[tuple[Header, Iterator[KeyValue]]]:
    """Yield what is in the file *path*: the header of a store, and its pairs; :class:`ConfigError` for another file."""
    try:
        with bounded.opened(path) as file:
            lines = bounded.lines(file, MAX_LINE)
            yield _header(next(lines, None)), _pairs(lines)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror or error})", "name another file") from error
    except ValueError as error:
        raise ConfigError(
            f"{path} cannot be imported ({error})", "make it by `scrapy dedup store export -o FILE`"
        ) from error


def _header(line: bytes | None) -> Header:
    if line is None or not is_copy(line):
        raise UnreadableError("it is not an export of a store")
    fields = bounded.loads(line)
    del fields["format"]
    if fields.get("schema") != SCHEMA_VERSION:
        raise UnreadableError(f"it has schema {fields.get('schema')!r:.20}, this version has {SCHEMA_VERSION}")
    return Header.decode(json.dumps(fields).encode("ascii"))


def _pairs(lines: Iterator[bytes | None]) -> Iterator[KeyValue]:
    count, last = 0, b""
    for line in lines:
        if line is None:
            raise UnreadableError("a line is too long")
        read = _decode(line)
        if isinstance(read, int):
            if read != count or next(lines, None) is not None:
                break
            return
        key, _ = read
        if not last < key or len(key) > _MAX_KEY or key[:1] not in _COPIED:
            raise UnreadableError(f"line {count + 2} has a key that is not valid there")
        count, last = count + 1, key
        yield read
    raise UnreadableError("it is not complete")


def import_copy(path: Path, uri: str) -> dict[str, int]:
    """Fill the empty store at *uri* with the copy *path*; return how many pages and dropped items it has.

    The file is read to its end and checked before anything is written.
    """
    with opened_copy(path) as (_, pairs):
        kinds = Counter(key[:1] for key, _ in pairs)
    with opened_copy(path) as (header, pairs), filled(uri, header) as store:
        for batch in _in_batches(pairs):
            store.write(batch)
    pages, duplicates, items = (kinds[kind[0]] for kind in (schema.PAGES, schema.DUPLICATES, schema.DROPPED))
    return {"originals": pages - duplicates, "duplicates": duplicates, "dropped_items": items}


def _in_batches(pairs: Iterator[KeyValue]) -> Iterator[list[KeyValue]]:
    batch, size = list["KeyValue"](), 0
    for pair in pairs:
        batch.append(pair)
        size += len(pair[1])
        if len(batch) >= _PAIRS_AT_ONCE or size >= _BYTES_AT_ONCE:
            yield batch
            batch, size = [], 0
    yield batch


@contextmanager
def filled(uri: str, header: Header) -> Iterator[OpenStore]:
    """Open the empty store at *uri*, or create it, with this *header*, to be filled by the block.

    Until the block has ended without an error, the store is marked as incomplete and cannot be opened again.
    """
    store = open_store(uri, fingerprint_scheme=header.scheme, who="scrapy dedup store import")
    try:
        if next(store.scan(*_ALL), None) is not None:
            raise StoreError(
                f"the store {store.uri} is not empty",
                f"import into a new one, by -s DEDUP_STORE=URI, or first remove this one by {refusals.reset(uri)}",
            )
        store.write([(HEADER_KEY, msgspec.structs.replace(header, is_partial=True).encode())], sync=True)
        store.in_process.header = header
        yield store
        store.write([(HEADER_KEY, header.encode())], sync=True)
    finally:
        store.close()
