"""What it costs a crawl that four hundred copies of one page are in flight at once, and wait for the first of them.

Usage: python tests/benchmarks/twins.py [--twins 400] [--rounds 7]
Each pair of crawls has the same pages on the site and asks for all of them at once; their wall times and CPU are
compared, and the median of the ratios printed, as a table in Markdown:

- *at once*: nobody owns the story yet, against: an earlier crawl has kept it, so that no copy ever waits;
- *held up*: the original's item stays in the pipelines until every page has been fetched, and as many pages with text
  of their own are in flight beside the copies, against: nothing holds it up.

Exit status 1 if a ratio of wall times is above 1.10.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from corpus import table
from crawling import Outcome, run_job, write_job
from local_site import Site
from prose import article, story

MOST = 1.10
PIPELINE = {"EXTRA_PIPELINES": {"sample_spiders.FatePipeline": 100}}
FEED = {"FEEDS": {"feed.jsonl": {"format": "jsonlines"}}}
FIGURES = ("wall_s", "cpu_s")


def crawl(folder: Path, steps: list[dict[str, Any]], **settings: Any) -> Outcome:
    """Ask for all *steps* at once."""
    many = {"CONCURRENT_REQUESTS": len(steps), "CONCURRENT_REQUESTS_PER_DOMAIN": len(steps), "LOG_LEVEL": "WARNING"}
    command = write_job(
        folder, "sample_spiders.Steps", steps=steps, together=True, settings={**FEED, **many, **settings}
    )
    outcome = run_job(folder, command, timeout=600)
    if outcome.exit_status:
        sys.exit(outcome.stderr)
    return outcome


def ratios(one: Outcome, other: Outcome) -> list[float]:
    """Return how *one* compares to *other*, a figure each."""
    return [one.stats[f"process/{figure}"] / other.stats[f"process/{figure}"] for figure in FIGURES]


class Twins:
    """The site, and the crawls over it."""

    def __init__(self, twins: int) -> None:
        self.site = Site()
        page = article("twin", story(1))
        self.first = {"url": self.site.add("/first", page, host=1)}
        self.copies = [{"url": self.site.add(f"/copy/{n}", page, host=n % 3)} for n in range(twins)]
        self.others = [
            {"url": self.site.add(f"/other/{n}", article("other", story(n)), host=n % 3)} for n in range(2, twins + 2)
        ]

    def at_once(self, scratch: Path) -> tuple[Outcome, Outcome]:
        """Crawl the copies with and without a crawl before that has kept the story."""
        waiting = crawl(scratch / "waiting", self.copies)
        crawl(scratch / "known", [self.first])
        return waiting, crawl(scratch / "known", self.copies)

    def held_up(self, scratch: Path) -> tuple[Outcome, Outcome]:
        """Crawl the copies and the others with and without an original that is held up."""
        rest = [*self.copies, *self.others]
        until = {"HOLD_UNTIL": {"response_received_count": len(rest) + 1}}
        held = {**self.first, "priority": 1, "cb_kwargs": {"fate": "hold"}}
        slow = crawl(scratch / "slow", [held, *rest], **PIPELINE, **until)
        return slow, crawl(scratch / "quick", [{**self.first, "priority": 1}, *rest], **PIPELINE)


def main() -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--twins", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    twins = Twins(options.twins)
    rows, worst = [], 0.0
    for name, pair in (("at once", twins.at_once), ("held up", twins.held_up)):
        measured, waits, given_up = [], 0, 0
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as scratch:
                one, other = pair(Path(scratch))
                measured.append(ratios(one, other))
                waits = max(waits, one.stats.get("dedup/waits", 0))
                given_up = max(given_up, one.stats.get("dedup/waits/given_up", 0))
        wall, cpu = (statistics.median(column) for column in zip(*measured, strict=True))
        worst = max(worst, wall)
        rows.append([name, f"{wall:.2f}", f"{cpu:.2f}", str(waits), str(given_up)])
    twins.site.close()
    print(table(["", "wall", "CPU", "waits", "given up"], rows))
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
