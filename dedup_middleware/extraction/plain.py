"""Parsel's tree, read as plain lxml elements.

Parsel parses with ``lxml.html``, which runs Python code for each element that is looked at, to find its class. Reading
a page takes a third longer for that, and needs none of those classes.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from lxml import etree, html

if TYPE_CHECKING:
    from collections.abc import Iterator

_LXML_HTML = html.HtmlElementClassLookup()


@contextmanager
def plain_elements(root: etree._Element) -> Iterator[None]:
    """Let lxml make plain elements of the tree under *root* meanwhile; keep none of them longer.

    lxml asks the parser of a document for the class of each element that nobody has looked at yet, or not any more;
    parsel makes one parser a page. lxml does not tell which classes a parser has been given: so nothing is done for a
    tree that is not of the very parser that ``lxml.html`` has, with a *root* of the class that this gives.
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
