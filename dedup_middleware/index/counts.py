"""Counts the pages of a store, and finds the duplicates of an original, without reading them all.

`batch` keeps both with each page that it writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.index import codec

if TYPE_CHECKING:
    from dedup_middleware.stores import OpenStore


def counted(store: OpenStore) -> codec.Line:
    """Return how many originals and duplicates *store* has. One get."""
    (value,) = store.get_many([codec.NEXT_PLACE_KEY])
    return codec.decode_line(value)


def repeats_of(store: OpenStore, original: int) -> list[int]:
    """Return the numbers of the duplicates of the page *original*, oldest first. One scan of them."""
    return [codec.last_number(key) for key, _ in store.scan(*codec.repeat_range(original))]
