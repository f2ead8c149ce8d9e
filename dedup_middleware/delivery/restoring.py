"""Dropped pages, to be delivered after all.

It chooses pages of a closed store and writes down that they are wanted; the next crawl requests them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dedup_middleware.errors import ConfigError
from dedup_middleware.identity import url_identity
from dedup_middleware.index.corrections import correct
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.stores import resolved_uri, store_exists
from dedup_middleware.stores.refusals import nothing_there
from dedup_middleware.urls import as_in_urls, as_requested, host_of, is_under, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dedup_middleware.index.index import Index
    from dedup_middleware.index.journal import JournalEntry
    from dedup_middleware.model import StoredPage
    from dedup_middleware.settings.config import Config


@dataclass(frozen=True, slots=True)
class PageFilter:
    """Which dropped pages: all that have every one of these."""

    url: str | None = None
    host: str | None = None
    """Of the page; its subdomains count."""
    owner: str | None = None
    """The URL of the page that it was dropped in favour of."""

    @classmethod
    def of(cls, url: str | None, host: str | None, owner: str | None) -> PageFilter:
        """Return what a person means, who writes addresses as a browser shows them; ConfigError for no host."""
        read = None if host is None else as_in_urls(host)
        if read == "":
            raise ConfigError(f"--host {host} is not a host name; use for example --host example.org")
        return cls(url and as_requested(url), read, owner and as_requested(owner))


def restore(config: Config, wanted: PageFilter) -> dict[str, Any]:
    """Let the next crawl request the *wanted* pages and deliver what they give; return how many there are.

    None of them is ever a duplicate of its former owner again, see `correcting`.

    :class:`ConfigError` if there is no such owner; :class:`StoreError` if the store is in use or fails.
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
        raise ConfigError(f"{wanted.url} is not stored in {config.store} as a dropped page; see `scrapy dedup explain`")
    return {"store": config.store, "restored": [url for url, _ in restored], "without_request": lost}


def _pages(index: Index, wanted: PageFilter, config: Config) -> Iterator[StoredPage]:
    owners = None if wanted.owner is None else _owners(index, wanted.owner, config)
    for page in index.pages() if wanted.url is None else index.same([url_identity(wanted.url)]):
        of_owner = owners is None or page.owner in owners
        if page.owner is not None and of_owner and (not wanted.host or is_under(host_of(page.url), [wanted.host])):
            yield page


def _owners(index: Index, url: str, config: Config) -> set[int]:
    """Return the numbers of the pages and items at *url*, which is as the store has it, or as it was."""
    shown = without_secrets(url, redact=config.redact_query)
    found = {page.number for page in index.pages() if page.owner is None and page.url == shown}
    if not found:
        raise ConfigError(f"no page at {shown} owns anything in {config.store}; `scrapy dedup log` names the owners")
    return found


def _entry(index: Index, page: StoredPage) -> JournalEntry | None:
    """Return the request of a page that was dropped, so that it is delivered now; ``None`` if it is not kept."""
    entry = index.request_of(page)
    return None if entry is None else entry.to_deliver(owns=True)


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
