"""``scrapy dedup store info``: prints what is in the store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dedup_middleware.inspection.store_info import info_text, store_info
from dedup_middleware.plugin.subcommands.call import add_common_options, existing_store

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.plugin.subcommands.call import Call

EXAMPLES = ("store info", "store info --json -s DEDUP_STORE=sqlite:/data/dedup")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)


def run(call: Call) -> None:
    """Print what is in the store."""
    found = store_info(existing_store(call.config))
    print(json.dumps(found) if call.opts.json else info_text(found))
