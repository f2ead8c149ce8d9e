"""A parsed page as the published extractions look at it: its elements with their counts, and its lines of text.

The product's own reading (`extraction.blocks`) leaves out what its method never looks at: menus, tags, formats. These
methods go by just that. The tree is read once, front to back, without recursion, and left as it is.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from lxml import etree

from dedup_middleware.budget import UncheckableError
from dedup_middleware.extraction import Extracted, Texts, check_complete
from dedup_middleware.extraction.blocks import MOSTLY_LINKS, collapsed, plain_elements
from dedup_middleware.extraction.features import features_of
from dedup_middleware.extraction.names import HEADINGS, ROLES, Role, is_shadow_root, signs_of_element
from dedup_middleware.reasons import Reason
from dedup_middleware.text.titles import is_echoed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from dedup_middleware.budget import Budget

# By these a browser sets text in another font than the text around it.
_FONTS = "b big blockquote code em font i kbd mark pre s small strong sub sup th tt u var"
_FORMATTING = HEADINGS.union(_FONTS.split())
_FORMAT_ATTRIBUTES = ("class", "style", "face", "size", "color")
# In front of and behind the name of an attribute and its value: a space, the equals sign, two quotation marks.
_ATTRIBUTE = 4
# Of a start tag and an end tag, without the name.
_BRACKETS = 5


@dataclass(slots=True)
class Node:
    """A block-level element; counts are in characters, and of all that is in it."""

    tag: str
    parent: int
    """The index of the block-level element around it, -1 for the first."""
    depth: int
    """How many elements of any kind it is in."""
    names: str
    """Its class, its id, and what microdata and ARIA call it, with spaces between."""
    signs: int
    """What it says of itself: see `extraction.names`."""
    text: int = 0
    """Shown text, white space collapsed."""
    linked: int = 0
    """Those of `text` inside links."""
    markup: int = 0
    """The tags of what is shown, its own among them."""


class Piece(NamedTuple):
    """Text between two tags, whatever they are."""

    text: str
    line: int
    """The line that it is part of, as an index."""
    format: int
    """How it is set: a number that is the same for pieces set alike."""
    is_link: bool


class Line(NamedTuple):
    """Text between two edges of block-level elements, or ``<br>``."""

    text: str
    """White space collapsed, never empty."""
    node: int
    """The innermost block-level element around it, as an index."""
    linked: float
    """The share of it that is inside links, 0 to 1."""


@dataclass(slots=True)
class Reading:
    """All that the methods look at, in document order: so a node comes before those in it."""

    nodes: list[Node] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)


def read(root: etree._Element, budget: Budget) -> Reading:
    """Return the page under *root* as these methods look at it. O(elements + characters), about four bare parses.

    `UncheckableError` where it is not whole, or costs more than the *budget*.
    """
    check_complete(root)
    budget.check_time()
    with plain_elements(root):
        reader = _Reader()
        events = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
        # Each element has two events, a comment has one; so no more than this are looked at.
        for event, element in islice(events, min(2 * budget.elements, sys.maxsize)):
            if event == "start":
                reader.start(element)
            elif event == "end":
                reader.end(element)
            else:
                reader.passed(element)
        if reader.count > budget.elements or next(events, None) is not None:
            raise UncheckableError(Reason.TOO_MANY_ELEMENTS)
    budget.check_time()
    return reader.finished()


class _Reader:
    """Collects what is read. One method for each kind of event."""

    def __init__(self) -> None:
        self.count = 0
        self._reading = Reading()
        self._formats: dict[tuple[int, tuple[str, ...]], int] = {}
        # The open elements: their block-level ones, and the formats of all that set one.
        self._path = [-1]
        self._set = [0]
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
        self._set.append(self._format(element))
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
            self._set.pop()
            if role is Role.BLOCK:
                self._flush()
                self._path.pop()
            elif role is Role.LINK:
                self._links -= 1
        self._add(element.tail)

    def passed(self, comment: etree._Element) -> None:
        self.count += 1
        self._add(comment.tail)

    def finished(self) -> Reading:
        """Return what was read, the counts of each node in those around it."""
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
        signs = signs_of_element(element)
        self._reading.nodes.append(Node(element.tag, self._path[-1], self._depth, names, signs))
        self._path.append(len(self._reading.nodes) - 1)

    def _format(self, element: etree._Element) -> int:
        said = tuple(element.get(name) or "" for name in _FORMAT_ATTRIBUTES) if element.attrib else ()
        key = (element.tag if element.tag in _FORMATTING else "", *said)
        if not any(key):
            return self._set[-1]
        return self._formats.setdefault((self._set[-1], key), len(self._formats) + 1)

    def _add(self, text: str | None) -> None:
        if not text or self._unseen or (text.isspace() and not self._texts):
            return
        self._texts.append(text)
        if not text.isspace():
            self._linked += len(text.strip()) if self._links else 0
            self._reading.pieces.append(Piece(text, len(self._reading.lines), self._set[-1], self._links > 0))

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
    """Return how many characters its tags have, as a browser would write them."""
    named = sum(len(name) + len(value) + _ATTRIBUTE for name, value in element.items())
    return 2 * len(element.tag) + _BRACKETS + named


def ancestors_or_self(nodes: Sequence[Node], flags: Iterable[bool]) -> list[bool]:
    """Return for each of the *nodes* whether its flag, or that of any around it, is set. O(nodes)."""
    within: list[bool] = []
    for node, flag in zip(nodes, flags, strict=True):
        within.append(flag or (node.parent >= 0 and within[node.parent]))
    return within


def told(root: etree._Element, reading: Reading, chosen: Collection[int]) -> Extracted:
    """Return that the lines *chosen*, by their indices, are the main text of the page under *root*."""
    return extracted(root, reading, [reading.lines[i].text for i in sorted(chosen)], chosen)


def extracted(root: etree._Element, reading: Reading, paragraphs: Sequence[str], chosen: Collection[int]) -> Extracted:
    """Return that these *paragraphs* are the main text of the page under *root*, and made of the lines *chosen*.

    Like the product's, it is in doubt where it has no word of the title: no published method has a doubt of its own.
    """
    beside = [(i, line) for i, line in enumerate(reading.lines) if line.linked < MOSTLY_LINKS]
    heading = next((line.text for _, line in beside if _tag(reading, line) == "h1"), "")
    others = [line.text for i, line in beside if i not in chosen]
    features = features_of(root, Texts([*paragraphs], others, heading))
    is_echo = is_echoed(f"{features.title} {features.heading}", paragraphs)
    return Extracted(paragraphs, features, is_doubtful=bool(paragraphs) and not is_echo)


def _tag(reading: Reading, line: Line) -> str:
    return reading.nodes[line.node].tag if line.node >= 0 else ""
