"""Kills crawls at random moments, lets them go on, and examines what was lost.

Usage: python tests/benchmarks/crashes.py [--kills 200] [--pages 2000] [--chain 10] [--seed 1] [--interval 100]
           [--filtered | --unstorable | --recrawl]
A chain is one store, one feed and one site: the crawl is killed (SIGKILL) *chain* times, at moments drawn from the
whole length of a crawl, begun again each time, and at last run to its end. Chains take turns: with and without JOBDIR,
copies far apart and side by side, a feed in a local file and one in batches that are stored when they are complete, as
on S3. What was lost is computed from the site's map of stories, the feed and the records, and nothing else. With
``--filtered``, items have different classes, and go to one feed, to another, or to none; instead of batches, a feed has
a filter of its own. With ``--unstorable``, a third of the items are of a class that cannot be stored, and a third have
such a field. With ``--recrawl``, items of unchanged pages are dropped, each story has one page, and each kill is one of
a first crawl: a second one, into a feed of its own, is to have what the first one has not, and a third one what has
changed since.

Prints for each kind of chain: kills; chains, and how many of their last crawls ended with exit status 0; last crawls
that never ended and were begun again; stores that did not open; stories of which a page was dropped and none is where
its item belongs; pages dropped in favour of themselves; chains that dropped what cannot be stored; and distinct pages
of a story that were kept beyond the first, a kill, beside the bound that the documentation gives: checkpoint interval +
concurrency, and a batch. Pages that a crawl keeps without being killed, because it may not drop them, do not count:
they are ``kept``.
"""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from corpus import parser_of
from crawling import Outcome, Running, run_job, write_job
from local_site import Site, wait_until
from prose import article, blog, story, zh_story
from sample_spiders_items import AttrsStory, DataStory, Filed, ForeignStory, PartlyStorable, ScrapyStory

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

#: Seconds for one crawl to its end, on a busy machine.
PATIENCE = 120
CONCURRENCY = 16
ARTICLES, FILED = "sample_spiders.Articles", "sample_spiders_items.Filed"
PARTLY_STORABLE = "sample_spiders_items.PartlyStorable"
BUCKET = "bucket"
BATCH = 50
IN_BATCHES = {
    "FEED_STORAGES": {"late": "sample_spiders.LateStorage"},
    "FEEDS": {f"late://{BUCKET}/%(batch_time)s-%(batch_id)d.jsonl": {"format": "jsonlines", "batch_item_count": BATCH}},
}
JSON_LINES = {"format": "jsonlines"}
BY_CLASS = {
    "feed.jsonl": {**JSON_LINES, "item_classes": ["sample_spiders_items.ScrapyStory"]},
    "other.jsonl": {**JSON_LINES, "item_classes": ["sample_spiders_items.DataStory"]},
}
OWN_FILTER = {**JSON_LINES, "item_filter": "sample_spiders_items.ScrapyStories"}
#: Where an item is that was kept; one of no feed has left the pipelines.
NO_FEED = "items.jsonl"
PLACES: dict[type, str] = {ScrapyStory: "feed.jsonl", DataStory: "other.jsonl", AttrsStory: NO_FEED}


def place_by_class(url: str) -> str:
    """Return the name of the file to which the item of the page *url* belongs."""
    return PLACES[Filed.class_of(url)]


@dataclass
class StorySite:
    """A site of which every story is told on several pages, and the map of who tells what."""

    site: Site
    urls: list[str] = field(default_factory=list)
    stories: dict[str, int] = field(default_factory=dict)

    @classmethod
    def build(cls, pages: int, *, together: bool, copies: int = 3) -> StorySite:
        """Serve *pages* pages; the copies of a story are next to one another, or as far apart as can be."""
        this, number = cls(Site()), pages // copies
        order_of = [(s, c) for s in range(number) for c in range(copies)]
        if not together:
            order_of.sort(key=lambda pair: pair[1])
        for told, copy in order_of:
            text = (zh_story if told % 2 else story)(told)
            url = this.site.add(f"/{told}/{copy}", (blog if copy else article)(f"Story {told}", text), host=copy % 3)
            this.urls.append(url)
            this.stories[url] = told
        return this


@dataclass
class Verdict:
    """What the witness saw."""

    lost: set[int]
    """Stories of which a page was dropped and none is where its item belongs."""
    self_drops: int
    twice: int
    """Distinct pages kept beyond the first of their story."""
    missing: int
    """Stories that were neither kept nor dropped: Scrapy loses requests of a job that is killed."""
    dropped: set[str]
    """The URLs of the pages that were dropped."""


def witness(
    stories: dict[str, int],
    outcome: Outcome,
    feed: str = "feed.jsonl",
    place_of: Callable[[str], str] | None = None,
) -> Verdict:
    """Compare the map of *stories* with what a crawl left in its folder.

    *place_of* returns the name of the file to which the item of a page belongs; all belong to *feed* without it.
    """
    tales = {url: (told, place_of(url) if place_of else feed) for url, told in stories.items()}
    kept: defaultdict[tuple[int, str], set[str]] = defaultdict(set)
    for place in {place for _, place in tales.values()}:
        files = [outcome.folder / place, *sorted((outcome.folder / BUCKET).glob("*.jsonl"))]
        for item in (item for path in files for item in whole_lines(path)):
            if tales[item["url"]][1] == place:
                kept[tales[item["url"]]].add(item["url"])
    # An item that no feed wants goes through the pipelines, as any item of its story does.
    everywhere = {story for story, _ in kept}
    dropped = [r for r in whole_lines(outcome.folder / "records.jsonl") if r.get("outcome") == "dropped"]
    told = {tales[r["url"]] for r in dropped}
    return Verdict(
        lost={story for story, place in told - kept.keys() if place != NO_FEED or story not in everywhere},
        self_drops=sum(r["url"] == r["original_url"] for r in dropped),
        twice=sum(len(urls) - 1 for urls in kept.values()),
        missing=len(set(tales.values()) - told - kept.keys()),
        dropped={r["url"] for r in dropped},
    )


def whole_lines(path: Path) -> list[dict[str, Any]]:
    """Return the JSON objects in *path*; a killed process leaves torn lines, and the next one appends to them."""
    found = []
    for line in path.read_text(encoding="utf8").splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return [row for row in found if isinstance(row, dict)]


def settings_of(*, jobdir: bool, interval: int) -> dict[str, Any]:
    """Return the settings of a chain."""
    settings: dict[str, Any] = {
        "LOG_LEVEL": "INFO",
        "FEEDS": {"feed.jsonl": JSON_LINES},
        "CONCURRENT_REQUESTS": CONCURRENCY,
        "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENCY,
        "CHECKPOINT_INTERVAL": interval,
    }
    return settings | ({"JOBDIR": "job"} if jobdir else {})


def run_with_fault(told: StorySite, settings: dict[str, Any], fault: dict[str, Any]) -> tuple[int, Verdict]:
    """Crawl with *fault*, again without it if it ended the process; return the first exit status and what was seen."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        urls = ",".join(told.urls)
        outcome = run_job(folder, write_job(folder, ARTICLES, urls=urls, settings=settings | fault))
        status = outcome.exit_status
        if status:
            outcome = run_job(folder, write_job(folder, ARTICLES, urls=urls, settings=settings))
        return status, witness(told.stories, outcome)


def kinds_of_chains(options: argparse.Namespace) -> list[tuple[str, bool, dict[str, Any]]]:
    """Return each kind of chain: its name, whether copies are side by side, and its settings."""
    kinds = []
    orders = [(jobdir, together, False) for jobdir in (False, True) for together in (False, True)]
    for jobdir, together, is_last in [*orders, (False, False, True), (True, True, True)]:
        name = f"{'JOBDIR' if jobdir else 'afresh'}, copies {'side by side' if together else 'far apart'}"
        settings = settings_of(jobdir=jobdir, interval=options.interval)
        if options.filtered:
            settings["FEEDS"] = BY_CLASS | ({"feed.jsonl": OWN_FILTER} if is_last else {})
        elif is_last:
            settings |= IN_BATCHES
        name += (", own filter" if options.filtered else ", in batches") * is_last
        kinds.append((name, together, settings))
    return kinds


def run_chain(
    told: StorySite, moments: Sequence[float], settings: dict[str, Any], options: argparse.Namespace
) -> Counter[str]:
    """Kill a crawl at these *moments*, and begin it again; let the last one end. Return what was seen.

    A moment is a number of seconds, or, as an integer, of pages that the crawl has asked for.
    """
    started = time.monotonic()
    spider = FILED if options.filtered else PARTLY_STORABLE if options.unstorable else ARTICLES
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        command = write_job(folder, spider, urls=",".join(told.urls), settings=settings)
        for moment in moments:
            with Running(folder, command) as running:
                if isinstance(moment, int):
                    pages = len(told.site.requests) + moment
                    wait_until(lambda pages=pages: len(told.site.requests) >= pages)
                else:
                    time.sleep(moment)
                running.kill()
        outcome, hung = None, 0
        while outcome is None:
            with Running(folder, command) as running, contextlib.suppress(subprocess.TimeoutExpired):
                outcome = running.wait(PATIENCE)
            hung += outcome is None
        refused = sum("dedup: the store" in line for line in outcome.problems)
        seen = witness(told.stories, outcome, place_of=place_by_class if options.filtered else None)
    is_storable = not options.unstorable or all(
        PartlyStorable.class_of(url) is not ForeignStory for url in seen.dropped
    )
    return Counter(
        kills=len(moments),
        chains=1,
        hung=hung,
        ended_well=int(outcome.exit_status == 0),
        refused=refused,
        lost=len(seen.lost),
        self_drops=seen.self_drops,
        unstorable_dropped=int(not is_storable),
        dropped=len(seen.dropped),
        twice=seen.twice,
        missing=seen.missing,
        seconds=round(time.monotonic() - started),
    )


def run_recrawls(told: StorySite, turn: int, pages: int, options: argparse.Namespace) -> Counter[str]:
    """Kill a first crawl that has asked for so many *pages*; crawl again, and once more after some have changed."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, feeds = Path(scratch), [f"{number}.jsonl" for number in range(3)]

        def command(feed: str) -> list[str]:
            settings = settings_of(jobdir=False, interval=options.interval)
            settings |= {"FEEDS": {feed: JSON_LINES}, "DEDUP_UNCHANGED": "drop"}
            return write_job(folder, ARTICLES, urls=",".join(told.urls), settings=settings)

        with Running(folder, command(feeds[0])) as running:
            asked = len(told.site.requests) + pages
            wait_until(lambda: len(told.site.requests) >= asked)
            running.kill()
        run_job(folder, command(feeds[1]))
        before = {*told.urls}
        changed = {told.site.add(f"/{n}/0", article(f"Story {n}", [*story(n), f"Edit {turn}."])) for n in range(10)}
        told.urls += (
            told.site.add(f"/new/{turn}/{n}", article("New", story(10_000 + 10 * turn + n))) for n in range(10)
        )
        run_job(folder, command(feeds[2]))
        first, second, third = ({item["url"] for item in whole_lines(folder / feed)} for feed in feeds)
    wanted = {*told.urls} - before | changed
    return Counter(
        kills=1,
        first=len(first),
        lost=len(before - first - second),
        twice=len(first & second),
        missed=len(wanted - third),
        invented=len(third - wanted),
    )


def main() -> None:
    """Print one line of JSON for each kind of chain."""
    numbers = {"kills": 200, "pages": 2000, "chain": 10, "seed": 1, "interval": 100}
    options = parser_of(__doc__, **numbers, filtered=False, unstorable=False, recrawl=False).parse_args()
    chance = random.Random(options.seed)
    if options.recrawl:
        told, total = StorySite.build(options.pages, together=True, copies=1), Counter[str]()
        for turn in range(options.kills):
            total.update(run_recrawls(told, turn, chance.randint(1, options.pages), options))
            print(json.dumps(total), file=sys.stderr, flush=True)
        print(json.dumps(total))
        told.site.close()
        return
    kinds, sums = kinds_of_chains(options), defaultdict(Counter)
    sites = {together: StorySite.build(options.pages, together=together) for together in (False, True)}
    kept: dict[str, int] = {}
    for turn in range(options.kills // options.chain):
        name, together, settings = kinds[turn % len(kinds)]
        if name not in kept:
            is_plain = not options.filtered and not options.unstorable
            kept[name] = 0 if is_plain else run_chain(sites[together], [], settings, options)["twice"]
        longest = (options.pages * 0.006 + 1) / (2 if "JOBDIR" in settings else 1)
        moments = [chance.uniform(0.5, longest) for _ in range(options.chain)]
        sums[name].update(run_chain(sites[together], moments, settings, options))
        sums[name]["twice"] -= kept[name]
        print(json.dumps({"chain": turn, "kind": name, **sums[name]}), file=sys.stderr, flush=True)
    for name, total in sums.items():
        a_kill = round(total["twice"] / total["kills"], 1)
        bound = options.interval + CONCURRENCY + BATCH * name.endswith("batches")
        print(json.dumps({"kind": name, **total, "kept": kept[name], "twice_a_kill": a_kill, "bound_a_kill": bound}))
    for told in sites.values():
        told.site.close()


if __name__ == "__main__":
    main()
