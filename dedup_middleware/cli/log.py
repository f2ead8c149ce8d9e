"""``scrapy dedup log``: shows the records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dedup_middleware.cli.call import add_crawl_option, add_page_filter, share
from dedup_middleware.cli.commands import Subcommand
from dedup_middleware.cli.explain import record_text
from dedup_middleware.errors import NothingFoundError
from dedup_middleware.records.counts import Counts, unchecked
from dedup_middleware.records.file import RecordFilter, Records, crawl_named, log_of
from dedup_middleware.text.terminal import columns, plural, tell

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from dedup_middleware.cli.call import Call


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_page_filter(parser)
    add_crawl_option(parser)
    parser.add_argument("--key", metavar="KEY", help="all records of the items with this key")
    parser.add_argument("--min-score", metavar="X", type=share, default=0.0, help="minimum score, 0 to 1 (default: 0)")
    parser.add_argument("--all", action="store_true", help="include new, unchanged and unchecked pages")


def run(call: Call) -> None:
    """Print the chosen records; :class:`NothingFoundError` if a filter matches none."""
    config, opts, counts = call.config, call.opts, Counts()
    log = log_of(config)
    wanted = RecordFilter.of(
        config,
        opts.host,
        opts.original,
        crawl=crawl_named(log, opts.crawl),
        min_score=opts.min_score,
        key=opts.key,
    )
    has_found = False
    for record in Records(log, wanted):
        counts.add(record)
        if opts.all or opts.key or record.is_duplicate or record.is_related:
            has_found = True
            print(record.to_line() if opts.json else record_text(record, columns()))
    if has_found:
        return
    if wanted.crawl and not counts.numbers:
        raise NothingFoundError(f"No record of the crawl {wanted.crawl} in {log}.")
    if replace(wanted, crawl=None) != RecordFilter():
        raise NothingFoundError("No record matches.")
    line = _no_duplicates(counts.numbers)
    tell(line) if opts.json else print(line)


def _no_duplicates(numbers: Mapping[str, int]) -> str:
    """Return a line on records without duplicates."""
    found = unchecked(numbers)
    total = found.total()
    reasons = ", ".join(f"{reason} {n}" if n != total else reason for reason, n in found.most_common())
    more = f" ({total:,} unchecked: {reasons})" if total else ""
    return f"No duplicates in {plural(numbers.get('pages', 0), 'page')}{more}"


COMMANDS = {
    "log": Subcommand(
        run,
        ("log", "log --crawl last --min-score 0.9", "log --host example.org --all --json"),
        _add_options,
    )
}
