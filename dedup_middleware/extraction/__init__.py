"""Extracts the main text of a page from its HTML tree, and what the page has beside it.

The method is a weighted DOM: `blocks` reads the tree into blocks of text, `choice` weighs them, finds the container of
the main text among the elements around them and trims its edges, `names` reads the names of elements and classes, and
`features` what a page has beside its main text. Nothing here changes the tree or knows other pages.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from lxml import etree

from dedup_middleware.common.budget import UNLIMITED, Budget, UncheckableError
from dedup_middleware.common.registry import Registry
from dedup_middleware.errors import ConfigError
from dedup_middleware.extraction.blocks import MOSTLY_LINKS, PageBlocks, collapsed, plain_elements, read_page
from dedup_middleware.extraction.body import browser_tree
from dedup_middleware.extraction.choice import Choice, PageType, choose, choose_all, shown_blocks
from dedup_middleware.extraction.features import Texts, features_of, has_number
from dedup_middleware.model import PageFeatures
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lxml.etree import _Element

__all__ = [
    "EXTRACTORS",
    "ExtractedText",
    "check_complete",
    "extract_paragraphs",
    "extract_text",
    "texts_of",
]

_METHODS = "dedup_middleware.methods.extractors"

#: The values of ``DEDUP_EXTRACTOR``; each an :data:`~dedup_middleware.extraction.Extractor`.
EXTRACTORS = Registry(
    "dedup_middleware.extractors",
    {
        "weighted-dom": "dedup_middleware.extraction:weighted_dom",
        # Published ones, and another package's.
        "density": f"{_METHODS}.density:by_density",
        "tags": f"{_METHODS}.tags:by_tags",
        "same-format": f"{_METHODS}.same_format:by_format",
        "learned": f"{_METHODS}.learned:by_learning",
        "trafilatura": f"{_METHODS}.trafilatura:by_trafilatura",
    },
)

_PARSER = etree.HTMLParser(recover=True, encoding="utf-8", huge_tree=True)


class ExtractedText(NamedTuple):
    """The text of a page."""

    paragraphs: list[str]
    """In document order; each is plain text with white space collapsed, and not empty."""
    is_main_text: bool
    """Whether they are one text, as articles and threads have. Else they are all that is shown outside of the page's
    frame; a crawl compares the largest run of running text among them, and nothing if that is less than two sentences.
    """
    share: float
    """Their share of the page's running text outside of boilerplate, 0 to 1; 0 where they are not main text."""
    type: str
    """What the page is made of: ``"article"``, ``"thread"``, ``"list"`` or ``"parts"``."""


def extract_paragraphs(html: str) -> list[str]:
    """Return the paragraphs of the main text of the page *html*, in document order.

    Each is plain text with white space collapsed, and not empty. For a page with several texts (cards, rows, sections)
    or none (link lists, walls, notices) they are all that it shows outside of its frame; :func:`extract_text` returns
    which. Never raises on any string; :class:`ConfigError` for anything else.
    Linear time: three to four bare parses, parse included; up to six where a page has several texts.

    >>> page = "<nav><a href='/'>Home</a></nav><article><h1>Bridge closed</h1><p>{}</p><p>{}</p></article>"
    >>> first = "The old bridge will be closed for nine weeks, the harbour authority said on Monday."
    >>> second = "Trams turn at the market square, and a ferry carries passengers across the river until May."
    >>> extract_paragraphs(page.format(first, second)) == [first, second]
    True
    """
    return extract_text(html).paragraphs


def extract_text(html: str) -> ExtractedText:
    """Return what :func:`extract_paragraphs` does, and whether that is the page's main text.

    >>> extract_text("<ul><li><a href='/a'>Bridge closed</a><li><a href='/b'>Ferry delayed</a></ul>").is_main_text
    False
    """
    if not isinstance(html, str):
        raise ConfigError(f"html must be str, got {type(html).__name__}", "Decode bytes first.")
    if not html or html.isspace():
        return ExtractedText([], is_main_text=False, share=0.0, type=PageType.PARTS.value)
    root = parse(html)
    page = read_page(root)
    chosen = choose(page)
    is_main_text = bool(chosen.places) and chosen.type in {PageType.ARTICLE, PageType.THREAD}
    if not is_main_text:
        # The titles of cards are links.
        page = read_page(root, links=True)
        chosen = choose_all(page)
    blocks = [page.blocks[place] for place in chosen.places] or shown_blocks(page)
    return ExtractedText([collapsed(block.text) for block in blocks], is_main_text, chosen.share, chosen.type.value)


def parse(html: str, budget: Budget = UNLIMITED) -> etree._Element:
    """Return the root of the tree that a browser makes of a page with the text *html*.

    Nearly always it is the one that Scrapy's ``response.selector`` has: `browser_tree` has the exceptions. The elements
    are plain ones: those of ``lxml.html``, which ``parsel.Selector`` makes, run Python code for each and cost a fifth
    of a parse more to walk over. Linear time. :class:`UncheckableError` if making an exception takes more
    than the *budget*.
    """
    # As parsel.selector.create_root_node does it, with one parser for all pages: making one takes a tenth of a parse.
    # Lone surrogates: nothing that was decoded has them, a string that was put together may.
    root = etree.fromstring(html.strip().replace("\0", "").encode("utf-8", "replace"), _PARSER)
    # Nothing but comments, or less.
    return etree.fromstring(b"<html/>", _PARSER) if root is None else browser_tree(root, budget)


def texts_of(root: etree._Element, budget: Budget = UNLIMITED) -> Texts:
    """Return the texts under *root*, the root of a parsed page (``response.selector.root``).

    There are no paragraphs on a page without main text: two lists of links are no copies of each other because they
    have much in common. Linear time: about two bare parses. :class:`UncheckableError` once the *budget* is spent.
    """
    with plain_elements(root):
        page = read_page(root, budget.elements)
    budget.check_time()
    chosen = choose(page)
    budget.check_time()
    blocks, places = page.blocks, chosen.places
    is_chosen = set(places)
    beside = [block for place, block in enumerate(blocks) if place not in is_chosen]
    first, last = (places[0], places[-1]) if places else (0, -1)
    links = [(" ".join(text.split()), href) for place, text, href in page.links if first < place <= last + 1]
    return Texts(
        [collapsed(blocks[place].text) for place in places],
        [block.text for block in beside if block.linked < MOSTLY_LINKS] + [text for text, _ in links],
        next((b.text for b in blocks if page.tags[b.node] == "h1" and b.linked < MOSTLY_LINKS), ""),
        _marks(page, chosen),
        # A link by itself within the text leads to the file that it is about, or to the next part.
        [block.text for block in beside if not chosen.frame[block.node] and has_number(block.text)]
        + [f"{text} {href}" for text, href in links],
        _labels(page, chosen),
        frozenset([f"{tag} {class_}" for tag, class_ in {*zip(page.tags, page.classes, strict=True)}]),
        chosen.is_boilerplate,
    )


def _marks(page: PageBlocks, chosen: Choice) -> list[str]:
    """Return what *page* shows outside of its frame that is not text; boxes and the like with the text beside them."""
    found, counts = list[str](), Counter[tuple[str, str]]()
    for place, node, what in page.marks:
        if not chosen.frame[node]:
            if what.partition(" ")[0] not in _BY_THEMSELVES:
                # Counts of comments, which follow the last icons, are others each day.
                after = page.blocks[place : place + 1]
                beside = "".join(block.text[:MAX_LABEL] for block in after if not chosen.frame[block.node])
                # Three stars of five; of two boxes, the second one is chosen.
                tag = what.partition(" ")[0]
                counts[tag, beside] += 1
                found.append(f"{what}\0{beside}\0{counts[tag, beside]}")
            else:
                found.append(what)
    return found


# Marks that are the same wherever they stand.
_BY_THEMSELVES = frozenset({"audio", "embed", "file", "iframe", "img", "object", "source", "video"})


def _labels(page: PageBlocks, chosen: Choice) -> list[str]:
    labels = page.labels + [block.text for block in page.blocks if chosen.frame[block.node]]
    return [label for label in labels if len(label) <= MAX_LABEL]


def check_complete(root: etree._Element) -> None:
    """Raise :class:`UncheckableError` if *root* is not a tree, or its parser has dropped a part of the page.

    Before parsel 1.12, a page whose text is JSON has no tree, even if its headers declare HTML. libxml2 stops where
    elements nest deeper than its limit: 256, or 2048 for huge trees. The rest is missing then, and two pages
    with one beginning would be the same. Only the last entry of its log reports that.
    """
    if not etree.iselement(root):
        raise UncheckableError(Reason.NOT_PARSED)
    parser = root.getroottree().parser
    last = None if parser is None else parser.error_log.last_error
    if last is not None and last.level == etree.ErrorLevels.FATAL:
        raise UncheckableError(Reason.NESTED_TOO_DEEPLY)


#: Characters of a text of the frame that may name what a page is about.
MAX_LABEL = 60


class Extracted(NamedTuple):
    """What an extractor reads of a page."""

    paragraphs: Sequence[str]
    """Those of its main text, in document order, none empty."""
    features: PageFeatures
    """What it has beside that: title, heading, context."""


#: Takes the root of a parsed page, which it must not change, and a budget; raises :class:`UncheckableError` for a page
#: that cannot be checked.
Extractor: TypeAlias = "Callable[[_Element, Budget], Extracted]"


def weighted_dom(root: _Element, budget: Budget) -> Extracted:
    """Return what the page under *root* contains. Two to three bare parses, see `tests/benchmarks/stages.py`."""
    check_complete(root)
    budget.check_time()
    texts = texts_of(root, budget)
    return Extracted(texts.paragraphs, features_of(root, texts))


def extractor(name: str) -> Extractor:
    """Return the extraction *name*; :class:`ConfigError` if it is unknown, lacks a package, or fails on a page."""
    found: Extractor = EXTRACTORS.load(name)
    if found is not weighted_dom:
        with EXTRACTORS.usable(name):
            _try_out(found)
    return found


def _try_out(extract: Extractor) -> None:
    paragraphs, features, *_ = extract(
        parse("<title>A</title><p>The ferry was late, and no reason was given."), Budget()
    )
    if isinstance(paragraphs, str) or not all(isinstance(paragraph, str) for paragraph in paragraphs):
        raise TypeError("its paragraphs must be a list of str")
    if not isinstance(features, PageFeatures):
        raise TypeError("its features must be PageFeatures, as features_of returns them")
