"""Measures what each part of the verdict earns on labelled crawls.

Usage: python tests/benchmarks/detection.py CORPUS... [--only VARIANT]...
`corpus.py` documents the format of a corpus. The command leaves out one part of the product at a time and crawls every
corpus in the given and in the reversed order, with the labels that are right in each. It prints a table in Markdown:

- a cell is ``lost given/reversed, recall given/reversed``: the lost pages (neither they nor a copy was kept), and
  the share of the copies that was dropped;
- ``=`` stands where the variant drops the same pages as the product, in both orders;
- the last column is ``nothing`` where this holds for all corpora, and ``other pages`` where other pages are dropped
  with the same scores.

The pages are checked by `Deduplicator`, one after the other, with an item each that has the page's title and no text. A
crawl differs in the order only. A page is kept if an earlier copy names it as its canonical page; this counts as a
missed copy.
"""

from __future__ import annotations

import re
import sys
from html import unescape
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

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

from dedup_middleware import Deduplicator
from dedup_middleware.checks import checklist, detector
from dedup_middleware.checks.detector import Detector, Templates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from dedup_middleware.checks.checklist import Check

_TITLE = re.compile(r"(?is)<title[^>]*>(.*?)</title>")


class Variant(NamedTuple):
    """Options of the product, and what of it is replaced meanwhile."""

    options: dict[str, Any] = {}  # noqa: RUF012 - it is not changed
    replacement: Callable[[], AbstractContextManager[object]] = lambda: patch.dict({})
    has_true_text: bool = False

    def kept(self, pages: Sequence[CorpusPage]) -> frozenset[str]:
        """Return the ids of those *pages* that a crawl keeps."""
        # No page is too slow: the verdicts may not depend on the machine.
        with self.replacement(), Deduplicator(max_milliseconds=60_000, **self.options) as dedup:
            kept = {page.id for page in pages if not self._is_dropped(dedup, page)}
            return frozenset(page.id for page in pages if page.id in kept or page.url in dedup.released)

    def _is_dropped(self, dedup: Deduplicator, page: CorpusPage) -> bool:
        title = unescape(found[1]) if (found := _TITLE.search(page.html)) else None
        item = {"id": page.id, "url": page.url, "title": title, "chars": len(page.html)}
        content = {"paragraphs": page.text} if self.has_true_text else {}
        return dedup.add(page.url, page.html, item, **content).is_duplicate


def replaced(where: Any, **names: Any) -> Variant:
    """Return the product with these attributes of *where* replaced."""
    return Variant(replacement=lambda: patch.multiple(where, **names))


LISTS = {name: getattr(checklist, name) for name in ("ONE_SITE", "OTHER_ADDRESS", "BETWEEN_SITES", "ITEMS")}


def without(*checks: Check) -> Variant:
    """Return the product without these *checks*, in all lists."""
    return replaced(checklist, **{name: tuple(c for c in found if c not in checks) for name, found in LISTS.items()})


def never(*_: object, **__: object) -> None:
    """Stand in for a function that finds nothing."""


PRODUCT = "the product"
CHECKS = tuple(dict.fromkeys(chain.from_iterable(LISTS.values())))
VARIANTS = {
    PRODUCT: Variant(),
    **{f"no {check.__name__}": without(check) for check in CHECKS},
    "no check": without(*CHECKS),
    "no templates": replaced(Templates, learn=never),
    "no alignment": replaced(Detector, _compare=never),
    "no least live weight": replaced(detector, MIN_DISTINCTIVE_WEIGHT=0),
    "true text": Variant(has_true_text=True),
    **{f"threshold {share}": Variant({"threshold": share}) for share in (0.7, 0.75, 0.85, 0.9)},
}


class Crawl(NamedTuple):
    """A corpus in one order: its pages with the labels of this order, and the ids of those that were kept."""

    pages: Sequence[CorpusPage]
    kept: frozenset[str]

    @property
    def scores(self) -> tuple[str, str]:
        """The lost pages and the recall, as the table has them."""
        return str(lost_pages(self.pages, self.kept)), f"{drop_agreement(self.pages, self.kept).recall:.3f}"


def crawls_of(path: Path, names: Sequence[str]) -> dict[str, list[Crawl]]:
    """Return the crawls of the corpus at *path* in both orders, by variant."""
    pages = read_corpus(path, CRAWL_FIELDS)
    orders = [relabelled(pages), relabelled(reversed(pages))]
    return {name: [Crawl(order, VARIANTS[name].kept(order)) for order in orders] for name in names}


def row_of(name: str, crawls: Sequence[list[Crawl]], product: Sequence[list[Crawl]]) -> Iterator[str]:
    """Yield the cells of one variant, in the order of the corpora; *product* has done the same *crawls*."""
    yield name
    scores = [[[crawl.scores for crawl in both] for both in each] for each in (crawls, product)]
    changed = [[c.kept for c in here] != [c.kept for c in there] for here, there in zip(crawls, product, strict=True)]
    for both, is_changed in zip(scores[0], changed, strict=True):
        yield ", ".join(map("/".join, zip(*both, strict=True))) if is_changed or name == PRODUCT else "="
    yield str(sum(int(lost) for both in scores[0] for lost, _ in both))
    yield "" if scores[0] != scores[1] or name == PRODUCT else "other pages" if any(changed) else "nothing"


def main() -> None:
    """Print the table."""
    options = command(__doc__, VARIANTS).parse_args()
    names = [*dict.fromkeys([PRODUCT, *(options.only or VARIANTS)])]
    try:
        corpora = [crawls_of(path, names) for path in options.corpora]
    except CorpusError as error:
        sys.exit(str(error))
    product = [crawls[PRODUCT] for crawls in corpora]
    rows = [[*row_of(name, [crawls[name] for crawls in corpora], product)] for name in names]
    print(table(["variant", *map(name_of, options.corpora), "lost", "changes"], rows))


if __name__ == "__main__":
    main()
