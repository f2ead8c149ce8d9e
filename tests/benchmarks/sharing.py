"""Measures what processes that share one store lose and keep twice.

Usage: python tests/benchmarks/sharing.py [--races 20] [--kills 50] [--processes 4] [--pages 600] [--seed 1]
           [--store 'sqlite:{}?shared=1'] [--interval 20] [--chain 10] [--victims worker]
In ``--store``, ``{}`` stands for a path in a folder of the run's own. ``redis`` is a store on a Redis server that is
started for it, with ``appendfsync everysec``.

``--races N``: each story is told on as many pages as there are processes, and each process gets one of them, in the
same order and at the same time. Prints the stories that no process kept, and the pages kept beyond the first of their
story, in N runs.
``--kills N``: each process crawls a part of one site whose stories are told three times, with a feed of its own, and
makes durable after so many pages (``--interval``). One of them, drawn at random, is killed (SIGKILL) after a random
number of its pages and begun again in its folder, *chain* times; then all run to their ends. Prints how many were still
at work when they were killed; stories of which a page was dropped and none is in a feed; pages kept beyond the first of
their story, and items that were released; processes that did not end with status 0. ``--victims``: what is killed each
time: ``worker``, ``server`` (of ``--store redis``, and begun again), or ``both``.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from corpus import parser_of
from crashes import PATIENCE, StorySite, settings_of, whole_lines
from crawling import Outcome, Running, write_job
from local_site import wait_until
from redis_server import RedisServer

if TYPE_CHECKING:
    import argparse

    from typing_extensions import Self


class Together:
    """Several processes with one store, each in a folder of its own under *scratch*."""

    def __init__(self, scratch: Path, store: str, parts: list[list[str]], settings: dict[str, Any]) -> None:
        self._running = ExitStack()
        path = store.replace("{}", str(scratch / "store")).replace("{name}", scratch.name)
        shared = {"DEDUP_STORE": path, **settings}
        self._commands = {}
        for number, urls in enumerate(parts):
            folder = scratch / str(number)
            self._commands[folder] = write_job(folder, "sample_spiders.Articles", urls=",".join(urls), settings=shared)
        self._crawls = {folder: self._begin(folder) for folder in self._commands}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def _begin(self, folder: Path) -> Running:
        return self._running.enter_context(Running(folder, self._commands[folder]))

    def kill_one(self, chance: random.Random, pages: int) -> bool:
        """Kill one of them within so many *pages*, and begin it again; return whether it was still at work."""
        folder = chance.choice([*self._crawls])
        crawl, log = self._crawls[folder], folder / "records.jsonl"
        enough = len(whole_lines(log)) + chance.randint(1, pages)
        wait_until(lambda: crawl.is_over or len(whole_lines(log)) >= enough, PATIENCE)
        was_at_work = not crawl.is_over
        crawl.kill()
        self._crawls[folder] = self._begin(folder)
        return was_at_work

    def wait(self) -> list[Outcome]:
        """Return what came of each, once all have ended."""
        return [crawl.wait(PATIENCE) for crawl in self._crawls.values()]

    @property
    def folders(self) -> list[Path]:
        """The folder of each."""
        return [*self._crawls]


def told_in(folders: list[Path], stories: dict[str, int]) -> Counter[int]:
    """Return on how many pages of each story a feed has an item."""
    urls = {item["url"] for folder in folders for item in whole_lines(folder / "feed.jsonl")}
    return Counter(stories[url] for url in urls)


def dropped_in(folders: list[Path], stories: dict[str, int]) -> set[int]:
    """Return the stories of which a page was dropped."""
    records = [record for folder in folders for record in whole_lines(folder / "records.jsonl")]
    return {stories[record["url"]] for record in records if record.get("outcome") == "dropped"}


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
            failed=sum(bool(o.exit_status) for o in outcomes) + counted(outcomes, "dedup/failures"),
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
                    at_work -= not crawls.kill_one(chance, len(parts[0]) // options.processes)
                if options.victims != "worker":
                    options.server.kill()
                    time.sleep(chance.uniform(0, 2))
                    options.server.begin()
            outcomes = crawls.wait()
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


def main() -> None:
    """Print one line of JSON for each thing that was asked for."""
    parser = parser_of(__doc__, processes=4, pages=600, seed=1, races=0, kills=0, interval=20, chain=10)
    parser.add_argument("--store", default="sqlite:{}?shared=1")
    parser.add_argument("--victims", choices=["worker", "server", "both"], default="worker")
    options = parser.parse_args()
    with ExitStack() as running:
        if options.store == "redis":
            folder = running.enter_context(tempfile.TemporaryDirectory())
            server = running.enter_context(RedisServer(Path(folder) / "redis"))
            options.server = server
            options.store = f"{server.url}?store={{name}}"
        chance = random.Random(options.seed)
        for name, rounds in (("races", options.races), ("kills", options.kills // options.chain)):
            total: Counter[str] = Counter()
            for _ in range(rounds):
                total.update(race(options) if name == "races" else kill(options, chance))
            if rounds:
                print(json.dumps({"what": name, "store": options.store, "processes": options.processes, **total}))


if __name__ == "__main__":
    main()
