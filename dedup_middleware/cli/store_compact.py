"""``scrapy dedup store compact``: reclaims the disk space of what was deleted from the store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dedup_middleware.cli.call import add_common_options, existing_store
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.stores import size_of_store
from dedup_middleware.terminal import working
from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.cli.call import Call

EXAMPLES = ("store compact",)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)


def run(call: Call) -> None:
    """Compact the store, and print its size before and after."""
    config = call.config
    uri = existing_store(config)
    before = size_of_store(uri)
    with (
        index_for_command(uri, "store compact") as (store, _),
        working("compacting the store"),
    ):
        store.compact()
    after, shown = size_of_store(uri), without_secrets(uri, redact=False)
    if call.opts.json:
        print(json.dumps({"store": shown, "bytes_before": before, "bytes_after": after}))
    elif before is None or after is None:
        print(f"compacted the store {shown}")
    else:
        print(f"compacted the store {shown}: {before:,} bytes before, {after:,} after")
