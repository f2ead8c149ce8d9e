"""Defines a store: a sorted map of bytes to bytes, written in atomic batches, with a header that describes it.

An engine is a subclass of :class:`Store` in a module of its own. It may raise what its library raises:
:class:`~dedup_middleware.stores.opened.OpenStore`, through which everything else uses it, turns that into a
``StoreError`` by :meth:`Store.refusal`.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated

import msgspec

from dedup_middleware.errors import StoreError, StoreVersionError, UnreadableError
from dedup_middleware.stores import refusals

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The layout of keys and values; a store of another one is refused. Raise it with every change of the layout.
SCHEMA_VERSION = 16

# The zero byte sorts it before every other key, so that no range of pages contains it.
HEADER_KEY = b"\x00header"
_KEY_BYTES = 16


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
        raise StoreError(f"the store {self.uri} cannot be compacted", "use the tools of its server or package")

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


class _Layout(msgspec.Struct, frozen=True):
    """What every header has, of any schema."""

    schema: Annotated[int, msgspec.Meta(gt=0)]
    """Version of the layout of keys and values."""


class Header(_Layout, frozen=True, forbid_unknown_fields=True):
    """Describes a store; written once, when the store is created."""

    scheme: Annotated[str, msgspec.Meta(min_length=1)]
    """Name of the fingerprint scheme; fingerprints of another scheme do not compare."""
    key: Annotated[bytes, msgspec.Meta(min_length=_KEY_BYTES, max_length=_KEY_BYTES)]
    """Random bytes, the store's own hashing key: without it no page can be crafted that collides."""
    created: Annotated[datetime, msgspec.Meta(tz=True)]
    """When the store was created."""
    is_partial: bool = False
    """Whether an import is filling the store, or was cut off while doing so."""

    @classmethod
    def new(cls, scheme: str) -> Header:
        """Return the header of a store that is created now, with a fresh hashing key."""
        created = datetime.now(timezone.utc).replace(microsecond=0)
        return cls(SCHEMA_VERSION, scheme, secrets.token_bytes(_KEY_BYTES), created)

    def encode(self) -> bytes:
        """Return the header as a JSON object; the hashing key in base64."""
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, value: bytes) -> Header:
        """Return the header that *value* encodes; ``UnreadableError`` for anything else."""
        try:
            return msgspec.json.decode(value, type=cls)
        except ValueError as error:
            raise UnreadableError(str(error)) from error

    def check_scheme(self, fingerprint_scheme: str | None, uri: str) -> None:
        """Raise ``StoreVersionError`` if the store has fingerprints of another scheme; ``None`` takes any."""
        if fingerprint_scheme is not None and self.scheme != fingerprint_scheme:
            raise StoreVersionError(
                f"the store {uri} has fingerprints of scheme {self.scheme!r}, this crawl makes {fingerprint_scheme!r}",
                f"{refusals.ANOTHER}, or remove it by {refusals.reset(uri)}",
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
        schema = msgspec.json.decode(value, type=_Layout).schema
        if schema != SCHEMA_VERSION:
            is_newer = schema > SCHEMA_VERSION
            remedy = "upgrade dedup-middleware" if is_newer else f"remove it by {refusals.reset(uri)}"
            raise StoreVersionError(
                f"the store {uri} has schema {schema}, {'newer' if is_newer else 'older'} than schema {SCHEMA_VERSION} "
                f"of this version",
                f"{remedy}, or {refusals.ANOTHER}",
            )
        header = Header.decode(value)
    except (ValueError, RecursionError) as error:
        raise refusals.corrupt(uri, f"its header cannot be read: {error}") from error
    if header.is_partial:
        raise StoreError(
            f"the store {uri} is incomplete, because a `scrapy dedup store import` was cut off",
            f"remove it by {refusals.reset(uri)}, and import again",
        )
    header.check_scheme(fingerprint_scheme, uri)
    return header
