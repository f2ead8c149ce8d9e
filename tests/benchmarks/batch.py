"""Compares `scrapy dedup batch`, in one process and on Spark, with `Deduplicator` and with MinHash-LSH.

Usage: python tests/benchmarks/batch.py [--pages 10000 100000] [--spark "local[2]"] [--skip datasketch] [CORPUS...]
It makes archives of so many pages (`made_archive.py`), or takes labelled corpora (`corpus.py`), and prints one JSON
object for each: pages a second of wall time from the files to the last verdict, with verdicts, clusters and store
written by ``batch`` and ``spark``, and with the start of Spark; the duplicates that each has found; ``differ``, pages
that are a duplicate by ``batch`` and not by ``inline``, or the reverse; for a corpus, F1 and lost clusters of both; and
the load of the machine before and after. datasketch compares words in shingles of five on our extraction, with 128
permutations and a Jaccard similarity of 0.8. 100 000 pages take half an hour on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from corpus import CRAWL_FIELDS, drop_agreement, lost_stories, read_corpus, relabelled
from made_archive import archive

from dedup_middleware import Deduplicator, extract_paragraphs
from dedup_middleware.batch.command import batch
from dedup_middleware.settings import Config

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTESTANTS = ("inline", "batch", "spark", "datasketch")
_SHINGLE = 5
_FILES = 8


def pages_of(folder: Path) -> Iterator[dict[str, str]]:
    """Yield the pages of the archive in *folder*."""
    for path in sorted(folder.iterdir()):
        with path.open(encoding="utf8") as file:
            yield from map(json.loads, file)


def inline(folder: Path) -> list[bool]:
    """Return which pages are duplicates by `Deduplicator`, without those that it has released."""
    with Deduplicator() as dedup:
        verdicts = [*dedup.stream(pages_of(folder))]
        return [verdict.is_duplicate and verdict.url not in dedup.released for verdict in verdicts]


def in_batch(folder: Path, output: Path, spark: str | None) -> list[bool]:
    """Return which pages are duplicates by ``scrapy dedup batch``."""
    opts = SimpleNamespace(inputs=[folder], output=output, spark=spark, parquet=False, json=True)
    config = Config.from_settings({"DEDUP_STORE": "memory:", "DEDUP_LOG": ""}, None)
    print(batch(opts, config, lambda line: print(line, file=sys.stderr)), file=sys.stderr)
    with (output / "verdicts.jsonl").open(encoding="ascii") as file:
        return [json.loads(line)["verdict"] == "duplicate" for line in file]


def minhash_lsh(folder: Path) -> list[bool]:
    """Return which pages are duplicates by MinHash-LSH."""
    from datasketch import MinHash, MinHashLSH  # noqa: PLC0415 - optional

    index, found = MinHashLSH(threshold=0.8, num_perm=128), []
    for number, page in enumerate(pages_of(folder)):
        text = " ".join(extract_paragraphs(page["html"]))
        words = text.split() if text[:1] < "\u3000" else [*text]
        made = MinHash(num_perm=128)
        made.update_batch({" ".join(words[i : i + _SHINGLE]).encode() for i in range(max(1, len(words) - _SHINGLE))})
        found.append(bool(index.query(made)))
        if not found[-1]:
            index.insert(number, made)
    return found


def measured(name: str, folder: Path, scratch: Path, options: argparse.Namespace, corpus: list[Any]) -> dict[str, Any]:
    """Return what was measured on the archive in *folder*, whose pages are those of a *corpus*, or made."""
    pages = sum(1 for _ in pages_of(folder))
    report: dict[str, Any] = {"archive": name, "pages": pages, "load_before": os.getloadavg()[0]}
    works = {
        "inline": lambda: inline(folder),
        "batch": lambda: in_batch(folder, scratch / "batch", None),
        "spark": lambda: in_batch(folder, scratch / "spark", options.spark),
        "datasketch": lambda: minhash_lsh(folder),
    }
    found = {}
    for contestant in (name for name in CONTESTANTS if name not in options.skip):
        began = time.perf_counter()
        found[contestant] = works[contestant]()
        seconds = time.perf_counter() - began
        report[contestant] = {"pages_a_second": round(pages / seconds, 1), "duplicates": sum(found[contestant])}
        if corpus:
            kept = {page.id for page, dropped in zip(corpus, found[contestant], strict=True) if not dropped}
            f1, lost = drop_agreement(corpus, kept).f1, lost_stories(corpus, kept)
            report[contestant] |= {"f1": round(f1, 4), "lost": lost}
    if {"inline", "batch"} <= found.keys():
        report["differ"] = sum(map(bool.__ne__, found["inline"], found["batch"]))
    return report | {"load_after": os.getloadavg()[0]}


def write_archive(folder: Path, pages: list[dict[str, str]]) -> None:
    """Write *pages* to files in *folder*: Spark reads a file in one process."""
    folder.mkdir()
    size = -(-len(pages) // _FILES)
    for number in range(_FILES):
        part = pages[number * size : (number + 1) * size]
        (folder / f"{number}.jsonl").write_text("".join(f"{json.dumps(page)}\n" for page in part), encoding="ascii")


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", metavar="CORPUS", nargs="*", type=Path)
    parser.add_argument("--pages", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--spark", default="local[2]")
    parser.add_argument("--skip", action="append", default=[], choices=CONTESTANTS)
    options = parser.parse_args()
    for source in options.corpora or options.pages:
        corpus = relabelled(read_corpus(source, CRAWL_FIELDS)) if isinstance(source, Path) else []
        pages = [{"url": page.url, "html": page.html} for page in corpus] or [*archive(source)]
        name = source.name if isinstance(source, Path) else "made"
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch, "archive")
            write_archive(folder, pages)
            del pages
            print(json.dumps(measured(name, folder, Path(scratch), options, corpus)), flush=True)


if __name__ == "__main__":
    main()
