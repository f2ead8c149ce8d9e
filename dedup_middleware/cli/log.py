"""``scrapy dedup log``: shows the records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dedup_middleware.cli.explain import record_text
from dedup_middleware.cli.options import HOST, MIN_SCORE, ORIGINAL, Subcommand, crawl_option, option
from dedup_middleware.errors import NothingFoundError
from dedup_middleware.records.counts import Counts, unchecked
from dedup_middleware.records.file import Record, RecordFilter
from dedup_middleware.text.terminal import plural, tell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dedup_middleware.cli.call import Call


def run(call: Call) -> None:
    """Print the chosen records; :class:`NothingFoundError` if a filter matches none."""
    counts = Counts()
    are_all = call.opts.all or call.opts.key
    shown = (each for each in counts.counted(call.records) if are_all or each.is_duplicate or each.is_related)
    if call.show_each(shown, record_text, Record.to_line):
        return
    call.check_crawl(counts)
    if replace(call.wanted, crawl=None) != RecordFilter():
        raise NothingFoundError("No record matches.")
    line = _no_duplicates(counts.numbers)
    tell(line) if call.opts.json else print(line)


def _no_duplicates(numbers: Mapping[str, int]) -> str:
    """Return a line on records without duplicates."""
    found = unchecked(numbers)
    total = found.total()
    reasons = ", ".join(f"{reason} {n}" if n != total else reason for reason, n in found.most_common())
    more = f" ({total:,} unchecked: {reasons})" if total else ""
    return f"No duplicates in {plural(numbers.get('pages', 0), 'page')}{more}"


COMMAND = Subcommand(
    run,
    ("log", "log --crawl last --min-score 0.9", "log --host example.org --all --json"),
    (
        *(HOST, ORIGINAL, crawl_option(), MIN_SCORE),
        option("--key", metavar="KEY", help="all records of the items with this key"),
        option("--all", action="store_true", help="include new, unchanged and unchecked pages"),
    ),
)
