"""Ranges of keys, bucket after bucket, from a Redis server; and as they were, whatever this process writes."""

from __future__ import annotations

import heapq
import struct
import tempfile
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING
from weakref import finalize

from dedup_middleware.stores import redis_layout, redis_scripts, refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

    from typing_extensions import Self

    Pair = tuple[bytes, bytes]
    Call = Callable[..., "list[Any]"]

# In one answer: so many buckets, and none after so many keys and values. There may be 256 texts in a bucket.
_BUCKETS, _PARTS = 256, 2_048
_IN_MEMORY = 4 << 20
_LENGTHS = struct.Struct(">II")


class Scan:
    """The pairs of one range. What other workers write meanwhile may be among them, or not."""

    def __init__(self, pairs: Iterator[Pair]) -> None:
        """Yield *pairs*, of which some are asked for at once: most ranges are small."""
        self._pairs: Iterator[Pair] = chain([*islice(pairs, 1)], pairs)
        self._is_drained = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Pair:
        return next(self._pairs)

    def drain(self) -> None:
        """Read what is left, before this process changes it; what does not fit into memory goes to a file."""
        if self._is_drained:
            return
        self._is_drained = True
        spool = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - it ends with the scan
        finalize(self, spool.close)
        for key, value in self._pairs:
            spool.write(_LENGTHS.pack(len(key), len(value)) + key + value)
        spool.seek(0)
        self._pairs = _spooled(spool)  # type: ignore[arg-type]


def _spooled(spool: BinaryIO) -> Iterator[Pair]:
    while lengths := spool.read(_LENGTHS.size):
        key, value = _LENGTHS.unpack(lengths)
        yield spool.read(key), spool.read(value)


def pairs_of(call: Call, uri: str, start: bytes, stop: bytes) -> Iterator[Pair]:
    """Yield the pairs with ``start <= key < stop``, in key order; *call* returns what a script answers, checked."""
    if start >= stop:
        return
    first, last = (redis_layout.listed_beginning(key) for key in (start, stop))
    buckets = [_buckets(call, redis_scripts.SCAN, first, last)]
    if (groups := redis_layout.groups(start, stop)) is not None:
        clauses = _buckets(call, redis_scripts.SCAN_CLAUSES, *groups)
        buckets.append((redis_layout.CLAUSES + group, fields) for group, fields in clauses)
    for before, fields in heapq.merge(*buckets, key=itemgetter(0)):
        if not isinstance(fields, list) or len(fields) % 2 or not all(isinstance(part, bytes) for part in fields):
            raise refusals.foreign(uri)
        parts = iter(fields)
        for field, value in sorted(zip(parts, parts, strict=True)):
            if start <= (key := before + field) < stop:
                yield key, value


def _buckets(call: Call, script: str, first: bytes, last: bytes) -> Iterator[tuple[bytes, list[bytes]]]:
    begin = b"[" + first
    while True:
        _, there_may_be, *found = call(script, begin, b"[" + last, _BUCKETS, _PARTS)
        yield from zip(found[::2], found[1::2], strict=True)
        if there_may_be != b"more" or not found:
            return
        begin = b"(" + found[-2]
