"""Measures what each stage of the extraction costs, in times of a bare parse of the same page.

Usage: taskset -c 1 python tests/benchmarks/stages.py CORPUS... [--limit 200] [--rounds 5]
`corpus.py` documents the format of a corpus. The command prints one table in Markdown, with a row for each corpus and a
column for each stage; "all" is `weighted_dom`, which is what a crawl runs. Each page is parsed as Scrapy parses it and
read right afterwards, so that the load of the machine affects both. The median over the rounds of the ratio of CPU
times is printed.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import TYPE_CHECKING, TypeVar

import lxml.html
from corpus import ARTICLE_FIELDS, CorpusError, name_of, parser_of, read_corpus, table

from dedup_middleware.common.budget import UNLIMITED, UncheckableError
from dedup_middleware.extraction import texts_of, weighted_dom
from dedup_middleware.extraction.blocks import plain_elements, read_page
from dedup_middleware.extraction.choice import choose
from dedup_middleware.extraction.features import features_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
STAGES = ("walk", "choice", "texts", "features", "all")


def parsed(html: bytes) -> lxml.html.HtmlElement:
    """Return the root of the tree that Scrapy makes of a page."""
    return lxml.html.document_fromstring(html, parser=lxml.html.HTMLParser(encoding="utf8", huge_tree=True))


def timed(call: Callable[[], T]) -> tuple[T, float]:
    """Return what *call* returns, and its CPU time."""
    start = time.process_time()
    return call(), time.process_time() - start


def seconds_of(html: bytes) -> list[float]:
    """Return the CPU time of a parse, and of each of the `STAGES` on a tree that nothing has read before."""
    root, first = timed(lambda: parsed(html))
    _, everything = timed(lambda: weighted_dom(root, UNLIMITED))
    walked, second = timed(lambda: parsed(html))
    with plain_elements(walked):
        page, walk = timed(lambda: read_page(walked))
    _, choice = timed(lambda: choose(page))
    unread, third = timed(lambda: parsed(html))
    found, texts = timed(lambda: texts_of(unread))
    _, features = timed(lambda: features_of(unread, found))
    return [(first + second + third) / 3, walk, choice, texts - walk - choice, features, everything]


def parses_of(pages: Sequence[bytes], rounds: int) -> list[float]:
    """Return the times of the `STAGES` of all *pages* in times of their parse."""
    ratios = []
    for _ in range(rounds):
        parse, *stages = map(sum, zip(*map(seconds_of, pages), strict=True))
        ratios.append([stage / parse for stage in stages])
    return [*map(statistics.median, zip(*ratios, strict=True))]


def is_readable(html: bytes) -> bool:
    """Return whether a page can be parsed and read."""
    try:
        weighted_dom(parsed(html), UNLIMITED)
    except (lxml.etree.LxmlError, UncheckableError):
        return False
    return True


def main() -> None:
    """Print the table."""
    options = parser_of(__doc__, corpora="+", limit=200, rounds=5).parse_args()
    rows = []
    try:
        for corpus in options.corpora:
            pages = [page.html.encode("utf8", "replace") for page in read_corpus(corpus, ARTICLE_FIELDS)]
            pages = [*filter(is_readable, pages[: options.limit])]
            rows.append([name_of(corpus), len(pages), *map("{:.2f}".format, parses_of(pages, options.rounds))])
    except CorpusError as error:
        sys.exit(str(error))
    print(table(["corpus", "pages", *STAGES], rows))


if __name__ == "__main__":
    main()
