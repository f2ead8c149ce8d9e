"""Blocks of a page -> how much each, and each element, says for being main text.

Nothing is thrown away here. What an element calls itself only weighs less. Every step is linear in blocks and elements.

The thresholds are in letters of a Latin script (`blocks.measure`). Nearly all were moved up and down on pages of many
sites and several languages; for most the result is flat over a wide range, and the value lies in the middle of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.extraction.blocks import LOOKED_AT
from dedup_middleware.extraction.names import HEADINGS, HIDDEN, LISTED, MAIN, count_marks, ends_cut_off, has_mark

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

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
# What calls itself the main text counts if it holds as much as a sentence: an app fills its own later.
SOME_TEXT = 50
# All outside of it then counts as what stands in two elements of furniture.
OUTSIDE = 2
# What remains of a teaser: text that breaks off.
TEASER = 0.3
# What furniture keeps of its weight, once and again; more levels say nothing more.
FURNITURE_SHARES = (1.0, 0.3, 0.09)
# What is not shown is looked at last.
HIDDEN_SHARE = 0.02
HIDDEN_LEVEL = 10
# An element that holds more of the page's text than this is a wrapper, whatever it is called ("with-sidebar"). One that
# is hidden is one (until a script shows it) where nothing is shown: less than a paragraph or three.
WRAPPER = 0.8
SHOWN = 300
# A block between links or labels on both sides is rather the summary on a card than a paragraph among others.
ALONE = 0.5


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
        weight = min(weight, PHRASE * (1 + count_marks(text[:LOOKED_AT], weight / PHRASE - 1)))
        if weight > SATURATION:
            weight = SATURATION + (weight - SATURATION) / 10
    if ends_cut_off(text):
        weight *= TEASER
    return weight


def is_listed(node: int, page: PageBlocks) -> bool:
    """Tell whether *node* is a line of a list or of a table, or right inside of one."""
    return page.tags[node] in LISTED or page.tags[page.parents[node]] in LISTED


def within(signs: int, page: PageBlocks) -> list[bool]:
    """Tell of each element whether it, or one around it, has any of these *signs*, be it a mere wrapper or not."""
    found = [False] * len(page.parents)
    for node in range(1, len(found)):
        found[node] = found[page.parents[node]] or bool(page.signs[node] & signs)
    return found


def held_text(page: PageBlocks, weights: Sequence[float]) -> list[float]:
    """Return for each element what text it holds."""
    parents = page.parents
    held = [0.0] * len(parents)
    for block, weight in zip(page.blocks, weights, strict=True):
        if weight > 0:
            held[block.node] += min(weight, SATURATION)
    for node in range(len(parents) - 1, 0, -1):
        held[parents[node]] += held[node]
    return held


def furniture_levels(page: PageBlocks, held: Sequence[float]) -> tuple[list[int], list[int]]:
    """Return for each element its signs (see `names`), 0 for a mere wrapper, and how many such elements it is in.

    A hidden one counts as `HIDDEN_LEVEL` at the least. Where an element with text calls itself the main text, all
    outside of it is `OUTSIDE` levels further out, and what the elements around it are called does not count inside.
    """
    parents, signs = page.parents, page.signs.copy()
    outside = any(sign & MAIN and text >= SOME_TEXT for sign, text in zip(signs, held, strict=True))
    levels = [OUTSIDE if outside else 0] * len(parents)
    main = [not outside] * len(parents)
    wrapper, shown = WRAPPER * held[0], held[0] - SHOWN
    for node in range(1, len(parents)):
        parent, sign = parents[node], signs[node]
        level, main[node] = levels[parent], main[parent]
        if sign & MAIN and not main[node]:
            main[node] = True
            sign &= HIDDEN
            level -= level % HIDDEN_LEVEL
        sign &= ~MAIN
        if sign & HIDDEN and held[node] <= shown:
            level += HIDDEN_LEVEL
        elif sign and held[node] >= wrapper:
            sign = 0
        elif sign:
            level += 1
        signs[node], levels[node] = sign, level
    return signs, levels


def shares_of(  # noqa: PLR0913 - what is looked at once for a whole page, and once from a place in it
    page: PageBlocks,
    weights: Sequence[float],
    levels: Sequence[int],
    *,
    base: int = 0,
    alike: Collection[int] = (),
    least: float = 0.0,
) -> list[float]:
    """Return for each block which share of its weight says that main text is where it is; 1 for labels.

    Levels of furniture up to *base* do not count, nor those of the blocks *alike*, given by their indices. What weighs
    *least* or less separates blocks as a link does.
    """
    blocks, last = page.blocks, len(weights) - 1
    shares = [1.0] * len(weights)
    for i, weight in enumerate(weights):
        if weight <= 0:
            continue
        block = blocks[i]
        level = levels[block.node] - base
        if level > 0 and i not in alike:
            shares[i] = FURNITURE_SHARES[min(level, 2)] if level < HIDDEN_LEVEL else HIDDEN_SHARE
        begins = i == 0 or block.gap or weights[i - 1] <= least
        if begins and (i == last or blocks[i + 1].gap or weights[i + 1] <= least):
            shares[i] *= ALONE
    return shares
