"""The checksum of each row of a SQLite store, which tells a pair that was written from what rot has made of one."""

from __future__ import annotations

import zlib


def salt_of(store_id: bytes) -> int:
    """Return with what the checksums of a store begin: a page of another store's file must not pass for one of ours."""
    return zlib.crc32(store_id)


def checksum(key: bytes, value: bytes, salt: int) -> int:
    """Return what is written beside *key* and *value*."""
    return zlib.crc32(value, zlib.crc32(key, salt))


def is_whole(row: tuple[object, object, object], salt: int) -> bool:
    """Tell whether a row of the table is one that was written; a damaged one may have values of any type."""
    key, value, found = row
    return isinstance(key, bytes) and isinstance(value, bytes) and checksum(key, value, salt) == found
