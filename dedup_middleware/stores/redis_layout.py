"""Which key of a store is kept where in a Redis server: in a field of a hash, its bucket, with its neighbours.

Small hashes are what such a server keeps most densely: a clause costs some 20 bytes there, and 100 as a key of its own.
A bucket holds all keys with one beginning, and buckets sort as their keys do: a range of keys is a range of buckets.
Pure functions of bytes; whoever changes what they return raises ``layout.SCHEMA_VERSION``.

    {dedup:NAME}:b<beginning>    -> a hash: the rests of keys, and their values; listed in `buckets`
    {dedup:NAME}:buckets         -> a sorted set of beginnings
    {dedup:NAME}:c<20 bits>      -> likewise, of clauses; their groups, by 16 bits, are listed in `groups`
    {dedup:NAME}:groups          -> a sorted set of those that have, or had, a clause
    {dedup:NAME}:version         -> how often the store was written to
    {dedup:NAME}:workers         -> a set of those who have the store open, or have died
    {dedup:NAME}:lease:<worker>  -> a hash that expires: the number of its last write, and the version that this made
    {dedup:NAME}:lock            -> the worker who alone may write, for a moment; expires
"""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Clauses, some forty a page. At 10^6 pages each of a million buckets has about thirty of them; Redis keeps up to 128
# densely as it comes, and 512 if it is told so. Fewer buckets would take less room in small stores, and more in large.
CLAUSES, _AFTER_CLAUSES, _CLAUSE_MASK = b"c", b"d", 0xF0
_MASKED = [bytes((byte & _CLAUSE_MASK,)) for byte in range(256)]
# Keys that begin with a page's number: those of 256 pages in line are together.
_BY_PAGE = frozenset(b"ptsgruo")
#: How much of a key that begins with a page's number names its bucket, and of any other.
PAGE_BEGINNING, _BEGINNING = 5, 3
_LISTED = b"b"
#: What a key's value is, as the server tells it.
VALUE_TYPES = frozenset((bytes, NoneType))


def places(keys: Iterable[bytes]) -> list[bytes]:
    """Return the name of the bucket, without the store's, and the field there of each of *keys*, one after the other.

    0.3 µs a key.
    """
    # Most are of clauses. To call a function for each takes three times as long, and so does a cache.
    return [
        part
        for key in keys
        for part in (
            (key[:_BEGINNING] + _MASKED[key[_BEGINNING]], key[_BEGINNING:])
            if key[:1] == CLAUSES and len(key) > _BEGINNING
            else _listed(key)
        )
    ]


def _listed(key: bytes) -> tuple[bytes, bytes]:
    beginning = listed_beginning(key)
    return _LISTED + beginning, key[len(beginning) :]


def listed_beginning(key: bytes) -> bytes:
    """Return the beginning of the listed bucket that *key* is in, if it is in one: it sorts as *key* does, any key."""
    return key[: PAGE_BEGINNING if key[0] in _BY_PAGE else _BEGINNING] if key else b""


def groups(start: bytes, stop: bytes) -> tuple[bytes, bytes] | None:
    """Return the first and the last group with clauses of ``start <= key < stop``; ``None`` if there are none."""
    if start >= _AFTER_CLAUSES or stop <= CLAUSES:
        return None
    return max(start, CLAUSES)[1:3], stop[1:3] if stop < _AFTER_CLAUSES else b"\xff\xff"
