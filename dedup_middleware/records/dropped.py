"""Lists the dropped items of a store, and lets a person allow pages that were dropped.

:func:`dropped` changes nothing. :func:`allow` writes overrides, which mark pages as different from their originals, and
has the next crawl release their items.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dedup_middleware.errors import ConfigError, NothingFoundError
from dedup_middleware.index.in_doubt import Override, read_overrides
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.records.log import LAST, host_named
from dedup_middleware.stores import resolved_uri, store_exists
from dedup_middleware.stores.refusals import nothing_there
from dedup_middleware.urls import as_requested, host_of, is_under, url_identity, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dedup_middleware.index.dropped_items import DroppedItem
    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage
    from dedup_middleware.settings import Config


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """Chooses dropped items: those that match every one of these."""

    url: str | None = None
    host: str | None = None
    """Of the page; its subdomains count."""
    original: str | None = None
    """The URL of the page that it was dropped in favour of."""
    run: str | None = None
    """The crawl that dropped it; ``last`` for the one that has dropped an item last."""
    below: float = math.inf
    """More than its score."""

    @classmethod
    def of(
        cls, url: str | None, host: str | None, original: str | None, run: str | None, below: float | None
    ) -> ItemFilter:
        """Return the filter for URLs as a browser shows them; :class:`ConfigError` if *host* is not a host name."""
        pages = (url and as_requested(url), host_named(host), original and as_requested(original))
        return cls(*pages, run, math.inf if below is None else below)

    def redacted(self, *, redact: bool) -> ItemFilter:
        """Return the filter with URLs as a store has them, with *redact* without the values in their queries."""
        urls = (None if url is None else without_secrets(url, redact=redact) for url in (self.url, self.original))
        url, original = urls
        return replace(self, url=url, original=original)

    def has(self, item: DroppedItem, last_run: str) -> bool:
        """Return whether *item* matches."""
        is_of_run = self.run is None or item.run == (last_run if self.run == LAST else self.run)
        is_of_host = not self.host or is_under(host_of(item.url), [self.host])
        is_of_pages = self.url in (None, item.url) and self.original in (None, item.original_url)
        return is_of_run and is_of_host and is_of_pages and item.score < self.below


@contextmanager
def dropped(config: Config, wanted: ItemFilter) -> Iterator[Iterator[DroppedItem]]:
    """Yield the dropped items that are *wanted*, oldest first, as long as the block runs. Changes nothing.

    :class:`ConfigError` if there is no store; :class:`StoreError` if it is in use or fails.
    """
    with _index(config, "dropped") as index:
        yield _chosen(index, wanted, config)


def _chosen(index: Index, wanted: ItemFilter, config: Config) -> Iterator[DroppedItem]:
    wanted = wanted.redacted(redact=config.redact_query)
    last_run = ""
    if wanted.run == LAST:
        for item in index.dropped:
            last_run = item.run
    return (item for item in index.dropped if wanted.has(item, last_run))


def allow(config: Config, wanted: Sequence[ItemFilter]) -> dict[str, Any]:
    """Mark the pages that are *wanted* as different from their originals, and their items as to be released.

    Return the URLs of the pages, and how many items the next crawl releases. A page that was allowed before is allowed
    again. :class:`NothingFoundError` for a URL that is not stored as a duplicate; else as :func:`dropped`.
    """
    shown_store = without_secrets(config.store, redact=False)
    with _index(config, "allow") as index:
        pages: dict[int, StoredPage] = {}
        items: dict[bytes, DroppedItem] = {}
        allowed = {override.url for override in read_overrides(index.store)}
        for each in wanted:
            found = {item.key: item for item in _chosen(index, each, config)}
            named = [] if each.url is None else index.same([url_identity(each.url)])
            numbers = sorted({item.number for item in found.values()})
            stored = (page for number in numbers if (page := index.page(number)) is not None)
            chosen = [page for page in (*stored, *named) if page.original is not None]
            shown = each.url and without_secrets(each.url, redact=config.redact_query)
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
    urls = dict.fromkeys([*(page.url for page in pages.values()), *(item.url for item in items.values())])
    return {"store": shown_store, "allowed": [*urls], "items": len(items)}


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
    if not store_exists(config.store):
        raise ConfigError(nothing_there(resolved_uri(config.store)))
    with index_for_command(config.store, command) as (_, index):
        yield index
