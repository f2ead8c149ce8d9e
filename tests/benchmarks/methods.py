"""The tables of docs/methods.md: what each published method finds and loses, alone and with our witnesses.

Usage: python tests/benchmarks/methods.py CORPUS... [--only METHOD]...
A corpus is one that `scrapy dedup compare` reads, with clusters; this runs that command on each, with `--pure` and
without. Prints tables in Markdown: F1 and lost stories on all corpora, then precision, recall and cost on each, and
last how long the commands took. A minute or two a corpus and command.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from corpus import CorpusError, command, table

from dedup_middleware.fingerprints.method import METHODS

if TYPE_CHECKING:
    from pathlib import Path


class Run(NamedTuple):
    """What one command has said."""

    rows: dict[str, dict[str, Any]]
    """By method."""
    seconds: float


def run(corpus: Path, options: list[str]) -> Run:
    """Compare methods on *corpus*; :class:`CorpusError` with what the command says, if that fails."""
    start = time.perf_counter()
    words = [sys.executable, "-m", "scrapy", "dedup", "compare", str(corpus), "--json", *options]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout.startswith("["):
        raise CorpusError(f"{corpus}: {done.stderr.strip() or 'it has no clusters'}")
    return Run({row["method"]: row for row in json.loads(done.stdout)}, time.perf_counter() - start)


def found(pure: dict[str, Any], beside: dict[str, Any]) -> str:
    """Return a cell: F1 and lost stories, alone and with witnesses."""
    return f"{pure['f1']:.3f} ({pure['lost']}) → {beside['f1']:.3f} ({beside['lost']})"


def costs(pure: dict[str, Any], beside: dict[str, Any]) -> list[str]:
    """Return what one method does on one corpus."""
    said = [f"{row['precision']:.3f} / {row['recall']:.3f}" for row in (pure, beside)]
    return [*said, f"{pure['ms_per_page']:.2f}", f"{pure['bytes_per_page']:.0f}", f"{pure['peak_mb']:.1f}"]


def report(runs: dict[str, tuple[Run, Run]]) -> None:
    """Print the tables of *runs*: pure and with witnesses, by the name of the corpus."""
    methods = list(next(iter(runs.values()))[0].rows)
    cells = [
        [f"`{name}`", *(found(pure.rows[name], beside.rows[name]) for pure, beside in runs.values())]
        for name in methods
    ]
    print(table(["method", *runs], cells))
    lost = [sum(each[n].rows[name]["lost"] for each in runs.values() for name in methods[1:]) for n in (0, 1)]
    print(f"\nThe {len(methods) - 1} published ones lose {lost[0]} stories alone and {lost[1]} with witnesses.")
    header = ["method", "precision / recall, pure", "with witnesses", "ms a page, pure", "bytes a page", "peak MB"]
    for corpus, (pure, beside) in runs.items():
        print(f"\n{corpus}\n")
        print(table(header, [[f"`{name}`", *costs(pure.rows[name], beside.rows[name])] for name in methods]))
    print()
    print(
        table(
            ["seconds", "pure", "with witnesses"],
            [[c, *(f"{r.seconds:.0f}" for r in pair)] for c, pair in runs.items()],
        )
    )


def main() -> int:
    """Run as the command says; return the exit status."""
    args = command(__doc__, METHODS.names()).parse_args()
    options = [word for name in args.only or [] for word in ("--method", name)]
    runs: dict[str, tuple[Run, Run]] = {}
    try:
        for path in args.corpora:
            runs[path.name.partition(".")[0]] = run(path, ["--pure", *options]), run(path, options)
    except CorpusError as error:
        print(error, file=sys.stderr)
        return 2
    report(runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
