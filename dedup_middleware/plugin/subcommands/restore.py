"""``scrapy dedup restore``: dropped pages, delivered after all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dedup_middleware.delivery.restoring import PageFilter, restore, restored_text
from dedup_middleware.errors import ConfigError
from dedup_middleware.plugin.subcommands.call import add_common_options, add_page_filter

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.plugin.subcommands.call import Call

HELP = "let the next crawl request dropped pages and deliver them"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)
    parser.add_argument("url", metavar="URL", nargs="?", help="the page's address, as the crawl had it")
    add_page_filter(parser)
    parser.add_argument("--all", action="store_true", help="every page that was dropped")


def run(call: Call) -> None:
    """Restore the pages that are wanted, and print which."""
    opts = call.opts
    if not (opts.url or opts.host or opts.owner or opts.all):
        raise ConfigError("say which pages: a URL, --host H, --owner URL, or --all")
    report = restore(call.config, PageFilter.of(opts.url, opts.host, opts.owner))
    print(json.dumps(report) if opts.json else restored_text(report))
