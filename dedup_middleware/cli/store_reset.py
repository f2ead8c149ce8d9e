"""``scrapy dedup store reset``: deletes the store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dedup_middleware.cli.call import add_common_options, ask
from dedup_middleware.records.records import log_exists, observer_logs_beside, refuse_foreign_log, remove_log
from dedup_middleware.stores import destroy_store, resolved_uri, store_exists
from dedup_middleware.stores.refusals import nothing_there
from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.cli.call import Call

EXAMPLES = ("store reset", "store reset --log --yes")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)
    parser.add_argument("--log", action="store_true", help="delete the log of records too")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def run(call: Call) -> None:
    """Remove the store, and the log if that is wanted, once a person agrees."""
    config, opts = call.config, call.opts
    store, log = resolved_uri(config.store), config.log if opts.log else None
    shown_store = without_secrets(store, redact=False)
    logs = [] if log is None else [*[log] * log_exists(log), *observer_logs_beside(log)]
    for path in logs:
        refuse_foreign_log(path)
    doomed = [
        *[f"the store {shown_store} with the dropped items in it"] * store_exists(store),
        *(f"the log {path}" for path in logs),
    ]
    if doomed and not opts.yes:
        ask(f"This removes {' and '.join(doomed)}.")
    removed = destroy_store(store)
    logs = [path for path in logs if remove_log(path)]
    if opts.json:
        shown = None if config.log is None else str(config.log)
        print(json.dumps({"store": shown_store, "removed": removed, "log": shown, "log_removed": bool(logs)}))
        return
    print(f"removed the store {shown_store}" if removed else nothing_there(store))
    for path in logs:
        print(f"removed the log {path}")
    if opts.log and not logs:
        print(f"there is no log at {log}")
