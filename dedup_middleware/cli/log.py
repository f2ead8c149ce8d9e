"""``scrapy dedup log``: shows the records of the log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dedup_middleware.cli.call import add_page_filter, add_run_option, share
from dedup_middleware.cli.commands import NOTHING_FOUND, Subcommand
from dedup_middleware.cli.explain import record_text
from dedup_middleware.errors import NothingFoundError, StoreError
from dedup_middleware.index.shared import index_for_command
from dedup_middleware.records.counts import counts_of
from dedup_middleware.records.log import RecordFilter, Records, log_of, run_named
from dedup_middleware.stores import store_exists
from dedup_middleware.terminal import columns, plural, tell

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.cli.call import Call
    from dedup_middleware.settings import Config


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_page_filter(parser)
    add_run_option(parser)
    parser.add_argument("--min-score", metavar="X", type=share, default=0.0, help="minimum score, 0 to 1 (default: 0)")
    parser.add_argument("--all", action="store_true", help="include pages that share no text, and unchecked ones")


def run(call: Call) -> int:
    """Print the chosen records; return 3 if a filter matches none."""
    config, opts = call.config, call.opts
    log = log_of(config)
    run = run_named(log, opts.run)
    wanted = RecordFilter.of(config, opts.host, opts.original, run=run, min_score=opts.min_score)
    has_found = False
    for record in Records(log, wanted):
        if not (opts.all or record.is_duplicate or record.is_related):
            continue
        has_found = True
        print(record.to_line() if opts.json else record_text(record, columns()))
    if has_found:
        return 0
    if replace(wanted, run=None) != RecordFilter():
        tell("No record matches.")
        return NOTHING_FOUND
    line = _no_duplicates(config, wanted)
    tell(line) if opts.json else print(line)
    return 0


def _no_duplicates(config: Config, wanted: RecordFilter) -> str:
    """Return a line on a log without duplicates; new pages are not in the log, but their number is in the store."""
    log = log_of(config)
    counts = counts_of(log, wanted.run)
    if wanted.run and not counts.records:
        raise NothingFoundError(f"No record of the crawl {wanted.run} in {log}.")
    pages, unchecked = counts.records, counts.unchecked.total()
    try:
        if store_exists(config.store):
            with index_for_command(config.store, "log") as (_, index):
                # Those with another verdict, or none, have a record.
                new = (page for page in index.pages() if page.original is None and page.standing is None)
                pages += sum(wanted.run in {None, page.run} for page in new)
    except StoreError:  # in use: the pages of the log are counted
        pass
    reasons = ", ".join(f"{reason} {n}" if n != unchecked else reason for reason, n in counts.unchecked.most_common())
    more = f" ({unchecked:,} not checked: {reasons})" if unchecked else ""
    return f"No duplicates in {plural(pages, 'page')}{more}"


COMMANDS = {
    "log": Subcommand(
        run,
        ("log", "log --run last --min-score 0.9", "log --host example.org --all --json"),
        _add_options,
    )
}
