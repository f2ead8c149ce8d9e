"""``scrapy dedup repair``: a copy of a damaged store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dedup_middleware.index import consistency
from dedup_middleware.inspection.progress import working
from dedup_middleware.plugin.subcommands.call import add_common_options, existing_store

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.plugin.subcommands.call import Call


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)


def run(call: Call) -> None:
    """Repair the store, and print what came of it."""
    existing_store(call.config)
    with working("repairing the store"):
        report = consistency.repair(call.config.store)
    print(json.dumps(report) if call.opts.json else consistency.repair_text(report))
