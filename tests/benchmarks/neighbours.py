"""Measures what other tools would drop of labelled crawls, each by what it looks at.

Usage: python tests/benchmarks/neighbours.py CORPUS... [--only TOOL]... [--time]
`corpus.py` documents the format of a corpus. It prints a table in Markdown. Each cell is ``lost / recall``:
the lost pages (neither they nor a copy was kept), and the share of the copies that was dropped. Pages are crawled in
their order; a page is dropped if its key, or a similar text, was met before. With --time, a cell has a third number:
milliseconds of CPU for a page, from HTML to verdict, with the parse.

- ``URL``: as scrapy-deltafetch, by the canonical URL;
- ``URL without query``: a rule of duplicate-url-discarder that removes every parameter, the most that such rules can do
  without knowledge of a site;
- ``page digest``: as MD5Signature of Apache Nutch, by all bytes of the page;
- ``text digest``: by the text that trafilatura extracts;
- ``MinHash 0.7``, ``MinHash 0.8``: the same text, in runs of five words or Han characters, by MinHash with 256
  permutations and LSH of datasketch, the default of text-dedup at 0.7;
- ``Rust``: the main text that resiliparse extracts, by the MinHash of rensa at 0.7: what is quickest.

These are no dependencies of the tests: `pip install trafilatura resiliparse rensa`.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from hashlib import md5
from time import process_time
from typing import TYPE_CHECKING, Protocol

from corpus import (
    CRAWL_FIELDS,
    CorpusError,
    CorpusPage,
    command,
    drop_agreement,
    lost_pages,
    name_of,
    read_corpus,
    relabelled,
    table,
)
from datasketch import MinHash, MinHashLSH
from w3lib.url import canonicalize_url

from dedup_middleware import Deduplicator

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

_TOKEN = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+")
_PERMUTATIONS, _SHINGLE = 256, 5


class Tool(Protocol):
    """Crawls pages, and returns the ids of those that it keeps."""

    def __call__(self, pages: Sequence[CorpusPage]) -> set[str]: ...


def by_key(key: Callable[[CorpusPage], Hashable]) -> Tool:
    """Return a tool that drops a page whose *key* was met; a page without one is kept."""

    def kept(pages: Sequence[CorpusPage]) -> set[str]:
        first: dict[Hashable, str] = {}
        for page in pages:
            first.setdefault(key(page) or page.id, page.id)
        return {*first.values()}

    return kept


def by_minhash(threshold: float) -> Tool:
    """Return a tool that drops a page whose text is alike to one that was kept."""

    def kept(pages: Sequence[CorpusPage]) -> set[str]:
        index, ids = MinHashLSH(threshold, _PERMUTATIONS), set()
        for page in pages:
            runs = runs_of(extracted(page.html))
            signature = MinHash(_PERMUTATIONS)
            signature.update_batch([run.encode() for run in runs])
            if not runs or not index.query(signature):
                ids.add(page.id)
                if runs:
                    index.insert(page.id, signature)
        return ids

    return kept


def runs_of(text: str) -> set[str]:
    """Return the runs of `_SHINGLE` words or Han characters of a *text*."""
    tokens = _TOKEN.findall(text.casefold())
    starts = range(max(1, len(tokens) - _SHINGLE + 1)) if tokens else ()
    return {" ".join(tokens[start : start + _SHINGLE]) for start in starts}


def in_rust(pages: Sequence[CorpusPage]) -> set[str]:
    """Return what resiliparse and rensa keep."""
    from rensa import RMinHash, RMinHashDeduplicator  # noqa: PLC0415 - not installed with the tests
    from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415

    index, ids = RMinHashDeduplicator(0.7, _PERMUTATIONS, use_lsh=True, num_bands=32), set()
    for page in pages:
        html = page.html.encode("utf8", "replace").decode("utf8")  # half of a surrogate pair ends it
        runs, signature = runs_of(extract_plain_text(html, main_content=True)), RMinHash(_PERMUTATIONS, seed=42)
        signature.update([*runs])
        if not runs or index.add(page.id, signature):
            ids.add(page.id)
    return ids


def the_product(pages: Sequence[CorpusPage]) -> set[str]:
    """Return what `Deduplicator` keeps; a page that it releases is kept."""
    with Deduplicator() as dedup:
        dropped = {page.url: page.id for page in pages if dedup.add(page.url, page.html).is_duplicate}
        return {page.id for page in pages} - {id_ for url, id_ in dropped.items() if url not in dedup.released}


@cache
def extracted(html: str) -> str:
    """Return the main text as trafilatura finds it; empty if it finds none."""
    from trafilatura import extract  # noqa: PLC0415 - not installed with the tests

    return extract(html) or ""


TOOLS: dict[str, Tool] = {
    "the product": the_product,
    "URL": by_key(lambda page: canonicalize_url(page.url)),
    "URL without query": by_key(lambda page: page.url.partition("?")[0]),
    "page digest": by_key(lambda page: md5(page.html.encode("utf8", "surrogatepass")).digest()),
    "text digest": by_key(lambda page: extracted(page.html)),
    "MinHash 0.7": by_minhash(0.7),
    "MinHash 0.8": by_minhash(0.8),
    "Rust": in_rust,
}


def main() -> None:
    """Print the table."""
    parser = command(__doc__, TOOLS)
    parser.add_argument("--time", action="store_true")
    arguments = parser.parse_args()
    names = arguments.only or list(TOOLS)
    try:
        corpora = {name_of(path): relabelled(read_corpus(path, CRAWL_FIELDS)) for path in arguments.corpora}
    except CorpusError as error:
        sys.exit(str(error))
    rows = []
    for name in names:
        cells = [name]
        for pages in corpora.values():
            extracted.cache_clear()  # so that each tool pays for its own extraction
            began = process_time()
            kept = TOOLS[name](pages)
            each = (process_time() - began) * 1000 / max(1, len(pages))
            cost = f" / {each:.1f} ms" if arguments.time else ""
            cells.append(f"{lost_pages(pages, kept)} / {drop_agreement(pages, kept).recall:.2f}{cost}")
        rows.append(cells)
    print(table(["tool", *corpora], rows))


if __name__ == "__main__":
    main()
