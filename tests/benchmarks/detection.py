"""Measures what each part of the verdict earns on labelled crawls, beside other methods.

Usage: python tests/benchmarks/detection.py CORPUS... [--only VARIANT]...
`corpus.py` documents the format of a corpus. The command leaves out one part of the product at a time and crawls every
corpus in the given and in the reversed order, with the labels that are right in each. It prints a table in Markdown:

- a cell is ``lost given/reversed, recall given/reversed``: the stories of which no page was kept, and the share of the
  copies that was dropped;
- ``=`` stands where the variant drops the same pages as the product, in both orders;
- the last column is ``nothing`` where this holds for all corpora, and ``other pages`` where other pages are dropped
  with the same scores.

The pages are checked in process, one after the other, with an item each that has the page's title and no text. A crawl
differs in the order only. A page is kept if an earlier copy
names it as its canonical page; this counts as a missed copy.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from contextlib import ExitStack
from functools import cache, partial
from html import unescape
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol
from unittest.mock import patch

from corpus import (
    CRAWL_FIELDS,
    CorpusError,
    CorpusPage,
    command,
    drop_agreement,
    lost_stories,
    parsed,
    read_corpus,
    relabelled,
    table,
    whole_body,
)
from rivals import Exact, Shingles, SimHash

from dedup_middleware.api import pass_through
from dedup_middleware.budget import Budget
from dedup_middleware.checks import alignment, checklist, detector
from dedup_middleware.checks.detector import Detector
from dedup_middleware.checks.pair import Sites
from dedup_middleware.checks.templates import Templates
from dedup_middleware.deduplicator import Deduplication
from dedup_middleware.extraction import weighted_dom
from dedup_middleware.extraction.blocks import PageText
from dedup_middleware.fingerprints import ClauseFingerprinter
from dedup_middleware.index import lookup
from dedup_middleware.index.index import Index
from dedup_middleware.index.opening import OpenClaims
from dedup_middleware.model import Action, Page
from dedup_middleware.settings import SETTINGS
from dedup_middleware.stores import open_store
from dedup_middleware.text import clauses as text
from dedup_middleware.text import titles
from dedup_middleware.urls import addressed, url_identity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from contextlib import AbstractContextManager
    from pathlib import Path

    from dedup_middleware.checks.checklist import Check
    from dedup_middleware.errors import DedupError
    from dedup_middleware.model import StoredPage


class Reading:
    """A page's HTML, read once for all variants."""

    def __init__(self, page: CorpusPage) -> None:
        root = parsed(page.html)
        self.page = page
        self.extracted = weighted_dom(root, Budget())
        self.shows = cache(PageText(root).shows)
        title = unescape(found[1]) if (found := _TITLE.search(page.html)) else None
        self.item = {"id": page.id, "url": page.url, "title": title, "chars": len(page.html)}


_TITLE = re.compile(r"(?is)<title[^>]*>(.*?)</title>")

#: The texts of a page that can be checked; empty where the corpus lacks it.
TEXTS: dict[str, Callable[[Reading], Sequence[str]]] = {
    "extracted": lambda reading: reading.extracted.paragraphs,
    "true": lambda reading: reading.page.text,
    "body": lambda reading: whole_body(reading.page.html),
    "response": lambda reading: [reading.page.html],
}


class Check(Protocol):
    """The memory of one crawl."""

    def drops(self, reading: Reading, paragraphs: Sequence[str]) -> bool:
        """Return whether the next page, with the text *paragraphs*, is dropped; remember it if not."""


class Silence:
    """A Listener that raises failures and notes the URLs of released pages."""

    def __init__(self) -> None:
        self.released_urls = set[str]()

    def failed(self, error: DedupError) -> NoReturn:
        """Raise *error*."""
        raise error

    def released(self, pages: Sequence[StoredPage]) -> None:
        """Note the pages that are kept after all."""
        self.released_urls.update(page.url for page in pages)

    def _ignore(self, *_: object, **__: object) -> None:
        """Do nothing."""

    count = warn = one_original = one_other_host = _ignore


class Product:
    """The product with default settings and a new store in memory."""

    def __init__(
        self,
        *,
        threshold: float = SETTINGS["DEDUP_THRESHOLD"].default,
        index: Callable[..., Index] = Index,
        fingerprinter: Callable[[bytes], ClauseFingerprinter] = ClauseFingerprinter,
    ) -> None:
        store = open_store("memory:", fingerprint_scheme="benchmark")
        stored = index(store, OpenClaims())
        fingerprint = fingerprinter(store.header.key)
        self._threshold = threshold
        self._listener = Silence()
        self._deduplication = Deduplication(
            spider="benchmark",
            run="benchmark",
            detector=Detector(stored, fingerprint.hash, threshold),
            fingerprint=fingerprint,
            log=None,
            listener=self._listener,
        )

    @property
    def released(self) -> set[str]:
        """URLs of pages that were dropped at first and kept in the end."""
        return self._listener.released_urls

    def drops(self, reading: Reading, paragraphs: Sequence[str]) -> bool:
        """See `Check`. The page's item is durable before the next page comes."""
        url, extracted = reading.page.url, reading.extracted
        identities = (url_identity(url),)
        features = addressed(extracted.features, url, identities)
        page = self._deduplication.reader.paragraphs(url, identities, paragraphs, features=features)
        if paragraphs is extracted.paragraphs:
            doubtful, boilerplate = extracted.is_doubtful, extracted.is_boilerplate
            page = dataclasses.replace(page, is_doubtful=doubtful, is_boilerplate=boilerplate)
        visit = self._deduplication.check(page, Action.DROP, self._threshold, Budget())
        pass_through(self._deduplication, visit, reading.item, reading.item, reading.shows)
        return visit.is_duplicate


# --- variants


class Variant(NamedTuple):
    """A check, the one of `TEXTS` that it checks, and what is replaced meanwhile."""

    check: Callable[[], Check] = Product
    text: str = "extracted"
    patches: Sequence[AbstractContextManager[object]] = ()


def replaced(where: Any, **names: Any) -> Variant:
    """Return the product with these attributes of *where* replaced."""
    return Variant(patches=[patch.multiple(where, **names)])


LISTS = {name: getattr(checklist, name) for name in ("ONE_SITE", "BETWEEN_SITES", "ITEMS")}


def without(*checks: Check) -> Variant:
    """Return the product without these *checks*, in all lists."""
    return replaced(checklist, **{name: tuple(c for c in found if c not in checks) for name, found in LISTS.items()})


def forget() -> None:
    """Clear the caches of texts: another variant may read the same text differently."""
    for found in chain(vars(text).values(), vars(titles).values()):
        if hasattr(found, "cache_clear"):
            found.cache_clear()


def never(*_: object, **__: object) -> None:
    """Stand in for a function that finds nothing."""


PRODUCT = "the product"
CHECKS = tuple(dict.fromkeys(chain.from_iterable(LISTS.values())))
VARIANTS = {
    PRODUCT: Variant(),
    **{f"no {check.__name__}": without(check) for check in CHECKS},
    "no check": without(*CHECKS),
    "no templates": replaced(Templates, learn=never),
    "nothing learned of sites": replaced(Sites, _is_known=never),
    "no equal texts": replaced(Index, equals=lambda *_: iter(())),
    "no least live weight": replaced(detector, MIN_LIVE_WEIGHT=0),
    "no common clauses": replaced(lookup, COMMON_IN_STORE=sys.maxsize),
    "no host frequency": replaced(lookup, COMMON_ON_HOST=sys.maxsize),
    "look-alikes hold what they share": replaced(Page, beside=lambda page, *_: page),
    "no alignment": replaced(Detector, _compare=never),
    "nine tenths aligned": replaced(alignment, NEAR=0.9),
    "candidates from 15 % on": replaced(detector, CANDIDATE_SHARE=0.15),
    "no light labelled numbers": replaced(text, _is_fact=never),
    "no Traditional to Simplified": replaced(text, simplified=str),
    "true text": Variant(text="true"),
    "whole body": Variant(text="body"),
    **{f"threshold {share}": Variant(partial(Product, threshold=share)) for share in (0.7, 0.75, 0.85, 0.9)},
    **{f"rival: Jaccard of 5-character shingles {j}": Variant(partial(Shingles, j)) for j in (0.7, 0.8)},
    "rival: SimHash, 64 bits, distance 3": Variant(SimHash),
    "rival: hash of the extracted text": Variant(Exact),
    "rival: hash of the response's body": Variant(Exact, text="response"),
}


# --- the table


class Crawl(NamedTuple):
    """A corpus in one order: its pages with the labels of this order, and the ids of those that were kept."""

    pages: Sequence[CorpusPage]
    kept: frozenset[str]

    @classmethod
    def by(cls, variant: Variant, pages: Sequence[CorpusPage], readings: Mapping[str, Reading]) -> Crawl:
        """Return *pages* as *variant* crawls them."""
        with ExitStack() as patches:
            for replacement in variant.patches:
                patches.enter_context(replacement)
            forget()
            check, texts = variant.check(), TEXTS[variant.text]
            kept = {p.id for p in pages if not check.drops(readings[p.id], texts(readings[p.id]))}
        released: AbstractSet[str] = getattr(check, "released", frozenset())
        return cls(pages, frozenset(p.id for p in pages if p.id in kept or p.url in released))

    @property
    def scores(self) -> tuple[str, str]:
        """The lost stories and the recall, as the table has them."""
        return str(lost_stories(self.pages, self.kept)), f"{drop_agreement(self.pages, self.kept).recall:.3f}"


def crawls_of(path: Path, names: Sequence[str]) -> dict[str, list[Crawl]]:
    """Return the crawls of the corpus at *path* in both orders, by variant."""
    pages = read_corpus(path, CRAWL_FIELDS)
    orders = [relabelled(pages), relabelled(reversed(pages))]
    readings = {page.id: Reading(page) for page in pages}
    return {name: [Crawl.by(VARIANTS[name], order, readings) for order in orders] for name in names}


def cell_of(crawls: Sequence[Crawl]) -> str:
    """Return ``lost given/reversed, recall given/reversed``."""
    return ", ".join(map("/".join, zip(*(crawl.scores for crawl in crawls), strict=True)))


def row_of(name: str, crawls: Sequence[list[Crawl]], product: Sequence[list[Crawl]]) -> Iterator[str]:
    """Yield the cells of one variant, in the order of the corpora; *product* has done the same *crawls*."""
    yield name
    cells, standard = [*map(cell_of, crawls)], [*map(cell_of, product)]
    changed = [[c.kept for c in here] != [c.kept for c in there] for here, there in zip(crawls, product, strict=True)]
    for cell, is_changed in zip(cells, changed, strict=True):
        yield cell if is_changed or name == PRODUCT else "="
    yield str(sum(int(crawl.scores[0]) for both in crawls for crawl in both))
    yield "" if cells != standard or name == PRODUCT else "other pages" if any(changed) else "nothing"


def main() -> None:
    """Print the table."""
    options = command(__doc__, VARIANTS).parse_args()
    names = [*dict.fromkeys([PRODUCT, *(options.only or VARIANTS)])]
    try:
        corpora = [crawls_of(path, names) for path in options.corpora]
    except CorpusError as error:
        sys.exit(str(error))
    header = [
        "variant",
        *(path.name.removesuffix(".xz").removesuffix(".jsonl") for path in options.corpora),
        "lost",
        "changes",
    ]
    product = [crawls[PRODUCT] for crawls in corpora]
    print(table(header, [[*row_of(name, [crawls[name] for crawls in corpora], product)] for name in names]))


if __name__ == "__main__":
    main()
