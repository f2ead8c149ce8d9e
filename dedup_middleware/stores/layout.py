"""Which bytes mean what inside a store.

Pure functions of bytes, no I/O. Whoever changes what they return raises ``SCHEMA_VERSION``.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from datetime import datetime

from dedup_middleware import times

SCHEMA_VERSION = 6

#: Bytes of a clause's hash in stores of before schema 5, and in those that are created now; why, says `Header`.
LONG_HASH_BYTES, HASH_BYTES = 8, 6

# The zero byte sorts what a store says of itself before every other key, so that no range of pages or clauses has it.
HEADER_KEY = b"\x00header"
ID_KEY = b"\x00id"
"""-> 16 random bytes, also in a file beside the database: a database that was put in another one's place is noticed."""
WATERMARK_KEY = b"\x00watermark"
"""-> the number of the newest synced batch."""
OWN_KEYS_END = b"\x01"
"""Before this key lies what a store says of itself, from it on what it holds for others."""

ID_BYTES = 16
_HASHING_KEY_BYTES = 16
_WATERMARK_BYTES = 8


def encode_watermark(number: int) -> bytes:
    """Return *number*, 0 or more, as 8 bytes."""
    return number.to_bytes(_WATERMARK_BYTES, "big")


def decode_watermark(value: bytes) -> int:
    """Return the number that *value* encodes; ``ValueError`` if it encodes none."""
    if not value:
        raise ValueError("the number of its synced batches is gone")
    if len(value) != _WATERMARK_BYTES:
        raise ValueError(f"its number of synced batches is {len(value)} bytes long")
    return int.from_bytes(value, "big")


@dataclass(frozen=True)
class Header:
    """What a store says of itself, written once, when it is created.

    Later schemas may add fields but keep these four, so that an older plugin can say "newer" instead of "damaged".
    """

    schema: int
    """Version of the layout of keys and values, 1 or more."""

    scheme: str
    """Name of the fingerprint scheme; fingerprints of another scheme do not compare. Never empty."""

    key: bytes
    """16 random bytes, the store's own hashing key: nobody can craft a page that collides in a store unseen."""

    created: str
    """When the store was created: ISO 8601, UTC, to the second."""

    hash_bytes: int = LONG_HASH_BYTES
    """Of a clause's hash, in its keys and pages: as many as when it was created.

    A posting list only proposes pages, and tells what is boilerplate; what a page repeats is decided by the hashes in
    its owner's own record. With six bytes a clause is taken for one of an owner's forty once in 7 million million
    times, and a drop takes dozens. Among a thousand million stored clauses, one page in 7 000 has one that leads to a
    strange page too, which is then compared and found to be another, and one in 700 000 one that counts as boilerplate.
    """

    @classmethod
    def new(cls, scheme: str) -> Header:
        """Return the header of a store that is created now, with a fresh hashing key."""
        created = times.now()
        return cls(SCHEMA_VERSION, scheme, secrets.token_bytes(_HASHING_KEY_BYTES), created, HASH_BYTES)

    is_partial: bool = False
    """Whether it is being filled by an import, or has been by one that was cut off."""

    def encode(self) -> bytes:
        """Return the header as a JSON object in ASCII, about 150 bytes; the hashing key in hexadecimal."""
        fields: dict[str, object] = {
            "schema": self.schema,
            "scheme": self.scheme,
            "key": self.key.hex(),
            "created": self.created,
        }
        if self.hash_bytes != LONG_HASH_BYTES:
            fields["hash_bytes"] = self.hash_bytes
        if self.is_partial:
            fields["partial"] = True
        return json.dumps(fields).encode("ascii")

    @classmethod
    def decode(cls, value: bytes) -> Header:
        """Return the header that *value* encodes; fields it does not know are ignored. ``ValueError`` for garbage."""
        fields = json.loads(value)
        if not isinstance(fields, dict):
            message = "the header is not a JSON object"
            raise ValueError(message)  # noqa: TRY004 - to callers, garbage is one kind of error
        schema, scheme, key, created = (fields.get(name) for name in ("schema", "scheme", "key", "created"))
        # type() and not isinstance(): JSON's true is an int to Python.
        if type(schema) is not int or schema < 1:
            message = f"the header has no valid schema: {schema!r}"
            raise ValueError(message)
        if not (isinstance(scheme, str) and scheme and isinstance(key, str) and isinstance(created, str)):
            message = "the header lacks scheme, key or created"
            raise ValueError(message)
        hash_bytes = fields.get("hash_bytes", LONG_HASH_BYTES)
        if type(hash_bytes) is not int or not 1 <= hash_bytes <= LONG_HASH_BYTES:
            message = f"the header has no valid length of hashes: {hash_bytes!r}"
            raise ValueError(message)
        header = cls(schema, scheme, bytes.fromhex(key), created, hash_bytes, fields.get("partial") is True)
        if len(header.key) != _HASHING_KEY_BYTES or datetime.fromisoformat(created).utcoffset() is None:
            message = f"the header's key is not {_HASHING_KEY_BYTES} bytes or its time has no zone"
            raise ValueError(message)
        return header
