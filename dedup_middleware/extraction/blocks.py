"""A parsed page -> its blocks of text and the elements that they stand in.

It reads the tree once, front to back, and decides nothing. No recursion: libxml2 lets pages nest 2048
deep. No climbing from a block to its ancestors: that is quadratic on deep pages.

More than half of its time is spent in lxml, on elements, names and texts. Measured, and not worth their lines: XPath
for the texts, or for lists of nothing but links; ``iterwalk``, a generator, or an iterator for each element's children;
a look at long texts first, to read only the subtree that holds nine tenths of them; an XSLT stylesheet that writes the
page into one string with marks, which walks quickly, but copies the page first and leaves as much to be done here; the
page as lxml writes it out, cut into tags and texts by a regular expression.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.budget import UnjudgeableError
from dedup_middleware.extraction.names import ROLES, Role, is_shadow_root, signs_of_element
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from lxml import etree

# Two blocks of three on a news page are menus and headlines of other pages, with a date or a count beside them: hardly
# ever main text. Which elements they are in tells nothing that their mere presence between other blocks does not tell,
# so what has at least this share of links is counted and not kept,
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
    links: list[tuple[int, str]] = field(default_factory=list)
    """The texts that are links and not kept as blocks, each with the index of the block that it stands before."""
    parents: list[int] = field(default_factory=lambda: [-1])
    tags: list[str] = field(default_factory=lambda: [""])
    classes: list[str | None] = field(default_factory=lambda: [None])
    signs: list[int] = field(default_factory=lambda: [0])
    """What the element says of itself, as bits: see `names.signs_of`."""


def measure(text: str) -> float:
    """Return the length of *text* in letters of a Latin script, which say least each. O(len(text)).

    A Chinese character says as much as two or three letters. UTF-8 spends its bytes about that way, and counting them
    is far quicker than looking characters up: one byte counts 1, two count 1.75, three 2.5.
    """
    length = len(text)
    return length if text.isascii() else length + 0.75 * (len(text.encode("utf-8", "replace")) - length)


class _Writer:
    """Collects pieces of text and writes them to a page as blocks.

    Elements are entered on the page only once text is found in them: most hold none, and asking lxml for attributes
    costs more than visiting the element.
    """

    __slots__ = ("gap", "least_link", "least_linked", "letters", "page", "path", "pieces", "unlinked")

    def __init__(self, *, links: bool) -> None:
        self.page = PageBlocks()
        # How long a block is kept that is a link as a whole, and one that is mostly links.
        self.least_link, self.least_linked = (HEADLINE, HEADLINE) if links else (sys.maxsize, LINKED_SENTENCE)
        self.gap = 0
        # The current block: its text, how many letters of it are inside links, and whether any are not.
        self.pieces: list[str] = []
        self.letters = 0
        self.unlinked = False
        # The open block-level elements, outermost first: the index on the page of each that is entered, else itself.
        self.path: list[int | etree._Element] = [0]

    def flush(self) -> None:
        """End the current block, which has begun."""
        if self.unlinked or self.letters >= self.least_link:
            self._write("".join(self.pieces))
            self.unlinked = False
        else:
            self._pass_over("".join(self.pieces))
        self.letters = 0
        self.pieces.clear()

    def finish(self) -> PageBlocks:
        """Return the page, now that nothing follows."""
        if self.pieces:
            self.flush()
        return self.page

    def _write(self, text: str) -> None:
        """Write *text* as a block, unless it is a short one and most of it is inside links."""
        laid_out = "\n" in text or "  " in text or "\t" in text
        text = " ".join(text.split()) if laid_out and len(text) <= LOOKED_AT else text.strip()
        share = self.letters / len(text)
        is_line = share < NEARLY_A_LINK and self._is_in(LINES)
        if share >= MOSTLY_LINKS and len(text) < self.least_linked and not is_line:
            self._pass_over(text)
        else:
            self.page.blocks.append(Block(text, self._enter(), measure(text[:LOOKED_AT]), share, self.gap))
            self.gap = 0

    def _pass_over(self, text: str) -> None:
        self.gap += self.letters
        self.page.links.append((len(self.page.blocks), text))

    def _is_in(self, tags: Collection[str]) -> bool:
        inner = self.path[-1]
        return (self.page.tags[inner] if isinstance(inner, int) else inner.tag) in tags

    def _enter(self) -> int:
        """Enter the open elements that are not on the page yet; return the innermost one's index."""
        path, page = self.path, self.page
        first = len(path) - 1
        while not isinstance(parent := path[first], int):
            first -= 1
        for depth in range(first + 1, len(path)):
            element = path[depth]
            assert not isinstance(element, int)
            page.parents.append(parent)
            page.tags.append(element.tag)
            page.classes.append(element.get("class"))
            page.signs.append(signs_of_element(element))
            path[depth] = parent = len(page.parents) - 1
        return parent


def _elements(root: etree._Element) -> Iterator[etree._Element]:
    """Iterate over *root* and all in it in document order, but for the head of a page: it has no text to show."""
    tops = [top for top in root if top.tag != "head"] if root.tag == "html" else [root]
    return chain.from_iterable(top.iter() for top in tops)


def read_page(root: etree._Element, most: int = sys.maxsize, *, links: bool = False) -> PageBlocks:
    """Return the blocks of the tree under *root*, which stays as it is; its *links* too. O(elements + characters).

    :class:`UnjudgeableError` where it has more than *most* elements, comments among them; so many have been read then.
    """
    elements = _elements(root)
    # The iterator counts: asking at each element would cost.
    page = _read(islice(elements, most), _Writer(links=links))
    if next(elements, None) is not None:
        raise UnjudgeableError(Reason.TOO_MANY_ELEMENTS)
    return page


# A call for each kind of element would add half of the time.
def _read(elements: Iterator[etree._Element], writer: _Writer) -> PageBlocks:  # noqa: C901, PLR0912
    pieces, path, flush = writer.pieces, writer.path, writer.flush
    role_of, block, link, unseen = ROLES.get, Role.BLOCK, Role.LINK, Role.UNSEEN
    # iter() does not tell where elements end, and is still quicker than what does: count down the children to come.
    opened: list[tuple[etree._Element, Role | None, int]] = []
    remaining = links = hidden = 0
    for each in elements:
        element, role = each, role_of(each.tag)
        if role is not None:
            if role is block:
                if pieces:
                    flush()
                path.append(element)
            elif role is link:
                # What leads to a place on the same page is none: anchors of headings, marks of footnotes.
                role = None if element.get("href", "#")[:1] == "#" else link
                links += role is link
            elif role is unseen:
                if is_shadow_root(element):
                    role = block
                    if pieces:
                        flush()
                    path.append(element)
                else:
                    hidden += 1
            elif pieces:
                flush()
        text = None if hidden else element.text
        if children := len(element):
            opened.append((element, role, remaining))
            remaining = children
        while True:
            if text and not text.isspace():
                pieces.append(text)
                if links:
                    writer.letters += len(text.strip())
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
    return writer.finish()
