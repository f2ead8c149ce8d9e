"""What the plugin costs a crawl: CPU, wall time, memory and disk, against the same crawl without it.

Usage: python tests/benchmarks/cost.py [CORPUS] [--pages 600] [--rounds 5] [--again] [--beside redis]
The pages are those of CORPUS (see `corpus.py`), or made up: every third one is a repost. The crawls take turns, so that
a machine's moods hit all; the medians are printed. With --again each crawl with the plugin is the second one of the
unchanged pages, on the store of the first. With --beside there are only the crawls without the plugin, with the default
store, and with that other one (``redis``: on a server that is begun for it; else a URI, in which ``{name}`` stands for
a name of its own); printed is the CPU of both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from corpus import CRAWL_FIELDS, read_corpus
from crawling import Outcome, run_job, write_job
from local_site import Site
from prose import article, blog, story, zh_story
from redis_server import RedisServer

FILLER = "<div class='menu'>" + "".join(f"<a href='/s/{n}'>Section {n}</a> " for n in range(300)) + "</div>"


def page(number: int) -> str:
    """Return page *number*: Chinese and English in turn, every third one a repost in another layout."""
    tell = story if number % 2 else zh_story
    if number % 3 == 2:
        return blog(f"Repost {number}", tell(number - 2)).replace("</body>", FILLER + "</body>")
    return article(f"Story {number}", tell(number)).replace("<main>", FILLER + "<main>")


def crawl(folder: Path, urls: str, *, plugin: bool, again: bool = False, **settings: str) -> Outcome:
    """Run one crawl, or it *again*; ``stats`` has the figures of the process."""
    if again:
        crawl(folder, urls, plugin=plugin)
    settings = {"LOG_LEVEL": "WARNING", **settings}
    command = write_job(folder, "sample_spiders.AllText", urls=urls, plugin=plugin, settings=settings, afresh=True)
    outcome = run_job(folder, command, timeout=600)
    if outcome.exit_status:
        sys.exit(outcome.stderr)
    return outcome


def beside(store: str, urls: str, rounds: int, scratch: Path) -> dict[str, object]:
    """Return what a crawl costs with the default store and with another *store*."""
    ratios: dict[str, list[float]] = {"cpu_ratio": [], "cpu_ratio_beside": []}
    with ExitStack() as running:
        if store == "redis":
            server = running.enter_context(RedisServer(scratch / "redis", appendfsync="everysec"))
            store = f"{server.url}?store={{name}}"
        for turn in range(rounds):
            without = crawl(scratch / f"off{turn}", urls, plugin=False).stats["process/cpu_s"]
            here = crawl(scratch / f"on{turn}", urls, plugin=True).stats
            there = crawl(
                scratch / f"beside{turn}", urls, plugin=True, DEDUP_STORE=store.replace("{name}", f"turn{turn}")
            ).stats
            for name, stats in zip(ratios, (here, there), strict=True):
                ratios[name].append(stats["process/cpu_s"] / without)
    more = [there - here for here, there in zip(*ratios.values(), strict=True)]
    medians = {name: round(statistics.median(found), 3) for name, found in ratios.items()}
    return {**medians, "more": round(statistics.median(more), 3), "rounds": rounds}


def main() -> None:
    """Print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, nargs="?")
    parser.add_argument("--pages", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--beside")
    options = parser.parse_args()
    if options.corpus is None:
        pages = [page(number) for number in range(options.pages)]
    else:
        pages = [p.html for p in read_corpus(options.corpus, CRAWL_FIELDS)]
    site = Site(hosts=1)
    urls = ",".join(site.add(f"/{number}", html) for number, html in enumerate(pages))
    if options.beside is not None:
        with tempfile.TemporaryDirectory() as scratch:
            print(json.dumps({"pages": len(pages), **beside(options.beside, urls, options.rounds, Path(scratch))}))
        site.close()
        return
    cpu, wall, memory, disk, dropped = [], [], [], [], []
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(options.rounds):
            without = crawl(Path(scratch) / f"off{turn}", urls, plugin=False).stats
            outcome = crawl(Path(scratch) / f"on{turn}", urls, plugin=True, again=options.again)
            cpu.append(outcome.stats["process/cpu_s"] / without["process/cpu_s"])
            wall.append(outcome.stats["process/wall_s"] / without["process/wall_s"])
            memory.append(outcome.stats["process/peak_mb"] - without["process/peak_mb"])
            dropped.append(outcome.stats["dedup/items/dropped"])
            disk.append(sum(f.stat().st_size for f in (outcome.folder / "store").rglob("*") if f.is_file()))
    site.close()
    figures = {
        "pages": len(pages),
        "dropped": statistics.median(dropped),
        "cpu_ratio": round(statistics.median(cpu), 3),
        "wall_ratio": round(statistics.median(wall), 3),
        "extra_memory_mb": round(statistics.median(memory), 1),
        "store_bytes_a_page": round(statistics.median(disk) / len(pages)),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
