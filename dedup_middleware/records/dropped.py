"""Lists the dropped items of a store, and lets a person allow pages that were dropped.

:func:`dropped` changes nothing. :func:`allow` writes overrides, which mark pages as different from their originals, and
has the next crawl release their items.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dedup_middleware.common.urls import as_requested, url_identity, without_secrets
from dedup_middleware.errors import NothingFoundError
from dedup_middleware.index.overrides import Override, read_overrides
from dedup_middleware.index.shared import index_for_command
from dedup_middleware.records.log import LAST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dedup_middleware.index.dropped_items import DroppedItem
    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage
    from dedup_middleware.records.log import RecordFilter
    from dedup_middleware.settings import Config


@contextmanager
def dropped(config: Config, wanted: RecordFilter) -> Iterator[Iterator[DroppedItem]]:
    """Yield the dropped items that are *wanted*, oldest first, as long as the block runs. Changes nothing.

    :class:`StoreError` if there is no store, or it is in use or fails.
    """
    with _index(config, "dropped") as index:
        yield _chosen(index, wanted)


def _chosen(index: Index, wanted: RecordFilter) -> Iterator[DroppedItem]:
    if wanted.crawl == LAST:
        crawl = ""
        for item in index.dropped:
            crawl = item.crawl
        wanted = replace(wanted, crawl=crawl)
    return (item for item in index.dropped if wanted.has(item))


def allow(config: Config, urls: Sequence[str], wanted: RecordFilter) -> dict[str, Any]:
    """Mark the pages that are *wanted*, and in *urls* if it is not empty, as different from their originals.

    The next crawl releases their items. Return the URLs of the pages, the number of these items, and how many of them a
    feed wanted: these wait for a crawl with such a feed. A page that was allowed before is allowed again.
    :class:`NothingFoundError` for a URL that is not stored as a duplicate; else as :func:`dropped`.
    """
    shown_store = without_secrets(config.store, redact=False)
    with _index(config, "allow") as index:
        pages: dict[int, StoredPage] = {}
        items: dict[bytes, DroppedItem] = {}
        allowed = {override.url for override in read_overrides(index.store)}
        for url in map(as_requested, urls) if urls else [None]:
            shown = url and without_secrets(url, redact=config.redact_query)
            found = {item.key: item for item in _chosen(index, replace(wanted, url=shown))}
            named = [] if url is None else index.same([url_identity(url)])
            chosen = _duplicates(index, found.values(), named)
            if shown and not chosen and not found and shown not in allowed:
                raise NothingFoundError(
                    f"{shown} is not stored in {shown_store} as a duplicate. See `scrapy dedup explain URL`."
                )
            pages |= {page.number: page for page in chosen}
            items |= found
        puts = [
            Override.of(page, original).encode()
            for page in pages.values()
            if page.original is not None and (original := index.page(page.original)) is not None
        ]

        def write() -> None:
            # Read again: crawls that share the store may have released some of them meanwhile.
            there = index.dropped.get(items)
            index.store.write([*puts, *index.dropped.to_release(there, by_person=True)], sync=True)

        index.atomically(write)
    allowed_urls = dict.fromkeys([*(page.url for page in pages.values()), *(item.url for item in items.values())])
    for_feed = sum(item.for_feed for item in items.values())
    return {"store": shown_store, "allowed": [*allowed_urls], "items": len(items), "items_for_a_feed": for_feed}


def _duplicates(index: Index, items: Iterable[DroppedItem], named: Iterable[StoredPage]) -> list[StoredPage]:
    """Return the pages of *items*, and those that are *named*, as far as they are stored as duplicates."""
    numbers = sorted({item.number for item in items})
    stored = (page for number in numbers if (page := index.page(number)) is not None)
    return [page for page in (*stored, *named) if page.original is not None]


def overrides(config: Config, *, removed: str | None = None) -> list[dict[str, Any]]:
    """Return the overrides in a store, oldest first; or those of the page *removed*, which are removed."""
    with _index(config, "allow") as index:
        found = sorted(read_overrides(index.store), key=lambda override: override.time)
        if removed is not None:
            shown = without_secrets(as_requested(removed), redact=config.redact_query)
            found = [override for override in found if override.url == shown]
            if found:
                index.store.write([], [override.key for override in found], sync=True)
    return [{"url": each.url, "original_url": each.original_url, "time": each.time} for each in found]


@contextmanager
def _index(config: Config, command: str) -> Iterator[Index]:
    with index_for_command(config.store, command) as (_, index):
        yield index
