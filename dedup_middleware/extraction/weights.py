"""Weighs the blocks of a page: how much each looks like running text. Thresholds are in letters of a Latin script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.extraction.blocks import LOOKED_AT
from dedup_middleware.extraction.names import CUT_OFF, HEADINGS, LISTED, count_marks, has_mark

if TYPE_CHECKING:
    from dedup_middleware.extraction.blocks import Block, PageBlocks

# Shorter than this is a label (dates, buttons, names) unless punctuated, and even then says little.
SHORT = 40
SHORT_SHARE = 0.25
# Labels and headings cost a little: some inside a text are fine, a text does not begin or end with a heap of them.
LABEL = -5.0
# What weighs less separates blocks as a label does: a date between a headline and a teaser.
NEXT_TO_NOTHING = 10.0
# A heading of this length, with a mark in it, is a sentence set in large letters.
LONG_HEADING = 80
# Text has a mark every so many letters at the least. Keyword lists, code and data have fewer, and must not win by bulk.
PHRASE = 80
# Ten paragraphs are better evidence than one endless block; what exceeds this counts a tenth.
SATURATION = 1000
# What remains of a teaser: text that breaks off.
TEASER = 0.3


def weigh(block: Block, page: PageBlocks) -> float:
    """Return how much *block* looks like running text, `LABEL` for not at all. O(1)."""
    text, node, size, linked, _ = block
    tag = page.tags[node]
    if tag in HEADINGS and (size < LONG_HEADING or tag == "h1" or not has_mark(text)):
        return LABEL
    weight = size * (1 - 2 * linked)
    if weight < LABEL and tag == "p":
        weight = LABEL
    if size < SHORT:
        if not has_mark(text) and (linked or not is_listed(node, page)):
            return LABEL
        weight *= SHORT_SHARE
    elif size > PHRASE:
        text = text[:LOOKED_AT]
        enough = weight / PHRASE - 1
        # Most texts have enough of the two most frequent marks.
        if text.count(".") + text.count(",") < enough:
            weight = min(weight, PHRASE * (1 + count_marks(text)))
        if weight > SATURATION:
            weight = SATURATION + (weight - SATURATION) / 10
    return weight * TEASER if CUT_OFF.search(block.text[-8:]) else weight


def is_listed(node: int, page: PageBlocks) -> bool:
    """Return whether *node* is a line of a list or of a table, or right inside of one."""
    return page.tags[node] in LISTED or page.tags[page.parents[node]] in LISTED
