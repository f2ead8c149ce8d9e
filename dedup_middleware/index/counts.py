"""How many pages a store has, and which repeat an owner, without reading them all.

`batch` keeps both with each page that it writes. A store of before schema 5 has neither: its pages are read once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.errors import UnreadableError
from dedup_middleware.index import codec, page_codec
from dedup_middleware.stores import refusals
from dedup_middleware.stores.layout import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dedup_middleware.stores import OpenStore

_BATCH = 5_000


def counted(store: OpenStore) -> codec.Line:
    """Return how many owners and duplicates *store* has. One get; 3 s a million pages where nobody has counted yet.

    What was counted is written down, where the store is of this schema: one of an older schema stays as it is.
    """
    (value,) = store.get_many([codec.NEXT_PLACE_KEY])
    line = codec.decode_line(value)
    if line.is_counted:
        return line
    owners = duplicates = 0
    puts: list[tuple[bytes, bytes]] = []
    is_todays = store.header.schema == SCHEMA_VERSION
    for number, owner in _owners(store):
        owners += owner is None
        duplicates += owner is not None
        if owner is not None and is_todays:
            puts.append((codec.repeat_key(owner, number), b""))
        if len(puts) >= _BATCH:
            store.write(puts)
            puts.clear()
    line = codec.Line(line.place, owners, duplicates)
    if is_todays:
        # Last, and synced with what came before it: until then it is counted again.
        store.write([*puts, (codec.NEXT_PLACE_KEY, codec.encode_line(line))], sync=True)
    return line


def repeats_of(store: OpenStore, owner: int) -> list[int]:
    """Return the numbers of the duplicates of the page *owner*, oldest first. :func:`counted`, and a scan of them."""
    counted(store)
    if store.header.schema == SCHEMA_VERSION:
        return [codec.suspect_number(key) for key, _ in store.scan(*codec.repeat_range(owner))]
    return [number for number, of in _owners(store) if of == owner]


def _owners(store: OpenStore) -> Iterator[tuple[int, int | None]]:
    """Yield the number of each page, and that of the owner that it repeats."""
    with refusals.of_value(store.uri, UnreadableError):
        for key, value in store.scan(*codec.PAGES):
            number = codec.decode_number(key[1:])
            yield number, page_codec.owner_in(number, value)
