"""``scrapy dedup stats``: counts the records of the log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dedup_middleware.cli.call import add_run_option
from dedup_middleware.cli.commands import Subcommand
from dedup_middleware.errors import NothingFoundError
from dedup_middleware.records.counts import counts_of
from dedup_middleware.records.crawls import KINDS, crawl_named, read_counts
from dedup_middleware.records.log import log_of
from dedup_middleware.report.crawls import Crawls
from dedup_middleware.terminal import Table, columns, rendered
from dedup_middleware.text.clauses import one_line

if TYPE_CHECKING:
    from dedup_middleware.cli.call import Call
    from dedup_middleware.settings import Config

_LISTED = 10


def run(call: Call) -> None:
    """Print the counts."""
    found = stats(call.config, call.opts.run)
    print(json.dumps(found) if call.opts.json else stats_text(found, columns()))


def stats(config: Config, run: str | None = None) -> dict[str, Any]:
    """Return the counts of the log, or of one *run* there; :class:`RecordsError` without such records."""
    log = log_of(config)
    run = crawl_named(log, run)
    counts, pages = counts_of(log, run), Crawls(read_counts(log), run).sum.pages
    if run and not counts.records and not pages:
        raise NothingFoundError(f"No record of the crawl {run} in {log}.")
    return {
        "log": str(log),
        "pages": {kind: pages[kind] for kind in KINDS if pages[kind]},
        "verdicts": dict(counts.verdicts.most_common()),
        "outcomes": dict(counts.outcomes.most_common()),
        "unchecked": dict(counts.unchecked.most_common()),
        "kept": dict(counts.kept.most_common()),
        "items_dropped": counts.items_dropped,
        "hosts": {f"{host} repeats {other}": count for (host, other), count in counts.pairs.most_common(_LISTED)},
    }


def stats_text(found: dict[str, Any], width: int | None = None) -> str:
    """Return what :func:`stats` found for a person in at most *width* columns: a table of each kind."""
    pages = sum(found["pages"].values())
    among = f"{pages} pages crawled, " if pages else ""
    lines = [f"{one_line(found['log'])}: {among}{found['items_dropped']} items dropped"]
    # The kinds of pages say what the verdicts do, and which pages were new.
    for name in ("pages" if pages else "verdicts", "outcomes", "unchecked", "kept", "hosts"):
        rows = [(one_line(key), str(value)) for key, value in found[name].items()]
        if rows:
            lines += ["", rendered(Table(("kind" if name == "pages" else name, "pages"), rows), width)]
    return "\n".join(lines)


COMMANDS = {"stats": Subcommand(run, ("stats", "stats --run last --json"), add_run_option)}
