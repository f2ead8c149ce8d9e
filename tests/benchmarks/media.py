"""Measures how many copies are dropped, and how long a crawl takes, where media pipelines hold the originals.

Usage: python tests/benchmarks/media.py [--stories 24] [--seconds 0.2,3] [--copies 0.2,3] [--bytes 0] [--order near]
           [--stay N,SECONDS] [--settings JSON] [--rounds 1] [--seed 1]
Two sites on loopback tell each story once; each page gives an item with a file, which `FilesPipeline` fetches from a
media host of its site. A file takes a number of *seconds* between the two, that of a copy between those of *copies*.
So many *bytes* are added to each page. ``--order`` is that of the pages: each copy right behind its original
(``near``), all copies after all originals (``far``), or one page after the other by links (``chain``).
``--stay N,SECONDS``: the items of the first N originals stay in one more pipeline for so long.
The same crawl is made without and with the plugin, in turn, *rounds* times. Prints a line of JSON: copies that were
dropped, and given up, stories that no item has, and the medians of the seconds that the crawls took.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import scrapy
from corpus import parser_of
from crawling import run_job, write_job
from local_site import Answer, Site
from prose import article, story

if TYPE_CHECKING:
    import argparse

#: Hosts from this one on have the files: those of the originals, and those of the copies.
MEDIA = 2
STATS = {"dropped": "dedup/items/dropped", "given_up": "dedup/waits/given_up", "no_room": "dedup/waits/no_room"}


class MediaSite(Site):
    """Pages, and files that take their time."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(hosts=4)
        chance = random.Random(options.seed)
        near = [(n, host) for n in range(options.stories) for host in (0, 1)]
        spans = options.seconds, options.copies or options.seconds
        self.seconds = {(host, f"/{n}.jpg"): chance.uniform(*spans[host]) for n, host in near}
        order = sorted(near, key=itemgetter(1)) if options.order == "far" else near
        self.urls = [self.url(f"/{n}", host) for n, host in order]
        filling = f"<script>{'x' * options.bytes}</script>"
        for (n, host), after in zip(order, [*self.urls[1:], ""], strict=True):
            links = (after,) if options.order == "chain" and after else ()
            self.add(f"/{n}", article("News", story(n), links).replace("</body>", f"{filling}</body>"), host=host)

    def answer(self, host: int, method: str, target: str) -> Answer:
        """Return a page, or a file once its time has come."""
        if host < MEDIA:
            return super().answer(host, method, target)
        time.sleep(self.seconds[host - MEDIA, target])
        return Answer(b"a picture", headers={"Content-Type": "image/jpeg"})


class Reporters(scrapy.Spider):
    """Give an item with a file for each of *urls*, and then follow its links."""

    name = "reporters"
    urls = ""

    async def start(self):
        """Ask for all in their order."""
        for position, url in enumerate(self.urls.split(",")):
            yield scrapy.Request(url, priority=-position)

    def parse(self, response):
        """Give the item, and after it what is linked."""
        url = urlsplit(response.url)
        media = f"http://127.0.0.{int(url.hostname[-1]) + MEDIA}:{url.port}{url.path}.jpg"
        text = "\n".join(response.css("article p::text").getall())
        yield {"url": response.url, "text": text, "file_urls": [media], "stays": url.path in self.settings["STAY"]}
        yield from response.follow_all(css="a.next")


class Stay:
    """A pipeline in which some items stay for long."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    @classmethod
    def from_crawler(cls, crawler):
        """Return the pipeline."""
        return cls(crawler.settings.getfloat("STAY_SECONDS"))

    async def process_item(self, item):
        """Return the *item*, perhaps later."""
        if item.pop("stays") and "127.0.0.1" in item["url"]:
            await asyncio.sleep(self._seconds)
        return item


def crawled(options: argparse.Namespace, *, plugin: bool) -> tuple[dict[str, Any], set[str]]:
    """Crawl the sites once; return the stats, and the texts of the items in the feed."""
    site = MediaSite(options)
    count, seconds = options.stay
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        settings = {
            "EXTRA_PIPELINES": {"media.Stay": 50, "scrapy.pipelines.files.FilesPipeline": 100},
            "FILES_STORE": str(folder / "files"),
            "FEEDS": {"feed.jsonl": {"format": "jsonlines"}},
            "LOG_LEVEL": "INFO",
            "STAY": [f"/{n}" for n in range(int(count))],
            "STAY_SECONDS": seconds,
            **options.settings,
        }
        urls = site.urls[:1] if options.order == "chain" else site.urls
        command = write_job(folder, "media.Reporters", urls=",".join(urls), settings=settings, plugin=plugin)
        outcome = run_job(folder, command)
        found = outcome.stats, {item["text"] for item in outcome.lines("feed.jsonl")}
    site.close()
    return found


def main() -> None:
    """Print what came of the crawls."""
    parser = parser_of(__doc__, stories=24, bytes=0, rounds=1, seed=1)

    def two(text: str) -> list[float]:
        return [float(part) for part in text.split(",")]

    parser.add_argument("--seconds", type=two, default=[0.2, 3])
    parser.add_argument("--copies", type=two)
    parser.add_argument("--order", choices=["near", "far", "chain"], default="near")
    parser.add_argument("--stay", type=two, default=[0, 0])
    parser.add_argument("--settings", type=json.loads, default={})
    options = parser.parse_args()
    rounds = [[crawled(options, plugin=plugin) for plugin in (False, True)] for _ in range(options.rounds)]
    without, with_it = (
        statistics.median(stats["elapsed_time_seconds"] for stats, _ in side) for side in zip(*rounds, strict=True)
    )
    numbers = {name: [stats.get(stat, 0) for _, (stats, _) in rounds] for name, stat in STATS.items()}
    lost = [options.stories - len(texts) for _, (_, texts) in rounds]
    walls = {"seconds": round(with_it, 2), "seconds_without": round(without, 2), "ratio": round(with_it / without, 3)}
    print(json.dumps({"copies": options.stories, **numbers, "lost": lost, **walls}))


if __name__ == "__main__":
    main()
