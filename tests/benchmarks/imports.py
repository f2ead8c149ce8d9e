"""How long importing takes, and whether it loads Scrapy.

Usage: python tests/benchmarks/imports.py [--rounds 9] [--beside FOLDER]
Each import in a process of its own, alternating with an empty one; medians, less those of the empty one. With *beside*,
those of another checkout of this repository in turn with these.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

STATEMENTS = (
    "import dedup_middleware",
    "from dedup_middleware import extract_paragraphs",
    "from dedup_middleware import Deduplicator",
    "from dedup_middleware import Addon",
    "import scrapy",
)
HERE = Path(__file__).resolve().parents[2]


def seconds(statement: str, checkout: Path) -> float:
    """Return how long a Python takes that does nothing but *statement*; infinity where that fails."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", statement], env=_path(checkout), cwd=checkout, capture_output=True, check=False
    )
    return time.perf_counter() - began if done.returncode == 0 else float("inf")


def loads_scrapy(statement: str, checkout: Path) -> str:
    """Return whether *statement* loads Scrapy, as a table says it."""
    asked = f"{statement}; import sys; print('yes' if 'scrapy' in sys.modules else 'no')"
    done = subprocess.run(
        [sys.executable, "-c", asked], env=_path(checkout), cwd=checkout, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def _path(checkout: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(checkout)}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--beside", type=Path)
    options = parser.parse_args()
    checkouts = {"here": HERE} | ({"beside": options.beside} if options.beside else {})
    print("| | " + " | ".join(f"ms, {name} | Scrapy loaded" for name in checkouts) + " |")
    print("|---" + "|---:|---" * len(checkouts) + "|")
    for statement in STATEMENTS:
        cells = []
        for checkout in checkouts.values():
            pairs = [(seconds(statement, checkout), seconds("pass", checkout)) for _ in range(options.rounds)]
            took, empty = (statistics.median(column) for column in zip(*pairs, strict=True))
            is_known = took != float("inf")
            cells += [f"{1000 * (took - empty):.0f}", loads_scrapy(statement, checkout)] if is_known else ["-", "-"]
        print(f"| `{statement}` | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
