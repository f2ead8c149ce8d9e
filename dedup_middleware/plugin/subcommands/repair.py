"""``scrapy dedup repair``: a copy of a damaged store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dedup_middleware.errors import ConfigError
from dedup_middleware.index import consistency
from dedup_middleware.plugin.subcommands.call import add_common_options
from dedup_middleware.stores import resolved_uri, store_exists
from dedup_middleware.stores.refusals import nothing_there

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.plugin.subcommands.call import Call

HELP = "make a repaired copy of a damaged store, and say what is missing"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)


def run(call: Call) -> None:
    """Repair the store, and print what came of it."""
    store = call.config.store
    if not store_exists(store):
        raise ConfigError(nothing_there(resolved_uri(store)))
    report = consistency.repair(store)
    print(json.dumps(report) if call.opts.json else consistency.repair_text(report))
