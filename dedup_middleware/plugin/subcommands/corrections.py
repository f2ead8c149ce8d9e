"""``scrapy dedup corrections``: the pages that a person has told apart."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dedup_middleware.delivery.correcting import corrections, corrections_text
from dedup_middleware.plugin.subcommands.call import add_common_options

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.plugin.subcommands.call import Call


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)
    parser.add_argument("--forget", metavar="URL", help="judge this page as any other again, from the next crawl on")


def run(call: Call) -> None:
    """Print the corrections, or those that are forgotten now."""
    opts = call.opts
    found = corrections(call.config, forgotten=opts.forget)
    if not opts.json:
        print(corrections_text(found, forgotten=opts.forget is not None))
        return
    for told in found:
        print(json.dumps(told))
