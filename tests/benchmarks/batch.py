"""Compares `scrapy dedup batch`, in one process and on Spark, with `Deduplicator`.

Usage: python tests/benchmarks/batch.py [--pages 10000 100000] [--spark "local[2]"] [CORPUS...]
The command makes archives of so many pages (`made_archive.py`), or takes labelled corpora (`corpus.py`), and prints one
JSON object for each: pages a second of wall time from the files to the last verdict, with verdicts, clusters and store
written by ``batch`` and ``spark``, and with the start of Spark (only with ``--spark``); the duplicates
that each has found; ``differ``, pages that are a duplicate by ``batch`` and not by ``inline``, or the reverse; for a
corpus, F1 and lost pages. 100 000 pages take a quarter of an hour on two cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from corpus import CRAWL_FIELDS, drop_agreement, lost_pages, name_of, read_corpus, relabelled
from made_archive import archive

from dedup_middleware import Deduplicator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpus import CorpusPage

#: Spark reads a file in one process.
_FILES = 8


def inline(folder: Path) -> list[bool]:
    """Return which pages are duplicates by `Deduplicator`, without those that it has released."""
    with Deduplicator() as dedup:
        lines = (line for path in sorted(folder.iterdir()) for line in path.open(encoding="utf8"))
        found = [*dedup.stream(map(json.loads, lines))]
        return [result.is_duplicate and result.url not in dedup.released for result in found]


def in_batch(folder: Path, *options: str) -> list[bool]:
    """Return which pages are duplicates by ``scrapy dedup batch``."""
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch, "output")
        words = [sys.executable, "-m", "scrapy", "dedup", "batch", str(folder), "-o", str(output), *options]
        subprocess.run(words, check=True, cwd=scratch, stdout=sys.stderr)
        lines = (output / "verdicts.jsonl").read_text(encoding="ascii").splitlines()
        return [json.loads(line)["verdict"] == "duplicate" for line in lines]


def measured(name: str, pages: Sequence[dict[str, str]], spark: str | None, corpus: list[CorpusPage]) -> dict[str, Any]:
    """Return what was measured on *pages*, those of a *corpus* if they are labelled."""
    report: dict[str, Any] = {"archive": name, "pages": len(pages)}
    works = {"inline": inline, "batch": in_batch}
    if spark:
        works["spark"] = lambda folder: in_batch(folder, "--spark", spark)
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(_FILES):
            part = pages[number * len(pages) // _FILES : (number + 1) * len(pages) // _FILES]
            Path(scratch, f"{number}.jsonl").write_text("".join(f"{json.dumps(p)}\n" for p in part), encoding="ascii")
        for contestant, work in works.items():
            began = time.perf_counter()
            found[contestant] = work(Path(scratch))
            seconds = time.perf_counter() - began
            report[contestant] = {"pages_a_second": round(len(pages) / seconds, 1), "found": sum(found[contestant])}
            if corpus:
                kept = {page.id for page, dropped in zip(corpus, found[contestant], strict=True) if not dropped}
                f1, lost = drop_agreement(corpus, kept).f1, lost_pages(corpus, kept)
                report[contestant] |= {"f1": round(f1, 4), "lost": lost}
    return report | {"differ": sum(map(bool.__ne__, found["inline"], found["batch"]))}


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", metavar="CORPUS", nargs="*", type=Path)
    parser.add_argument("--pages", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--spark")
    options = parser.parse_args()
    for path in options.corpora:
        corpus = relabelled(read_corpus(path, CRAWL_FIELDS))
        pages = [{"url": page.url, "html": page.html} for page in corpus]
        print(json.dumps(measured(name_of(path), pages, options.spark, corpus)), flush=True)
    for count in [] if options.corpora else options.pages:
        print(json.dumps(measured("made", [*archive(count)], options.spark, [])), flush=True)


if __name__ == "__main__":
    main()
