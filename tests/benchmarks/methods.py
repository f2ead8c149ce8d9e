"""Prints the tables of docs/methods-measured.md: what each published method finds and loses, alone and with our checks.

Usage: python tests/benchmarks/methods.py CORPUS... [--only METHOD]...
A corpus is one that `scrapy dedup compare` reads, with clusters; this runs that command on each, with `--pure` and
without. Prints tables in Markdown: F1 and lost stories on all corpora, then precision, recall and cost on each. A
minute or two a corpus and command.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from corpus import CorpusError, command, name_of, table

from dedup_middleware.fingerprints.method import METHODS

if TYPE_CHECKING:
    from pathlib import Path

    #: By method.
    Rows = dict[str, dict[str, Any]]


def run(corpus: Path, options: list[str]) -> Rows:
    """Compare methods on *corpus*; :class:`CorpusError` with what the command prints, if that fails."""
    words = [sys.executable, "-m", "scrapy", "dedup", "compare", str(corpus), "--json", *options]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout.startswith("["):
        raise CorpusError(f"{corpus}: {done.stderr.strip() or 'it has no clusters'}")
    return {row["method"]: row for row in json.loads(done.stdout)}


def report(runs: dict[str, tuple[Rows, Rows]]) -> None:
    """Print the tables of *runs*: pure and with checks, by the name of the corpus."""
    methods = list(next(iter(runs.values()))[0])
    found = [
        [" → ".join(f"{rows[name]['f1']:.3f} ({rows[name]['lost']})" for rows in both) for both in runs.values()]
        for name in methods
    ]
    print(table(["method", *runs], [[f"`{name}`", *cells] for name, cells in zip(methods, found, strict=True)]))
    lost = [sum(both[n][name]["lost"] for both in runs.values() for name in methods[1:]) for n in (0, 1)]
    print(f"\nThe {len(methods) - 1} published ones lose {lost[0]} stories alone and {lost[1]} with checks.")
    header = ["method", "precision / recall, pure", "with checks", "ms a page, pure", "bytes a page", "peak MB"]
    for corpus, both in runs.items():
        rows = []
        for name in methods:
            pure = both[0][name]
            scores = [f"{each[name]['precision']:.3f} / {each[name]['recall']:.3f}" for each in both]
            costs = [f"{pure['ms_per_page']:.2f}", f"{pure['bytes_per_page']:.0f}", f"{pure['peak_mb']:.1f}"]
            rows.append([f"`{name}`", *scores, *costs])
        print(f"\n{corpus}\n\n{table(header, rows)}")


def main() -> int:
    """Run as the command says; return the exit status."""
    args = command(__doc__, METHODS.names()).parse_args()
    options = [word for name in args.only or [] for word in ("--method", name)]
    try:
        report({name_of(path): (run(path, ["--pure", *options]), run(path, options)) for path in args.corpora})
    except CorpusError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
