"""``scrapy dedup store import``: adds the pages of exports to the store."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints import fingerprinter
from dedup_middleware.index.transfer import Spool, fill, is_empty
from dedup_middleware.inspection.progress import working
from dedup_middleware.model import Scope
from dedup_middleware.plugin.subcommands.call import add_common_options
from dedup_middleware.session.merging import merge, refuse_published
from dedup_middleware.session.opening import open_at_once
from dedup_middleware.stores import resolved_uri
from dedup_middleware.stores.refusals import nothing_there
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.plugin.subcommands.call import Call
    from dedup_middleware.settings.config import Config

EXAMPLES = ("store import pages.jsonl.xz", "store import a.jsonl b.jsonl --dry-run")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)
    parser.add_argument(
        "files", metavar="FILE", nargs="+", type=Path, help="a file that `scrapy dedup store export` wrote"
    )
    parser.add_argument("--dry-run", action="store_true", help="read the files, and show what would be imported")


def run(call: Call) -> None:
    """Import the files, and print what became of their pages."""
    config, opts = call.config, call.opts
    uri = resolved_uri(config.store)
    if uri == "memory:":
        raise ConfigError(nothing_there(uri))
    with Spool() as spool:
        for path in opts.files:
            with working(f"reading {one_line(str(path))}"):
                spool.read(path)
        moves = len(spool.origins) == 1 and is_empty(uri)
        _check(config, spool, moves=moves)
        with working("taking pages into the store"):
            came = {"read": len(spool.entries), **({} if opts.dry_run else _import(config, spool, moves=moves))}
        report = {
            "store": without_secrets(uri, redact=False),
            "how": "moved" if moves else "merged",
            "dry_run": opts.dry_run,
            **came,
            "left_out": spool.refusals,
            "left_out_first": spool.refused,
        }
    print(json.dumps(report) if opts.json else _text(report))


def _check(config: Config, spool: Spool, *, moves: bool) -> None:
    scheme = fingerprinter(config.fingerprint).scheme
    for origin in spool.origins:
        if origin.header.scheme != scheme:
            raise ConfigError(
                f"the files hold fingerprints of scheme {origin.header.scheme!r:.80}, and DEDUP_FINGERPRINT="
                f"{config.fingerprint!r} makes {scheme!r}: set it to what their store was made with"
            )
    if not moves:
        refuse_published(config)


def _import(config: Config, spool: Spool, *, moves: bool) -> dict[str, int]:
    if moves:
        return fill(
            config.store,
            spool,
            fingerprint=config.fingerprint,
        )
    # Whatever is in the store counts.
    opened = open_at_once(replace(config, log=None, scope=Scope.STORE, expire_after=None))
    try:
        return merge(opened.store, opened.index, spool, config)
    finally:
        opened.store.close()


def _text(report: dict[str, Any]) -> str:
    if report["dry_run"]:
        lines = [f"{report['read']} pages read for {report['store']}, to be {report['how']}"]
    else:
        kinds = ", ".join(f"{report[kind]} {kind}" for kind in ("owners", "duplicates", "known") if kind in report)
        lines = [f"{report['how']} into {report['store']}: {kinds}"]
    if report["left_out"]:
        lines.append(f"{report['left_out']} left out; crawls will judge what they are about anew:")
        lines += [f"    {one_line(line)}" for line in report["left_out_first"]]
    return "\n".join(lines)
