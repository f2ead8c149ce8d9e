"""Workers and open claims <-> keys and values of a store that workers share; all others, see `codec`.

Pure functions over bytes; whoever changes a format raises ``layout.SCHEMA_VERSION``.

    w<worker, 8>       -> nothing: it has the store open, or has died
    g<page number, 7>  -> a worker, 8 bytes, and a page whose claim it holds open; postings and text as of any other
    q<identity, 16>    -> page numbers, 7 bytes each: the open claims of that identity
"""

from __future__ import annotations

from dedup_middleware.index.codec import encode_number

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
