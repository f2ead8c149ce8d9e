"""Extracts by the package trafilatura, if it is installed.

Source: A. Barbaresi, "Trafilatura: A Web Scraping Library and Command-Line Tool for Text Discovery and Extraction",
ACL-IJCNLP 2021, system demonstrations.

Specified: all of it, by the package. It looks for containers by rules on names and tags, and uses two other extractions
where it finds little.

Left open: its options. Here its defaults, but without comments.

Departures: it gets a copy of the tree, which it changes. It cannot be interrupted, so time is checked before and after,
and the number of elements is limited in advance. A page on which it fails (nesting deeper than Python's stack) is
unchecked. Where it finds only links, there is no main text. Its hyphens before the items of lists are left out.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from lxml import etree, html

from dedup_middleware.common.budget import UncheckableError
from dedup_middleware.errors import ConfigError
from dedup_middleware.extraction.blocks import MOSTLY_LINKS, collapsed
from dedup_middleware.methods.extractors.elements import extracted, read
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from dedup_middleware.common.budget import Budget
    from dedup_middleware.extraction import Extracted


@lru_cache(maxsize=1)
def _library() -> Any:
    try:
        return import_module("trafilatura")
    except ImportError as error:
        raise ConfigError(
            f"the extraction 'trafilatura' needs its package ({' '.join(str(error).split())})",
            "run `pip install trafilatura lxml_html_clean`, or choose another",
        ) from error


def by_trafilatura(root: etree._Element, budget: Budget) -> Extracted:
    """Return the main text of the page under *root*. About twenty bare parses; `ConfigError` without the package."""
    library = _library()
    reading = read(root, budget)
    try:
        text: str = library.extract(_copy(root), include_comments=False) or ""
    except RecursionError:
        raise UncheckableError(Reason.NESTED_TOO_DEEPLY) from None
    budget.check_time()
    paragraphs = [line for raw in text.split("\n") if (line := collapsed(raw).removeprefix("- "))]
    if {line.text for line in reading.lines if line.linked >= MOSTLY_LINKS}.issuperset(paragraphs):
        paragraphs = []
    known = frozenset(paragraphs)
    chosen = {i for i, line in enumerate(reading.lines) if line.text in known}
    return extracted(root, reading, chosen, paragraphs)


def _copy(root: etree._Element) -> html.HtmlElement:
    """Return a copy of the tree under *root*, of the elements that the package needs, without a limit to its depth."""
    written = etree.tostring(root, encoding="utf-8", method="html")
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True)
    return html.document_fromstring(written, parser=parser, ensure_head_body=True)
