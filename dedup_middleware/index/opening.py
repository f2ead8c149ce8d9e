"""Opens the index of a store for a command, and deletes pages from it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import islice
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from dedup_middleware.fingerprints import fingerprinter, published_method
from dedup_middleware.index import schema
from dedup_middleware.index.index import Index
from dedup_middleware.index.lookup import ALL, COMMON_IN_STORE, TEXT_LIMIT
from dedup_middleware.index.shared import OpenClaims, SharedIndex
from dedup_middleware.stores import open_store
from dedup_middleware.stores.files import Holder
from dedup_middleware.urls import host_of, is_under, url_identity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import timedelta

    from dedup_middleware.fingerprints.method import Method
    from dedup_middleware.model import Eligibility, StoredPage
    from dedup_middleware.stores import OpenStore
    from dedup_middleware.stores.opened import Shared

_claims: WeakKeyDictionary[Shared, OpenClaims] = WeakKeyDictionary()


def index_of(
    store: OpenStore,
    *,
    common: int = COMMON_IN_STORE,
    text_limit: int = TEXT_LIMIT,
    method: Method | None = None,
    eligibility: Eligibility = ALL,
) -> Index:
    """Return an index of *store*; those of one process that share the store share their open claims."""
    claims = _claims.setdefault(store.in_process, OpenClaims())
    return (Index if store.shared is None else SharedIndex)(
        store,
        claims,
        common=common,
        text_limit=text_limit,
        method=method,
        eligibility=eligibility,
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


_T = TypeVar("_T")

#: Pages between two batches that wait for the medium.
_SYNC_INTERVAL = 500
_NAMED = 20


@dataclass(frozen=True, slots=True)
class Forgettable:
    """Which pages: all that have every one of these."""

    url: str | None = None
    """As a request has it, or as the store shows it."""
    host: str | None = None
    """As in URLs; its subdomains count."""
    older_than: timedelta | None = None
    """Stored longer ago than that, and not written anew since."""

    def has(self, page: StoredPage, now: datetime) -> bool:
        """Tell whether *page* is one of them."""
        if self.url is not None and page.url != self.url and url_identity(self.url) not in page.identities:
            return False
        if self.host is not None and not is_under(host_of(page.url), [self.host]):
            return False
        return self.older_than is None or datetime.fromisoformat(page.time) < now - self.older_than


@dataclass(slots=True)
class Chosen:
    """The pages to be forgotten, by number: 100 bytes each in memory."""

    originals: set[int] = field(default_factory=set)
    duplicates: set[int] = field(default_factory=set)
    """With those whose original is forgotten."""
    in_doubt: int = 0
    """Pages that stay, because a crawl is to release or to roll back what a crash has left."""
    urls: list[str] = field(default_factory=list)
    """The first few."""

    def __len__(self) -> int:
        """Return how many pages there are."""
        return len(self.originals) + len(self.duplicates)


def choose(index: Index, wanted: Forgettable) -> Chosen:
    """Return the pages of *index* that are *wanted*, and the duplicates of those that are originals; writes nothing.

    Reads every page twice: 40 s a million.
    """
    now, chosen = datetime.now(timezone.utc), Chosen()
    awaited = {schema.decode_number(key[1:]) for key, _ in index.store.scan(*schema.IN_DOUBT)}
    awaited |= {item.number for item in index.dropped.get(key[1:] for key, _ in index.store.scan(*schema.RELEASES))}
    for page in index.pages():
        if page.original is None and wanted.has(page, now):
            _choose(page, chosen, awaited)
    for page in index.pages():
        if page.original is not None and (page.original in chosen.originals or wanted.has(page, now)):
            _choose(page, chosen, awaited)
    return chosen


def _choose(page: StoredPage, chosen: Chosen, awaited: set[int]) -> None:
    if page.number in awaited:
        chosen.in_doubt += 1
        return
    (chosen.originals if page.original is None else chosen.duplicates).add(page.number)
    if len(chosen.urls) < _NAMED:
        chosen.urls.append(page.url)


def forget(index: Index, chosen: Chosen) -> None:
    """Remove the *chosen* pages, 1 ms each: a batch a page, so that what a crash leaves is whole.

    Duplicates go first: none is ever without its original.
    """
    store = index.store
    for step in _in_steps([*sorted(chosen.duplicates), *sorted(chosen.originals)]):
        index.remove(step)
        items = index.dropped.get(key for number in step for key in index.dropped.of_page(number))
        store.write([], index.dropped.deletes(items), sync=True)
    suspects = (key for key, _ in store.scan(b"d", b"e") if _is_of(key, chosen.duplicates))
    for keys in _in_steps(suspects):
        store.write([], keys, sync=True)


def _is_of(key: bytes, duplicates: set[int]) -> bool:
    return not schema.is_template_key(key) and schema.last_number(key) in duplicates


def _in_steps(values: Iterable[_T]) -> Iterator[list[_T]]:
    rest = iter(values)
    while step := list(islice(rest, _SYNC_INTERVAL)):
        yield step
