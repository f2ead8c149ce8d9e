"""``scrapy dedup log``: the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.cli.call import add_common_options, add_page_filter, share, tell
from dedup_middleware.cli.commands import NOTHING_FOUND
from dedup_middleware.records import explain
from dedup_middleware.records.dropped import PageFilter
from dedup_middleware.records.log_reader import RecordFilter, log_of, records
from dedup_middleware.records.recorder import sums_of
from dedup_middleware.records.unchecked import listed

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from dedup_middleware.cli.call import Call

EXAMPLES = ("log", "log --run last --min-score 0.9", "log --host example.org --all --json", "log --follow")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)
    add_page_filter(parser)
    parser.add_argument("--run", metavar="R", help="only records of this crawl; `last`: the latest")
    parser.add_argument("--follow", action="store_true", help="wait for further records")
    parser.add_argument("--min-score", metavar="X", type=share, default=0.0, help="minimum score, 0 to 1 (default: 0)")
    parser.add_argument("--all", action="store_true", help="include unchanged and unchecked pages")


def run(call: Call) -> int:
    """Print the records that are wanted."""
    config, opts = call.config, call.opts
    wanted = RecordFilter.of(
        config, PageFilter.of(None, opts.host, opts.original), opts.run, min_score=opts.min_score, everything=opts.all
    )
    count = 0
    for record in records(config, wanted, follow=opts.follow):
        count += 1
        print(record.to_line() if opts.json else explain.record_text(record), flush=opts.follow)
    is_choosy = opts.host or opts.original or opts.run or opts.min_score
    if not count and not opts.all and not is_choosy:
        _tell_unchecked(log_of(config))
    return NOTHING_FOUND if is_choosy and not count else 0


def _tell_unchecked(log: Path) -> None:
    """Tell the user of pages in *log* that were not checked: without a duplicate, nothing else is printed."""
    if unchecked := sums_of(log).unchecked:
        count = sum(unchecked.values())
        tell(f"no duplicates; {count} pages were not checked ({listed(unchecked)}): add --all to see them")
