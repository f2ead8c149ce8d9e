"""Replays labelled crawls, and counts the pages that are lost and the copies that are found.

Usage: python tests/benchmarks/detection.py CORPUS... [--save FILE] [--against FILE] [--flips N] [--without KIND...]
`corpus.py` documents the format of a corpus. Each one is crawled four times: in the given and in the reversed order,
with the labels that are right in each, and with an item a page that has title and text, or the title alone. The pages
are checked by `Deduplicator`, one after the other; a crawl differs in the order only. A line of the table has a corpus:

- a cell is ``lost, found/copies``: the clusters of which no page was kept, and how many of the copies that should go
  were dropped; with ``--against`` it is ``before→after`` where a number has changed, and ``=`` where no page has;
- the last column is the CPU time of the verdicts, in seconds: pages are read before, once.

``--save`` writes the numbers and the verdict on each page: whether it was kept, reason, original, score, difference.
``--against`` compares with such a file, and ``--flips`` lists so many pages of each crawl whose verdict is another one.
``--without`` crawls once more for each KIND of edit (`checks.table.Kind`, or ``all``) without its row in the table: a
copy may have such edits. A cell is by how much ``lost, found`` change: what the row saves, and what it costs.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from html import unescape
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

from corpus import (
    CRAWL_FIELDS,
    CorpusError,
    CorpusPage,
    Score,
    line,
    name_of,
    parser_of,
    read_corpus,
    relabelled,
    rule,
    score,
    table,
)

from dedup_middleware import Deduplicator, api, extraction
from dedup_middleware.checks import table as rules
from dedup_middleware.checks.table import COPY, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dedup_middleware import Record

_TITLE = re.compile(r"(?is)<title[^>]*>(.*?)</title>")
ORDERS: Mapping[str, Callable[[Sequence[CorpusPage]], Iterable[CorpusPage]]] = {"given": iter, "reversed": reversed}
#: Whether items have the text of their pages, beside the title.
ITEMS = {"text": True, "title": False}
CRAWLS = tuple(f"{items}, {order}" for order in ORDERS for items in ITEMS)
#: The variant in which no other kind of edit is allowed.
PRODUCT = ""


class Found(NamedTuple):
    """The verdict on a page; `json` makes a list of it."""

    is_kept: bool
    verdict: str
    reason: str
    original: str | None
    """Its id."""
    score: float | None
    difference: Sequence[str]

    @property
    def what(self) -> str:
        """It in a line."""
        named = filter(None, (self.verdict, self.reason, self.original and f"of {self.original}"))
        return ": ".join(filter(None, (" ".join(named), "; ".join(self.difference))))


@dataclass(frozen=True, slots=True)
class Crawl:
    """A corpus that was crawled once."""

    score: Score
    seconds: float
    pages: Mapping[str, Found]
    """By id."""

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> Crawl:
        """Return a crawl that was saved as JSON."""
        pages = {id_: Found(*found) for id_, found in saved["pages"].items()}
        return cls(Score(*saved["score"]), saved["seconds"], pages)

    def flips(self, before: Crawl) -> list[str]:
        """Return the ids of the pages that were kept *before* and are dropped now, or the reverse."""
        pages = self.pages.items()
        return [i for i, found in pages if i in before.pages and before.pages[i].is_kept != found.is_kept]


#: The crawls of a corpus, by their names in `CRAWLS`.
Crawls = dict[str, Crawl]


class Corpus(NamedTuple):
    """What a process returns of one corpus."""

    name: str
    kinds: Mapping[str, str]
    """Of its pages, by id."""
    variants: Mapping[str, Crawls]
    """By the kind of edit that a copy may have in addition; `PRODUCT` for none."""


def crawled(path: Path, allowed: Sequence[str]) -> Corpus | str:
    """Crawl the corpus at *path* for the product, and for each of the *allowed* kinds; an error is returned."""
    try:
        pages = read_corpus(path, CRAWL_FIELDS)
    except CorpusError as error:
        return str(error)
    logging.disable(logging.WARNING)  # alarms
    orders = {name: relabelled(turned(pages)) for name, turned in ORDERS.items()}
    with reading_once(pages):
        variants = {kind: _crawls(orders, kind) for kind in (PRODUCT, *allowed)}
    return Corpus(name_of(path), {page.id: page.kind for page in pages}, variants)


@contextmanager
def reading_once(pages: Iterable[CorpusPage]) -> Iterator[None]:
    """Have the *pages* parsed and extracted once, now, however often they are crawled."""
    roots, extracted = dict[Any, Any](), dict[Any, Any]()
    parse, extract = api.parse, extraction.weighted_dom

    def parse_once(html: Any, budget: Any) -> Any:
        if html not in roots:
            roots[html] = parse(html, budget)
        return roots[html]

    def extract_once(root: Any, budget: Any) -> Any:
        if root not in extracted:
            extracted[root] = extract(root, budget)
        return extracted[root]

    with patch.object(api, "parse", parse_once), patch.object(extraction, "weighted_dom", extract_once):
        with Deduplicator(max_milliseconds=60_000) as dedup:
            for page in pages:
                dedup.check(page.url, page.html)
        yield


def _crawls(orders: Mapping[str, Sequence[CorpusPage]], kind: str) -> Crawls:
    more = {relation: kinds | {Kind[kind.upper()]} if kind else kinds for relation, kinds in COPY.items()}
    with patch.object(rules, "COPY", more):
        found = [_crawl(pages, has_text=has_text) for pages in orders.values() for has_text in ITEMS.values()]
    return dict(zip(CRAWLS, found, strict=True))


def _crawl(pages: Sequence[CorpusPage], *, has_text: bool) -> Crawl:
    began = process_time()
    # No page is too slow: the verdicts may not depend on the machine.
    with Deduplicator(max_milliseconds=60_000) as dedup:
        records = {page.id: dedup.add(page.url, page.html, item_of(page, has_text=has_text)) for page in pages}
    seconds = process_time() - began
    ids = {page.url: page.id for page in reversed(pages)}
    found = {id_: _found(record, ids) for id_, record in records.items()}
    kept = {id_ for id_, each in found.items() if each.is_kept}
    return Crawl(score(pages, kept), round(seconds, 2), found)


def item_of(page: CorpusPage, *, has_text: bool) -> dict[str, Any]:
    """Return the item of *page*, with its title, and with its text."""
    title = unescape(found[1]) if (found := _TITLE.search(page.html)) else None
    item = {"id": page.id, "url": page.url, "title": title, "chars": len(page.html)}
    return {**item, "text": "\n".join(page.text)} if has_text and page.text else item


def _found(record: Record, ids: Mapping[str, str]) -> Found:
    original = record.original_url and ids.get(record.original_url, record.original_url)
    return Found(
        not record.is_duplicate,
        record.verdict,
        record.reason or "",
        original,
        record.score,
        record.difference,
    )


# --- what is printed


def cells(crawls: Crawls, before: Crawls | None) -> Iterator[str]:
    """Yield the cells of a corpus, or of all of them."""
    for name, crawl in crawls.items():
        if before is None or name not in before:
            yield _scores(crawl.score, crawl.score)
        elif crawl.pages and crawl.score == before[name].score and not crawl.flips(before[name]):
            yield "="
        else:
            yield _scores(before[name].score, crawl.score)
    seconds = [f"{sum(crawl.seconds for crawl in each.values()):.1f}" for each in (before, crawls) if each is not None]
    yield "→".join(seconds)


def _scores(before: Score, now: Score) -> str:
    return f"{_change(before.lost, now.lost)}, {_change(before.found, now.found)}/{now.copies}"


def _change(before: int, now: int) -> str:
    return str(now) if before == now else f"{before}→{now}"


def in_all(corpora: Iterable[Crawls]) -> Crawls:
    """Return the sums of the crawls of *corpora*, with the pages of none."""
    scores, seconds = {name: Counter[str]() for name in CRAWLS}, Counter[str]()
    for crawls in corpora:
        for name, crawl in crawls.items():
            scores[name].update(crawl.score._asdict())
            seconds[name] += crawl.seconds  # type: ignore[assignment]
    return {name: Crawl(Score(**found), seconds[name], {}) for name, found in scores.items()}


def flips(corpus: Corpus, before: Crawls, most: int) -> Iterator[str]:
    """Yield a line for each of the first *most* pages of each crawl whose verdict is another one than *before*."""
    for name, crawl in corpus.variants[PRODUCT].items():
        for id_ in crawl.flips(before[name])[:most]:
            kind = f" ({corpus.kinds[id_]})" if corpus.kinds[id_] else ""
            how = "kept" if crawl.pages[id_].is_kept else "dropped"
            then, now = before[name].pages[id_].what, crawl.pages[id_].what
            yield f"{corpus.name}, {name}: {id_}{kind} is {how} now: {now} (before: {then})"


def earned(kinds: Iterable[str], corpora: Sequence[Corpus]) -> Iterator[list[str]]:
    """Yield a row for each of *kinds*: what changes where a copy may have edits of it, and in which corpora."""
    product = in_all(corpus.variants[PRODUCT] for corpus in corpora)
    for kind in kinds:
        row = [kind]
        for name, crawl in in_all(corpus.variants[kind] for corpus in corpora).items():
            before, now = product[name].score, crawl.score
            row.append("=" if now == before else f"{now.lost - before.lost:+}, {now.found - before.found:+}")
        changed = [c.name for c in corpora if any(c.variants[kind][n].flips(c.variants[PRODUCT][n]) for n in CRAWLS)]
        yield [*row, ", ".join(changed)]


# --- the command


def main() -> None:
    """Print the table."""
    parser = parser_of(__doc__, corpora="+")
    kinds = [kind.name.lower() for kind in Kind]
    parser.add_argument("--save", metavar="FILE", type=Path, help="write the verdicts")
    parser.add_argument("--against", metavar="FILE", type=Path, help="compare with verdicts that were saved")
    parser.add_argument("--flips", metavar="N", type=int, default=0, help="list so many other verdicts of each crawl")
    parser.add_argument("--jobs", metavar="N", type=int, default=2, help="processes (2)")
    parser.add_argument("--without", metavar="KIND", nargs="+", default=[], choices=[*kinds, "all"], help="allow it")
    options = parser.parse_args()
    before = _read(options.against) if options.against else {}
    allowed = kinds if "all" in options.without else options.without
    corpora: list[Corpus] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for corpus in pool.map(partial(crawled, allowed=allowed), options.corpora):
            if isinstance(corpus, str):
                sys.exit(corpus)
            if not corpora:
                print(rule(["corpus", *CRAWLS, "CPU"]))
            corpora.append(corpus)
            print(line([corpus.name, *cells(corpus.variants[PRODUCT], before.get(corpus.name))]), flush=True)
    known = in_all(before[c.name] for c in corpora) if before and all(c.name in before for c in corpora) else None
    print(line(["all", *cells(in_all(corpus.variants[PRODUCT] for corpus in corpora), known)]))
    for corpus in corpora:
        for flip in flips(corpus, before.get(corpus.name, corpus.variants[PRODUCT]), options.flips):
            print(flip)
    if allowed:
        print("", table(["a copy may have", *CRAWLS, "other pages in"], earned(allowed, corpora)), sep="\n")
    if options.save:
        saved = {c.name: {name: asdict(crawl) for name, crawl in c.variants[PRODUCT].items()} for c in corpora}
        options.save.write_text(json.dumps(saved), encoding="ascii")


def _read(path: Path) -> dict[str, Crawls]:
    try:
        saved = json.loads(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        sys.exit(f"{path} cannot be read: {error}")
    return {name: {crawl: Crawl.read(found) for crawl, found in crawls.items()} for name, crawls in saved.items()}


if __name__ == "__main__":
    main()
