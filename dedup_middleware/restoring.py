"""Dropped pages, to be delivered after all.

Law of this file: it chooses pages of a closed store and writes down that they are wanted; the next crawl requests them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dedup_middleware.addresses import host_of, is_under
from dedup_middleware.errors import ConfigError
from dedup_middleware.identity import url_identity
from dedup_middleware.index import index_of
from dedup_middleware.stores import open_store, store_exists

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dedup_middleware.config import Config
    from dedup_middleware.index import Index
    from dedup_middleware.journal import Entry
    from dedup_middleware.model import StoredPage


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which dropped pages: all that have every one of these."""

    url: str | None = None
    host: str | None = None
    """Of the page; its subdomains count."""
    owner: str | None = None
    """The URL of the page that it was dropped in favour of."""


def restore(config: Config, scheme: str, wanted: Wanted, undropped: Callable[[bytes], bytes | None]) -> dict[str, Any]:
    """Let the next crawl request the *wanted* pages and deliver what they give; return how many there are.

    *undropped* makes a packed request one that is not judged. :class:`StoreError` if the store is in use or fails.
    """
    if not store_exists(config.store):
        raise ConfigError(f"there is no store at {config.store}; crawl first, or name it: -s DEDUP_STORE=URI")
    store = open_store(config.store, fingerprint_scheme=scheme)
    try:
        index = index_of(store, common=config.common_clause, text_limit=config.text_limit)
        restored, lost = [], []
        for page in _pages(index, wanted):
            entry = _entry(index, page, undropped)
            if entry is None:
                lost.append(page.url)
            else:
                restored.append((page.url, entry))
        index.request_again(entry for _, entry in restored)
    finally:
        store.close()
    return {"store": config.store, "restored": [url for url, _ in restored], "without_request": lost}


def _pages(index: Index, wanted: Wanted) -> Iterator[StoredPage]:
    owner = None if wanted.owner is None else index.find([url_identity(wanted.owner)])
    for page in index.pages() if wanted.url is None else index.same([url_identity(wanted.url)]):
        of_owner = wanted.owner is None or (owner is not None and page.owner == owner.number)
        if page.owner is not None and of_owner and (not wanted.host or is_under(host_of(page.url), [wanted.host])):
            yield page


def _entry(index: Index, page: StoredPage, undropped: Callable[[bytes], bytes | None]) -> Entry | None:
    entry = index.dropped_request(page.number)
    request = None if entry is None else undropped(entry.request)
    return None if entry is None or request is None else entry._replace(request=request)


def restored_text(report: dict[str, Any]) -> str:
    """Return what :func:`restore` did for a person."""
    lines = [f"{len(report['restored'])} dropped pages will be requested by the next crawl, and delivered"]
    lines += [f"    {url}" for url in report["restored"][:20]]
    if lost := report["without_request"]:
        lines.append(f"{len(lost)} cannot be: their requests were not kept, or need the project they are of")
        lines += [f"    {url}" for url in lost[:20]]
    return "\n".join(lines)
