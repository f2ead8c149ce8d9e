"""Walks the tree of a page once and reads its blocks of text, with the elements around them."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, cast

from lxml import etree, html

from dedup_middleware.common.budget import UncheckableError
from dedup_middleware.extraction.marks import MARKED, icon_of, is_file, mark_of
from dedup_middleware.extraction.names import BOILERPLATE, COMMENTS, ROLES, Role, is_shadow_root, signs_of
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lxml.etree import _Element

# Two blocks of three on a news page are menus and headlines of other pages, with a date or a count beside them: hardly
# ever main text. Their mere presence between other blocks tells as much as the elements that they are in, so what has
# at least this share of links is counted and not kept,
MOSTLY_LINKS = 0.5
# but for a line of a text that has some words outside of its links, as "2 cups flour" has in a list of ingredients;
NEARLY_A_LINK = 0.9
LINES = frozenset({"p", "li", "dd", "td"})
# unless it is set as a paragraph, or has as many characters as a sentence: in a text, some are mostly links. And where
# links are all that a page shows, those with as many as a headline are kept.
LINKED_SENTENCE = 60
HEADLINE = 25
# No block counts for more than its beginning does: a megabyte of hidden spam or data costs no more than a paragraph.
LOOKED_AT = 10_000


class Block(NamedTuple):
    """Text between two boundaries: the edges of block-level elements, and ``<br>``."""

    text: str
    """Stripped, never empty; runs of white space collapsed, but for rare kinds and beyond `LOOKED_AT`."""
    node: int
    """The innermost block-level element around it, as an index into the lists of `PageBlocks`."""
    size: float
    """The length of what is looked at, in letters of a Latin script, see `measure`."""
    linked: float
    """The share of it that is inside links."""
    gap: int
    """How many letters of links stand between the block before and this one."""


@dataclass(slots=True)
class PageBlocks:
    """Blocks, and the block-level elements that hold them as parallel lists, all in document order.

    So a parent comes before its children, and the elements inside one are a run of indices right after it. Element 0
    stands for the whole page. Lists rather than objects: a page has hundreds of elements.
    """

    blocks: list[Block] = field(default_factory=list)
    links: list[tuple[int, str, str]] = field(default_factory=list)
    """The texts that are links and not kept as blocks, each with the index of the block that it stands before, and
    where the last link in it leads to."""
    labels: list[str] = field(default_factory=list)
    """The texts of links, each by itself."""
    marks: list[tuple[int, int, str]] = field(default_factory=list)
    """What is shown and is not text, outside of links: the index of the block that it stands in or before, of its
    element, and what it is, see `marks.mark_of`."""
    parents: list[int] = field(default_factory=[-1].copy)
    tags: list[str] = field(default_factory=[""].copy)
    classes: list[str | None] = field(default_factory=list[str | None]([None]).copy)
    signs: list[int] = field(default_factory=[0].copy)
    """The bits of each element: see `names.signs_of`."""
    is_thread: bool = False
    """Whether the page states that it is a thread, so that its comments are what it is about."""


def measure(text: str) -> float:
    """Return the length of *text* in letters of a Latin script. O(len(text)).

    A Chinese character counts as two or three letters. UTF-8 spends its bytes about that way, and counting them is far
    quicker than looking characters up: one byte counts 1, two count 1.75, three 2.5.
    """
    length = len(text)
    return length if text.isascii() else length + 0.75 * (len(text.encode("utf-8", "replace")) - length)


class _Writer:
    """Collects pieces of text and writes them to a page as blocks.

    Elements are entered on the page only once text is found in them: most hold none, and asking lxml for attributes
    costs more than visiting the element.
    """

    __slots__ = ("gap", "href", "least_link", "least_linked", "letters", "page", "path", "pieces", "unlinked")

    def __init__(self, *, links: bool) -> None:
        self.page = PageBlocks()
        # How long a block is kept that is a link as a whole, and one that is mostly links.
        self.least_link, self.least_linked = (1, 1) if links else (sys.maxsize, LINKED_SENTENCE)
        self.gap = 0
        # The current block: its text, how many letters of it are inside links, and whether any are not.
        self.pieces: list[str] = []
        self.letters = 0
        self.unlinked = False
        self.href = ""
        # The open block-level elements, outermost first: the index on the page of each that is entered, else itself.
        self.path: list[int | etree._Element] = [0]

    def flush(self) -> None:
        """End the current block, which has begun. It is kept unless it is short and most of it is inside links."""
        text, share = "".join(self.pieces), 1.0
        is_kept = self.unlinked or self.letters >= self.least_link
        if is_kept:
            laid_out = "\n" in text or "  " in text or "\t" in text
            text = " ".join(text.split()) if laid_out and len(text) <= LOOKED_AT else text.strip()
            share = self.letters / len(text)
            is_kept = share < MOSTLY_LINKS or len(text) >= self.least_linked
        if not is_kept and share < NEARLY_A_LINK:
            inner = self.path[-1]
            is_kept = (self.page.tags[inner] if isinstance(inner, int) else inner.tag) in LINES
        if is_kept:
            size = len(text) if len(text) <= LOOKED_AT and text.isascii() else measure(text[:LOOKED_AT])
            self.page.blocks.append(Block(text, self._enter(), size, share, self.gap))
            self.gap = 0
        else:
            self.gap += self.letters
            self.page.links.append((len(self.page.blocks), text, self.href))
        self.unlinked = False
        self.letters = 0
        self.pieces.clear()

    def mark(self, what: str) -> None:
        """Note what is shown here and is not text."""
        if what:
            self.page.marks.append((len(self.page.blocks), self._enter(), what))

    def _enter(self) -> int:
        """Enter the open elements that are not on the page yet; return the innermost one's index."""
        path, page = self.path, self.page
        if isinstance(inner := path[-1], int):
            return inner
        first = len(path) - 2
        while not isinstance(parent := path[first], int):
            first -= 1
        for depth in range(first + 1, len(path)):
            element = path[depth]
            assert not isinstance(element, int)
            page.parents.append(parent)
            page.tags.append(element.tag)
            page.classes.append(element.get("class"))
            page.signs.append(signs_of(element))
            path[depth] = parent = len(page.parents) - 1
        return parent


def read_page(root: etree._Element, most: int = sys.maxsize, *, links: bool = False) -> PageBlocks:
    """Return the blocks of the tree under *root*, which stays as it is; its *links* too. O(elements + characters).

    :class:`UncheckableError` where it has more than *most* elements, comments among them; so many have been read then.
    """
    # The head of a page has no text to show.
    tops = [top for top in root if top.tag != "head"] if root.tag == "html" else [root]
    elements = chain.from_iterable([top.iter() for top in tops])
    # The iterator counts: a test at each element would cost.
    page = _read(islice(elements, most), _Writer(links=links))
    if next(elements, None) is not None:
        raise UncheckableError(Reason.TOO_MANY_ELEMENTS)
    if any(sign & COMMENTS for sign in page.signs):
        page.is_thread = any(_THREAD in stated for stated in cast("list[str]", _STATED(root)))
        boilerplate = 0 if page.is_thread else BOILERPLATE
        page.signs = [sign & ~COMMENTS | boilerplate if sign & COMMENTS else sign for sign in page.signs]
    return page


# In the words of schema.org, as data or on an element. There the replies are what the page is about. Elsewhere they are
# comments, which outgrow articles, and answers: those of a page of questions have comments of their own.
_THREAD = "DiscussionForumPosting"
# Texts to look into: to look into each attribute in XPath takes six times as long.
_STATED = etree.XPath(
    "/descendant::*/@itemtype | /descendant::script[@type = 'application/ld+json']/text()", smart_strings=False
)


# A call for each kind of element would add half of the time.
def _read(elements: Iterator[etree._Element], writer: _Writer) -> PageBlocks:  # noqa: C901, PLR0912, PLR0915
    pieces, path, flush, labels = writer.pieces, writer.path, writer.flush, writer.page.labels
    role_of, block, link, unseen, set_ = ROLES.get, Role.BLOCK, Role.LINK, Role.UNSEEN, Role.SET
    # iter() does not report where elements end, and is still quicker than what does: count down the children to come.
    opened: list[tuple[etree._Element, Role | None, int]] = []
    remaining = links = hidden = 0
    for each in elements:
        element, tag = each, each.tag
        role = role_of(tag)
        if role is not None:
            if role is block:
                if pieces:
                    flush()
                path.append(element)
            elif role is link:
                # A link within the page is not counted: anchors of headings, marks of footnotes.
                href = element.get("href", "#")
                role, writer.href = None if href[:1] == "#" else link, href
                links += role is link
                if is_file(href):
                    writer.mark(f"file {href}")
            elif role is unseen:
                if tag == "template" and is_shadow_root(element):
                    role = block
                    if pieces:
                        flush()
                    path.append(element)
                else:
                    if tag in MARKED and not hidden and not links:
                        writer.mark(mark_of(element))
                    hidden += 1
            elif role is set_:
                if not hidden and not links:
                    writer.mark(mark_of(element))
            elif pieces:
                flush()
        text = None if hidden else element.text
        if children := len(element):
            opened.append((element, role, remaining))
            remaining = children
        elif role is None and not text and not links and not hidden and (icon := icon_of(element)):
            # An icon, or a text that a style sheet writes.
            writer.mark(icon)
        while True:
            if text and not text.isspace():
                pieces.append(text)
                if links:
                    bare = text.strip()
                    writer.letters += len(bare)
                    labels.append(bare)
                else:
                    writer.unlinked = True
            elif text and pieces:
                pieces.append(text)
            if children:
                break
            if role is block:
                if pieces:
                    flush()
                path.pop()
            elif role is link:
                links -= 1
            elif role is unseen:
                hidden -= 1
            text = None if hidden else element.tail
            children = remaining = remaining - 1
            if not children:
                element, role, remaining = opened.pop()
    if pieces:
        flush()
    return writer.page


_LXML_HTML = html.HtmlElementClassLookup()


@contextmanager
def plain_elements(root: etree._Element) -> Iterator[None]:
    """Let lxml make plain elements of the tree under *root* meanwhile; keep no reference to them.

    lxml takes the class of each element without a reference from the document's parser, of which parsel makes one a
    page. The classes of a parser cannot be read: so nothing is done for a tree that is not of the very parser that
    ``lxml.html`` has, with a *root* of the class that this gives.
    """
    parser = root.getroottree().parser
    if type(parser) is not html.HTMLParser or type(root) is not html.HtmlElement:
        yield
        return
    parser.set_element_class_lookup(None)
    try:
        yield
    finally:
        parser.set_element_class_lookup(_LXML_HTML)


def elements_of(root: _Element, paragraphs: Sequence[str]) -> tuple[str, ...]:
    """Return the block-level elements around each of *paragraphs* under *root*: ``article/ul/li``, outermost first.

    They are found by their texts; empty for a paragraph that is not a block of the page, and the first place for one
    that stands in several. About the time of a bare parse.
    """
    with plain_elements(root):
        page = read_page(root, links=True)
    paths = [""]
    for tag, parent in zip(page.tags[1:], page.parents[1:], strict=True):
        paths.append(f"{paths[parent]}/{tag}" if parent else tag)
    found = {collapsed(block.text): paths[block.node] for block in reversed(page.blocks)}
    return tuple(found.get(paragraph, "") for paragraph in paragraphs)


# Characters.
_AT_ONCE = 100_000
_SPACE = re.compile(r"\s")


def collapsed(text: str) -> str:
    """Return *text* with white space collapsed. Ten megabytes at once would make some 300 of words."""
    if len(text) <= _AT_ONCE:
        return " ".join(text.split())
    pieces, start = [], 0
    while start < len(text):
        space = _SPACE.search(text, start + _AT_ONCE)
        end = space.start() if space else len(text)
        pieces.append(" ".join(text[start:end].split()))
        start = end
    return " ".join(filter(None, pieces))
