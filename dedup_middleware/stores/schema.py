"""Checks whether a store can be read by this version.

It reads and writes the header of an open store, and knows nothing of where it lies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.stores import refusals
from dedup_middleware.stores.layout import HEADER_KEY, SCHEMA_VERSION, Header

if TYPE_CHECKING:
    from dedup_middleware.stores.protocol import Store


def new_header(fingerprint_scheme: str) -> tuple[bytes, bytes]:
    """Return the pair that makes a new store one of ours, for fingerprints of this scheme."""
    return HEADER_KEY, Header.new(fingerprint_scheme).encode()


def read_header(store: Store) -> Header:
    """Return the header of *store*; ``StoreCorruptError`` if it has none."""
    (value,) = store.get_many([HEADER_KEY])
    if value is None:
        raise refusals.corrupt(store.uri, "it has no header")
    try:
        return Header.decode(value)
    except ValueError as error:
        raise refusals.corrupt(store.uri, f"its header cannot be read: {error}") from error


def adopt(store: Store, header: Header) -> None:
    """Give *store*, which is empty, the *header* of another one: its scheme and its key; it counts once reopened.

    As long as that says that it is partial, nobody can open it.
    """
    store.write([(HEADER_KEY, header.encode())], sync=True)


def check(store: Store, fingerprint_scheme: str | None) -> Header:
    """Return the header of *store*; ``StoreVersionError`` unless it is of this schema and of this scheme."""
    header = read_header(store)
    if header.is_partial:
        raise refusals.partial(store.uri)
    if header.schema != SCHEMA_VERSION:
        raise refusals.other_schema(store.uri, header.schema, SCHEMA_VERSION)
    check_scheme(header, fingerprint_scheme, store.uri)
    return header


def check_scheme(header: Header, fingerprint_scheme: str | None, uri: str) -> None:
    """Raise ``StoreVersionError`` if the store has fingerprints of another scheme; ``None`` takes any."""
    if fingerprint_scheme is not None and header.scheme != fingerprint_scheme:
        raise refusals.other_scheme(uri, header.scheme, fingerprint_scheme)
