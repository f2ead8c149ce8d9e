"""Extracts by rules on tags, class names and the look of a text.

Source: rule matching, which overviews of content extraction name as the elementary way. The article with the weighted
DOM (see `density`) measures it as one of its two rivals. Neither names an author of the rules. The best known rules are
those of S. Gupta, G. Kaiser, D. Neistadt and P. Grimm, "DOM-based Content Extraction of HTML Documents", WWW 2003.

Specified: texts are found by the tags that usually contain them (``<p>``, ``<div>``, ``<span>``), narrowed down by
class and id, and perhaps by features of the text. No rule is given.

Left open: all rules. Ours, in this order:

1. Where: in the body of an article by microdata; else in ``<article>``; else in ``<main>``; else in elements whose
class or id has one of the usual words for an article; else anywhere. The first of these with `ENOUGH` characters of
text by the other rules. 2. Not in ``<nav>``, ``<header>``, ``<footer>``, ``<aside>``, ``<form>``, ``<button>``, nor in
an element whose class or id names a menu, comments, or other boilerplate (by the words of `extraction.names`), nor in a
hidden element. 3. In a tag of texts: paragraphs, headings, quotations, list items, cells, preformatted text; or
directly in ``<div>`` and the like. 4. A text with less than half of it inside links, that contains punctuation or is a
heading.

Departures: none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dedup_middleware.extraction.blocks import MOSTLY_LINKS
from dedup_middleware.extraction.names import BOILERPLATE, HEADINGS, HIDDEN, has_mark
from dedup_middleware.methods.extractors.elements import ancestors_or_self, extractor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dedup_middleware.methods.extractors.elements import Line, Node, PageElements

#: Characters of text that the place of an article must contain.
ENOUGH = 250
_BOILERPLATE_TAGS = frozenset({"nav", "header", "footer", "aside", "form", "button", "figcaption", "noscript"})
_TEXTS = HEADINGS | {"p", "blockquote", "li", "dd", "td", "pre"}
_FRAMES = frozenset({"div", "section", "article", "main", "center", "body"})
_ARTICLE = re.compile(r"\barticle-?body\b", re.IGNORECASE)
_WORDS = re.compile(
    r"(?:^|[\s_-])(?:article|content|entry|post|story|text|zhengwen|neirong)(?:$|[\s_-])|(?:Article|Content)\b",
    re.IGNORECASE,
)
# Longer names are generated, and would take long to search.
_NAME_LENGTH = 200


@extractor
def by_tags(reading: PageElements) -> set[int]:
    """Return the main text of a page. O(elements + characters), about five bare parses."""
    nodes = reading.nodes
    barred = ancestors_or_self(nodes, map(_is_boilerplate, nodes))
    texts = [
        i for i, line in enumerate(reading.lines) if line.node >= 0 and not barred[line.node] and _is_text(line, nodes)
    ]
    for place in _places(reading):
        chosen = {i for i in texts if place[reading.lines[i].node]}
        if sum(len(reading.lines[i].text) for i in chosen) >= ENOUGH:
            return chosen
    return set(texts)


def _places(reading: PageElements) -> Iterator[list[bool]]:
    """Yield for each sign of an article, the clearest first, whether each node is in an element with that sign."""
    nodes = reading.nodes
    yield ancestors_or_self(nodes, (bool(_ARTICLE.search(node.names[:_NAME_LENGTH])) for node in nodes))
    yield ancestors_or_self(nodes, (node.tag == "article" for node in nodes))
    yield ancestors_or_self(nodes, (node.tag == "main" or "main" in node.names.split() for node in nodes))
    yield ancestors_or_self(nodes, (bool(_WORDS.search(node.names[:_NAME_LENGTH])) for node in nodes))


def _is_boilerplate(node: Node) -> bool:
    if node.tag in {"html", "body"}:
        return False
    return node.tag in _BOILERPLATE_TAGS or bool(node.signs & (BOILERPLATE | HIDDEN))


def _is_text(line: Line, nodes: list[Node]) -> bool:
    tag = nodes[line.node].tag
    if line.linked >= MOSTLY_LINKS or not (tag in _TEXTS or tag in _FRAMES):
        return False
    return tag in HEADINGS or has_mark(line.text)
