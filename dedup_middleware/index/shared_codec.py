"""Workers and open claims <-> keys and values of a store that workers share; all others, see `codec`.

Pure functions over bytes; whoever changes a format raises ``layout.SCHEMA_VERSION``.

    w<worker, 8>       -> nothing: it has the store open, or has died
    g<page number, 7>  -> a worker, 8 bytes, and a page whose claim it holds open; postings and text as of any other
    q<identity, 16>    -> page numbers, 7 bytes each: the open claims of that identity
    h<host, 8>         -> what its first pages are called, see `shared_titles`: lines of text
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import xxhash

from dedup_middleware.errors import UnreadableError
from dedup_middleware.index.codec import encode_number

if TYPE_CHECKING:
    from collections.abc import Iterable

WORKERS = (b"w", b"x")
CLAIMED = (b"g", b"h")
_WORKER_BYTES = 8


def worker_key(worker: bytes) -> bytes:
    """Return the key that says of *worker* that it has the store open."""
    return b"w" + worker


def claimed_key(number: int) -> bytes:
    """Return the key of a page whose claim is open."""
    return b"g" + encode_number(number)


def decode_claimed(value: bytes) -> tuple[bytes, bytes]:
    """Return the worker who holds a claim, and its page, encoded."""
    return value[:_WORKER_BYTES], value[_WORKER_BYTES:]


def claims_key(identity: bytes) -> bytes:
    """Return the key that leads from an *identity* to its open claims."""
    return b"q" + identity


def titles_key(host: str) -> bytes:
    """Return the key of what the first pages of *host* are called."""
    return b"h" + xxhash.xxh3_64_digest(host.encode("utf8", "surrogatepass"))


def encode_titles(titles: Iterable[str]) -> bytes:
    """Return *titles*, each on one line, as they are stored."""
    return "\n".join(titles).encode("utf8", "surrogatepass")


def decode_titles(value: bytes) -> list[str]:
    """Return the titles in a value of :func:`encode_titles`."""
    try:
        return value.decode("utf8", "surrogatepass").split("\n")
    except UnicodeDecodeError as error:
        raise UnreadableError(str(error)) from error
