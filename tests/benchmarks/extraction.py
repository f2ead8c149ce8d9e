"""What the extraction is worth on pages whose article is known, what it costs, and what each of its parts earns.

Usage: python tests/benchmarks/extraction.py CORPUS... [--only EXTRACTOR]... [--extractor NAME]... [--half 1]
       [--limit 400] [--rounds 3] [--kinds]
`corpus.py` says what a corpus is. Prints one table in Markdown. Precision and recall are those of 4-grams of words and
Han characters, averaged over pages. Time is that of parsing and extracting on the CPU, in times of a bare lxml parse of
the same page just before; medians over the rounds. With --kinds the table has the product and its rivals side by side,
for each kind of page: F1, and of how many pages with a text nothing was found. The rivals are measured if they are
installed: trafilatura, readability-lxml, resiliparse, jusText. With --extractor, repeatedly, the product is beside the
extractions of these names, values of ``DEDUP_EXTRACTOR``; --half 1 leaves out what "learned" has learned from.
"""

from __future__ import annotations

import collections
import dataclasses
import importlib
import math
import statistics
import sys
import time
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import lxml.html
from corpus import (
    ARTICLE_FIELDS,
    Agreement,
    CorpusError,
    command,
    half_of,
    read_corpus,
    table,
    text_agreement,
    whole_body,
)

from dedup_middleware import extract_paragraphs
from dedup_middleware.budget import UNLIMITED, UncheckableError
from dedup_middleware.errors import ConfigError
from dedup_middleware.extraction import EXTRACTORS as BY_NAME
from dedup_middleware.extraction import choice, extractor, parse

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


def resiliparse() -> Callable[[str], Sequence[str]]:
    """Return Resiliparse as an extractor; ``ImportError`` if it is not installed."""
    extract = importlib.import_module("resiliparse.extract.html2text").extract_plain_text
    return lambda html: extract(html, main_content=True).split("\n")


def justext() -> Callable[[str], Sequence[str]]:
    """Return jusText, for English, as an extractor; ``ImportError`` if it is not installed."""
    rival = importlib.import_module("justext")
    stoplist = rival.get_stoplist("English")

    def extract(html: str) -> Sequence[str]:
        try:
            return [p.text for p in rival.justext(html.encode("utf8", "replace"), stoplist) if not p.is_boilerplate]
        except (rival.core.JustextError, ValueError):
            return []

    return extract


def by_name(name: str) -> Callable[[str], Sequence[str]]:
    """Return the extraction of this *name*; ``ImportError`` if it needs what is not installed."""
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


@dataclasses.dataclass(frozen=True)
class Extractor:
    """One row: what makes the extractor, and what of the product is replaced while it works."""

    make: Callable[[], Callable[[str], Sequence[str]]] = lambda: extract_paragraphs
    patched: Callable[[], AbstractContextManager[object]] = nullcontext


@contextmanager
def _constants(**constants: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for module in (choice,):
            there = {name: value for name, value in constants.items() if hasattr(module, name)}
            if there:
                stack.enter_context(patch.multiple(module, **there))
        yield


def with_constants(**constants: Any) -> Extractor:
    """Return the product with other values for constants of `choice`."""
    return Extractor(patched=lambda: _constants(**constants))


EXTRACTORS = {
    "the product": Extractor(),
    "names of elements not heeded": with_constants(
        BOILERPLATE_SHARES=(1.0, 1.0, 1.0), HIDDEN_SHARE=1.0, PRUNABLE=0.0, ENOUGH=math.inf
    ),
    "names weigh, but prune nothing": with_constants(PRUNABLE=0.0, ENOUGH=math.inf),
    "text needs no marks, bulk counts in full": with_constants(PHRASE=math.inf),
    "teasers count in full": with_constants(TEASER=1.0),
    "lone blocks count in full": with_constants(ALONE=1.0),
    "labels cost nothing": with_constants(LABEL=0.0),
    "links between blocks cost nothing": with_constants(GAP=0),
    "no decay on the way up": with_constants(DECAY=1.0),
    "no lists beside the text": with_constants(LIST_LETTERS=math.inf),
    "what calls itself the main text is not heeded": with_constants(SOME_TEXT=math.inf),
    "no spreading to other places": with_constants(SPREAD=math.inf),
    "spreading however little it adds": with_constants(SPREAD_AT_EASE=0.001),
    "short lines are labels everywhere": with_constants(LINE=choice.LABEL),
    "no text is too little": with_constants(TOO_LITTLE=0),
    "rival: all text of the body": Extractor(lambda: whole_body),
    "rival: trafilatura": Extractor(trafilatura),
    "rival: trafilatura, fast": Extractor(lambda: trafilatura(fast=True)),
    "rival: readability-lxml": Extractor(readability),
    "rival: resiliparse": Extractor(resiliparse),
    "rival: jusText": Extractor(justext),
}
SIDE_BY_SIDE = ["the product", *(name for name in EXTRACTORS if name.startswith("rival: ") and "all text" not in name)]


def _bare_parse(html: str) -> None:
    lxml.html.document_fromstring(html.encode("utf8"), lxml.html.HTMLParser(encoding="utf8", huge_tree=True))


@dataclasses.dataclass
class Measured:
    """What one extractor earns on some pages, and what it takes."""

    scores: list[Agreement]
    empty: list[bool]
    ratio: float
    milliseconds: float


def measured(extractor: Extractor, pages: Sequence[CorpusPage], rounds: int) -> Measured | None:
    """Return what *extractor* earns on *pages*, which all have a true text; ``None`` if it is not installed."""
    try:
        extract = extractor.make()
    except ImportError:
        return None
    ratios, times = [], []
    with extractor.patched():
        for _ in range(rounds):
            found = []
            parsing = extracting = 0.0
            for page in pages:
                start = time.process_time()
                _bare_parse(page.html)
                parsed = time.process_time()
                found.append(extract(page.html))
                parsing += parsed - start
                extracting += time.process_time() - parsed
            ratios.append(extracting / parsing)
            times.append(1000 * extracting / len(pages))
    scores = [text_agreement(page.text, paragraphs) for page, paragraphs in zip(pages, found, strict=True)]
    empty = [not any(map(str.strip, paragraphs)) for paragraphs in found]
    return Measured(scores, empty, statistics.median(ratios), statistics.median(times))


def mean(scores: Sequence[Agreement]) -> Agreement:
    """Return the mean precision and recall of *scores*."""
    return Agreement(statistics.mean(s.precision for s in scores), statistics.mean(s.recall for s in scores))


def cells(found: Measured | None) -> Iterator[str]:
    """Yield the cells of the row of one extractor."""
    if found is None:
        yield "not installed"
        return
    total = mean(found.scores)
    yield from (f"{score:.4f}" for score in (total.f1, total.precision, total.recall))
    yield f"{found.ratio:.2f}"
    yield f"{found.milliseconds:.2f}"


def by_kind(corpus: str, pages: Sequence[CorpusPage], found: Sequence[Measured | None]) -> Iterator[list[str]]:
    """Yield a row for each kind of page, one for all of them, and one for the time, a cell for each extractor."""
    kinds = collections.defaultdict(list)
    for i, page in enumerate(pages):
        kinds[page.kind].append(i)
    groups = dict(sorted(kinds.items())) if len(kinds) > 1 else {}
    for kind, members in {**groups, "all": range(len(pages))}.items():
        row = [corpus, kind, str(len(members))]
        for one in found:
            empty = 0 if one is None else sum(one.empty[i] for i in members)
            row.append("-" if one is None else f"{mean([one.scores[i] for i in members]).f1:.3f} ({empty})")
        yield row
    yield [corpus, "time, in parses", ""] + ["-" if one is None else f"{one.ratio:.2f}" for one in found]


def known_articles(corpus: Path, limit: int, half: int | None = None) -> list[CorpusPage]:
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
    parser.add_argument("--extractor", action="append", choices=[*BY_NAME.names()], help="may be given repeatedly")
    parser.add_argument("--half", type=int, choices=(0, 1), help="measure the pages of one half of each corpus only")
    parser.add_argument("--kinds", action="store_true", help="the product and its rivals, by kind of page")
    options = parser.parse_args()
    names = options.only or (SIDE_BY_SIDE if options.kinds else list(EXTRACTORS))
    extractors = EXTRACTORS
    if options.extractor:
        extractors = EXTRACTORS | {name: Extractor(partial(by_name, name)) for name in options.extractor}
        names = [*(options.only or ["the product"]), *options.extractor]
    header = ["extractor", "corpus", "pages", "F1", "precision", "recall", "time, in parses", "ms a page"]
    if options.kinds:
        header = ["corpus", "kind", "pages", *(name.removeprefix("rival: ") for name in names)]
    rows: list[list[str]] = []
    try:
        for corpus in options.corpora:
            known, title = known_articles(corpus, options.limit, options.half), corpus.name.partition(".")[0]
            found = [measured(extractors[name], known, options.rounds) for name in names]
            if options.kinds:
                rows += by_kind(title, known, found)
                continue
            for name, one in zip(names, found, strict=True):
                row = [name, title, str(len(known)), *cells(one)]
                rows.append(row + ["-"] * (len(header) - len(row)))
    except CorpusError as error:
        sys.exit(str(error))
    print(table(header, rows))


if __name__ == "__main__":
    main()
