"""Removes pages from a store, with all that leads to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from dedup_middleware.index import schema
from dedup_middleware.urls import host_of, is_under, url_identity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import timedelta

    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage

    _T = TypeVar("_T")

# Pages that are named.
_NAMED = 20
# Pages that are removed between two batches that wait for the disk.
_SYNC_INTERVAL = 500


@dataclass(frozen=True, slots=True)
class Forgettable:
    """Which pages: all that have every one of these."""

    url: str | None = None
    """As a request has it, or as the store shows it."""
    host: str | None = None
    """As in URLs; its subdomains count."""
    older_than: timedelta | None = None
    """Stored longer ago than that, and not written since."""

    def has(self, page: StoredPage, now: datetime) -> bool:
        """Return whether *page* is one of them."""
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

    Reads every page.
    """
    now, chosen = datetime.now(timezone.utc), Chosen()
    awaited = {schema.decode_number(key[1:]) for key, _ in index.store.scan(*schema.IN_DOUBT)}
    awaited |= {item.number for item in index.dropped.get(key[1:] for key, _ in index.store.scan(*schema.RELEASES))}
    stay: set[int] = set()
    for page in index.pages():
        if not wanted.has(page, now):
            continue
        if page.number in awaited:
            stay.add(page.number)
        elif page.original is not None:
            chosen.duplicates.add(page.number)
        else:
            chosen.originals.add(page.number)
            repeats = {*index.duplicates_of(page.number)}
            stay |= repeats & awaited
            chosen.duplicates |= repeats - awaited
    chosen.in_doubt = len(stay)
    first = map(index.page, sorted(chosen.originals | chosen.duplicates)[:_NAMED])
    chosen.urls = [page.url for page in first if page is not None]
    return chosen


def forget(index: Index, chosen: Chosen) -> None:
    """Remove the *chosen* pages, 1 ms each: a batch a page, so that what a crash leaves is whole.

    Duplicates go first: each has its original as long as it is there.
    """
    store = index.store
    for step in _in_steps([*sorted(chosen.duplicates), *sorted(chosen.originals)], _SYNC_INTERVAL):
        index.remove(step)
        items = index.dropped.get(key for number in step for key in index.dropped.of_page(number))
        store.write([], index.dropped.deletes(items), sync=True)
    suspects = (key for key, _ in store.scan(*schema.TEMPLATES) if not schema.is_template_key(key))
    gone = (key for key in suspects if schema.last_number(key) in chosen.duplicates)
    for keys in _in_steps(gone, _SYNC_INTERVAL):
        store.write([], keys, sync=True)


def _in_steps(values: Iterable[_T], size: int) -> Iterator[list[_T]]:
    rest = iter(values)
    while step := list(islice(rest, size)):
        yield step
