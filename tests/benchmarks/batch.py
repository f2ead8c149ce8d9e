"""Compares `scrapy dedup batch`, in one process, several, and on Spark, with `Deduplicator`.

Usage: python tests/benchmarks/batch.py [--pages 10000 100000] [--one-site] [--cores 1 2] [--spark MASTER] [CORPUS...]
The command makes archives of so many pages (`made_archive.py`), all on one site with ``--one-site``, or takes labelled
corpora (`corpus.py`), and prints one JSON object for each: pages a second of wall time from the files to the last
verdict, with verdicts, clusters and store written by ``batch`` on so many cores and by ``spark`` (only with
``--spark``, and with the start of Spark), and milliseconds of CPU a page, of all processes but those of Spark; the
duplicates that each has found; ``differ``, pages that are a duplicate in the batch and not ``inline``, or the reverse;
``equal``, whether verdicts and clusters of all batches are equal, line by line; for a corpus, F1 and lost pages.
100 000 pages take a quarter of an hour on two cores.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import made_archive
from corpus import CRAWL_FIELDS, drop_agreement, lost_pages, name_of, parser_of, read_corpus, relabelled

from dedup_middleware import Deduplicator

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from corpus import CorpusPage

#: Spark reads a file in one process.
_FILES = 8


def inline(folder: Path, _: Path) -> list[bool]:
    """Return which pages are duplicates by `Deduplicator`."""
    with Deduplicator() as dedup:
        lines = (line for path in sorted(folder.iterdir()) for line in path.open(encoding="utf8"))
        found = [*dedup.stream(map(json.loads, lines))]
        return [result.is_duplicate for result in found]


def in_batch(folder: Path, output: Path, *options: str, cores: int | None = None) -> list[bool]:
    """Return which pages are duplicates by ``scrapy dedup batch``, on so many *cores*, which fills *output*."""
    words = [sys.executable, "-m", "scrapy", "dedup", "batch", str(folder), "-o", str(output), *options]
    own = sorted(os.sched_getaffinity(0))
    try:
        os.sched_setaffinity(0, own[:cores])
        subprocess.run(words, check=True, cwd=output.parent, stdout=sys.stderr)
    finally:
        os.sched_setaffinity(0, own)
    lines = (output / "verdicts.jsonl").read_text(encoding="ascii").splitlines()
    return [json.loads(line)["verdict"] == "duplicate" for line in lines]


def cpu() -> float:
    """Return the seconds of CPU that this process and those that it has waited for have taken."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def measured(
    name: str, pages: Sequence[dict[str, str]], options: argparse.Namespace, corpus: list[CorpusPage]
) -> dict[str, Any]:
    """Return what was measured on *pages*, those of a *corpus* if they are labelled."""
    report: dict[str, Any] = {"archive": name, "pages": len(pages)}
    works: dict[str, Callable[[Path, Path], list[bool]]] = {"inline": inline}
    works |= {f"batch, cores: {cores}": partial(in_batch, cores=cores) for cores in options.cores}
    if options.spark:
        works["spark"] = lambda folder, output: in_batch(folder, output, "--spark", options.spark)
    found, written = {}, set()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "archive")
        folder.mkdir()
        for number in range(_FILES):
            part = pages[number * len(pages) // _FILES : (number + 1) * len(pages) // _FILES]
            (folder / f"{number}.jsonl").write_text("".join(f"{json.dumps(p)}\n" for p in part), encoding="ascii")
        for contestant, work in works.items():
            output, began, cpu_began = Path(scratch, contestant), time.perf_counter(), cpu()
            found[contestant] = work(folder, output)
            rate, used = len(pages) / (time.perf_counter() - began), 1000 * (cpu() - cpu_began) / len(pages)
            report[contestant] = {"pages_a_second": round(rate, 1), "found": sum(found[contestant])}
            if contestant != "spark":
                report[contestant]["cpu_ms"] = round(used, 2)
            if contestant != "inline":
                written.add(tuple((output / file).read_bytes() for file in ("verdicts.jsonl", "clusters.jsonl")))
            if corpus:
                kept = {page.id for page, dropped in zip(corpus, found[contestant], strict=True) if not dropped}
                f1, lost = drop_agreement(corpus, kept).f1, lost_pages(corpus, kept)
                report[contestant] |= {"f1": round(f1, 4), "lost": lost}
    crawled, *batches = found.values()
    return report | {"differ": sum(map(bool.__ne__, crawled, batches[0])), "equal": len(written) == 1}


def main() -> None:
    """Print what was measured."""
    parser = parser_of(__doc__, corpora="*", one_site=False)
    parser.add_argument("--pages", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--cores", type=int, nargs="+", default=[2])
    parser.add_argument("--spark")
    options = parser.parse_args()
    for path in options.corpora:
        corpus = relabelled(read_corpus(path, CRAWL_FIELDS))
        pages = [{"url": page.url, "html": page.html} for page in corpus]
        print(json.dumps(measured(name_of(path), pages, options, corpus)), flush=True)
    for count in [] if options.corpora else options.pages:
        if options.one_site:
            made_archive.ON_SITE = count
        name = "made, one site" if options.one_site else "made"
        print(json.dumps(measured(name, [*made_archive.archive(count)], options, [])), flush=True)


if __name__ == "__main__":
    main()
