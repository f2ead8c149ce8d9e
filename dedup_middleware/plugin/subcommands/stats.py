"""``scrapy dedup stats``: sums."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from dedup_middleware.inspection.stats import stats, stats_text
from dedup_middleware.plugin.subcommands.call import add_common_options

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.plugin.subcommands.call import Call

EXAMPLES = ("stats", "stats --run last --json")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)
    parser.add_argument("--run", metavar="R", help="only records of this crawl; `last`: the latest")


def run(call: Call) -> None:
    """Print the sums."""
    sums = stats(call.config, call.opts.run)
    print(json.dumps(sums) if call.opts.json else stats_text(sums, terminal=sys.stdout.isatty()))
