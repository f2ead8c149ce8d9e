"""Crawls random sites by random spiders and ends the crawls in random ways, and examines what was lost.

Usage: python tests/benchmarks/campaign.py [--scenarios 300] [--seed 1] [--store leveldb] [--kills] [--keyed]
           [--control]
A scenario is one site, one store and one kind of feed: stories with copies, edits, redirects and errors; callbacks and
pipelines that fail, drop and replace; pages with several items; two to four crawls of two spiders, which end by
themselves, by SIGKILL or by SIGTERM, with and without JOBDIR; and between them pages that are allowed or forgotten. The
last crawl runs to its end; most of them fetch nothing, and only release.
Stores and feeds take turns, unless ``--store`` names one. With ``--kills``, every crawl but
the last is killed.

Each paragraph that a dropped item had must be where such items belong: in a feed, or, where no feed takes them, in what
has left the pipelines. Dropped items that the store has do not count, so that a drop must rest on something that was
kept. In a feed that each crawl overwrites, what the last crawl dropped must be in its feed.

With ``--keyed``, items have a key, a text and a price, and in most scenarios those of unchanged keys are dropped: all
values of a dropped item, not its paragraphs, must be where such items belong.

``--control`` lets drops rest on claims that are open: it must lose.

Prints one line of JSON for each pair of store and feed, and one in all: scenarios, crawls, kills, SIGTERMs, drops,
paragraphs that were lost, crawls that never ended or ended with an error, and defects of the plugin. A crawl that gets
a SIGTERM while an item of its `start()` is in the pipelines never ends: Scrapy closes its scraper only after a
response. It is killed then, and counts as ``hung``.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from corpus import parser_of
from crashes import BUCKET, whole_lines
from crawling import Running, forked_crawls, run_scrapy, write_job
from local_site import Answer, Site, redirect
from prose import article, blog, several, story, zh_story
from redis_server import RedisServer

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

#: Seconds for one crawl of a few pages, on a busy machine.
PATIENCE = 40
STORES = ("leveldb", "rocksdb", "sqlite", "shared", "redis")
LINES = {"format": "jsonlines"}
FEEDS: dict[str, dict[str, Any]] = {
    "plain": {"FEEDS": {"feed.jsonl": LINES}},
    "gzip": {
        "FEEDS": {
            "%(crawl)s.gz": {**LINES, "postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"]},
        }
    },
    "batch": {"FEEDS": {"batch-%(batch_time)s-%(batch_id)d.jsonl": {**LINES, "batch_item_count": 3}}},
    "s3": {
        "FEED_STORAGES": {"late": "sample_spiders.LateStorage"},
        "FEEDS": {f"late://{BUCKET}/%(crawl)s-%(batch_id)d.jsonl": {**LINES, "batch_item_count": 5}},
    },
    "filtered": {"FEEDS": {"stories.jsonl": {**LINES, "item_classes": ["sample_spiders.DataItem"]}}},
    "overwritten": {"FEEDS": {"feed.jsonl": {**LINES, "overwrite": True}}},
    "none": {},
}
#: What is printed; a `Counter` that is added to another one loses what is zero.
COUNTS = ("scenarios", "crawls", "kills", "interrupts", "drops", "lost", "hung", "failed", "defects")
FATES = [""] * 8 + ["drop", "fail", "replace", "fail-once"]
CALLBACKS = ["parse"] * 9 + [
    "generator_raises_first",
    "generator_raises_last",
    "plain_raises",
    "async_generator_raises_last",
]


class Scenario:
    """One site, and what a seed makes of it."""

    def __init__(self, seed: int, store: str, feed: str, options: argparse.Namespace) -> None:
        self.chance = random.Random(f"{seed} {store} {feed}")
        self.store, self.feed = store, feed
        self.kills, self.keyed, self.is_control = options.kills, options.keyed, options.control
        self.site = Site()
        self.paragraphs: dict[str, set[str]] = {}
        """Of each URL."""
        self.kinds: dict[str, str] = {}
        self.steps: list[dict[str, Any]] = []
        self.crawls = 0
        for number in range(self.chance.randint(4, 9)):
            self._add_story(seed * 100 + number)
        self.chance.shuffle(self.steps)
        self.pool = set().union(*self.paragraphs.values())

    def _add_story(self, number: int) -> None:
        chance, told = self.chance, (zh_story if number % 3 == 0 else story)(number)
        parts = [[*told[:3]], [*told[3:]]]
        has_parts = not self.keyed and chance.random() < 0.2
        for copy in range(chance.randint(1, 4)):
            text = [*told]
            if chance.random() < 0.15:
                text[chance.randrange(len(text))] = story(number + 50_000 + copy)[0]
            path, host = f"/{number}/{copy}", copy % 3
            body = several(f"S{number}", parts) if has_parts else (blog if copy else article)(f"S{number}", text)
            url = self.site.add(path, body, host=host)
            self.paragraphs[url] = {*told} if has_parts else {*text}
            self.kinds[url] = kind = chance.choice(["dict", "dict", "dataclass"]) if not has_parts else "dict"
            step: dict[str, Any] = {"url": url, "cb_kwargs": {"kind": kind, "fate": chance.choice(FATES)}}
            if self.keyed:
                step["cb_kwargs"] |= {"text": "\n".join(text), "price": chance.choice("1112")}
            elif has_parts:
                step = {"url": url, "callback": "parse_parts"}
            elif (callback := chance.choice(CALLBACKS)) != "parse":
                step = {"url": url, "callback": callback}
                self.kinds[url] = "dict"
            self.steps.append(step)
            if chance.random() < 0.1:
                self.steps.append({**step, "url": self.site.add(f"/to{path}", redirect(url))})
            if chance.random() < 0.1:
                failing = Answer(body, status=chance.choice([500, 404]))
                self.site.add(path, failing, Answer(body), host=host)

    def settings(self, folder: Path, server: RedisServer | None) -> dict[str, Any]:
        chance, shared = self.chance, {"shared": f"sqlite:{folder / 'pages'}?shared=1"}
        if server is not None:
            shared["redis"] = f"{server.url}?store={folder.name}"
        settings: dict[str, Any] = {
            "DEDUP_STORE": shared.get(self.store, f"{self.store}:{folder / 'pages'}"),
            "CONCURRENT_REQUESTS": chance.choice([1, 4, 16]),
            "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
            "CHECKPOINT_INTERVAL": chance.choice([1, 3, 100]),
            "RETRY_TIMES": 1,
            "EXTRA_PIPELINES": {"sample_spiders.FatePipeline": 100},
            "CONSTANTS": {"dedup_middleware.stores.redis:_LEASE": 1} if self.store == "redis" else {},
            **FEEDS[self.feed],
        }
        if chance.random() < 0.4:
            settings["EXTRA_PIPELINES"]["sample_spiders.SlowPipeline"] = 200
        if chance.random() < 0.3:
            settings["DEDUP_PREFERRED"] = [f"127.0.0.{chance.randint(1, 3)}"]
        if chance.random() < 0.2:
            settings["DEDUP_EXPIRE_AFTER"] = 30
        if chance.random() < 0.3:
            settings["JOBDIR"] = "job"
        if self.keyed:
            settings |= {"DEDUP_KEY": ["title"], "DEDUP_UNCHANGED": chance.choice(["keep", "drop", "drop"])}
        if self.is_control:
            settings["EXTENSIONS"] = {"fault_injection.DropsOnClaims": 0}
        return settings

    def run(self, server: RedisServer | None) -> Counter[str]:
        """Crawl, end the crawls, and return what was seen."""
        seen: Counter[str] = Counter(scenarios=1)
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            settings = self.settings(folder, server)
            number = self.chance.randint(1, 3)
            for turn in range(number):
                how = "kill" if self.kills else self.chance.choice(["kill", "kill", "term", "end"])
                seen += self._crawl(folder, settings, how)
                if self.chance.random() < 0.2:
                    self._command(folder)
                if turn == number - 1 and self.chance.random() < 0.5:
                    settings.pop("JOBDIR", None)
            before = len(whole_lines(folder / "dropped.jsonl"))
            if self.store == "redis":
                time.sleep(1.2)  # the lease of a process that was killed
            # An item that a pipeline fails when it is released is released by the crawl after.
            settings["EXTRA_PIPELINES"] = {}
            # What is fetched again is in a feed again.
            fetches = self.feed == "overwritten" or self.chance.random() < 0.3
            seen += self._crawl(folder, settings, "end", fetches=fetches)
            seen += self._examined(folder, before if self.feed == "overwritten" else 0)
        self.site.close()
        return seen

    def _crawl(self, folder: Path, settings: dict[str, Any], how: str, *, fetches: bool = True) -> Counter[str]:
        steps = (
            []
            if not fetches
            else self.chance.sample(self.steps, self.chance.randint(len(self.steps) // 2, len(self.steps)))
        )
        # Two crawls may begin in one second: `%(time)s` would let the second overwrite the feeds of the first.
        self.crawls += 1
        feeds = {uri.replace("%(crawl)s", str(self.crawls)): feed for uri, feed in settings.get("FEEDS", {}).items()}
        together = self.chance.random() < 0.8
        settings = {**settings, "FEEDS": feeds}
        command = write_job(folder, "sample_spiders.Steps", steps=steps, together=together, settings=settings)
        seen = Counter(crawls=1)
        with Running(folder, command) as running:
            if how != "end":
                started, log = time.monotonic(), folder / "items.jsonl"
                enough = len(whole_lines(log)) + self.chance.randint(0, len(steps) // 2)
                latest = started + self.chance.uniform(0.5, 4)
                while not running.is_over and len(whole_lines(log)) < enough and time.monotonic() < latest:
                    time.sleep(0.005)
                time.sleep(self.chance.uniform(0, 0.15))
                seen["kills" if how == "kill" else "interrupts"] += not running.is_over
                if how == "kill":
                    # A fork that has not begun has no output yet.
                    with contextlib.suppress(FileNotFoundError):
                        running.kill()
                    return seen
                if not running.is_over:
                    os.kill(running.pid, signal.SIGTERM)
            try:
                outcome = running.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                return seen + Counter(hung=1)
            except FileNotFoundError:
                return seen  # as above
        if how == "end":
            seen["failed"] += outcome.exit_status != 0
            seen["defects"] += outcome.stats.get("dedup/defects", 0)
        return seen

    def _command(self, folder: Path) -> None:
        dropped = [item["url"] for item in whole_lines(folder / "dropped.jsonl")]
        if dropped and self.chance.random() < 0.7:
            run_scrapy(folder, "dedup", "allow", self.chance.choice(dropped))
        else:
            run_scrapy(folder, "dedup", "store", "forget", "--host", "127.0.0.2", "--yes")

    def _examined(self, folder: Path, begin: int) -> Counter[str]:
        """Return how many paragraphs of dropped items are not where they belong."""
        fed: defaultdict[str, set[str]] = defaultdict(set)
        for place, item in kept(folder):
            fed[place] |= self._paragraphs(item)
        dropped = [i for i in whole_lines(folder / "dropped.jsonl")[begin:] if i["type"] == "DuplicateItem"]
        lost = set()
        for item in dropped:
            is_filtered = self.feed == "filtered" and self.kinds.get(item["url"]) != "dataclass"
            place = "pipelines" if is_filtered or self.feed == "none" else "feeds"
            if missing := self._paragraphs(item) - fed[place]:
                lost.add((item["url"], len(missing)))
        if lost:
            print(self.store, self.feed, sorted(lost), file=sys.stderr)
        return Counter(drops=len(dropped), lost=sum(number for _, number in lost))

    def _paragraphs(self, item: dict[str, Any]) -> set[str]:
        if self.keyed:
            return {json.dumps([item["title"], item["price"], item["text"]])}
        if text := item.get("text"):
            return {paragraph for paragraph in self.pool if paragraph in text}
        return self.paragraphs[item["url"]]


def kept(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each item that has left the pipelines, and each that is in a feed."""
    for item in whole_lines(folder / "items.jsonl"):
        yield "pipelines", item
    feeds = [*folder.glob("feed.jsonl"), *folder.glob("stories.jsonl"), *folder.glob("batch-*.jsonl")]
    for path in [*feeds, *(folder / BUCKET).glob("*.jsonl")]:
        for item in whole_lines(path):
            yield "feeds", item
    for path in folder.glob("*.gz"):
        for line in unpacked(path).splitlines():
            with contextlib.suppress(ValueError):
                yield "feeds", json.loads(line)


def unpacked(path: Path) -> str:
    """Return what a gzip file has that is whole; nothing of one whose process was killed."""
    try:
        return gzip.decompress(path.read_bytes()).decode()
    except (OSError, EOFError, zlib.error):
        return ""


def show(seen: Counter[str], *, to: TextIO = sys.stdout, **where: object) -> None:
    """Print what was *seen*, with what never was."""
    print(json.dumps({**where, **{name: seen[name] for name in COUNTS}}), file=to, flush=True)


def main() -> None:
    """Print what was seen."""
    parser = parser_of(__doc__, scenarios=300, seed=1, kills=False, keyed=False, control=False)
    parser.add_argument("--store", choices=STORES)
    options = parser.parse_args()
    sums: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    pairs = [(store, feed) for store in ([options.store] if options.store else STORES) for feed in FEEDS]
    with contextlib.ExitStack() as stack:
        server = None
        if options.store in {None, "redis"}:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            server = stack.enter_context(RedisServer(Path(folder) / "redis"))
        stack.enter_context(forked_crawls())
        for number in range(options.scenarios):
            store, feed = pairs[number % len(pairs)]
            scenario = Scenario(options.seed * 10_000 + number, store, feed, options)
            sums[store, feed].update(scenario.run(server))
            show(sum(sums.values(), Counter()), to=sys.stderr, scenario=number)
    for (store, feed), seen in sorted(sums.items()):
        show(seen, store=store, feed=feed)
    show(sum(sums.values(), Counter()), all=True)


if __name__ == "__main__":
    main()
