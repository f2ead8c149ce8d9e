"""Measures items with keys: CPU time an item, new, repeated and unchanged, and bytes a key in a store.

Usage: python tests/benchmarks/keys.py [--items 100000] [--store leveldb]

No Scrapy: what is measured is what the plugin does with an item between the callback and the feed. Each item is of a
page of its own, and has the key, a name, a price and its page's URL.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from dedup_middleware.api import _Listener
from dedup_middleware.driver.opening import deduplication_of, new_crawl, open_at_once
from dedup_middleware.model import Action
from dedup_middleware.settings import Config
from dedup_middleware.visits.visit import Fate, Visit

WORDS = ["amber", "birch", "cedar", "dune", "elm", "fern", "grove", "hazel", "iris", "juniper"]


def item_of(number: int, price: int = 0) -> tuple[str, dict[str, object]]:
    """Return the URL of the page of an item, and the item."""
    name = " ".join(WORDS[number // 10**place % 10] for place in range(3)).title()
    url = f"https://shop.example/p/{number}?session={number * 7919 % 10**6:06}"
    return url, {"product_id": f"SKU-{number:06}", "name": name, "price": f"{number % 997 + price}.90", "url": url}


def crawl(config: Config, numbers: range, repeated: int = 0) -> tuple[float, dict[str, int]]:
    """Crawl items with these *numbers*, then *repeated* of them again; return CPU seconds and the verdicts."""
    opened, verdicts = open_at_once(config), dict[str, int]()
    deduplication = deduplication_of(opened, new_crawl(), _Listener())
    deduplication.durability.interval = 100
    items = [item_of(number) for number in (*numbers, *numbers[:repeated])]
    began = time.process_time()
    for url, item in items:
        page = Visit.unchecked(url, "other_content_type", Action.DROP)
        key = deduplication.key_of(page, item)
        assert key is not None
        visit = deduplication.check_keyed(page, item, key)
        deduplication.enter(visit)
        decisions = deduplication.process(visit, item) + deduplication.end(visit)
        if decisions[-1].fate is Fate.KEEP:
            deduplication.item_left(visit)
        kind = visit.verdict.kind.value
        verdicts[kind] = verdicts.get(kind, 0) + 1
    deduplication.close()
    spent = time.process_time() - began
    opened.store.close()
    return spent, verdicts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--store", default="leveldb")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store")
        settings = {
            "DEDUP_KEY": ["product_id"],
            "DEDUP_STORE": f"{options.store}:{path}",
            "DEDUP_LOG": str(Path(folder, "log.jsonl")),
        }
        config = Config.from_settings(settings, "shop")
        for what, repeated in (("new", 0), ("unchanged", 0)):
            spent, verdicts = crawl(config, range(options.items), repeated)
            files = [each for each in (path, *path.rglob("*")) if each.is_file()]
            size = sum(each.stat().st_size for each in files)
            print(
                f"{what:<10} {spent / options.items * 1e3:.3f} ms an item, {size / options.items:.0f} B a key, "
                f"{verdicts}"
            )


if __name__ == "__main__":
    main()
