"""How many pages a second go through the door without Scrapy, and what comes of them.

Usage: python tests/benchmarks/door.py CORPUS...
`corpus.py` says what a corpus is. Each is added to a store in memory thrice, and the fastest counts: pages a second
of CPU time, from HTML to verdict and store, with and without items. F1 and lost stories are those of what is kept
in this order.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import NamedTuple

from corpus import CRAWL_FIELDS, CorpusError, CorpusPage, drop_agreement, lost_stories, read_corpus, table

from dedup_middleware import Deduplicator


class Passage(NamedTuple):
    """What came of a corpus."""

    pages_a_second: float
    kept: set[str]


def passage(pages: list[CorpusPage], *, items: bool) -> Passage:
    """Add *pages* to a new memory, with *items* made of their text or without."""
    began = time.process_time()
    with Deduplicator() as dedup:
        documents = (
            {"url": page.url, "html": page.html, "item": {"text": "\n".join(page.text)} if items else None}
            for page in pages
        )
        verdicts = list(dedup.stream(documents))
        again = set(dedup.released)
    took = time.process_time() - began
    kept = {p.id for p, v in zip(pages, verdicts, strict=True) if not v.is_duplicate or p.url in again}
    return Passage(len(pages) / took, kept)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", metavar="CORPUS", nargs="+", type=Path)
    rows = []
    for path in parser.parse_args().corpora:
        try:
            pages = read_corpus(path, CRAWL_FIELDS)
        except CorpusError as error:
            sys.exit(str(error))
        for items in (False, True):
            best = max((passage(pages, items=items) for _ in range(3)), key=lambda p: p.pages_a_second)
            agreement = drop_agreement(pages, best.kept)
            rows.append(
                (
                    path.name.partition(".")[0],
                    "text" if items else "none",
                    f"{best.pages_a_second:.0f}",
                    f"{agreement.f1:.3f}",
                    str(lost_stories(pages, best.kept)),
                )
            )
    print(table(("corpus", "items", "pages a second", "F1", "lost"), rows))


if __name__ == "__main__":
    main()
