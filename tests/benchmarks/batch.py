"""How fast an archive is judged: on Spark, page after page, and by MinHash-LSH; and whether verdicts are the same.

Usage: python tests/benchmarks/batch.py [--pages 100000] [--spark "local[2]"] [--skip datasketch] [ARCHIVE...]
It makes an archive (`made_archive.py`) unless some are named, each as ``scrapy dedup batch`` reads it or as a labelled
corpus (`corpus.py`), and prints one JSON object an archive: pages a second of wall time for each contestant, from the
file to the last verdict, and of ``spark`` with the verdicts, clusters and store written, and Spark's own start;
``differ``, how many verdicts of Spark's are not those of `Deduplicator`; and the load that other processes were before
and after. datasketch judges words in shingles of five, 128 permutations, Jaccard 0.8, on our extraction. A hundred
thousand pages take a quarter of an hour on two cores.
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

from corpus import CRAWL_FIELDS, read_corpus
from made_archive import archive

from dedup_middleware import Deduplicator, extract_paragraphs
from dedup_middleware.batch.command import batch
from dedup_middleware.settings.config import Config

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPARED = ("url", "verdict", "owner_url", "score", "reason", "witness", "difference", "evidence")
_SHINGLE = 5


def pages_of(path: Path) -> Iterator[dict[str, str]]:
    """Yield the pages of the archive at *path*."""
    with path.open(encoding="utf8") as file:
        yield from map(json.loads, file)


def inline(path: Path) -> tuple[list[list[Any]], set[str]]:
    """Return the verdicts of `Deduplicator`, and the URLs of the pages that it released."""
    with Deduplicator() as dedup:
        verdicts = [[getattr(verdict, name) for name in _COMPARED] for verdict in dedup.stream(pages_of(path))]
        return verdicts, set(dedup.released)


def in_folder(path: Path, folder: Path, spark: str | None) -> tuple[list[list[Any]], set[str]]:
    """Return the verdicts of ``scrapy dedup batch``."""
    opts = SimpleNamespace(inputs=[path], output=folder, owner="earliest", spark=spark, json=True)
    config = Config.from_settings({"DEDUP_STORE": "memory:", "DEDUP_LOG": ""}, None)
    print(batch(opts, config, lambda line: print(line, file=sys.stderr)), file=sys.stderr)
    said = [*pages_of(folder / "verdicts.jsonl")]
    return [[line[name] for name in _COMPARED] for line in said], {s["url"] for s in said if "released" in s}


def minhash_lsh(path: Path) -> int:
    """Return how many pages MinHash-LSH calls duplicates."""
    from datasketch import MinHash, MinHashLSH  # noqa: PLC0415 - optional

    index, drops = MinHashLSH(threshold=0.8, num_perm=128), 0
    for number, page in enumerate(pages_of(path)):
        text = " ".join(extract_paragraphs(page["html"]))
        words = text.split() if text[:1] < "\u3000" else [*text]
        made = MinHash(num_perm=128)
        made.update_batch({" ".join(words[i : i + _SHINGLE]).encode() for i in range(max(1, len(words) - _SHINGLE))})
        if index.query(made):
            drops += 1
        else:
            index.insert(number, made)
    return drops


def measured(path: Path, pages: int, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return what was measured on the archive at *path*."""
    found: dict[str, Any] = {"archive": path.name, "pages": pages, "load_before": os.getloadavg()[0]}

    def timed(name: str, work: Any) -> Any:
        if name in options.skip:
            return None
        began = time.perf_counter()
        result = work()
        found[f"{name}_pages_a_second"] = round(pages / (time.perf_counter() - began), 1)
        return result

    on_spark = timed("spark", lambda: in_folder(path, folder / "spark", options.spark))
    one_by_one = timed("inline", lambda: inline(path))
    timed("in_order", lambda: in_folder(path, folder / "in-order", None))
    drops = timed("datasketch", lambda: minhash_lsh(path))
    if on_spark and one_by_one:
        pairs = [*zip(on_spark[0], one_by_one[0], strict=True)]
        found["differ"] = sum(a != b for a, b in pairs) + len(on_spark[1] ^ one_by_one[1])
        found["duplicates"] = sum(b[1] == "duplicate" for _, b in pairs)
        found["released"] = len(one_by_one[1])
    return found | {"datasketch_duplicates": drops, "load_after": os.getloadavg()[0]}


def written(folder: Path, named: Path | None, pages: int) -> tuple[Path, int]:
    """Return where an archive is as JSON Lines of ``url`` and ``html``, and how many pages it has."""
    path = folder / f"{'made' if named is None else named.name.partition('.')[0]}.jsonl"
    rows: Any = archive(pages) if named is None else pages_of(named) if named.suffix == ".jsonl" else None
    if rows is None:
        rows = ({"url": page.url, "html": page.html} for page in read_corpus(named, CRAWL_FIELDS))
    with path.open("w", encoding="ascii") as file:
        count = sum(1 for row in rows if file.write(json.dumps(row) + "\n"))
    return path, count


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archives", metavar="ARCHIVE", nargs="*", type=Path)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--spark", default="local[2]")
    parser.add_argument("--skip", action="append", default=[], choices=["spark", "inline", "in_order", "datasketch"])
    options = parser.parse_args()
    for named in options.archives or [None]:
        with tempfile.TemporaryDirectory() as scratch:
            path, pages = written(Path(scratch), named, options.pages)
            print(json.dumps(measured(path, pages, Path(scratch), options)), flush=True)


if __name__ == "__main__":
    main()
