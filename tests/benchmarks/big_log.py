"""How long the commands take on a large log, made up as a crawl of five hundred hosts would leave it.

Usage: python tests/benchmarks/big_log.py [--records 1000000] [--rounds 3]
Prints a table in Markdown: seconds of each command, the start of the process included, the median of the rounds; and of
a command with an empty log, to compare. The log takes 0.8 kB a record, in a temporary folder.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from corpus import table

from dedup_middleware.records.records import Record

HOSTS = [f"www.site{n}.example.org" for n in range(500)]
WORDS = ("harbour", "quiet", "morning", "ferry", "late", "again", "nobody", "pier", "say", "why", "council", "rain")
PER_CRAWL = 20_000


def write(path: Path, count: int) -> None:
    """Write *count* records to *path*."""
    chance = random.Random(1)
    sentences = [" ".join(chance.choices(WORDS, k=14)) for _ in range(2000)]
    with path.open("w", encoding="ascii") as file:
        for number in range(count):
            file.write(_record(chance, sentences, number).to_line() + "\n")


def _record(chance: random.Random, sentences: list[str], number: int) -> Record:
    place, run = chance.randrange(len(HOSTS)), f"{number // PER_CRAWL:012x}"
    original = HOSTS[(7 * place + chance.randrange(6)) % len(HOSTS)]
    (verdict,) = chance.choices(["duplicate", "related", "unchanged"], [60, 20, 20])
    repeats = verdict != "unchanged"
    return Record(
        time=f"2026-11-{1 + number % 28:02d}T10:00:00.000+00:00",
        spider="news",
        run=run,
        url=f"https://{HOSTS[place]}/2026/11/{number}/{chance.choice(WORDS)}-{chance.choice(WORDS)}",
        verdict=verdict,
        outcome="dropped" if verdict == "duplicate" else "kept",
        original_url=f"https://{original}/2026/{chance.randrange(number + 1)}" if repeats else None,
        original_run=run if repeats else None,
        score=round(chance.random(), 4) if repeats else None,
        reason="another title" if verdict == "related" else "",
        witness={"duplicate": "page and item", "related": "page"}.get(verdict),
        evidence=chance.choices(sentences, k=5) if repeats else [],
        items_dropped=int(verdict == "duplicate"),
        items_kept=int(verdict != "duplicate"),
        title=chance.choice(sentences),
        bytes=chance.randrange(200_000),
    )


def seconds(folder: Path, log: str, *command: str) -> float:
    """Return how long a command takes."""
    words = [sys.executable, "-m", "scrapy", "dedup", *command, "-s", f"DEDUP_LOG={log}", "-s", "DEDUP_STORE=memory:"]
    start = time.perf_counter()
    subprocess.run(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    host = HOSTS[7]
    commands = [
        ("stats",),
        ("log", "--host", host),
        ("log", "--original", f"https://{host}/2026/1"),
        ("log", "--run", "last"),
        ("explain", f"https://{host}/nowhere"),
    ]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write(folder / "log.jsonl", options.records)
        times: dict[str, list[float]] = {}
        for _ in range(options.rounds):
            times.setdefault("stats of nothing", []).append(seconds(folder, "none.jsonl", "stats"))
            for command in commands:
                times.setdefault(" ".join(command), []).append(seconds(folder, "log.jsonl", *command))
    print(table(["command", "seconds"], [[name, f"{statistics.median(each):.2f}"] for name, each in times.items()]))


if __name__ == "__main__":
    main()
