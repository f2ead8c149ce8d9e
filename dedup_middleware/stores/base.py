"""Defines a store: a sorted map of bytes to bytes, written in atomic batches, with a header that describes it.

An engine is a subclass of :class:`Store` in a module of its own, and may raise what its library raises:
:class:`~dedup_middleware.stores.opened.OpenStore`, through which everything else uses it, turns that into a
``StoreError`` by :meth:`Store.refusal`. Nothing here knows pages, clauses or Scrapy.
"""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from dedup_middleware import times
from dedup_middleware.bounded import loads
from dedup_middleware.errors import StoreError
from dedup_middleware.stores import refusals

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The layout of keys and values; a store of another one is refused. Raise it with every change of the layout.
SCHEMA_VERSION = 7

# The zero byte sorts it before every other key, so that no range of pages contains it.
HEADER_KEY = b"\x00header"

_LOADED_AT_ONCE = 10_000
# Of a header, which has five; a later schema may have more.
_MAX_VALUES = 1_000


class Store(ABC):
    """A sorted map of bytes to bytes, written in atomic batches.

    Keys are not empty and sort bytewise; keys and values have at most a few hundred kilobytes. Its methods are called
    by one thread at a time, except :meth:`sync`.
    """

    uri: str
    """The URI that opens this store again, without a password."""
    caution = ""
    """A condition of its durability that could not be examined, in one line; usually empty."""
    worker = b""
    """8 bytes that identify this process, until it closes the store or ends, in a store that several may have open."""

    @abstractmethod
    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """Return the value of each key, in order; ``None`` for one that is absent."""

    @abstractmethod
    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs with ``start <= key < stop`` in key order.

        What is written meanwhile may be among them or not.
        """

    @abstractmethod
    def write(self, puts: list[tuple[bytes, bytes]], deletes: list[bytes], *, sync: bool = False) -> None:
        """Apply all deletes, then all puts, or nothing; with *sync*, return only when the medium has them.

        A batch without *sync* survives the process, not a power failure; a later batch is never there without it.
        """

    @abstractmethod
    def close(self) -> None:
        """Close it. Scans under way end with an error."""

    def sync(self) -> None:
        """Return when the medium has all batches that are written by now. Another thread may call it."""
        self.write([], [], sync=True)

    def bulk_load(self, pairs: Iterator[tuple[bytes, bytes]]) -> None:
        """Write *pairs*, in ascending order of their keys, all absent. Interrupted, it may have written some."""
        while batch := list(islice(pairs, _LOADED_AT_ONCE)):
            self.write(batch, [])

    def compact(self) -> None:
        """Reclaim the space of deleted pairs. Rewrites the whole store."""
        raise StoreError(f"the store {self.uri} cannot be compacted: use the tools of its server or package")

    @classmethod
    def refusal(cls, uri: str, action: str, error: Exception) -> StoreError | None:
        """Return what to raise for an *error* on trying to *action* (a verb: open, read) the store *uri*.

        ``None`` if it is a bug of this package, and not a failure of the engine.
        """
        return refusals.of_system(uri, action, error) if isinstance(error, OSError) else None

    # --- transactions; only a store that several processes, its workers, may have open at once has more to do

    def begin(self) -> None:  # noqa: B027 - needed only where others write
        """Begin a transaction: from now on until its end, no other worker changes what it reads, or it fails."""

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
        """Return a number that is another one whenever another worker has written in between."""
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
    """16 random bytes, the store's own hashing key: no page can be crafted that collides in a store unseen."""
    created: str
    """When the store was created: ISO 8601, UTC, to the second."""
    is_partial: bool = False
    """Whether it is being filled by an import, or has been by one that was cut off."""

    _KEY_BYTES: ClassVar[int] = 16

    @classmethod
    def new(cls, scheme: str) -> Header:
        """Return the header of a store that is created now, with a fresh hashing key."""
        return cls(SCHEMA_VERSION, scheme, secrets.token_bytes(cls._KEY_BYTES), times.now())

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
        if type(header.schema) is not int or header.schema < 1 or type(header.is_partial) is not bool:
            raise ValueError("its schema or its state is not valid")
        if not isinstance(header.scheme, str) or not header.scheme or len(header.key) != cls._KEY_BYTES or not is_dated:
            raise ValueError("its scheme, key or time is not valid")
        return header

    def check_scheme(self, fingerprint_scheme: str | None, uri: str) -> None:
        """Raise ``StoreVersionError`` if the store has fingerprints of another scheme; ``None`` takes any."""
        if fingerprint_scheme is not None and self.scheme != fingerprint_scheme:
            raise refusals.other_scheme(uri, self.scheme, fingerprint_scheme)


def read_header(store: Store, fingerprint_scheme: str | None) -> Header | None:
    """Return the header of *store*; ``None`` if the store is empty.

    ``StoreCorruptError`` if the header is missing or invalid, ``StoreVersionError`` if it is of another schema, or of
    another scheme than *fingerprint_scheme*.
    """
    (value,) = store.get_many([HEADER_KEY])
    if value is None:
        if next(store.scan(b"\x00", b"\xff" * 64), None) is not None:
            raise refusals.corrupt(store.uri, "it has no header")
        return None
    try:
        # A later schema may have other fields.
        schema = loads(value, values=_MAX_VALUES).get("schema")
        if type(schema) is int and schema != SCHEMA_VERSION:
            raise refusals.other_schema(store.uri, schema, SCHEMA_VERSION)
        header = Header.decode(value)
    except (ValueError, AttributeError) as error:
        raise refusals.corrupt(store.uri, f"its header cannot be read: {error}") from error
    if header.is_partial:
        raise StoreError(
            f"the store {store.uri} was being filled by `scrapy dedup store import`, which was cut off, and has "
            f"nothing else: empty it with {refusals.reset(store.uri)}, and import again"
        )
    header.check_scheme(fingerprint_scheme, store.uri)
    return header
