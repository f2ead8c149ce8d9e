"""``scrapy dedup store info``: prints what is in the store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dedup_middleware.cli.call import add_common_options, existing_store
from dedup_middleware.cli.health import crawls_at_work, in_doubt, to_release
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.stores import size_of_store
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from dedup_middleware.cli.call import Call

EXAMPLES = ("store info", "store info --json -s DEDUP_STORE=sqlite:/data/dedup")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)


def run(call: Call) -> None:
    """Print what is in the store."""
    found = store_info(existing_store(call.config))
    print(json.dumps(found) if call.opts.json else info_text(found))


def store_info(uri: str) -> dict[str, Any]:
    """Return what is in the store at *uri*. A scan of all pages, 1 µs each; :class:`StoreError` if it is in use."""
    size = size_of_store(uri)
    with index_for_command(uri, "store info") as (store, index):
        (originals, duplicates), at_work = index.count(), crawls_at_work(store)
        return {
            "store": without_secrets(uri, redact=False),
            "fingerprint": store.header.scheme,
            "schema": store.header.schema,
            "created": store.header.created,
            "bytes": size,
            "originals": originals,
            "duplicates": duplicates,
            "dropped_items": index.dropped.count,
            "dropped_bytes": index.dropped.size,
            "to_release": to_release(store),
            "in_doubt": in_doubt(store, at_work),
            "crawls": len(at_work),
        }


def info_text(info: Mapping[str, Any]) -> str:
    """Return what :func:`store_info` found for a person, a line each."""
    size = info["bytes"]
    lines = {
        "store": info["store"],
        "fingerprint": info["fingerprint"],
        "schema": str(info["schema"]),
        "created": info["created"],
        "size": "unknown: its files are on a server" if size is None else f"{size:,} bytes",
        "originals": f"{info['originals']:,}",
        "duplicates": f"{info['duplicates']:,}",
        "dropped items": f"{info['dropped_items']:,}, {info['dropped_bytes']:,} bytes",
        "to release": f"{info['to_release']:,} items",
        "in doubt": f"{info['in_doubt']:,} originals",
        "in use by": f"{info['crawls']} crawls",
    }
    return "\n".join(f"{name:<14} {one_line(value)}" for name, value in lines.items())
