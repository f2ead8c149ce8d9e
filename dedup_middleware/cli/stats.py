"""``scrapy dedup stats``: sums."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from dedup_middleware.cli.call import add_common_options
from dedup_middleware.records.log_reader import log_of, run_named
from dedup_middleware.records.recorder import sums_of
from dedup_middleware.terminal import Table, rendered
from dedup_middleware.text.clauses import one_line

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.cli.call import Call
    from dedup_middleware.settings import Config

EXAMPLES = ("stats", "stats --run last --json")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)
    parser.add_argument("--run", metavar="R", help="only records of this crawl; `last`: the latest")


def run(call: Call) -> None:
    """Print the sums."""
    sums = stats(call.config, call.opts.run)
    print(json.dumps(sums) if call.opts.json else stats_text(sums, terminal=sys.stdout.isatty()))


_LISTED = 10


def stats(config: Config, run: str | None = None) -> dict[str, Any]:
    """Return the sums of the log, or of one *run* there; :class:`RecordsError` without a log."""
    log = log_of(config)
    sums = sums_of(log, run_named(log, run))
    return {
        "log": str(log),
        "verdicts": dict(sums.verdicts.most_common()),
        "outcomes": dict(sums.outcomes.most_common()),
        "unchecked": dict(sums.unchecked.most_common()),
        "kept": dict(sums.kept.most_common()),
        "items_dropped": sums.items_dropped,
        "hosts": {f"{host} repeats {original}": count for (host, original), count in sums.pairs.most_common(_LISTED)},
    }


def stats_text(sums: dict[str, Any], *, terminal: bool = False) -> str:
    """Return what :func:`stats` found for a person; at a *terminal* in tables, if rich is installed."""
    lines = [f"log         {sums['log']}"]
    names = {
        "verdicts": "verdicts",
        "outcomes": "outcomes",
        "not checked": "unchecked",
        "kept": "kept",
        "hosts": "hosts",
    }
    for name, field in names.items():
        rows = [(one_line(key), str(value)) for key, value in sums[field].items()]
        if terminal and rows:
            lines += ["", rendered(Table((name, "pages"), rows), terminal=True)]
        else:
            lines += [f"{'' if place else name:<11} {count:>7}  {key}" for place, (key, count) in enumerate(rows)]
    lines.append(f"items dropped {sums['items_dropped']:>5}")
    return "\n".join(lines)
