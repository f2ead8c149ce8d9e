"""``scrapy dedup restore``: what was dropped, delivered after all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dedup_middleware.delivery.restoring import (
    PageFilter,
    restore,
    restore_items,
    restored_items_text,
    restored_text,
)
from dedup_middleware.errors import CallError
from dedup_middleware.plugin.exporting import Export
from dedup_middleware.plugin.subcommands.call import add_common_options, add_page_filter, share, tell

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.plugin.subcommands.call import Call


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)
    parser.add_argument("url", metavar="URL", nargs="?", help="the page's address, as the crawl had it")
    add_page_filter(parser)
    parser.add_argument("--run", metavar="R", help="what this crawl has dropped; `last` for the latest")
    parser.add_argument("--below", metavar="SCORE", type=share, help="only scores below this one (0-1)")
    parser.add_argument("--all", action="store_true", help="all that was dropped")
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="append the items to FILE, as `scrapy crawl -o` does; FILE:FORMAT, -:FORMAT",
    )
    output.add_argument("-O", "--overwrite-output", metavar="FILE", help="the same, and overwrite the file")


def run(call: Call) -> None:
    """Restore what is wanted, and print what that was."""
    opts = call.opts
    chosen = (opts.url, opts.host, opts.owner, opts.run, opts.below, opts.all or None)
    if all(choice is None for choice in chosen):
        raise CallError("say which pages: a URL, --host H, --owner URL, --run R, --below SCORE, or --all")
    wanted = PageFilter.of(*chosen[:5])
    target = opts.overwrite_output or opts.output
    if target is None:
        report = restore(call.config, wanted)
        print(json.dumps(report) if opts.json else restored_text(report))
        return
    export = Export(call.settings, target, overwrite=opts.overwrite_output is not None)
    report = restore_items(call.config, wanted, export.write)
    said = json.dumps(report) if opts.json else restored_items_text(report, target)
    # Where the items go to standard output, nothing else does.
    tell(said) if export.is_stdout else print(said)
