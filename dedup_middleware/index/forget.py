"""Removes pages from a store, with all that leads to them."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.common.urls import host_of, is_under, url_identity
from dedup_middleware.index import schema

if TYPE_CHECKING:
    from datetime import timedelta

    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage

# Pages that are named.
_NAMED = 20
# Pages that are removed between two batches that wait for the disk.
_SYNC_INTERVAL = 500


class Chosen(NamedTuple):
    """The pages to be forgotten, by number: 100 bytes each in memory."""

    originals: set[int]
    duplicates: set[int]
    """With those whose original is forgotten."""
    to_release: int
    """Pages that stay, because a crawl is to release their items."""
    urls: list[str]
    """The first few."""

    @property
    def total(self) -> int:
        """How many pages there are."""
        return len(self.originals) + len(self.duplicates)


def choose(
    index: Index, *, url: str | None = None, host: str | None = None, older_than: timedelta | None = None
) -> Chosen:
    """Return the pages of *index* that have all of these, and the duplicates of the originals; writes nothing.

    *url* is that of a request, or as the store shows it; subdomains of *host* count; *older_than* is the time since a
    page was last written. Reads every page.
    """
    now, originals, duplicates, stay = datetime.now(timezone.utc), set[int](), set[int](), set[int]()

    def is_wanted(page: StoredPage) -> bool:
        if url is not None and page.url != url and url_identity(url) not in page.identities:
            return False
        if host is not None and not is_under(host_of(page.url), [host]):
            return False
        return older_than is None or datetime.fromisoformat(page.time) < now - older_than

    awaited = {item.number for item in index.dropped.get(key[1:] for key, _ in index.store.scan(*schema.RELEASES))}
    for page in filter(is_wanted, index.pages()):
        if page.number in awaited:
            stay.add(page.number)
        elif page.original is not None:
            duplicates.add(page.number)
        else:
            originals.add(page.number)
            repeats = {*index.duplicates_of(page.number)}
            stay |= repeats & awaited
            duplicates |= repeats - awaited
    first = map(index.page, sorted(originals | duplicates)[:_NAMED])
    return Chosen(originals, duplicates, len(stay), [page.url for page in first if page is not None])


def forget(index: Index, chosen: Chosen) -> None:
    """Remove the *chosen* pages, 1 ms each: a batch a page, so that what a crash leaves is whole.

    Duplicates go first: each has its original as long as it is there. What a host has shown goes with its last page;
    reads every page.
    """
    store = index.store
    numbers = [*sorted(chosen.duplicates), *sorted(chosen.originals)]
    for start in range(0, len(numbers), _SYNC_INTERVAL):
        step = numbers[start : start + _SYNC_INTERVAL]
        for number in step:
            index.atomically(index.remove, number)
        items = index.dropped.get(key for number in step for key in index.dropped.of_page(number))
        store.write([], index.dropped.deletes(items), sync=True)
    left = {schema.shown_key(page.url, store.header.key) for page in index.pages()}
    shown = [key for key, _ in store.scan(*schema.SHOWN) if key not in left]
    store.write([], shown, sync=True)
