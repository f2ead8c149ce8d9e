"""Extracts by the weighted DOM as it was published: an element weighs by its share of text, its kind and its depth.

Source: an article in Chinese on finding near-duplicate pages by fingerprints of paragraphs, which begins with this
extraction; neither its author nor its year is known to us. The best known method that uses the density of text in a
tree is that of F. Sun, D. Song and L. Liao, "DOM Based Content Extraction via Text Density", SIGIR 2011.

Specified: the density of an element is its text / all its characters, tags included. Paragraphs and headings weigh
more, and so do elements deep in the tree. Lists and elements full of links weigh less, and so do elements near the
root. Two examples: a deep paragraph of density 0.8 weighs 0.9, a list near the root of density 0.2 weighs 0.1. Light
elements are removed from the tree, and the rest is the text, in document order.

Left open: the formula, and which elements are deep or light. Here the weight is the density, 0.05 more or less for the
kind, and up to 0.05 more or less for the depth, which gives both examples. Ten elements around an element are deep, and
a weight below 0.5 is light. A light list, or a light element full of links, is removed with everything in it. Any other
light element, and any that contains half of the page's text, is a frame, whose markup outweighs its text: it loses only
the text directly in it. Scripts and comments do not count as characters, for browsers show neither.

Departures: none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.extraction.names import HEADINGS
from dedup_middleware.methods.extractors.elements import ancestors_or_self, extractor

if TYPE_CHECKING:
    from dedup_middleware.methods.extractors.elements import Node, PageElements

#: Elements below this weight are removed.
LEAST = 0.5
KIND = 0.05
DEPTH = 0.05
#: Elements around a deep one.
DEEP = 10
#: The share of the page's text that makes an element of any kind a frame.
FRAME = 0.5
_TEXTS = HEADINGS | {"p"}
_LISTS = frozenset({"ul", "ol", "dl", "menu", "dir"})
# From this share of links on an element is full of them.
_FULL_OF_LINKS = 0.5


def weight(density: float, kind: int, depth: int) -> float:
    """Return the weight of an element, about 0 to 1. Its *kind* is 1 for texts, -1 for lists and links, else 0."""
    place = 2 * min(depth, DEEP) / DEEP - 1
    return density + KIND * kind + DEPTH * place


@extractor
def by_density(reading: PageElements) -> set[int]:
    """Return the main text of a page. O(elements + characters), about five bare parses."""
    nodes = reading.nodes
    light = [_weight(node) < LEAST for node in nodes]
    most = FRAME * sum(node.text for node in nodes if node.parent < 0)
    pruned = ancestors_or_self(
        nodes, (low and _is_of_links(node) and node.text < most for node, low in zip(nodes, light, strict=True))
    )
    barred = [one or other for one, other in zip(pruned, light, strict=True)]
    return {i for i, line in enumerate(reading.lines) if line.node >= 0 and not barred[line.node]}


def _weight(node: Node) -> float:
    kind = -1 if _is_of_links(node) else 1 if node.tag in _TEXTS else 0
    return weight(node.text / (node.text + node.markup), kind, node.depth)


def _is_of_links(node: Node) -> bool:
    return node.tag in _LISTS or node.linked > _FULL_OF_LINKS * node.text
