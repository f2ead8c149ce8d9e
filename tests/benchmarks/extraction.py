"""What the extraction is worth on pages whose article is known, what it costs, and what each of its parts earns.

Usage: python tests/benchmarks/extraction.py CORPUS... [--only EXTRACTOR]... [--limit 400] [--rounds 3]
`corpus.py` says what a corpus is. Prints one table in Markdown. Precision and recall are those of 4-grams of words and
Han characters, averaged over pages. Time is that of parsing and extracting, in times of a bare lxml parse of the same
page just before; medians over the rounds. The rivals are measured if they are installed: trafilatura, readability-lxml.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import statistics
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import lxml.html
from corpus import ARTICLE_FIELDS, Agreement, CorpusError, command, read_corpus, table, text_agreement, whole_body

from dedup_middleware import extract_paragraphs
from dedup_middleware.extraction import choice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from corpus import CorpusPage


def trafilatura(**options: bool) -> Callable[[str], Sequence[str]]:
    """Return trafilatura as an extractor; ``ImportError`` if it is not installed."""
    extract = importlib.import_module("trafilatura").extract
    return lambda html: (extract(html, include_comments=False, **options) or "").split("\n")


def readability() -> Callable[[str], Sequence[str]]:
    """Return readability-lxml as an extractor; ``ImportError`` if it is not installed."""
    rival = importlib.import_module("readability")

    def extract(html: str) -> Sequence[str]:
        try:
            return whole_body(rival.Document(html).summary(html_partial=True))
        except rival.readability.Unparseable:
            return []

    return extract


@dataclasses.dataclass(frozen=True)
class Extractor:
    """One row: what makes the extractor, and what of the product is replaced while it works."""

    make: Callable[[], Callable[[str], Sequence[str]]] = lambda: extract_paragraphs
    patched: AbstractContextManager[object] = dataclasses.field(default_factory=nullcontext)


def with_constants(**constants: Any) -> Extractor:
    """Return the product with other values for constants of `choice`."""
    return Extractor(patched=patch.multiple(choice, **constants))


EXTRACTORS = {
    "the product": Extractor(),
    "names of elements not heeded": with_constants(FURNITURE=(1.0, 1.0, 1.0), PRUNABLE=0.0, ENOUGH=math.inf),
    "names weigh, but prune nothing": with_constants(PRUNABLE=0.0, ENOUGH=math.inf),
    "text needs no marks, bulk counts in full": with_constants(PHRASE=math.inf),
    "teasers count in full": with_constants(TEASER=1.0),
    "lone blocks count in full": with_constants(ALONE=1.0),
    "labels cost nothing": with_constants(LABEL=0.0),
    "links between blocks cost nothing": with_constants(GAP=0),
    "no decay on the way up": with_constants(DECAY=1.0),
    "no ascent to siblings": with_constants(ASCENT=math.inf),
    "short lines are labels everywhere": with_constants(LINE=choice.LABEL),
    "no text is too little": with_constants(TOO_LITTLE=0),
    "rival: all text of the body": Extractor(lambda: whole_body),
    "rival: trafilatura": Extractor(trafilatura),
    "rival: trafilatura, fast": Extractor(lambda: trafilatura(fast=True)),
    "rival: readability-lxml": Extractor(readability),
}


def _bare_parse(html: str) -> None:
    lxml.html.document_fromstring(html.encode("utf8"), lxml.html.HTMLParser(encoding="utf8", huge_tree=True))


def measured(extractor: Extractor, pages: Sequence[CorpusPage], rounds: int) -> Iterator[str]:
    """Yield the cells that one extractor earns on *pages*, which all have a true text."""
    try:
        extract = extractor.make()
    except ImportError:
        yield "not installed"
        return
    ratios, times = [], []
    with extractor.patched:
        for _ in range(rounds):
            found = []
            parsing = extracting = 0.0
            for page in pages:
                start = time.perf_counter()
                _bare_parse(page.html)
                parsed = time.perf_counter()
                found.append(extract(page.html))
                parsing += parsed - start
                extracting += time.perf_counter() - parsed
            ratios.append(extracting / parsing)
            times.append(1000 * extracting / len(pages))
    scores = [text_agreement(page.text, paragraphs) for page, paragraphs in zip(pages, found, strict=True)]
    mean = Agreement(statistics.mean(s.precision for s in scores), statistics.mean(s.recall for s in scores))
    yield from (f"{score:.4f}" for score in (mean.f1, mean.precision, mean.recall))
    yield f"{statistics.median(ratios):.2f}"
    yield f"{statistics.median(times):.2f}"


def known_articles(corpus: Path, limit: int) -> list[CorpusPage]:
    """Return the first *limit* pages of *corpus* whose article is known; `CorpusError` if there is none."""
    pages = [page for page in read_corpus(corpus, ARTICLE_FIELDS) if page.text]
    if not pages:
        raise CorpusError(f"{corpus} has no true text to compare with")
    return pages[:limit]


def main() -> None:
    """Print the table."""
    parser = command(__doc__, EXTRACTORS)
    parser.add_argument("--limit", type=int, default=400, help="take so many pages of each corpus, the first ones")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    header = ["extractor", "corpus", "pages", "F1", "precision", "recall", "time, in parses", "ms a page"]
    rows = []
    try:
        for corpus in options.corpora:
            known = known_articles(corpus, options.limit)
            for name in options.only or EXTRACTORS:
                cells = [name, corpus.name.partition(".")[0], str(len(known))]
                cells += measured(EXTRACTORS[name], known, options.rounds)
                rows.append(cells + ["-"] * (len(header) - len(cells)))
    except CorpusError as error:
        sys.exit(str(error))
    print(table(header, rows))


if __name__ == "__main__":
    main()
