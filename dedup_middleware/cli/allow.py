"""``scrapy dedup allow``: mark dropped pages as no duplicates, and release their items."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dedup_middleware.cli.call import add_common_options, add_item_filter
from dedup_middleware.errors import CallError
from dedup_middleware.records.dropped import PageFilter, allow, allowed_text, overrides, overrides_text

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.cli.call import Call

EXAMPLES = ("allow https://example.org/story", "allow --host example.org --below 0.9", "allow --list")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)
    parser.add_argument("url", metavar="URL", nargs="*", help="page URL, exactly as it was crawled")
    add_item_filter(parser)
    parser.add_argument("--all", action="store_true", help="all pages that were dropped")
    others = parser.add_mutually_exclusive_group()
    others.add_argument("--list", action="store_true", help="list the pages that were allowed")
    others.add_argument("--remove", metavar="URL", help="remove the override for this page")


def run(call: Call) -> None:
    """Allow the pages that are wanted, and print which these are."""
    opts = call.opts
    if opts.list or opts.remove is not None:
        found = overrides(call.config, removed=opts.remove)
        if opts.json:
            for each in found:
                print(json.dumps(each))
        else:
            print(overrides_text(found, removed=opts.remove is not None))
        return
    chosen = (opts.host, opts.original, opts.run, opts.below)
    wanted = [PageFilter.of(url, *chosen) for url in opts.url or [None]]
    if wanted[0].is_all and not opts.all:
        raise CallError("name the pages: URL, --host H, --original URL, --run R, --below SCORE, or --all")
    report = allow(call.config, wanted)
    print(json.dumps(report) if opts.json else allowed_text(report))
