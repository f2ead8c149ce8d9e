"""Where in a page its paragraphs stand, for who weighs them by that. Our own verdicts do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.extraction import collapsed
from dedup_middleware.extraction.blocks import read_page
from dedup_middleware.extraction.plain import plain_elements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lxml.etree import _Element


def elements_of(root: _Element, paragraphs: Sequence[str]) -> tuple[str, ...]:
    """Return the block-level elements around each of *paragraphs* under *root*: ``article/ul/li``, outermost first.

    They are found by their texts, whichever extraction has chosen them; empty for one that is none of the page's
    blocks, and the first place for what stands in several. About the time of a bare parse.
    """
    with plain_elements(root):
        page = read_page(root, links=True)
    paths = [""]
    for tag, parent in zip(page.tags[1:], page.parents[1:], strict=True):
        paths.append(f"{paths[parent]}/{tag}" if parent else tag)
    found = {collapsed(block.text): paths[block.node] for block in reversed(page.blocks)}
    return tuple(found.get(paragraph, "") for paragraph in paragraphs)
