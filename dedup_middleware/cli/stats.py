"""``scrapy dedup stats``: counts the records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dedup_middleware.cli.options import Subcommand, crawl_option
from dedup_middleware.records.counts import Counts, summary
from dedup_middleware.text.clauses import one_line
from dedup_middleware.text.terminal import Table, columns, rendered

if TYPE_CHECKING:
    from dedup_middleware.cli.call import Call

_LISTED = 10


def run(call: Call) -> None:
    """Print the counts, named as in Scrapy's stats."""
    counts = Counts(call.records)
    call.check_crawl(counts)
    found = {
        "records": str(call.log),
        "stats": {f"dedup/{name}": number for name, number in sorted(counts.numbers.items()) if number},
        "hosts": {f"{host} repeats {other}": count for (host, other), count in counts.pairs.most_common(_LISTED)},
    }
    call.show(found, stats_text)


def stats_text(found: dict[str, Any]) -> str:
    """Return what `run` found for a person: the summary, as a crawl logs it."""
    numbers = {name.removeprefix("dedup/"): number for name, number in found["stats"].items()}
    lines = [one_line(found["records"]), *(f"  {label:<30} {value:>7}" for label, value in summary(numbers))]
    if rows := [(one_line(hosts), str(pages)) for hosts, pages in found["hosts"].items()]:
        lines += ["", rendered(Table(("hosts", "pages"), rows), columns())]
    return "\n".join(lines)


COMMAND = Subcommand(run, ("stats", "stats --crawl last --json"), (crawl_option(),))
