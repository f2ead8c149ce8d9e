"""``scrapy dedup allow``: marks dropped pages as not duplicates, so that the next crawl releases their items."""

from __future__ import annotations

import json
import math
from functools import partial
from typing import TYPE_CHECKING, Any

from dedup_middleware.cli.dropped import chosen, give_classes
from dedup_middleware.cli.explain import identity_of_key, last_record
from dedup_middleware.cli.options import NO_PAGE, OF_ITEMS, OF_PAGE_OR_KEY, Subcommand, option, url_argument
from dedup_middleware.common.urls import as_requested, url_identity, without_secrets
from dedup_middleware.errors import CallError, NothingFoundError
from dedup_middleware.index.overrides import Override, read_overrides
from dedup_middleware.index.shared import index_for_command
from dedup_middleware.records.file import RecordFilter, recorded_url
from dedup_middleware.text.clauses import one_line
from dedup_middleware.text.terminal import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dedup_middleware.cli.call import Call
    from dedup_middleware.index.dropped_items import DroppedItem
    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage
    from dedup_middleware.settings import Config

_NAMED = 20


def run(call: Call) -> None:
    """Allow the chosen pages and print their URLs; or list or remove overrides."""
    opts = call.opts
    if opts.list or opts.remove is not None:
        found = overrides(call.config, removed=opts.remove)
        call.show_each(found if opts.json else [found], partial(overrides_text, removed=opts.remove), json.dumps)
        return
    is_filtered = any((opts.host, opts.original, opts.crawl, opts.below < math.inf))
    if not (opts.urls or opts.all or is_filtered):
        raise CallError("name the pages by URL or key, --host, --original, --crawl or --below, or give --all")
    give_classes(call)
    call.show(allow(call.config, opts.urls, call.wanted), _allowed_text)


def _allowed_text(report: dict[str, Any]) -> str:
    pages = len(report["allowed"])
    crawl = "crawl with a feed" if report["items_for_a_feed"] else "crawl"
    line = f"Allowed {plural(pages, 'page')}; the next {crawl} releases {plural(report['items'], 'dropped item')}"
    more = [f"    and {pages - _NAMED} more"] * (pages > _NAMED)
    return "\n".join([line, *(f"    {one_line(url or NO_PAGE)}" for url in report["allowed"][:_NAMED]), *more])


def overrides_text(found: Sequence[dict[str, Any]], *, removed: str | None) -> str:
    """Return the overrides that were *found* for a person; or those of the page *removed*, which are gone."""
    if not found:
        return "No page is allowed" if removed is None else f"{one_line(removed)} was not allowed; nothing to do"
    how = "is not a duplicate of" if removed is None else "may be a duplicate again of"
    return "\n".join(
        f"{time[:19].replace('T', ' ')}  {url}\n    {how} {original}"
        for time, url, original in (
            [one_line(each[key] or NO_PAGE) for key in ("time", "url", "original_url")] for each in found
        )
    )


def allow(config: Config, urls: Sequence[str], wanted: RecordFilter) -> dict[str, Any]:
    """Mark the pages that are *wanted*, and in *urls* (or keys) if there are any, as different from their originals.

    The next crawl releases their items. Return the URLs of the pages, the number of these items, and how many of them a
    feed wanted: these wait for a crawl with such a feed. A page that was allowed before is allowed again.
    :class:`NothingFoundError` for a URL that is not stored as a duplicate; else as for `index_for_command`.
    """
    with index_for_command(config.store, "allow") as (_, index):
        pages: dict[int, StoredPage] = {}
        items: dict[bytes, DroppedItem] = {}
        names: Sequence[str | None] = urls or [None]
        for url in names:
            found, copies = _wanted(index, config, wanted, url)
            pages |= {page.number: page for page in copies}
            items |= {item.key: item for item in found}
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
    store = without_secrets(config.store, redact=False)
    return {"store": store, "allowed": [*allowed_urls], "items": len(items), "items_for_a_feed": for_feed}


def _wanted(
    index: Index, config: Config, wanted: RecordFilter, url: str | None
) -> tuple[list[DroppedItem], list[StoredPage]]:
    """Return the dropped items that are *wanted*, with this *url* or key if one is named, and their duplicates."""
    shown = url and recorded_url(url, config)
    items = [*chosen(index, config, wanted, url)]
    named = [] if url is None else index.same([url_identity(as_requested(url))])
    pages = (*map(index.page, sorted({item.number for item in items})), *named)
    copies = [page for page in pages if page is not None and page.original is not None]
    if shown and not items and not copies and all(shown != override.url for override in read_overrides(index.store)):
        store = without_secrets(config.store, redact=False)
        raise NothingFoundError(f"{shown} is not stored in {store} as a duplicate", "See `scrapy dedup explain URL`.")
    return items, copies


def overrides(config: Config, *, removed: str | None = None) -> list[dict[str, Any]]:
    """Return the overrides in a store, oldest first; or those of the page, or key, *removed*, which are removed."""
    with index_for_command(config.store, "allow") as (_, index):
        found = sorted(read_overrides(index.store), key=lambda override: override.time)
        if removed is not None:
            shown = recorded_url(removed, config)
            key = b""
            if config.key:
                key = identity_of_key(config, removed, last_record(config, RecordFilter(key=removed)))
            found = [each for each in found if each.url == shown or key in each.original_identities]
            if found:
                index.store.write([], [override.key for override in found], sync=True)
    return [{"url": each.url, "original_url": each.original_url, "time": each.time} for each in found]


COMMAND = Subcommand(
    run,
    ("allow https://example.org/story", "allow --host example.org --below 0.9", "allow --list"),
    (
        url_argument("urls", nargs="*", help=OF_PAGE_OR_KEY),
        *OF_ITEMS,
        option("--all", action="store_true", help="all pages with dropped items"),
        [
            option("--list", action="store_true", help="list the pages that were allowed"),
            option("--remove", metavar="URL", help="undo allow for this page, or key"),
        ],
    ),
)
