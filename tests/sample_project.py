"""A stranger's Scrapy project, run as a process of its own: it knows the plugin only by its ADDONS line.

Usage: python sample_project.py JOB.json     (see `crawling.py`, which writes the order and reads what comes of it)
"""

from __future__ import annotations

import json
import os
import pathlib
import resource
import sys
import time
from importlib import import_module

from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.utils.misc import load_object

job = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf8"))
out = pathlib.Path(job["out"])
os.environ |= job["env"]
for place, value in job["settings"].pop("CONSTANTS", {}).items():
    module, _, name = place.partition(":")
    setattr(import_module(module), name, value)
sys.path += job["env"].get("PYTHONPATH", "").split(os.pathsep)


def append(name: str, value: object) -> None:
    with (out / name).open("a", encoding="utf8") as file:
        file.write(json.dumps(value, default=str) + "\n")


class SinkPipeline:
    """The user's own last pipeline: what reaches it was kept."""

    def process_item(self, item: object) -> object:
        append("items.jsonl", ItemAdapter(item).asdict())
        return item


def on_drop(item: object, exception: BaseException) -> None:
    append("dropped.jsonl", {**ItemAdapter(item).asdict(), "why": str(exception), "type": type(exception).__name__})


settings = {
    "LOG_LEVEL": "DEBUG",
    "LOG_FILE": str(out / "log.txt"),
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "DOWNLOAD_DELAY": 0,
    "ITEM_PIPELINES": {SinkPipeline: 900},
    **job["settings"],
}
if interval := settings.pop("CHECKPOINT_INTERVAL", None):  # what no setting says
    import_module("dedup_middleware.visits.durability").Durability.interval = interval
if extra := settings.pop("EXTRA_PIPELINES", None):
    settings["ITEM_PIPELINES"] = {**settings["ITEM_PIPELINES"], **extra}
reactor = job["reactor"]
if reactor == "reactorless":
    settings["TWISTED_REACTOR_ENABLED"] = False
elif reactor == "default":
    settings["TWISTED_REACTOR"] = None
process = (CrawlerProcess if reactor == "default" else AsyncCrawlerProcess)(settings)
crawlers = []
for run in job["runs"]:
    crawler = process.create_crawler(load_object(run["spider"]))
    crawler.signals.connect(on_drop, signal=signals.item_dropped)
    crawlers.append(crawler)
    process.crawl(crawler, **run["args"])
started, cpu = time.monotonic(), time.process_time()
process.start()
usage = {
    "process/cpu_s": time.process_time() - cpu,
    "process/wall_s": time.monotonic() - started,
    "process/peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}
for crawler in crawlers:
    stats = {k: v for k, v in crawler.stats.get_stats().items() if isinstance(v, (int, float, str))}
    append("stats.jsonl", stats | usage)
sys.exit(int(process.bootstrap_failed))
