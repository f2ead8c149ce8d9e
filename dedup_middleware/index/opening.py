"""The index of a closed store, for those who look at it or mend it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from dedup_middleware.index.index import index_of
from dedup_middleware.index.migrations import READABLE
from dedup_middleware.stores import open_store
from dedup_middleware.stores.holder import Holder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dedup_middleware.index.index import Index
    from dedup_middleware.stores import OpenStore


@contextmanager
def index_for_command(uri: str, command: str, *, common: int, text_limit: int) -> Iterator[tuple[OpenStore, Index]]:
    """Open the store at *uri* for as long as the block runs; of whatever fingerprints and older schema it is.

    *common* and *text_limit* are for :class:`Index`. :class:`StoreError` if there is no store, or if it is in use.
    """
    holder = Holder.this_process(f"scrapy dedup {command}", brief=True)
    store = open_store(uri, fingerprint_scheme=None, holder=holder, migrations=READABLE)
    try:
        yield store, index_of(store, common=common, text_limit=text_limit)
    finally:
        store.close()
