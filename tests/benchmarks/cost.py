"""Measures what the plugin costs a crawl: CPU, memory and disk, beside the same crawl without it.

Usage: taskset -c 1 python tests/benchmarks/cost.py CORPUS... [--rounds 5] [--store URI] [--memory N]...
The pages are those of each CORPUS (see `corpus.py`), from loopback. A round is a crawl without the plugin, one with it,
and one more of the unchanged pages on the same store, so that the load of the machine affects all three; the medians
of the ratios are printed, as tables in Markdown. *pages only* is without what comes before the first page: imports and
opening the store. *collections* are full garbage collections, those with the plugin less those without it. ``{}`` in
--store is replaced by a new name for each round, as in ``redis://localhost?store={}``; without it, each has the default
store in a new folder.

--memory adds the memory of crawls of N made pages: the peak, with the files of the store that are mapped, and what is
the process's own at the end.
"""

from __future__ import annotations

import gc
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import capacity
from corpus import CRAWL_FIELDS, name_of, parser_of, read_corpus, table
from crawling import run_job, write_job
from local_site import Site
from sample_spiders import Articles

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_OLDEST = 2


class AllText(Articles):
    """An item of what a spider of articles asks a page for: two more walks over it than its title takes."""

    full_collections = 0

    @classmethod
    def update_settings(cls, settings):
        super().update_settings(settings)
        # Before any add-on is imported.
        gc.callbacks.append(cls.count_collection)

    @classmethod
    def count_collection(cls, phase, info):
        cls.full_collections += phase == "stop" and info["generation"] == _OLDEST

    def parse(self, response):
        stats = self.crawler.stats
        if not stats.get_value("first/cpu_s"):
            stats.set_value("first/cpu_s", time.process_time() - sys.modules["__main__"].cpu)
        text = "".join(response.xpath("//body//text()").getall())
        yield {"url": response.url, "title": response.css("title::text").get(), "characters": len(text)}

    def closed(self, reason):
        # Of this process: what the system counts for it begins with the memory of the process that started it.
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        self.crawler.stats.set_value("full_collections", self.full_collections)
        for name in ("VmHWM", "RssAnon"):
            self.crawler.stats.set_value(name, int(status[name].split()[0]) / 1024)


def crawl(folder: Path, urls: str, *, plugin: bool, store: str | None = None) -> dict[str, Any]:
    """Return the stats of one crawl, with the figures of its process."""
    settings = {"LOG_LEVEL": "WARNING"}
    if store:
        settings["DEDUP_STORE"] = store.replace("{}", folder.name)
    command = write_job(folder, "cost.AllText", urls=urls, plugin=plugin, settings=settings, afresh=True)
    outcome = run_job(folder, command)
    if outcome.exit_status:
        sys.exit(outcome.stderr)
    return outcome.stats


def ratios(corpus: Path, rounds: int, store: str | None) -> list[object]:
    """Return the row of *corpus*: pages, four ratios of CPU, wall, ms, collections, items dropped, bytes a page."""
    site, found = Site(hosts=1), []
    urls = [site.add(f"/{number}", page.html) for number, page in enumerate(read_corpus(corpus, CRAWL_FIELDS))]
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(rounds):
            off, on = Path(scratch) / f"off{turn}", Path(scratch) / f"on{turn}"
            plain = crawl(off, ",".join(urls), plugin=False)
            first, again = (crawl(on, ",".join(urls), plugin=True, store=store) for _ in range(2))
            size = sum(file.stat().st_size for file in (on / "store").rglob("*") if file.is_file())
            by_page = [stats["process/cpu_s"] - stats["first/cpu_s"] for stats in (plain, first, again)]
            ratio = [stats["process/cpu_s"] / plain["process/cpu_s"] for stats in (first, again)]
            wall = first["process/wall_s"] / plain["process/wall_s"]
            dropped = first.get("dedup/items/dropped", 0)
            found.append(
                (
                    *(ratio[0], by_page[1] / by_page[0], ratio[1], by_page[2] / by_page[0], wall),
                    1000 * by_page[0] / len(urls),
                    *(first["full_collections"] - plain["full_collections"], dropped, size / len(urls)),
                )
            )
    site.close()
    *cells, collections, dropped, size = map(statistics.median, zip(*found, strict=True))
    return [
        name_of(corpus),
        len(urls),
        *(f"{cell:.2f}" for cell in cells),
        *(f"{n:.0f}" for n in (collections, dropped, size)),
    ]


def memory(sizes: Iterable[int]) -> Iterable[list[object]]:
    """Yield a row for each number of pages: megabytes without the plugin and with it, peak and own."""
    for pages in sizes:
        site, urls = Site(hosts=1), []
        for number in range(pages):
            url, paragraphs = capacity.page(number, number // capacity.ON_HOST)
            text = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
            urls.append(site.add(f"/{number}", f"<title>{url}</title><body><main>{text}</main></body>"))
        with tempfile.TemporaryDirectory() as scratch:
            crawls = [crawl(Path(scratch) / str(on), ",".join(urls), plugin=on) for on in (False, True)]
        site.close()
        yield [f"{pages:,}", *(f"{stats[name]:.0f}" for name in ("VmHWM", "RssAnon") for stats in crawls)]


def show(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table, each row once it is measured."""
    print(table(header, ()), flush=True)
    for row in rows:
        print(table(row, ()).partition("\n")[0], flush=True)


def main() -> None:
    """Print the tables."""
    parser = parser_of(__doc__, corpora="*", rounds=5)
    parser.add_argument("--store")
    parser.add_argument("--memory", metavar="N", type=int, action="append", default=[])
    options = parser.parse_args()
    columns = ["corpus", "pages", "CPU", "pages only", "again", "again, pages only", "wall", "ms without"]
    if options.corpora:
        rows = (ratios(corpus, options.rounds, options.store) for corpus in options.corpora)
        show([*columns, "collections", "dropped", "bytes a page"], rows)
    if options.memory:
        show(["pages", "peak without", "peak", "own without", "own"], memory(options.memory))


if __name__ == "__main__":
    main()
