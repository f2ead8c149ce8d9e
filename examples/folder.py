"""Which HTML files in a folder repeat one another, and how much of it.

Usage: python examples/folder.py FOLDER [--store URI]
A file is known by its path. Prints one line for each that only repeats another one.
"""

import argparse
from pathlib import Path

from dedup_middleware import Deduplicator

SUFFIXES = {".htm", ".html", ".xhtml"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--store", default="memory:", help="remember the pages from one run to the next in this store")
    options = parser.parse_args()
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is no folder")
    files = sorted(file for file in options.folder.rglob("*") if file.suffix.lower() in SUFFIXES)
    with Deduplicator(options.store) as dedup:
        for file in files:
            verdict = dedup.add(file.absolute().as_uri(), file.read_bytes())
            if verdict.is_duplicate:
                print(f"{file} repeats {verdict.original_url} ({verdict.score:.2f})")


if __name__ == "__main__":
    main()
