"""``scrapy dedup allow``: marks dropped pages as not duplicates, so that the next crawl releases their items."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from dedup_middleware.cli.call import add_item_filter
from dedup_middleware.cli.commands import Subcommand
from dedup_middleware.errors import CallError
from dedup_middleware.records.dropped import allow, overrides
from dedup_middleware.records.log import RecordFilter
from dedup_middleware.text.clauses import one_line
from dedup_middleware.text.terminal import plural

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from dedup_middleware.cli.call import Call

_NAMED = 20


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", nargs="*", help="page URL, exactly as it was crawled")
    add_item_filter(parser)
    parser.add_argument("--all", action="store_true", help="all pages with dropped items")
    others = parser.add_mutually_exclusive_group()
    others.add_argument("--list", action="store_true", help="list the pages that were allowed")
    others.add_argument("--remove", metavar="URL", help="undo allow for this page")


def run(call: Call) -> None:
    """Allow the chosen pages and print their URLs; or list or remove overrides."""
    opts = call.opts
    if opts.list or opts.remove is not None:
        found = overrides(call.config, removed=opts.remove)
        lines = [*map(json.dumps, found)] if opts.json else [overrides_text(found, removed=opts.remove)]
        for line in lines:
            print(line)
        return
    if not (opts.url or opts.all or opts.host or opts.original or opts.crawl or opts.below < math.inf):
        raise CallError("name the pages by URL, --host, --original, --crawl or --below, or give --all")
    config = call.config
    wanted = RecordFilter.of(config, opts.host, opts.original, crawl=opts.crawl, below=opts.below)
    report = allow(config, opts.url, wanted)
    print(json.dumps(report) if opts.json else _allowed_text(report))


def _allowed_text(report: dict[str, Any]) -> str:
    pages = len(report["allowed"])
    crawl = "crawl with a feed" if report["items_for_a_feed"] else "crawl"
    line = f"Allowed {plural(pages, 'page')}; the next {crawl} releases {plural(report['items'], 'dropped item')}"
    more = [f"    and {pages - _NAMED} more"] * (pages > _NAMED)
    return "\n".join([line, *(f"    {one_line(url)}" for url in report["allowed"][:_NAMED]), *more])


def overrides_text(found: Sequence[dict[str, Any]], *, removed: str | None) -> str:
    """Return the overrides that were *found* for a person; or those of the page *removed*, which are gone."""
    if not found:
        return "No page is allowed" if removed is None else f"{one_line(removed)} was not allowed; nothing to do"
    how = "is not a duplicate of" if removed is None else "may be a duplicate again of"
    return "\n".join(
        f"{time[:19].replace('T', ' ')}  {url}\n    {how} {original}"
        for time, url, original in ([one_line(each[key]) for key in ("time", "url", "original_url")] for each in found)
    )


COMMANDS = {
    "allow": Subcommand(
        run, ("allow https://example.org/story", "allow --host example.org --below 0.9", "allow --list"), _add_options
    )
}
