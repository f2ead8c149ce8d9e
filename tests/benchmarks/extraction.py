"""Measures what the extraction finds on pages whose article is known, and what it costs, beside others.

Usage: python tests/benchmarks/extraction.py CORPUS... [--only EXTRACTOR]... [--half 1] [--limit 400] [--rounds 3]
`corpus.py` documents the format of a corpus. The command prints one table in Markdown, with a row for each kind of
page: F1 of 4-grams of words and Han characters, averaged over the pages, and in brackets of how many pages with a text
nothing was found. The last row is the CPU time of parsing and extracting, in times of a bare lxml parse of the same
page just before, as the median of the rounds. An EXTRACTOR is a value of ``DEDUP_EXTRACTOR``, or "the product", which
falls back on what a page shows; one that is not installed is left out. ``--half 1`` leaves out the pages that "learned"
has learned from.
"""

from __future__ import annotations

import collections
import statistics
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import lxml.html
from corpus import ARTICLE_FIELDS, CorpusError, command, half_of, name_of, read_corpus, table, text_agreement

from dedup_middleware import extract_paragraphs
from dedup_middleware.common.budget import UNLIMITED, UncheckableError
from dedup_middleware.errors import ConfigError
from dedup_middleware.extraction import EXTRACTORS as BY_NAME
from dedup_middleware.extraction import extractor, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from corpus import CorpusPage

    Extract = Callable[[str], Sequence[str]]

PRODUCT = "the product"


def by_name(name: str) -> Extract:
    """Return the extractor of this *name*; ``ImportError`` if it needs a package that is not installed."""
    try:
        extract = extractor(name)
    except ConfigError as error:
        raise ImportError(str(error)) from error

    def paragraphs(html: str) -> Sequence[str]:
        try:
            return extract(parse(html), UNLIMITED).paragraphs
        except UncheckableError:
            return []

    return paragraphs


EXTRACTORS: dict[str, Callable[[], Extract]] = {
    PRODUCT: lambda: extract_paragraphs,
    **{name: partial(by_name, name) for name in BY_NAME.names()},
}


class Measured(NamedTuple):
    """What one extractor found on some pages, and its time in parses."""

    f1: list[float]
    is_empty: list[bool]
    parses: float


def measured(make: Callable[[], Extract], pages: Sequence[CorpusPage], rounds: int) -> Measured | None:
    """Return what an extractor finds on *pages*, which all have a true text; ``None`` if it is not installed."""
    try:
        extract = make()
    except ImportError:
        return None
    ratios = []
    for _ in range(rounds):
        found = []
        parsing = extracting = 0.0
        for page in pages:
            start = time.process_time()
            lxml.html.document_fromstring(page.html.encode("utf8"), lxml.html.HTMLParser(encoding="utf8"))
            parsed = time.process_time()
            found.append(extract(page.html))
            parsing += parsed - start
            extracting += time.process_time() - parsed
        ratios.append(extracting / parsing)
    scores = [text_agreement(page.text, paragraphs).f1 for page, paragraphs in zip(pages, found, strict=True)]
    empty = [not any(map(str.strip, paragraphs)) for paragraphs in found]
    return Measured(scores, empty, statistics.median(ratios))


def rows_of(corpus: str, pages: Sequence[CorpusPage], found: Sequence[Measured]) -> Iterator[list[str]]:
    """Yield a row for each kind of page, one for all of them, and one for the time, a cell for each extractor."""
    kinds = collections.defaultdict(list)
    for i, page in enumerate(pages):
        kinds[page.kind].append(i)
    for kind, members in [*(sorted(kinds.items()) if len(kinds) > 1 else ()), ("all", range(len(pages)))]:
        cells = (
            f"{statistics.mean(one.f1[i] for i in members):.3f} ({sum(one.is_empty[i] for i in members)})"
            for one in found
        )
        yield [corpus, kind, str(len(members)), *cells]
    yield [corpus, "time, in parses", "", *(f"{one.parses:.2f}" for one in found)]


def known_articles(corpus: Path, limit: int, half: int | None) -> list[CorpusPage]:
    """Return the first *limit* pages of *corpus*, or of a *half* of it, whose article is known; else `CorpusError`."""
    pages = [page for page in read_corpus(corpus, ARTICLE_FIELDS) if page.text and half in {None, half_of(page)}]
    if not pages:
        raise CorpusError(f"{corpus} has no true text to compare with")
    return pages[:limit]


def main() -> None:
    """Print the table."""
    parser = command(__doc__, EXTRACTORS)
    parser.add_argument("--limit", type=int, default=400, help="take so many pages of each corpus, the first ones")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--half", type=int, choices=(0, 1), help="measure the pages of one half of each corpus only")
    options = parser.parse_args()
    names = options.only or [*EXTRACTORS]
    rows: list[list[str]] = []
    try:
        for corpus in options.corpora:
            pages = known_articles(corpus, options.limit, options.half)
            found = {name: measured(EXTRACTORS[name], pages, options.rounds) for name in names}
            names = [name for name in names if found[name]]
            rows += rows_of(name_of(corpus), pages, [one for one in found.values() if one])
    except CorpusError as error:
        sys.exit(str(error))
    print(table(["corpus", "kind", "pages", *names], rows))


if __name__ == "__main__":
    main()
