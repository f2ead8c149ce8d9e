"""Measures what the order of requests costs: the time of a crawl with delays, and the CPU time of a page.

``python tests/benchmarks/order.py`` crawls six hosts with a DOWNLOAD_DELAY to their end, plain and with the plugin, by
turns. Two of the hosts have 60 pages under two addresses each, so that many requests are put off. Then it learns from
pages, and judges requests, without Scrapy.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from crawling import run_job, write_job
from local_site import Site
from prose import article, story

from dedup_middleware.order.order import FetchedPage, Order

HOSTS, PAGES, RUNS = 6, 60, 3
SETTINGS = {"DOWNLOAD_DELAY": 0.15, "ROBOTSTXT_OBEY": False}


def site() -> Site:
    """Return a site whose hosts link to each other."""
    made = Site(HOSTS)
    for host in range(HOSTS):
        views = ("", "?sid=a", "?sid=b", "?sid=c") if host < 2 else ("", "?page=2")
        links = [f"/p/{n}{view}" for n in range(PAGES) for view in views]
        made.add("/", article("Home", ["All."], (*links, *(made.url("/", other) for other in range(HOSTS)))), host=host)
        for n in range(PAGES):
            made.add(f"/p/{n}", article(f"Page {n}", story(host * 1000 + n)), host=host)
    return made


def seconds(web: Site, settings: dict[str, object]) -> tuple[float, int, int]:
    """Crawl *web* to its end; return how long it took, and how many pages and requests put off there were."""
    with tempfile.TemporaryDirectory() as folder:
        command = write_job(Path(folder), "sample_spiders.Followers", url=web.url("/"), settings=SETTINGS | settings)
        stats = run_job(Path(folder), command).stats
    return stats["elapsed_time_seconds"], stats["response_received_count"], stats.get("dedup/requests_last", 0)


def cpu() -> float:
    """Return the milliseconds of a page: its request is judged twice, and it is learned from, with 20 links."""
    order, pages = Order(b"key"), 20_000
    urls = [f"http://h{n % 50}.example/s{n % 40}/{n // 2}{'?sid=b' if n % 2 else ''}" for n in range(pages)]
    began = time.process_time()
    for n, url in enumerate(urls):
        on = urls[n - n % 50]
        place = order.place_of(url, on)
        for _ in range(2):
            order.is_last(url, place)
        links = tuple(urls[max(n - 10, 0) : n + 10])
        order.learn(FetchedPage((url,), url.partition("?")[0], links, place, brings_item=n % 2 == 0))
    return (time.process_time() - began) / pages * 1000


def main() -> None:
    """Print the figures."""
    print(f"CPU a page: {cpu():.3f} ms")
    web = site()
    found: dict[str, list[tuple[float, int, int]]] = {"plain": [], "order": []}
    for _ in range(RUNS):
        found["plain"].append(seconds(web, {"DEDUP_PRIORITY_ADJUST": 0}))
        found["order"].append(seconds(web, {}))
    for name, runs in found.items():
        print(name, *(f"{took:.1f} s, {pages} pages, {last} put off;" for took, pages, last in runs))
    ratio = statistics.median(run[0] for run in found["order"]) / statistics.median(run[0] for run in found["plain"])
    print(f"ratio of times: {ratio:.3f}")
    web.close()


if __name__ == "__main__":
    main()
