"""Lists the dropped items of a store, and lets a person allow pages that were dropped.

:func:`dropped` changes nothing. :func:`allow` marks pages as different from their originals (an override) and their
items as to be released by the next crawl.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dedup_middleware.errors import ConfigError, NothingFoundError
from dedup_middleware.index.in_doubt import Override, read_overrides
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.stores import resolved_uri, store_exists
from dedup_middleware.stores.refusals import nothing_there
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import as_in_urls, as_requested, host_of, is_under, url_identity, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dedup_middleware.index.dropped_items import DroppedItem
    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage
    from dedup_middleware.settings import Config

#: Names the crawl that has dropped an item last.
LAST = "last"
_NAMED = 20


@dataclass(frozen=True, slots=True)
class PageFilter:
    """Chooses dropped pages: those that have every one of these."""

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
        cls, url: str | None, host: str | None, original: str | None, run: str | None = None, below: float | None = None
    ) -> PageFilter:
        """Return the filter for URLs as a browser shows them; ConfigError for no host."""
        read = None if host is None else as_in_urls(host)
        if read == "":
            raise ConfigError(f"--host {host} is not a host name; use for example --host example.org")
        pages = (url and as_requested(url), read, original and as_requested(original))
        return cls(*pages, run, math.inf if below is None else below)

    @property
    def is_all(self) -> bool:
        """Whether it chooses all pages."""
        return self == PageFilter()

    def redacted(self, *, redact: bool) -> PageFilter:
        """Return the filter with URLs as a store has them, with *redact* without the values in their queries."""
        urls = (None if url is None else without_secrets(url, redact=redact) for url in (self.url, self.original))
        url, original = urls
        return replace(self, url=url, original=original)

    def has(self, item: DroppedItem, last_run: str) -> bool:
        """Return whether *item* is one of those that are chosen."""
        is_of_run = self.run is None or item.run == (last_run if self.run == LAST else self.run)
        is_of_host = not self.host or is_under(host_of(item.url), [self.host])
        is_of_pages = self.url in (None, item.url) and self.original in (None, item.original_url)
        return is_of_run and is_of_host and is_of_pages and item.score < self.below


@contextmanager
def dropped(config: Config, wanted: PageFilter) -> Iterator[Iterator[DroppedItem]]:
    """Give the dropped items that are *wanted*, oldest first, as long as the block runs. Changes nothing.

    :class:`ConfigError` if there is no store; :class:`StoreError` if it is in use or fails.
    """
    with _index(config, "dropped") as index:
        yield _chosen(index, wanted, config)


def _chosen(index: Index, wanted: PageFilter, config: Config) -> Iterator[DroppedItem]:
    wanted = wanted.redacted(redact=config.redact_query)
    last_run = ""
    if wanted.run == LAST:
        for item in index.dropped:
            last_run = item.run
    return (item for item in index.dropped if wanted.has(item, last_run))


def allow(config: Config, wanted: Sequence[PageFilter]) -> dict[str, Any]:
    """Mark the pages that are *wanted* as different from their originals, and their items as to be released.

    Return the URLs of the pages, and how many items the next crawl releases. :class:`NothingFoundError` for a URL that
    is not stored as a duplicate; else as :func:`dropped`.
    """
    shown_store = without_secrets(config.store, redact=False)
    with _index(config, "allow") as index:
        pages: dict[int, StoredPage] = {}
        items: dict[bytes, DroppedItem] = {}
        for each in wanted:
            found = {item.key: item for item in _chosen(index, each, config)}
            numbers = {item.number for item in found.values()}
            named = [] if each.url is None else index.same([url_identity(each.url)])
            chosen = [page for n in sorted(numbers) if (page := index.page(n)) is not None] + named
            chosen = [page for page in chosen if page.original is not None]
            if each.url is not None and not chosen and not found:
                raise NothingFoundError(
                    f"{without_secrets(each.url, redact=config.redact_query)} is not stored in {shown_store} as a "
                    "duplicate; see `scrapy dedup explain`"
                )
            pages |= {page.number: page for page in chosen}
            items |= found
        overrides = [
            Override.of(page, original)
            for page in pages.values()
            if page.original is not None and (original := index.page(page.original)) is not None
        ]
        puts = [override.encode() for override in overrides]

        def write() -> None:
            # Read again: crawls that share the store may have released some of them meanwhile.
            there = index.dropped.get(items)
            index.store.write([*puts, *index.dropped.to_release(there, by_person=True)], sync=True)

        index.atomically(write)
    urls = dict.fromkeys([*(page.url for page in pages.values()), *(item.url for item in items.values())])
    return {"store": shown_store, "allowed": [*urls], "items": len(items)}


def allowed_text(report: dict[str, Any]) -> str:
    """Return what :func:`allow` did, for a person."""
    pages, items = len(report["allowed"]), report["items"]
    line = (
        f"{pages} page{'s' * (pages != 1)} marked as no duplicate; the next crawl of the spider releases "
        f"{items} dropped item{'s' * (items != 1)}"
    )
    return "\n".join([line, *(f"    {one_line(url)}" for url in report["allowed"][:_NAMED])])


def overrides(config: Config, *, removed: str | None = None) -> list[dict[str, Any]]:
    """Return the overrides in a store, oldest first; or those of the page *removed*, which are removed.

    :class:`NothingFoundError` if there is none to remove.
    """
    with _index(config, "allow") as index:
        found = sorted(read_overrides(index.store), key=lambda override: override.time)
        if removed is not None:
            shown = without_secrets(as_requested(removed), redact=config.redact_query)
            found = [override for override in found if override.url == shown]
            if not found:
                raise NothingFoundError(f"{shown} was not allowed; `scrapy dedup allow --list` shows what was")
            index.store.write([], [override.key for override in found], sync=True)
    return [{"url": each.url, "original_url": each.original_url, "time": each.time} for each in found]


def overrides_text(found: Sequence[dict[str, Any]], *, removed: bool) -> str:
    """Return what :func:`overrides` found, for a person."""
    if not found:
        return "no page was allowed yet"
    how = "may be a duplicate again of" if removed else "is no duplicate of"
    return "\n".join(
        f"{time[:19]}  {url}\n    {how} {original}"
        for time, url, original in ([one_line(each[key]) for key in ("time", "url", "original_url")] for each in found)
    )


@contextmanager
def _index(config: Config, command: str) -> Iterator[Index]:
    if not store_exists(config.store):
        raise ConfigError(nothing_there(resolved_uri(config.store)))
    with index_for_command(config.store, command) as (_, index):
        yield index
