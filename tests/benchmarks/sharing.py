"""Processes that share one store: what they lose, what they keep twice, and what it costs.

Usage: python tests/benchmarks/sharing.py [--processes 4] [--pages 600] [--seed 1] [--store 'sqlite:{}?shared=1']
           [--races 20] [--kills 50] [--interval 20] [--chain 10] [--for-good]
           [--corpus FILE]...
In ``--store``, ``{}`` stands for a path in a folder of the run's own, and ``{name}`` for a name of its own. ``redis``
is a store on a Redis server that is begun for it, with ``appendfsync everysec``.

``--races N``: each story is told on as many pages as there are processes, and each process gets one of them, in the
same order and at the same time. Printed: stories that nobody kept, and pages kept beyond the first of their
story, in N runs.
``--kills N``: each process crawls a part of one site whose stories are told three times, with a feed of its own, and
makes durable after so many pages (``--interval``). One of them, drawn at random, is killed (SIGKILL) after a random
number of its pages and begun again in its folder, *chain* times; then all run to their ends. Printed: how many were
still at work when they were killed; stories of which a page was dropped and none is in a feed; pages kept beyond
the first of their story, and items that were released; processes that did not end with status 0. ``--for-good``: they
are not begun again, until one is left, and whatever was dropped for what they had not made durable is for that one, and
for the next crawl of their spider, which follows.
``--victims``: who is killed each time: ``worker``, ``server`` (of ``--store redis``, and begun again), or ``both``.
``--corpus FILE``: labelled pages (see `corpus.py`), every nth for each process; and one process with LevelDB that gets
all of them, in the order in which the several had them, and in the corpus's own. Which copy comes first decides a good
deal by itself. Printed: F1, lost stories, seconds of CPU, how often a process waited for another.
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
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from crashes import PATIENCE, StorySite, settings_of, whole_lines
from crawling import Outcome, Running, store_uri, write_job
from local_site import Site, wait_until
from redis_server import RedisServer

from dedup_middleware.methods.compare.corpus import read_pages
from dedup_middleware.methods.compare.results import scores

if TYPE_CHECKING:
    from typing_extensions import Self

    from dedup_middleware.methods.compare.corpus import CorpusPage

# Pages in the order in which they are asked for: Scrapy's default takes turns between hosts.
_IN_ORDER = {
    "LOG_LEVEL": "INFO",
    "FEEDS": {"feed.jsonl": {"format": "jsonlines"}},
    "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
    "CONCURRENT_REQUESTS": 8,
}


class Together:
    """Several processes with one store, each in a folder of its own under *scratch*."""

    def __init__(self, scratch: Path, store: str, parts: list[list[str]], settings: dict[str, Any]) -> None:
        self._running = ExitStack()
        shared = {
            "DEDUP_STORE": store.replace("{}", str(scratch / "store")).replace("{name}", scratch.name),
            **settings,
        }
        self._commands = {}
        for number, urls in enumerate(parts):
            folder = scratch / str(number)
            self._commands[folder] = write_job(folder, "sample_spiders.Articles", urls=",".join(urls), settings=shared)
        self._gone: set[Path] = set()
        self._last = scratch / "last", shared
        self._crawls = {folder: self._begin(folder) for folder in self._commands}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def _begin(self, folder: Path) -> Running:
        return self._running.enter_context(Running(folder, self._commands[folder]))

    def kill_one(self, chance: random.Random, pages: int, *, for_good: bool) -> bool:
        """Kill one of them within so many *pages*, and begin it again; tell whether it was still at work."""
        folder = chance.choice([folder for folder in self._crawls if folder not in self._gone])
        crawl, log = self._crawls[folder], folder / "records.jsonl"
        enough = len(whole_lines(log)) + chance.randint(1, pages)
        wait_until(lambda: crawl.is_over or len(whole_lines(log)) >= enough, PATIENCE)
        was_at_work = not crawl.is_over
        crawl.kill()
        if for_good:
            self._gone.add(folder)
        else:
            self._crawls[folder] = self._begin(folder)
        return was_at_work

    def wait(self) -> list[Outcome]:
        """Return what came of each that was not killed for good, once all have ended."""
        return [crawl.wait(PATIENCE) for folder, crawl in self._crawls.items() if folder not in self._gone]

    def crawl_what_is_left(self, url: str) -> Outcome:
        """Let one more crawl of the same spider, of nothing but *url*, keep what the dead have left."""
        folder, settings = self._last
        self._commands[folder] = write_job(folder, "sample_spiders.Articles", urls=url, settings=settings)
        self._crawls[folder] = self._begin(folder)
        return self._crawls[folder].wait(PATIENCE)

    @property
    def folders(self) -> list[Path]:
        """The folder of each, of those that were killed for good too."""
        return [*self._crawls]


def told_in(folders: list[Path], stories: dict[str, int]) -> Counter[int]:
    """Return on how many pages of each story a feed has an item."""
    urls = {item["url"] for folder in folders for item in whole_lines(folder / "feed.jsonl")}
    return Counter(stories[url] for url in urls)


def dropped_in(folders: list[Path], stories: dict[str, int]) -> set[int]:
    """Return the stories of which a page was dropped."""
    records = [record for folder in folders for record in whole_lines(folder / "records.jsonl")]
    return {stories[record["url"]] for record in records if record["outcome"] == "dropped"}


def counted(outcomes: list[Outcome], name: str) -> float:
    """Return the sum of the stat *name*."""
    return sum(outcome.stats.get(name, 0) for outcome in outcomes)


def race(options: argparse.Namespace) -> Counter[str]:
    """Let all processes meet each story at once; return what is to be counted."""
    told = StorySite.build(options.pages, together=False, copies=options.processes)
    stories = options.pages // options.processes
    parts = [told.urls[n * stories : (n + 1) * stories] for n in range(options.processes)]
    with tempfile.TemporaryDirectory() as scratch:
        settings = settings_of(jobdir=False, interval=100)
        with Together(Path(scratch), options.store, parts, settings) as crawls:
            outcomes = crawls.wait()
        told.site.close()
        kept = told_in(crawls.folders, told.stories)
        return Counter(
            runs=1,
            stories=stories,
            lost=stories - len(kept),
            twice=sum(kept.values()) - len(kept),
            waits=counted(outcomes, "dedup/waits"),
            waits_given_up=counted(outcomes, "dedup/waits/given_up"),
            failed=sum(bool(o.exit_status or o.problems) for o in outcomes),
        )


def kill(options: argparse.Namespace, chance: random.Random) -> Counter[str]:
    """Kill processes one after the other while they crawl; return what is to be counted."""
    told = StorySite.build(options.pages, together=chance.random() < 0.5)
    parts = [told.urls[n :: options.processes] for n in range(options.processes)]
    with tempfile.TemporaryDirectory() as scratch:
        settings = settings_of(jobdir=False, interval=options.interval)
        at_work = options.chain
        with Together(Path(scratch), options.store, parts, settings) as crawls:
            for _ in range(options.chain):
                if options.victims == "server":
                    time.sleep(chance.uniform(0.3, options.pages * 0.006))
                else:
                    at_work -= not crawls.kill_one(
                        chance, len(parts[0]) // options.processes, for_good=options.for_good
                    )
                if options.victims != "worker":
                    options.server.kill()
                    time.sleep(chance.uniform(0, 2))
                    options.server.begin()
            outcomes = crawls.wait()
            if options.for_good:
                outcomes.append(crawls.crawl_what_is_left(told.urls[0]))
        told.site.close()
        kept, dropped = told_in(crawls.folders, told.stories), dropped_in(crawls.folders, told.stories)
        return Counter(
            kills=options.chain,
            at_work=at_work,
            stories=len(set(told.stories.values())),
            lost=len(dropped - kept.keys()),
            missing=len(set(told.stories.values()) - kept.keys()),
            twice=sum(kept.values()) - len(kept),
            released=counted(outcomes, "dedup/items/released"),
            failed=sum(bool(o.exit_status) for o in outcomes) + counted(outcomes, "dedup/failures"),
        )


def corpora(path: Path, options: argparse.Namespace) -> None:
    """Crawl the corpus at *path* in all processes, then in one in the order in which they got it; print what came."""
    labelled = LabelledSite(path)
    try:
        shared = labelled.crawl(options.processes, options.store)
        again = labelled.crawl(1, store_uri(Path("{}")), shared.pop("order"))
        own = labelled.crawl(1, store_uri(Path("{}")))
        for name, result in ((options.store, shared), ("one process, in that order", again), ("one process", own)):
            result.pop("order", None)
            print(json.dumps({"corpus": path.name, "store": name, **result}), flush=True)
    finally:
        labelled.site.close()


class LabelledSite:
    """A site with the pages of a corpus."""

    def __init__(self, path: Path) -> None:
        self.site = Site(hosts=9)
        self._pages: dict[str, CorpusPage] = {}
        hosts: dict[str, int] = {}
        for page, html in read_pages(path):
            host, _, rest = page.url.removeprefix("http://").partition("/")
            number = hosts.setdefault(host, len(hosts)) % 9
            self._pages[self.site.add(f"/{rest}", html, host=number)] = page

    def crawl(self, processes: int, store: str, order: list[str] | None = None) -> dict[str, Any]:
        """Crawl it, every nth page in each process; return how right that was, what it cost, and the *order* it had."""
        urls = order or [*self._pages]
        with tempfile.TemporaryDirectory() as scratch:
            parts = [urls[n::processes] for n in range(processes)]
            before = len(self.site.requests)
            with Together(Path(scratch), store, parts, _IN_ORDER) as crawls:
                outcomes = crawls.wait()
            asked = [f"http://{host}:{self.site.port}{path}" for _, host, path in self.site.requests[before:]]
            kept = {item["url"] for outcome in outcomes for item in outcome.lines("feed.jsonl")}
            checked = [record for outcome in outcomes for record in outcome.lines("records.jsonl")]
            cost = {
                "cpu_s": round(counted(outcomes, "process/cpu_s"), 1),
                "waits": counted(outcomes, "dedup/waits"),
                "problems": sum(len(o.problems) for o in outcomes),
            }
        order = list(dict.fromkeys(url for url in asked if url in self._pages))
        owned_by = {record["url"]: self._pages.get(record.get("original_url")) for record in checked}
        pages = [_with_leave(self._pages[url], owned_by.get(url)) for url in order]
        originals = [number if url in kept else -1 for number, url in enumerate(order)]
        return {"processes": processes, **scores(pages, originals)._asdict(), **cost, "order": order}


def _with_leave(page: CorpusPage, original: CorpusPage | None) -> CorpusPage:
    """Let a short version be dropped for *original*, the story that covers it and came before, as `score.py` does."""
    may_go = original is not None and page.cluster == f"{original.cluster}-brief"
    return replace(page, is_optional=page.is_optional or may_go)


def main() -> None:
    """Print one line of JSON for each thing that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--pages", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", default="sqlite:{}?shared=1")
    parser.add_argument("--races", type=int, default=0)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--victims", choices=["worker", "server", "both"], default="worker")
    parser.add_argument("--for-good", action="store_true")
    parser.add_argument("--interval", type=int, default=20)
    parser.add_argument("--chain", type=int, default=10)
    parser.add_argument("--corpus", type=Path, action="append", default=[])
    options = parser.parse_args()
    if options.for_good:
        options.chain = options.processes - 1
    with ExitStack() as running:
        if options.store == "redis":
            folder = running.enter_context(tempfile.TemporaryDirectory())
            server = running.enter_context(RedisServer(Path(folder) / "redis"))
            options.server = server
            options.store = f"{server.url}?store={{name}}"
        run(options)


def run(options: argparse.Namespace) -> None:
    """Do what was asked for."""
    chance = random.Random(options.seed)
    for name, rounds in (("races", options.races), ("kills", options.kills // options.chain)):
        total: Counter[str] = Counter()
        for _ in range(rounds):
            total.update(race(options) if name == "races" else kill(options, chance))
        if rounds:
            print(json.dumps({"what": name, "store": options.store, "processes": options.processes, **total}))
    for path in options.corpus:
        corpora(path, options)


if __name__ == "__main__":
    main()
