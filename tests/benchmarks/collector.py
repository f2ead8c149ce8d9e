"""What DEDUP_TUNE_GC does to a long crawl: its memory as it goes on, and its CPU; on, off, and without the plugin.

Usage: python tests/benchmarks/collector.py [--pages 100000] [--only VARIANT]...
The pages are made up, and answered in the process: nothing else grows. Each crawl is a process of its own, one after
the other. Prints a table in Markdown: megabytes that the process had at most when so much of the crawl was over,
milliseconds of CPU a page, those for making it up too, and how often the oldest objects were looked through.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import scrapy
from scrapy.crawler import AsyncCrawlerProcess

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cost import page
from crawling import store_uri

#: By variant: whether the plugin is on, and its setting.
VARIANTS = {"without the plugin": None, "tuned": True, "left alone": False}
#: Shares of a crawl at which its memory is noted.
MARKS = (0.1, 0.25, 0.5, 1.0)


class MadeUp:
    """A downloader middleware that makes up a page for each address, and asks nobody."""

    def process_request(self, request: scrapy.Request) -> scrapy.http.Response:
        html = page(int(request.url.rpartition("/")[2]))
        return scrapy.http.HtmlResponse(request.url, body=html.encode(), encoding="utf-8", request=request)


class Pages(scrapy.Spider):
    """Take the title and all text of each page, and note the memory."""

    name = "pages"
    pages = 0

    async def start(self):
        self.peaks = {round(mark * self.pages): 0.0 for mark in MARKS}
        self.seen = 0
        for number in range(self.pages):
            yield scrapy.Request(f"http://site{number % 50}.test/{number}")

    def parse(self, response):
        self.seen += 1
        if self.seen in self.peaks:
            self.peaks[self.seen] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        text = "".join(response.xpath("//body//text()").getall())
        yield {"url": response.url, "title": response.css("title::text").get(), "characters": len(text)}


def crawl(pages: int, variant: str, folder: Path) -> None:
    """Crawl in this process, and print what it took."""
    settings = {
        "LOG_LEVEL": "WARNING",
        "TELNETCONSOLE_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
        "DOWNLOADER_MIDDLEWARES": {MadeUp: 900},
    }
    if VARIANTS[variant] is not None:
        settings |= {
            "ADDONS": {"dedup_middleware.Addon": 500},
            "DEDUP_STORE": store_uri(folder),
            "DEDUP_LOG": str(folder / "records.jsonl"),
            "DEDUP_TUNE_GC": VARIANTS[variant],
        }
    process = AsyncCrawlerProcess(settings)
    crawler = process.create_crawler(Pages)
    process.crawl(crawler, pages=pages)
    began, before = time.process_time(), gc.get_stats()[2]["collections"]
    process.start()
    cpu, oldest = time.process_time() - began, gc.get_stats()[2]["collections"] - before
    assert crawler.spider is not None
    print(json.dumps([variant, *crawler.spider.peaks.values(), cpu * 1000 / pages, oldest]))


def main() -> None:
    """Print the table, or carry out one crawl of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--only", choices=VARIANTS, action="append")
    parser.add_argument("--in-folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_folder is not None:
        crawl(options.pages, options.only[0], options.in_folder)
        return
    marks = [f"MB at {mark:.0%}" for mark in MARKS]
    print("|", " | ".join([f"{options.pages} pages", *marks, "CPU ms a page", "oldest looked through"]), "|")
    print("|---|" + "---:|" * (len(marks) + 2))
    for variant in options.only or VARIANTS:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "--pages", str(options.pages), "--only", variant]
            told = subprocess.run([*command, "--in-folder", folder], check=True, stdout=subprocess.PIPE, text=True)
        name, *figures, cpu, oldest = json.loads(told.stdout.splitlines()[-1])
        print("|", " | ".join([name, *(f"{peak:.0f}" for peak in figures), f"{cpu:.2f}", str(oldest)]), "|", flush=True)


if __name__ == "__main__":
    main()
