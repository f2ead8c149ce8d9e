"""Measures items with keys: what they cost, what two crawls of a shop find, and what is lost when crawls are killed.

Usage: python tests/benchmarks/keys.py cost [--items 100000] [--store leveldb]
       python tests/benchmarks/keys.py shop [--products 200]
       python tests/benchmarks/keys.py kills [--kills 50] [--workers 4] [--store sqlite | redis | leveldb] [--seed 1]

``cost`` prints the CPU time of an item between the callback and the feed, and the bytes of a key, of items with a key,
a name, a price and a URL, each of a page of its own, without Scrapy. ``shop`` crawls a local shop twice: meanwhile ten
prices change, and five products go and five come. ``kills`` begins *workers* crawls of that shop, which share a store
and keep what is new, kills one or all of them at a random moment, and begins again, ten times a shop; then the crawls
run to their end. It prints what no feed has, and what feeds have twice beyond what each kill may take: the items since
the last checkpoint.
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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from typing import TYPE_CHECKING

from corpus import parser_of
from crawling import Running, run_job, write_job
from keyed_shop import VARIANTS, serve
from local_site import Site
from redis_server import RedisServer

from dedup_middleware.api import _Listener
from dedup_middleware.driver.deduplicator import Deduplication
from dedup_middleware.driver.opening import new_crawl, open_at_once
from dedup_middleware.model import Action
from dedup_middleware.records.crawl_changes import changes_since
from dedup_middleware.records.file import RecordFilter
from dedup_middleware.settings import Config
from dedup_middleware.visits.visit import Fate, Visit

if TYPE_CHECKING:
    import argparse

WORDS = ["amber", "birch", "cedar", "dune", "elm", "fern", "grove", "hazel", "iris", "juniper"]
KEY = {"DEDUP_KEY": ["product_id"]}
SHOP = "sample_spiders_keys.Shop"
CHAIN = 10
#: A kill takes what has left the pipelines since the last checkpoint, and what was in them.
MOST_TWICE = 200


def item_of(number: int) -> tuple[str, dict[str, object]]:
    """Return the URL of the page of an item, and the item."""
    name = " ".join(WORDS[number // 10**place % 10] for place in range(3)).title()
    url = f"https://shop.example/p/{number}?session={number * 7919 % 10**6:06}"
    return url, {"product_id": f"SKU-{number:06}", "name": name, "price": f"{number % 997}.90", "url": url}


def pass_through(config: Config, items: list[tuple[str, dict[str, object]]]) -> tuple[float, Counter[str]]:
    """Take *items* from their callbacks to their feeds; return CPU seconds and the number of each verdict."""
    opened, verdicts = open_at_once(config), Counter[str]()
    deduplication = Deduplication(opened, new_crawl(), _Listener())
    began = time.process_time()
    for url, item in items:
        page = Visit.unchecked(url, "", Action.DROP)
        visit = deduplication.verdicts.check_keyed(page, item)
        assert visit is not None
        deduplication.enter(visit)
        decisions = deduplication.process(visit, item) + deduplication.end(visit)
        if decisions[-1].fate is Fate.KEEP:
            deduplication.claims.item_left(visit)
        verdicts[visit.verdict.kind.value] += 1
    deduplication.close()
    spent = time.process_time() - began
    opened.store.close()
    return spent, verdicts


def size_of(path: Path) -> int:
    """Return the bytes of the files of the store at *path*."""
    return sum(each.stat().st_size for each in (path, *path.rglob("*")) if each.is_file())


def measure_cost(options: argparse.Namespace, folder: Path) -> None:
    """Print what items cost that are new, repeated in the same crawl, and unchanged in the next."""
    path, number = folder / "store", options.items
    settings = KEY | {"DEDUP_STORE": f"{options.store}:{path}", "DEDUP_LOG": str(folder / "log.jsonl")}
    config = Config.from_settings(settings, "shop")
    items = [item_of(each) for each in range(number)]
    for what in ("new", "unchanged"):
        spent, verdicts = pass_through(config, items)
        opened = open_at_once(config)
        before = size_of(path)
        opened.store.compact()
        opened.store.close()
        sizes = f"{before / number:.0f} B a key, {size_of(path) / number:.0f} compacted"
        print(f"{what:<10} {spent / number * 1e3:.3f} ms an item, {sizes}, {dict(verdicts)}")
    spent, verdicts = pass_through(config, [*items[: number // 10], *items[: number // 10]])
    print(f"repeated   {spent / number * 5e3:.3f} ms an item, {dict(verdicts)}")


def crawl_shop(options: argparse.Namespace, folder: Path) -> None:
    """Print how often the feed of each of two crawls has a product, and what has changed between them."""
    site, n = Site(), options.products
    first = dict.fromkeys(range(n), 10)
    second = {number: 12 if number < 10 else 10 for number in range(n + 5) if number not in range(50, 55)}
    for products, session in ((first, "a"), (second, "b")):
        url = serve(site, products, session)
        outcome = run_job(folder, write_job(folder, SHOP, settings=KEY, url=url, afresh=False))
        taken = Counter(item["product_id"] for item in outcome.items)
        print(f"crawl {session}: {len(taken)} keys, given {sum(taken.values())} times, {outcome.problems}")
        (folder / "items.jsonl").unlink()
    found = [*changes_since(folder / "records.jsonl", None, RecordFilter())]
    print(
        "changed products:",
        Counter(change.kind for change in found),
        "without a key:",
        sum(not each.key for each in found),
    )
    prices = [each.record.changes.values for each in found if each.record is not None and each.record.changes]
    print("changes:", Counter(map(str, prices)))
    site.close()


def timed(url: str, folder: Path) -> float:
    """Return the seconds that a crawl takes alone."""
    began = time.monotonic()
    run_job(folder, write_job(folder, SHOP, settings=KEY, url=url))
    return time.monotonic() - began


def kill_crawls(options: argparse.Namespace, folder: Path) -> None:
    """Print what was lost, and given twice, of shops whose crawls were killed."""
    chance, lost, twice, kills = random.Random(options.seed), 0, 0, 0
    with ExitStack() as stack:
        server = stack.enter_context(RedisServer(folder)) if options.store == "redis" else None
        while kills < options.kills:
            chain, site = folder / f"chain{kills}", Site()
            url = serve(site, dict.fromkeys(range(options.products), 10), "a")
            shared = "?shared=1" if options.store == "sqlite" else ""
            uri = (
                f"{options.store}:{chain / 'store'}{shared}" if server is None else f"{server.url}/0?store=chain{kills}"
            )
            settings = KEY | {"DEDUP_STORE": uri, "DEDUP_UNCHANGED": "drop", "LOG_LEVEL": "INFO"}
            settings |= {"FEEDS": {"feed.jsonl": {"format": "jsonlines"}}}
            workers = [chain / f"worker{n}" for n in range(options.workers)]
            length, in_chain = timed(url, chain / "timed"), 0
            for turn in range(CHAIN + 1):
                jobs = [write_job(each, SHOP, settings=settings, url=url) for each in workers]
                with ExitStack() as running:
                    crawls = [running.enter_context(Running(*each)) for each in zip(workers, jobs, strict=True)]
                    if turn < CHAIN and kills < options.kills:
                        time.sleep(chance.uniform(0.2, 1.0) * length)
                        doomed = [crawl for crawl in crawls if not crawl.is_over]
                        doomed = doomed if chance.random() < 0.5 else doomed[:1]
                        for crawl in doomed:
                            crawl.kill()
                        kills, in_chain = kills + len(doomed), in_chain + len(doomed)
                    for crawl in crawls:
                        if crawl.wait().exit_status not in {0, -9}:
                            print("exit status", crawl.wait().exit_status)
            lines = [line for each in workers for line in (each / "feed.jsonl").read_bytes().splitlines()]
            # A kill may leave half a line.
            taken = Counter(json.loads(line)["product_id"] for line in lines if line.endswith(b"}"))
            wanted = {f"{n}-{colour}" for n in range(options.products) for colour in VARIANTS}
            lost += len(wanted - taken.keys())
            extra = sum(taken.values()) - len(taken)
            twice += max(0, extra - in_chain * MOST_TWICE)
            print(f"{kills} kills: {len(wanted - taken.keys())} lost, {extra} twice after {in_chain} kills", flush=True)
            site.close()
    how = f"{options.store}, {options.workers} processes"
    print(f"{kills} kills on {how}: {lost} lost, {twice} twice beyond the crash")


def main() -> None:
    parser = parser_of(__doc__, items=100_000, products=200, kills=50, workers=4, seed=1)
    parser.add_argument("what", choices=("cost", "shop", "kills"))
    parser.add_argument("--store", default=None)
    options = parser.parse_args()
    options.store = options.store or ("sqlite" if options.what == "kills" else "leveldb")
    work = {"cost": measure_cost, "shop": crawl_shop, "kills": kill_crawls}[options.what]
    with tempfile.TemporaryDirectory() as folder:
        work(options, Path(folder))


if __name__ == "__main__":
    main()
