"""Reads a parsed page for the published extractions: its elements with their counts, and its lines of text.

The product's own reading (`extraction.blocks`) leaves out menus, tags and formats, which these methods use. The tree is
read once, front to back, without recursion, and is not changed.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import wraps
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from lxml import etree

from dedup_middleware.common.budget import UncheckableError
from dedup_middleware.extraction import Extracted, check_complete
from dedup_middleware.extraction.blocks import MOSTLY_LINKS, collapsed, plain_elements
from dedup_middleware.extraction.features import Texts, features_of
from dedup_middleware.extraction.names import HEADINGS, ROLES, Role, is_shadow_root, signs_of
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from dedup_middleware.common.budget import Budget

# A browser sets these in another font than the text around them.
_FONTS = "b big blockquote code em font i kbd mark pre s small strong sub sup th tt u var"
_FORMATTING = HEADINGS.union(_FONTS.split())
_FORMAT_ATTRIBUTES = ("class", "style", "face", "size", "color")
# Characters of an attribute without its name and value, and of a start tag and an end tag without their names.
_ATTRIBUTE, _BRACKETS = 4, 5


@dataclass(slots=True)
class Node:
    """A block-level element; counts are in characters, with those of the elements in it."""

    tag: str
    parent: int
    """The index of the block-level element around it, -1 for the first."""
    depth: int
    """The number of elements of any kind around it."""
    names: str
    """Its class, id, itemprop and role, with spaces between."""
    signs: int
    """See `extraction.names`."""
    text: int = 0
    """Shown text, white space collapsed."""
    linked: int = 0
    """The part of `text` inside links."""
    markup: int = 0
    """The tags of what is shown, its own too."""


class Piece(NamedTuple):
    """Text between two tags of any kind."""

    text: str
    line: int
    """The index of its line."""
    format: int
    """A number that is the same for pieces of one format."""
    is_link: bool


class Line(NamedTuple):
    """Text between two edges of block-level elements, or ``<br>``."""

    text: str
    """White space collapsed, never empty."""
    node: int
    """The index of the innermost block-level element around it."""
    linked: float
    """The share of its text inside links, 0 to 1."""


@dataclass(slots=True)
class PageElements:
    """A page in document order, so that a node comes before those in it."""

    nodes: list[Node] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)


def read(root: etree._Element, budget: Budget) -> PageElements:
    """Return the page under *root*. O(elements + characters), about four bare parses.

    `UncheckableError` if it is truncated, or costs more than the *budget*.
    """
    check_complete(root)
    budget.check_time()
    with plain_elements(root):
        reader = _Reader()
        events = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
        # An element has two events, and a comment has one.
        for event, element in islice(events, min(2 * budget.elements, sys.maxsize)):
            if event == "start":
                reader.start(element)
            elif event == "end":
                reader.end(element)
            else:
                reader.comment(element)
        if reader.count > budget.elements or next(events, None) is not None:
            raise UncheckableError(Reason.TOO_MANY_ELEMENTS)
    budget.check_time()
    return reader.finished()


class _Reader:
    """Collects a `PageElements`, by a method for each kind of event."""

    def __init__(self) -> None:
        self.count = 0
        self._reading = PageElements()
        self._formats: dict[tuple[int, tuple[str, ...]], int] = {}
        # Of the open elements: the indices of the block-level ones, and the formats of all.
        self._path = [-1]
        self._open_formats = [0]
        self._depth = self._links = self._unseen = 0
        # Of the current line.
        self._texts: list[str] = []
        self._linked = 0

    def start(self, element: etree._Element) -> None:
        self.count += 1
        self._depth += 1
        role = _role(element)
        if role is Role.UNSEEN:
            self._unseen += 1
        if self._unseen:
            return
        self._open_formats.append(self._format(element))
        if role is Role.BLOCK:
            self._flush()
            self._open(element)
        elif role is Role.BREAK:
            self._flush()
        elif role is Role.LINK:
            self._links += 1
        if self._path[-1] >= 0:
            self._reading.nodes[self._path[-1]].markup += _markup(element)
        self._add(element.text)

    def end(self, element: etree._Element) -> None:
        self._depth -= 1
        role = _role(element)
        if self._unseen:
            self._unseen -= role is Role.UNSEEN
        else:
            self._open_formats.pop()
            if role is Role.BLOCK:
                self._flush()
                self._path.pop()
            elif role is Role.LINK:
                self._links -= 1
        self._add(element.tail)

    def comment(self, comment: etree._Element) -> None:
        self.count += 1
        self._add(comment.tail)

    def finished(self) -> PageElements:
        """Return the reading, with the counts of each node added to those around it."""
        self._flush()
        for node in reversed(self._reading.nodes):
            if node.parent >= 0:
                around = self._reading.nodes[node.parent]
                around.text += node.text
                around.linked += node.linked
                around.markup += node.markup
        return self._reading

    def _open(self, element: etree._Element) -> None:
        get = element.get
        names = " ".join(filter(None, (get("class"), get("id"), get("itemprop"), get("role"))))
        signs = signs_of(element)
        self._reading.nodes.append(Node(element.tag, self._path[-1], self._depth, names, signs))
        self._path.append(len(self._reading.nodes) - 1)

    def _format(self, element: etree._Element) -> int:
        values = tuple(element.get(name) or "" for name in _FORMAT_ATTRIBUTES) if element.attrib else ()
        key = (element.tag if element.tag in _FORMATTING else "", *values)
        if not any(key):
            return self._open_formats[-1]
        return self._formats.setdefault((self._open_formats[-1], key), len(self._formats) + 1)

    def _add(self, text: str | None) -> None:
        if not text or self._unseen or (text.isspace() and not self._texts):
            return
        self._texts.append(text)
        if not text.isspace():
            self._linked += len(text.strip()) if self._links else 0
            self._reading.pieces.append(Piece(text, len(self._reading.lines), self._open_formats[-1], self._links > 0))

    def _flush(self) -> None:
        """End the current line, if it has begun."""
        if not self._texts:
            return
        whole = "".join(self._texts)
        text, node = collapsed(whole), self._path[-1]
        share = min(1.0, self._linked / len(text))
        if node >= 0:
            self._reading.nodes[node].text += len(text)
            self._reading.nodes[node].linked += round(share * len(text))
        self._reading.lines.append(Line(text, node, share))
        self._texts.clear()
        self._linked = 0


def _role(element: etree._Element) -> Role | None:
    role = ROLES.get(element.tag)
    if role is Role.LINK and element.get("href", "#")[:1] == "#":
        return None
    return Role.BLOCK if role is Role.UNSEEN and is_shadow_root(element) else role


def _markup(element: etree._Element) -> int:
    """Return how many characters the tags of *element* have, as a browser would write them."""
    named = sum(len(name) + len(value) + _ATTRIBUTE for name, value in element.items())
    return 2 * len(element.tag) + _BRACKETS + named


def ancestors_or_self(nodes: Sequence[Node], flags: Iterable[bool]) -> list[bool]:
    """Return for each of the *nodes* whether its flag, or that of any around it, is set. O(nodes)."""
    within: list[bool] = []
    for node, flag in zip(nodes, flags, strict=True):
        within.append(flag or (node.parent >= 0 and within[node.parent]))
    return within


def extracted(
    root: etree._Element, reading: PageElements, chosen: Collection[int], paragraphs: Sequence[str] | None = None
) -> Extracted:
    """Return the main text of the page under *root*: the lines *chosen*, by index, or *paragraphs* made of them."""
    if paragraphs is None:
        paragraphs = [reading.lines[i].text for i in sorted(chosen)]
    beside = [(i, line) for i, line in enumerate(reading.lines) if line.linked < MOSTLY_LINKS]
    heading = next((line.text for _, line in beside if line.node >= 0 and reading.nodes[line.node].tag == "h1"), "")
    others = [line.text for i, line in beside if i not in chosen]
    return Extracted(paragraphs, features_of(root, Texts([*paragraphs], others, heading)))


def extractor(choose: Callable[[PageElements], Collection[int]]) -> Callable[[etree._Element, Budget], Extracted]:
    """Return the extraction whose main text are the lines that *choose* returns, by index, or their texts by index."""

    @wraps(choose)
    def extract(root: etree._Element, budget: Budget) -> Extracted:
        reading = read(root, budget)
        chosen = choose(reading)
        budget.check_time()
        return extracted(root, reading, chosen, [*chosen.values()] if isinstance(chosen, dict) else None)

    return extract
