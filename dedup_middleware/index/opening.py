"""The index of a store: that of an open one, and of a closed one for those who look at it or mend it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from dedup_middleware.fingerprints import fingerprinter, published_method
from dedup_middleware.index.index import Index
from dedup_middleware.index.lookup import ALL, COMMON_IN_STORE, TEXT_LIMIT
from dedup_middleware.index.open_claims import OpenClaims
from dedup_middleware.index.shared import SharedIndex
from dedup_middleware.stores import open_store
from dedup_middleware.stores.locks import Holder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dedup_middleware.fingerprints.literature.method import Method
    from dedup_middleware.model import Reach
    from dedup_middleware.stores import OpenStore
    from dedup_middleware.stores.opened import Shared

_claims: WeakKeyDictionary[Shared, OpenClaims] = WeakKeyDictionary()


def index_of(
    store: OpenStore,
    *,
    common: int = COMMON_IN_STORE,
    text_limit: int = TEXT_LIMIT,
    method: Method | None = None,
    reach: Reach = ALL,
) -> Index:
    """Return an index of *store*; those of one process that share the store share their open claims."""
    claims = _claims.setdefault(store.in_process, OpenClaims())
    return (Index if store.shared is None else SharedIndex)(
        store,
        claims,
        common=common,
        text_limit=text_limit,
        method=method,
        reach=reach,
    )


@contextmanager
def index_for_command(uri: str, command: str) -> Iterator[tuple[OpenStore, Index]]:
    """Open the store at *uri* for as long as the block runs; of whatever fingerprints and older schema it is.

    :class:`StoreError` if there is no store, or if it is in use.
    """
    with _open_for_command(uri, command) as store:
        yield store, index_of(store)


@contextmanager
def index_for_upkeep(uri: str, command: str, *, fingerprint: str) -> Iterator[tuple[OpenStore, Index]]:
    """Open the store at *uri* as :func:`index_for_command` does, to change its pages with all that leads to them.

    *fingerprint* is the one that it was made with, else `StoreVersionError`.
    """
    method = fingerprinter(fingerprint)
    with _open_for_command(uri, command) as store:
        store.header.check_scheme(method.scheme, uri)
        yield (
            store,
            index_of(
                store,
                method=published_method(fingerprint),
            ),
        )


@contextmanager
def _open_for_command(uri: str, command: str) -> Iterator[OpenStore]:
    holder = Holder.this_process(f"scrapy dedup {command}", brief=True)
    store = open_store(uri, fingerprint_scheme=None, holder=holder)
    try:
        yield store
    finally:
        store.close()
