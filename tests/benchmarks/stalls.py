"""Slow down each sync of a crawl, the database engine's own included, and see how long the event loop stands still.

Usage: python tests/benchmarks/stalls.py [--delay 300] [--pages 300] [--interval 10] [--store leveldb:PATH]...
           [--reactor asyncio]... [--beside CHECKOUT] [--syncs]
Each fsync and fdatasync takes *delay* milliseconds longer: strace(1) holds it up. It also tells who waits. With
``--beside`` the package of another checkout crawls. PATH is a folder of this benchmark's own.

Printed for each store and reactor: the longest that the event loop stood still between the start of the engine and
the close of the spider, in ms; how long the crawl took; syncs in that time, of the event loop's thread and of others;
stories lost. ``--syncs``: which files they were for.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.crashes import StorySite, witness
from crawling import HERE, Outcome, write_job

_SYNC = re.compile(r"(\d+) .*?\b(fsync|fdatasync)\(\d+<([^>]*)>")


def crawl(folder: Path, told: StorySite, store: str, reactor: str, options: argparse.Namespace) -> dict[str, Any]:
    """Crawl under strace in *folder*; return what was seen."""
    settings = {
        "EXTENSIONS": {"disk_faults.DiskFaults": 0},
        "FEEDS": {"feed.jsonl": {"format": "jsonlines"}},
        "DEDUP_STORE": store.replace("PATH", str(folder / "store")),
        "CHECKPOINT_INTERVAL": options.interval,
    }
    urls = ",".join(told.urls)
    command = write_job(folder, "sample_spiders.Articles", urls=urls, settings=settings, reactor=reactor)
    trace = folder / "trace"
    slow = f"inject=fsync,fdatasync:delay_enter={options.delay * 1000}"
    strace = ["strace", "-f", "--seccomp-bpf", "-y", "-o", str(trace), "-e", "trace=fsync,fdatasync", "-e", slow]
    found = {"PYTHONPATH": os.pathsep.join([str(options.beside), str(HERE)])}
    subprocess.run([*strace, *command], cwd=folder, env=os.environ | found, check=True, capture_output=True)
    outcome = Outcome(folder, 0, "")
    syncs = [match.groups() for line in trace.read_text().splitlines() if (match := _SYNC.match(line))]
    # The first thread of a process has its number, which is the lowest.
    loop = min((int(thread) for thread, _, _ in syncs), default=0)
    by_loop = Counter(_named(file, folder) for thread, _, file in syncs if int(thread) == loop)
    elsewhere = Counter(_named(file, folder) for thread, _, file in syncs if int(thread) != loop)
    seen = {
        "stall_ms": round(1000 * outcome.stats["loop/stall"]),
        "seconds": round(outcome.stats["elapsed_time_seconds"], 1),
        "syncs_of_loop": by_loop.total(),
        "syncs_elsewhere": elsewhere.total(),
        "lost": len(witness(told.stories, outcome).lost),
    }
    return seen | ({"of_loop": dict(by_loop), "elsewhere": dict(elsewhere)} if options.syncs else {})


def _named(file: str, folder: Path) -> str:
    return re.sub(r"\d{3,}", "N", file.replace(f"{folder}/", ""))


def main() -> None:
    """Print one line of JSON for each store and reactor."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--delay", type=int, default=300)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--interval", type=int, default=10)
    parser.add_argument("--store", action="append")
    parser.add_argument("--reactor", action="append")
    parser.add_argument("--beside", type=Path, default=HERE.parent)
    parser.add_argument("--syncs", action="store_true")
    options = parser.parse_args()
    told = StorySite.build(options.pages, together=False)
    for store in options.store or ["leveldb:PATH", "rocksdb:PATH", "sqlite:PATH", "sqlite:PATH?shared=1"]:
        for reactor in options.reactor or ["asyncio"]:
            with tempfile.TemporaryDirectory() as scratch:
                seen = crawl(Path(scratch), told, store, reactor, options)
            print(json.dumps({"store": store, "reactor": reactor, "delay_ms": options.delay, **seen}), flush=True)
    told.site.close()


if __name__ == "__main__":
    main()
