"""Measures what the plugin costs a crawl: CPU, wall time, memory and disk, against the same crawl without it.

Usage: python tests/benchmarks/cost.py CORPUS [--rounds 5] [--again] [--store URI]
The pages are those of CORPUS (see `corpus.py`). The crawls take turns, so that the load of the machine affects all of
them; the medians are printed. With --again each crawl with the plugin is the
second one of the unchanged pages, on the store of the first. ``{}`` in --store is replaced by a new name for each
round, as in ``redis://localhost?store={}``; without it, each has the default store in a new folder.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from corpus import CRAWL_FIELDS, read_corpus
from crawling import Outcome, run_job, write_job
from local_site import Site
from sample_spiders import Articles


class AllText(Articles):
    """An item of what a spider of articles asks a page for: two more walks over it than its title takes."""

    def parse(self, response):
        text = "".join(response.xpath("//body//text()").getall())
        yield {"url": response.url, "title": response.css("title::text").get(), "characters": len(text)}


def crawl(folder: Path, urls: str, *, plugin: bool, store: str | None = None) -> Outcome:
    """Run one crawl; its ``stats`` have the figures of the process."""
    settings = {"LOG_LEVEL": "WARNING"}
    if store:
        settings["DEDUP_STORE"] = store.replace("{}", folder.name)
    command = write_job(folder, "cost.AllText", urls=urls, plugin=plugin, settings=settings, afresh=True)
    outcome = run_job(folder, command)
    if outcome.exit_status:
        sys.exit(outcome.stderr)
    return outcome


def main() -> None:
    """Print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--store")
    options = parser.parse_args()
    pages = [page.html for page in read_corpus(options.corpus, CRAWL_FIELDS)]
    site = Site(hosts=1)
    urls = ",".join(site.add(f"/{number}", html) for number, html in enumerate(pages))
    found: dict[str, list[float]] = {name: [] for name in ("cpu_ratio", "wall_ratio", "extra_mb", "dropped", "bytes")}
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(options.rounds):
            without = crawl(Path(scratch) / f"off{turn}", urls, plugin=False).stats
            for _ in range(1 + options.again):
                outcome = crawl(Path(scratch) / f"on{turn}", urls, plugin=True, store=options.store)
            stats = outcome.stats
            found["cpu_ratio"].append(stats["process/cpu_s"] / without["process/cpu_s"])
            found["wall_ratio"].append(stats["process/wall_s"] / without["process/wall_s"])
            found["extra_mb"].append(stats["process/peak_mb"] - without["process/peak_mb"])
            found["dropped"].append(stats.get("dedup/items/dropped", 0))
            size = sum(f.stat().st_size for f in (outcome.folder / "store").rglob("*") if f.is_file())
            found["bytes"].append(size / len(pages))
    site.close()
    print(json.dumps({"pages": len(pages)} | {name: round(statistics.median(all_), 3) for name, all_ in found.items()}))


if __name__ == "__main__":
    main()
