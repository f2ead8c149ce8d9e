"""Processes of one spider at once: what each keeps, drops and ends with.

Usage: python tests/benchmarks/processes.py [--runs 20] [--processes 2 4] [--pages 300] [--seed 1]
In each run so many processes crawl one site with one store and one log, begun together or up to a second apart; the
site tells every story on three pages. Printed for each number of processes: runs; processes; those that did not end
with status 0; pages that a process neither kept nor dropped; observers, and those that dropped anything; stories
that a holder did not keep, and that nobody did; runs without a holder; and holders, alone in their run, that dropped
other pages than one process does by itself.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from crashes import StorySite
from crawling import Outcome, Running, run_job, store_uri, write_job

#: One page after the other, so that what is dropped does not depend on which answer comes first.
IN_ORDER = {"CONCURRENT_REQUESTS": 1, "LOG_LEVEL": "INFO"}


class Seen(NamedTuple):
    """What a process gave."""

    status: int
    kept: list[str]
    dropped: list[str]
    observes: bool

    @classmethod
    def of(cls, outcome: Outcome) -> Seen:
        dropped = [item["url"] for item in outcome.dropped]
        return cls(outcome.exit_status, outcome.kept, dropped, "dedup/observer" in outcome.stats)


def crawl_together(told: StorySite, processes: int, chance: random.Random) -> list[Seen]:
    """Crawl the site in so many processes at once, and return what each gave."""
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as running:
        shared = {"DEDUP_STORE": store_uri(Path(scratch)), "DEDUP_LOG": f"{scratch}/records.jsonl", **IN_ORDER}
        crawls = []
        for number in range(processes):
            folder = Path(scratch) / str(number)
            command = write_job(folder, "sample_spiders.OneByOne", urls=",".join(told.urls), settings=shared)
            crawls.append(running.enter_context(Running(folder, command)))
            time.sleep(chance.choice([0, 0, chance.random()]))
        return [Seen.of(crawl.wait(600)) for crawl in crawls]


def count(told: StorySite, seen: list[Seen], alone: list[str]) -> Counter[str]:
    """Return what is to be counted of one run; *alone* is what one process drops by itself."""
    everything = set(told.stories.values())
    stories = [{told.stories[url] for url in each.kept} for each in seen]
    holders = [each for each in seen if not each.observes]
    return Counter(
        runs=1,
        processes=len(seen),
        failed=sum(each.status != 0 for each in seen),
        pages_lost=sum(len(set(told.urls) - {*each.kept, *each.dropped}) for each in seen),
        observers=len(seen) - len(holders),
        observers_that_dropped=sum(each.observes and bool(each.dropped) for each in seen),
        stories_lost_by_a_holder=sum(
            len(everything - told_by) for each, told_by in zip(seen, stories, strict=True) if not each.observes
        ),
        stories_lost_by_all=len(everything - set[int]().union(*stories)),
        runs_without_a_holder=not holders,
        dropped_otherwise_than_alone=len(holders) == 1 and holders[0].dropped != alone,
    )


def main() -> None:
    """Print one line of JSON for each number of processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    told = StorySite.build(options.pages, together=False)
    with tempfile.TemporaryDirectory() as scratch:
        command = write_job(Path(scratch), "sample_spiders.OneByOne", urls=",".join(told.urls), settings=IN_ORDER)
        alone = [i["url"] for i in run_job(Path(scratch), command, timeout=600).dropped]
    for processes in options.processes:
        total: Counter[str] = Counter()
        for _ in range(options.runs):
            total.update(count(told, crawl_together(told, processes, chance), alone))
        print(json.dumps({"at once": processes, **total}), flush=True)
    told.site.close()


if __name__ == "__main__":
    main()
