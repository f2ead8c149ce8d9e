"""Whether a store can be read by this version, and what makes it so.

It reads and writes the header of an open store, and knows nothing of where it lies.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.stores import refusals
from dedup_middleware.stores.layout import HEADER_KEY, SCHEMA_VERSION, Header

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dedup_middleware.stores.protocol import Store

    Migrations = Mapping[int, Callable[[Store], None] | None]
    """By schema: what migrates a store from it to the next one, and does no harm when it is done twice.

    ``None`` where whoever opens the store can read it as it is, and leaves it so.
    """


class Age(NamedTuple):
    """What a store was before it was opened."""

    created: bool = False
    """Whether it was nothing."""
    schema: int | None = None
    """The older schema that it was migrated from, if it was."""


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


def check(store: Store, fingerprint_scheme: str | None, migrations: Migrations) -> None:
    """Raise ``StoreVersionError`` unless *store* is of this schema, or can be migrated, and of this scheme."""
    header = read_header(store)
    if header.is_partial:
        raise refusals.partial(store.uri)
    if header.schema > SCHEMA_VERSION or any(n not in migrations for n in _schemas_from(header)):
        raise refusals.other_schema(store.uri, header.schema, SCHEMA_VERSION)
    check_scheme(header, fingerprint_scheme, store.uri)


def check_scheme(header: Header, fingerprint_scheme: str | None, uri: str) -> None:
    """Raise ``StoreVersionError`` if the store has fingerprints of another scheme; ``None`` takes any."""
    if fingerprint_scheme is not None and header.scheme != fingerprint_scheme:
        raise refusals.other_scheme(uri, header.scheme, fingerprint_scheme)


def migrate(
    store: Store, migrations: Migrations, before: Callable[[], None] = lambda: None
) -> tuple[Header, int | None]:
    """Bring *store* to this schema, and return its header, and the schema that it had if it had an older one.

    *before* is called first if anything is going to be changed.
    """
    header = read_header(store)
    steps = [step for n in _schemas_from(header) if (step := migrations[n]) is not None]
    if not steps:
        return header, None
    before()
    for step in steps:
        step(store)
    # Last: a store whose migration was interrupted is still an older one.
    migrated = replace(header, schema=SCHEMA_VERSION)
    store.write([(HEADER_KEY, migrated.encode())], sync=True)
    return migrated, header.schema


def _schemas_from(header: Header) -> range:
    """Return the schemas that a store with *header* has to be migrated from, one after the other."""
    return range(header.schema, SCHEMA_VERSION)
