"""HTML tree -> paragraphs of main text.

The method is a weighted DOM: `blocks` reads the tree into blocks of text, `choice` weighs them, finds the container of
the main text among the elements around them and trims its edges, `names` holds what names of elements and classes
tell, and `features` what a page says beside its main text.

Law of this floor: it reads a tree and changes nothing of it; it knows no other page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from lxml import etree

from dedup_middleware.budget import UNLIMITED, Budget, UncheckableError
from dedup_middleware.errors import ConfigError
from dedup_middleware.extraction.blocks import MOSTLY_LINKS, collapsed, plain_elements, read_page
from dedup_middleware.extraction.choice import choose, shown_blocks
from dedup_middleware.extraction.features import features_of
from dedup_middleware.model import PageFeatures
from dedup_middleware.reasons import Reason
from dedup_middleware.registry import Registry
from dedup_middleware.text.titles import is_echoed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lxml.etree import _Element

__all__ = [
    "EXTRACTORS",
    "ExtractedText",
    "check_complete",
    "extract_paragraphs",
    "extract_text",
    "paragraphs_of",
    "texts_of",
]

_LITERATURE = "dedup_middleware.methods.extractors"

#: The values of ``DEDUP_EXTRACTOR``; each an :data:`~dedup_middleware.extraction.Extractor`.
EXTRACTORS = Registry(
    "dedup_middleware.extractors",
    {
        "weighted-dom": "dedup_middleware.extraction:weighted_dom",
        # Published ones, and another package's.
        "density": f"{_LITERATURE}.density:by_density",
        "tags": f"{_LITERATURE}.tags:by_tags",
        "same-format": f"{_LITERATURE}.same_format:by_format",
        "learned": f"{_LITERATURE}.learned:by_learning",
        "trafilatura": f"{_LITERATURE}.trafilatura:by_trafilatura",
    },
)

_PARSER = etree.HTMLParser(recover=True, encoding="utf-8", huge_tree=True)


class ExtractedText(NamedTuple):
    """What a page has to say, and how much of it that is."""

    paragraphs: list[str]
    """In document order; each is plain text with white space collapsed, and not empty."""
    is_main_text: bool
    """Whether they are its main text. A list of links, a wall, a notice has none: then they are what it shows."""
    share: float
    """Their share of the running text outside of the page's boilerplate, 0 to 1. 0 where they are no main text."""


def extract_paragraphs(html: str) -> list[str]:
    """Return the paragraphs of the main text of the page *html*, in document order.

    Each is plain text with white space collapsed, and not empty. For a page without main text (link lists, walls,
    notices) they are all that its main element shows, or what it shows outside of menus and the like;
    :func:`extract_text` returns which. Never raises on any string. Linear time: about twice that of a bare parse, parse
    included.
    """
    return extract_text(html).paragraphs


def extract_text(html: str) -> ExtractedText:
    """Return what :func:`extract_paragraphs` does, and how sure that is."""
    if not html or html.isspace():
        return ExtractedText([], is_main_text=False, share=0.0)
    root = parse(html)
    chosen = choose(read_page(root))
    blocks = chosen.blocks or shown_blocks(read_page(root, links=True))
    return ExtractedText([collapsed(block.text) for block in blocks], bool(chosen.blocks), chosen.share)


def parse(html: str) -> etree._Element:
    """Return the root of the tree that Scrapy's ``response.selector`` has for a page with the text *html*.

    The elements are plain ones: those of ``lxml.html``, which ``parsel.Selector`` makes, run Python code for each
    and cost a fifth of a parse more to walk over. Linear time.
    """
    # As parsel.selector.create_root_node does it, with one parser for all pages: making one takes a tenth of a parse.
    # Lone surrogates: nothing that was decoded has them, a string that was put together may.
    root = etree.fromstring(html.strip().replace("\0", "").encode("utf-8", "replace"), _PARSER)
    # Nothing but comments, or less.
    return etree.fromstring(b"<html/>", _PARSER) if root is None else root


def paragraphs_of(root: etree._Element, budget: Budget = UNLIMITED) -> list[str]:
    """Return the paragraphs of the main text under *root*, an already parsed page (``response.selector.root``).

    Empty for a page without main text: two lists of links are no copies of each other because they have much in common.
    The tree is read only. Linear time: one to one and a half times that of a bare parse. :class:`UncheckableError` once
    more than the *budget* is spent.
    """
    return texts_of(root, budget).paragraphs


class Texts(NamedTuple):
    """The visible text of a page, links apart."""

    paragraphs: list[str]
    """Those of its main text."""
    others: list[str]
    """All others, in document order."""
    heading: str
    """The first ``<h1>`` that is no link, empty if there is none."""
    share: float = 1.0
    """How much of the page's running text outside of boilerplate the paragraphs are, 0 to 1."""
    is_boilerplate: bool = False
    """Whether the paragraphs stand in what calls itself something else (comments, a menu), and other text does not."""


def texts_of(root: etree._Element, budget: Budget = UNLIMITED) -> Texts:
    """Return what :func:`paragraphs_of` does, and the texts around it, at the same cost."""
    with plain_elements(root):
        page = read_page(root, budget.elements)
    budget.check_time()
    chosen = choose(page)
    budget.check_time()
    is_chosen = set(map(id, chosen.blocks))
    places = [index for index, block in enumerate(page.blocks) if id(block) in is_chosen]
    first, last = (places[0], places[-1]) if places else (0, -1)
    links = [" ".join(text.split()) for place, text in page.links if first < place <= last + 1]
    others = [block for block in page.blocks if block.linked < MOSTLY_LINKS]
    heading = next((block.text for block in others if page.tags[block.node] == "h1"), "")
    return Texts(
        [collapsed(block.text) for block in chosen.blocks],
        [block.text for block in others if id(block) not in is_chosen] + links,
        heading,
        chosen.share,
        chosen.is_boilerplate,
    )


def check_complete(root: etree._Element) -> None:
    """Raise :class:`UncheckableError` if *root* is no tree, or its parser has dropped a part of the page. 5 to 10 µs.

    Before parsel 1.12, a page whose text is JSON is none, whatever its headers say. libxml2 stops without a sound where
    elements nest deeper than its limit: 256, or 2048 for huge trees. What followed is missing, and two pages with one
    beginning would be the same. It says so in its log alone, as the last thing.
    """
    if not etree.iselement(root):
        raise UncheckableError(Reason.NOT_PARSED)
    parser = root.getroottree().parser
    last = None if parser is None else parser.error_log.last_error
    if last is not None and last.level == etree.ErrorLevels.FATAL:
        raise UncheckableError(Reason.NESTED_TOO_DEEPLY)


#: With a smaller share of a page's running text outside of boilerplate, the main text may be elsewhere.
SURE_SHARE = 0.1


class Extracted(NamedTuple):
    """What is read of a page."""

    paragraphs: Sequence[str]
    """Those of its main text, in document order, none empty."""
    features: PageFeatures
    """What it says beside that: what it is called, and what stands around."""
    is_doubtful: bool = False
    """Whether the paragraphs may not be the main text. Then only what repeats nearly all of them is a copy."""
    is_boilerplate: bool = False
    """Whether the paragraphs stand in boilerplate, such as comments or a notice, while other text does not."""


#: From the root of a parsed page, and what it may cost. It changes nothing of the tree, which the callback gets, and
#: raises :class:`UncheckableError` for a page that cannot be checked.
Extractor: TypeAlias = "Callable[[_Element, Budget], Extracted]"


def weighted_dom(root: _Element, budget: Budget) -> Extracted:
    """Return what the page under *root* says. One to one and a half times the time of a bare parse."""
    check_complete(root)
    budget.check_time()
    texts = texts_of(root, budget)
    features = features_of(root, texts)
    is_sure = texts.share >= SURE_SHARE and is_echoed(f"{features.title} {features.heading}", texts.paragraphs)
    is_doubtful = bool(texts.paragraphs) and not is_sure
    return Extracted(texts.paragraphs, features, is_doubtful, texts.is_boilerplate)


def extractor(name: str) -> Extractor:
    """Return the extraction *name*; :class:`ConfigError` where it is none, lacks a package, or fails on a page."""
    found: Extractor = EXTRACTORS.load(name)
    if found is not weighted_dom:
        try:
            _try_out(found)
        except ConfigError:
            raise
        except Exception as error:
            raise ConfigError(
                f"the extraction {name!r} cannot be used ({error!r}); mend its package, or choose another"
            ) from error
    return found


def _try_out(extract: Extractor) -> None:
    paragraphs, features, *_ = extract(parse("<title>A</title><p>The ferry was late, and nobody knew why."), Budget())
    if isinstance(paragraphs, str) or not all(isinstance(paragraph, str) for paragraph in paragraphs):
        raise TypeError("its paragraphs must be a list of str")
    if not isinstance(features, PageFeatures):
        raise TypeError("its features must be PageFeatures, as features_of returns them")
