"""The options of ``scrapy dedup compare``; apart, for every ``scrapy dedup`` reads them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

SUFFIXES = (".png", ".svg", ".pdf")
_FIT = 0.2


def add_options(parser: argparse.ArgumentParser, share: Callable[[str], float]) -> None:
    """Let *parser* read the options of the command; *share* reads a number from 0 to 1."""
    add = parser.add_argument
    add("corpus", metavar="CORPUS", type=Path, help="pages: JSON Lines (.gz, .xz), or the folder of an HTTP cache")
    add("--method", metavar="CHOICE", action="append", default=[], help="NAME or NAME:OPTION=VALUE,… (may be repeated)")
    add("--pure", action="store_true", help="let each method decide by itself, without the plugin's witnesses")
    add("--fit", metavar="SHARE", type=share, default=_FIT, help="learn from this share of the pages, the first ones")
    add("--sweep", metavar="METHOD:OPTION=A..B[:STEP]", help="try the values of one option instead")
    add("--curve", action="store_true", help="measure fingerprints of 1000 to 4000 characters instead")
    add("--clusters", metavar="FILE", type=Path, help="write what the one --method takes for one story, JSON Lines")
    add("--plot", metavar="FILE", type=Path, help=f"draw it ({', '.join(SUFFIXES)})")
    add("--json", action="store_true", help="print JSON")
