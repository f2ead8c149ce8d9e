"""What was dropped, delivered after all.

Items are handed over as the quarantine has them; pages of a closed store are written down as wanted, and the next crawl
requests them. Either way the page is never a duplicate of its former owner again, see `correcting`.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from dedup_middleware.delivery.quarantine import Quarantine
from dedup_middleware.errors import ConfigError, NothingFoundError
from dedup_middleware.identity import url_identity
from dedup_middleware.index import codec
from dedup_middleware.index.corrections import correct
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.stores import resolved_uri, store_exists
from dedup_middleware.stores.refusals import nothing_there
from dedup_middleware.urls import as_in_urls, as_requested, host_of, is_under, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dedup_middleware.delivery.quarantine import QuarantinedItem
    from dedup_middleware.index.index import Index
    from dedup_middleware.index.journal import JournalEntry
    from dedup_middleware.model import StoredPage
    from dedup_middleware.settings.config import Config


#: What a person calls the latest crawl.
LAST = "last"


@dataclass(frozen=True, slots=True)
class PageFilter:
    """Which dropped pages: all that have every one of these."""

    url: str | None = None
    host: str | None = None
    """Of the page; its subdomains count."""
    owner: str | None = None
    """The URL of the page that it was dropped in favour of."""
    run: str | None = None
    """The crawl that dropped it; ``last`` for the one that has dropped anything last."""
    below: float = 2.0
    """More than its score."""

    @classmethod
    def of(
        cls, url: str | None, host: str | None, owner: str | None, run: str | None = None, below: float | None = None
    ) -> PageFilter:
        """Return what a person means, who writes addresses as a browser shows them; ConfigError for no host."""
        read = None if host is None else as_in_urls(host)
        if read == "":
            raise ConfigError(f"--host {host} is not a host name; use for example --host example.org")
        asked = cls(url and as_requested(url), read, owner and as_requested(owner), run)
        return asked if below is None else replace(asked, below=below)

    def has(self, dropped: StoredPage | QuarantinedItem, last_run: str) -> bool:
        """Tell whether this was *dropped* from the host, by the crawl and with the score that are wanted."""
        is_of_run = self.run is None or dropped.run == (last_run if self.run == LAST else self.run)
        is_of_host = not self.host or is_under(host_of(dropped.url), [self.host])
        return is_of_run and is_of_host and dropped.score < self.below


def restore(config: Config, wanted: PageFilter) -> dict[str, Any]:
    """Let the next crawl request the *wanted* pages and deliver what they give; return how many there are.

    :class:`NothingFoundError` if there is no such owner or page; :class:`StoreError` if the store is in use or fails.
    """
    if not store_exists(config.store):
        raise ConfigError(nothing_there(resolved_uri(config.store)))
    with index_for_command(config.store, "restore", common=config.common_clause, text_limit=config.text_limit) as (
        store,
        index,
    ):
        restored, lost = [], []
        corrected = []
        for page in _pages(index, wanted, config):
            entry = _entry(index, page)
            if entry is None:
                lost.append(page.url)
            else:
                restored.append((page.url, entry))
                corrected.append(page)
        # As after an unclean shutdown.
        store.write([index.journal.entry_pair(entry) for _, entry in restored], sync=True)
        for page in corrected:
            correct(index, page, owns=False)
    if wanted.url is not None and not restored and not lost:
        raise NothingFoundError(
            f"{wanted.url} is not stored in {config.store} as a dropped page; see `scrapy dedup explain`"
        )
    return {"store": config.store, "restored": [url for url, _ in restored], "without_request": lost}


def _pages(index: Index, wanted: PageFilter, config: Config) -> Iterator[StoredPage]:
    owners = None if wanted.owner is None else _owners(index, wanted.owner, config)
    last_run = ""
    if wanted.run == LAST:
        dropped = (page for page in index.pages() if page.owner is not None)
        last_run = max(((page.time, page.number, page.run) for page in dropped), default=("", 0, ""))[2]
    for page in index.pages() if wanted.url is None else index.same([url_identity(wanted.url)]):
        if page.owner is not None and (owners is None or page.owner in owners) and wanted.has(page, last_run):
            yield page


def _owners(index: Index, url: str, config: Config) -> set[int]:
    """Return the numbers of the pages and items at *url*, which is as the store has it, or as it was."""
    shown = without_secrets(url, redact=config.redact_query)
    found = {page.number for page in index.pages() if page.owner is None and page.url == shown}
    if not found:
        raise NothingFoundError(
            f"no page at {shown} owns anything in {config.store}; `scrapy dedup log` names the owners"
        )
    return found


def _entry(index: Index, page: StoredPage) -> JournalEntry | None:
    """Return the request of a page that was dropped, so that it is delivered now; ``None`` if it is not kept."""
    entry = index.request_of(page)
    return None if entry is None else entry.to_deliver(owns=True)


def restore_items(config: Config, wanted: PageFilter, write: Callable[[Iterator[Any]], None]) -> dict[str, Any]:
    """Give the *wanted* items to *write*, in the order in which they were dropped; return how many there were.

    It returns once they are where they should be, and only then are they taken out of the quarantine; a page none of
    whose items are left there owns its text from now on. *write* is not called where no item is wanted.

    :class:`ConfigError` if there is no quarantine; :class:`QuarantineError` and :class:`StoreError` if it or the store
    fails; then, or if *write* raises, everything stays as it is.
    """
    path = config.quarantine_path
    quarantine = None if path is None else Quarantine.existing(path)
    if quarantine is None:
        raise ConfigError(
            f"there is no quarantine at {path}; crawl first, or without -o let the next crawl deliver the pages"
            if path
            else "no quarantine is named; use --spider NAME, or -s DEDUP_LOG=PATH"
        )
    taken: dict[int, bytes] = {}
    with quarantine, _index_if_any(config) as index:
        items = _items(quarantine, wanted, config, taken)
        first = next(items, None)
        if first is not None:
            write(item.item for item in chain([first], items))
        quarantine.take_out(taken)
        for identity in dict.fromkeys(taken.values()):
            if index is not None and not quarantine.has(identity):
                _let_own(index, identity)
    return {"quarantine": str(path), "items": len(taken)}


def _items(
    quarantine: Quarantine, wanted: PageFilter, config: Config, taken: dict[int, bytes]
) -> Iterator[QuarantinedItem]:
    """Yield the items that are *wanted*, and note the number and the page of each as *taken*."""
    url, owner = (
        None if each is None else without_secrets(each, redact=config.redact_query)
        for each in (wanted.url, wanted.owner)
    )
    last_run = quarantine.last_run() if wanted.run == LAST else ""
    for item in quarantine:
        is_of_pages = url in (None, item.url) and owner in (None, item.owner_url)
        if is_of_pages and wanted.has(item, last_run):
            taken[item.number] = item.identity
            yield item


@contextmanager
def _index_if_any(config: Config) -> Iterator[Index | None]:
    """Open the store for as long as the block runs; where there is none, there is nothing to correct."""
    if not store_exists(config.store):
        yield None
        return
    limits = {"common": config.common_clause, "text_limit": config.text_limit}
    with index_for_command(config.store, "restore", **limits) as (_, index):
        yield index


def _let_own(index: Index, identity: bytes) -> None:
    """Let a dropped page, which has been delivered now, own its text, and be requested no more."""
    page = index.find([identity])
    if page is None or page.owner is None:
        return
    correct(index, page, owns=True)
    journalled = index.store.scan(codec.journal_key(identity), codec.journal_key(identity + b"\xff" * 9))
    index.store.write([], [key for key, _ in journalled])


def restored_items_text(report: dict[str, Any], target: str) -> str:
    """Return what :func:`restore_items` did for a person."""
    items = report["items"]
    if not items:
        return (
            f"no such item is in the quarantine {report['quarantine']}; without -o the next crawl can deliver the page"
        )
    return f"{items} dropped item{'s' * (items != 1)} written to {target}, and taken out of the quarantine"


def restored_text(report: dict[str, Any]) -> str:
    """Return what :func:`restore` did for a person."""
    pages = len(report["restored"])
    lines = [f"{pages} dropped page{'s' * (pages != 1)} will be requested by the next crawl, and delivered"]
    lines += [f"    {url}" for url in report["restored"][:20]]
    if lost := report["without_request"]:
        lines.append(
            f"{len(lost)} cannot be restored: they were delivered (tag, dry-run), or their requests were not kept, or "
            "can only be read inside their project"
        )
        lines += [f"    {url}" for url in lost[:20]]
    return "\n".join(lines)
