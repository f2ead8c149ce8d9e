"""``scrapy dedup stats``: sums."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dedup_middleware.inspection import explain
from dedup_middleware.plugin.subcommands.call import add_common_options

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.plugin.subcommands.call import Call

HELP = "sum up the log and the store"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)


def run(call: Call) -> None:
    """Print the sums."""
    stats = explain.stats(call.config)
    print(json.dumps(stats) if call.opts.json else explain.stats_text(stats))
