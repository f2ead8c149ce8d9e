"""``scrapy dedup compare``: measures published methods on a corpus of pages. It opens no store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dedup_middleware.cli.call import share
from dedup_middleware.cli.commands import Subcommand
from dedup_middleware.terminal import tell

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.cli.call import Call

_FIT = 0.2


def _add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    add = parser.add_argument
    add("corpus", metavar="CORPUS", type=Path, help="pages: JSON Lines (.gz, .xz), or the folder of an HTTP cache")
    add("--method", metavar="CHOICE", action="append", default=[], help="NAME or NAME:OPTION=VALUE,… (may be repeated)")
    add("--pure", action="store_true", help="let each method decide alone, without the plugin's checks")
    add("--fit", metavar="SHARE", type=share, default=_FIT, help="learn from this share of the pages, the first ones")
    add("--sweep", metavar="METHOD:OPTION=A..B[:STEP]", help="measure the values of one option instead")
    add("--curve", action="store_true", help="measure fingerprints of 1000 to 4000 characters instead")
    add("--clusters", metavar="FILE", type=Path, help="write the clusters that the one --method finds, JSON Lines")
    add("--plot", metavar="FILE", type=Path, help="draw the results (.png, .svg, .pdf)")
    add("--json", action="store_true", help="print JSON")


def run(call: Call) -> None:
    """Print the results."""
    # 25 ms that no other command needs.
    from dedup_middleware.cli.recorded_crawl import recorded_pages  # noqa: PLC0415
    from dedup_middleware.methods.compare.command import compare  # noqa: PLC0415
    from dedup_middleware.methods.compare.corpus import read_pages  # noqa: PLC0415

    corpus = call.opts.corpus
    pages = recorded_pages(corpus, call.settings, tell) if corpus.is_dir() else read_pages(corpus)
    for text in compare(call.opts, pages, tell):
        print(text, flush=True)


COMMANDS = {
    "compare": Subcommand(
        run,
        ("compare pages.jsonl", "compare pages.jsonl --method simhash --method minhash"),
        _add_options,
        is_of_spider=False,
    )
}
