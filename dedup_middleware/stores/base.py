"""Defines a store: a sorted map of bytes to bytes, written in atomic batches, with a header that describes it.

An engine is a subclass of :class:`Store` in a module of its own. It may raise what its library raises:
:class:`~dedup_middleware.stores.opened.OpenStore`, through which everything else uses it, turns that into a
``StoreError`` by :meth:`Store.refusal`.
"""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from dedup_middleware.bounded import loads
from dedup_middleware.errors import StoreError, StoreVersionError
from dedup_middleware.model import now
from dedup_middleware.stores import refusals

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The layout of keys and values; a store of another one is refused. Raise it with every change of the layout.
SCHEMA_VERSION = 9

# The zero byte sorts it before every other key, so that no range of pages contains it.
HEADER_KEY = b"\x00header"

# Values in a header, which has five; a later schema may have more.
_MAX_VALUES = 1_000


class Store(ABC):
    """A sorted map of bytes to bytes, written in atomic batches.

    Keys are not empty and sort bytewise; keys and values have at most a few hundred kilobytes. One thread at a time
    calls its methods, except :meth:`sync`.
    """

    uri: str
    """The URI that opens this store again, without a password."""
    caution = ""
    """What a user should know of this store, with the remedy after the last colon; usually empty."""
    worker = b""
    """8 bytes that identify this process, until it closes the store or ends, in a store that several may have open."""

    @abstractmethod
    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """Return the value of each key, in order; ``None`` for one that is absent."""

    @abstractmethod
    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs with ``start <= key < stop`` in key order.

        It may or may not yield what is written meanwhile.
        """

    @abstractmethod
    def write(self, puts: list[tuple[bytes, bytes]], deletes: list[bytes], *, sync: bool = False) -> None:
        """Apply all deletes, then all puts, or nothing; with *sync*, return once the disk has them.

        A batch without *sync* survives the process, not a power failure; a later batch never survives without it.
        """

    @abstractmethod
    def close(self) -> None:
        """Close it. Scans under way end with an error."""

    def sync(self) -> None:
        """Return once the disk has all batches written so far. Another thread may call it."""
        self.write([], [], sync=True)

    def compact(self) -> None:
        """Reclaim the space of deleted pairs. Rewrites the whole store."""
        raise StoreError(f"the store {self.uri} cannot be compacted: use the tools of its server or package")

    @classmethod
    def refusal(cls, uri: str, action: str, error: Exception) -> StoreError | None:
        """Return what to raise for an *error* on trying to *action* (a verb: open, read) the store *uri*.

        ``None`` if it is a bug of this package, and not a failure of the engine.
        """
        return refusals.of_system(uri, action, error)

    # --- transactions: only a store that several processes, its workers, may have open has more to do

    def begin(self) -> None:  # noqa: B027 - needed only where others write
        """Begin a transaction: until its end, no other worker changes what it reads, or it fails."""

    def commit(self, puts: list[tuple[bytes, bytes]], deletes: list[bytes]) -> bool:
        """End the transaction with a batch, which may be empty.

        Return ``False`` and apply nothing if another worker has changed what the transaction has read.
        """
        if puts or deletes:
            self.write(puts, deletes)
        return True

    def rollback(self) -> bool:
        """End the transaction without a batch; return ``False`` if what it has read was outdated."""
        return True

    def require_unchanged(self) -> None:  # noqa: B027 - needed only where others write while a transaction runs
        """Let the current transaction commit only if no other worker has written since it began."""

    def changes_of_others(self) -> int:
        """Return a number that changes whenever another worker writes."""
        return 0

    def is_at_work(self, worker: bytes) -> bool:
        """Return whether *worker* has the store open; after ``False`` it never has again."""
        return worker == self.worker


@dataclass(frozen=True)
class Header:
    """Describes a store; written once, when the store is created."""

    schema: int
    """Version of the layout of keys and values, 1 or more."""
    scheme: str
    """Name of the fingerprint scheme; fingerprints of another scheme do not compare. Never empty."""
    key: bytes
    """16 random bytes, the store's own hashing key: without it no page can be crafted that collides."""
    created: str
    """When the store was created: ISO 8601, UTC, to the second."""
    is_partial: bool = False
    """Whether an import is filling the store, or was cut off while doing so."""

    _KEY_BYTES: ClassVar[int] = 16

    @classmethod
    def new(cls, scheme: str) -> Header:
        """Return the header of a store that is created now, with a fresh hashing key."""
        return cls(SCHEMA_VERSION, scheme, secrets.token_bytes(cls._KEY_BYTES), now())

    def encode(self) -> bytes:
        """Return the header as a JSON object in ASCII; the hashing key in hexadecimal."""
        return json.dumps(asdict(self) | {"key": self.key.hex()}).encode("ascii")

    @classmethod
    def decode(cls, value: bytes) -> Header:
        """Return the header that *value* encodes; ``ValueError`` for anything else."""
        try:
            header = cls(**loads(value, values=_MAX_VALUES))
            header = replace(header, key=bytes.fromhex(str(header.key)))
            is_dated = datetime.fromisoformat(header.created).utcoffset() is not None
        except TypeError as error:
            raise ValueError(str(error)) from error
        # type() and not isinstance(): JSON's true is an int to Python.
        is_valid = type(header.schema) is int and header.schema > 0 and type(header.is_partial) is bool and is_dated
        if not is_valid or not isinstance(header.scheme, str) or not header.scheme or len(header.key) != cls._KEY_BYTES:
            raise ValueError("a field is not valid")
        return header

    def check_scheme(self, fingerprint_scheme: str | None, uri: str) -> None:
        """Raise ``StoreVersionError`` if the store has fingerprints of another scheme; ``None`` takes any."""
        if fingerprint_scheme is not None and self.scheme != fingerprint_scheme:
            raise StoreVersionError(
                f"the store {uri} has fingerprints of scheme {self.scheme!r}, this crawl makes {fingerprint_scheme!r}: "
                f"{refusals.ANOTHER}, or remove it by {refusals.reset(uri)}"
            )


def read_header(store: Store, fingerprint_scheme: str | None) -> Header | None:
    """Return the header of *store*; ``None`` if the store is empty.

    ``StoreCorruptError`` if the header is missing or invalid, ``StoreVersionError`` if it has another schema, or
    another scheme than *fingerprint_scheme*.
    """
    uri, (value,) = store.uri, store.get_many([HEADER_KEY])
    if value is None:
        if next(store.scan(b"\x00", b"\xff" * 64), None) is not None:
            raise refusals.corrupt(uri, "it has no header")
        return None
    try:
        # Another schema may have other fields.
        schema = loads(value, values=_MAX_VALUES).get("schema")
        if type(schema) is int and schema != SCHEMA_VERSION:
            is_newer = schema > SCHEMA_VERSION
            remedy = "upgrade dedup-middleware" if is_newer else f"remove it by {refusals.reset(uri)}"
            raise StoreVersionError(
                f"the store {uri} has schema {schema}, {'newer' if is_newer else 'older'} than schema {SCHEMA_VERSION} "
                f"of this version: {remedy}, or {refusals.ANOTHER}"
            )
        header = Header.decode(value)
    except (ValueError, AttributeError) as error:
        raise refusals.corrupt(uri, f"its header cannot be read: {error}") from error
    if header.is_partial:
        raise StoreError(
            f"the store {uri} is incomplete, because a `scrapy dedup store import` was cut off: "
            f"remove it by {refusals.reset(uri)}, and import again"
        )
    header.check_scheme(fingerprint_scheme, uri)
    return header
