"""``scrapy dedup allow``: marks dropped pages as not duplicates, so that the next crawl releases their items."""

from __future__ import annotations

import json
import math
from functools import partial
from typing import TYPE_CHECKING, Any

from dedup_middleware.cli.dropped import NO_KEY, chosen, give_classes, key_of
from dedup_middleware.cli.explain import identity_of_key, last_record
from dedup_middleware.cli.options import NO_PAGE, OF_ITEMS, OF_PAGE_OR_KEY, Subcommand, option, url_argument
from dedup_middleware.common.urls import as_requested, url_identity, without_secrets
from dedup_middleware.errors import CallError, NothingFoundError
from dedup_middleware.index.overrides import Override, read_overrides
from dedup_middleware.index.shared import index_for_command
from dedup_middleware.items.keys import as_shown
from dedup_middleware.records.file import RecordFilter, is_named, recorded_url
from dedup_middleware.text.clauses import one_line
from dedup_middleware.text.terminal import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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
    pairs = zip(report["keys"], report["allowed"], strict=True)
    named = [one_line(f"{key} {url or NO_PAGE}".strip()) for key, url in pairs]
    pages, items = plural(len({*report["allowed"]}), "page"), plural(report["items"], "dropped item")
    line = (
        f"Allowed {pages}; the next {'crawl with a feed' if report['items_for_a_feed'] else 'crawl'} releases {items}"
    )
    more = [f"    and {len(named) - _NAMED} more"] * (len(named) > _NAMED)
    return "\n".join([line, *(f"    {each}" for each in named[:_NAMED]), *more])


def overrides_text(found: Sequence[dict[str, Any]], *, removed: str | None) -> str:
    """Return the overrides that were *found* for a person; or those of the page *removed*, which are gone."""
    if not found:
        return "No page is allowed" if removed is None else f"{one_line(removed)} was not allowed; nothing to do"
    how = "is not a duplicate of" if removed is None else "may be a duplicate again of"
    return "\n".join(
        f"{time[:19].replace('T', ' ')}  {keys}{url}\n    {how} {original}"
        for time, keys, url, original in (
            (
                one_line(each["time"]),
                "".join(f"{one_line(key)} " for key in each["keys"]),
                *(one_line(each[name] or NO_PAGE) for name in ("url", "original_url")),
            )
            for each in found
        )
    )


def allow(config: Config, urls: Sequence[str], wanted: RecordFilter) -> dict[str, Any]:
    """Mark the pages that are *wanted*, and in *urls* (or keys) if there are any, as different from their originals.

    The next crawl releases their items. Return the URLs of the pages, once for each key of their items, and these keys;
    the number of these items, and how many of them a feed wanted: these wait for a crawl with such a feed. A page that
    was allowed before is allowed again.
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
        keys = {number: dict[str, None]() for number in pages}
        for item in items.values():
            keys.setdefault(item.number, {})[key_of(config, item)] = None
        puts = [*_overrides_of(index, pages.values(), keys)]

        def write() -> None:
            # Read again: crawls that share the store may have released some of them meanwhile.
            there = index.dropped.get(items)
            index.store.write([*puts, *index.dropped.to_release(there, by_person=True)], sync=True)

        index.atomically(write)
    urls_of = {item.number: item.url for item in items.values()} | {page.number: page.url for page in pages.values()}
    allowed = dict.fromkeys((key, urls_of[number]) for number, found in keys.items() for key in found or ("",))
    return {
        "store": without_secrets(config.store, redact=False),
        "allowed": [url for _, url in allowed],
        "keys": [key for key, _ in allowed],
        "items": len(items),
        "items_for_a_feed": sum(item.for_feed for item in items.values()),
    }


def _wanted(
    index: Index, config: Config, wanted: RecordFilter, url: str | None
) -> tuple[list[DroppedItem], list[StoredPage]]:
    """Return the dropped items that are *wanted*, with this *url* or key if one is named, and their duplicates."""
    shown = url and _shown(config, url)
    items = [*chosen(index, config, wanted, url)]
    copies = _duplicates(index, items, [] if url is None else index.same([url_identity(as_requested(url))]))
    if url and not items and not copies and all(shown != override.url for override in read_overrides(index.store)):
        if not config.key and "://" not in url:
            raise NothingFoundError(*NO_KEY)
        store = without_secrets(config.store, redact=False)
        raise NothingFoundError(f"{shown} is not stored in {store} as a duplicate", "See `scrapy dedup explain URL`.")
    return items, copies


def _shown(config: Config, name: str) -> str:
    """Return a URL as records have it; a *name* without a scheme, which is a key, as it is."""
    return recorded_url(name, config) if "://" in name else name


def _overrides_of(
    index: Index, pages: Iterable[StoredPage], keys: Mapping[int, Iterable[str]]
) -> Iterator[tuple[bytes, bytes]]:
    for page in pages:
        if page.original is not None and (original := index.page(page.original)) is not None:
            yield Override.of(page, original, filter(None, keys[page.number])).encode()


def _duplicates(index: Index, items: Iterable[DroppedItem], named: Iterable[StoredPage]) -> list[StoredPage]:
    """Return the pages of *items*, and those that are *named*, as far as they are stored as duplicates."""
    numbers = sorted({item.number for item in items})
    stored = (page for number in numbers if (page := index.page(number)) is not None)
    return [page for page in (*stored, *named) if page.original is not None]


def overrides(config: Config, *, removed: str | None = None) -> list[dict[str, Any]]:
    """Return the overrides in a store, oldest first; or those of the page, or key, *removed*, which are removed."""
    with index_for_command(config.store, "allow") as (_, index):
        found = sorted(read_overrides(index.store), key=lambda override: override.time)
        if removed is not None:
            name, key = as_shown(removed), b""
            shown = _shown(config, name)
            if config.key:
                key = identity_of_key(config, name, last_record(config, RecordFilter(key=name)))
            found = [
                each
                for each in found
                if each.url == shown
                or key in each.original_identities
                or any(is_named(its_key, name) for its_key in each.item_keys)
            ]
            if found:
                index.store.write([], [override.key for override in found], sync=True)
    return [
        {"url": each.url, "original_url": each.original_url, "time": each.time, "keys": [*each.item_keys]}
        for each in found
    ]


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
