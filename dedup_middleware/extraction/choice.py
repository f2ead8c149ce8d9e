"""The blocks of a page -> those of its main text.

Nothing is thrown away before the choice. What an element calls itself only weighs less; it is left
out once the container is known, and if it holds but a part of it. Every step is linear in blocks and elements.

The thresholds are in letters of a Latin script (`blocks.measure`). Nearly all were moved up and down on pages of many
sites and several languages; for most the result is flat over a wide range, and the value lies in the middle of it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

from dedup_middleware.extraction.blocks import LOOKED_AT
from dedup_middleware.extraction.names import ENDS_CUT_OFF, HEADINGS, PARTS_OF_TEXT, count_marks, has_mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dedup_middleware.extraction.blocks import Block, PageBlocks

# Shorter than this is a label (dates, buttons, names) unless punctuated, and even then says little.
SHORT = 40
SHORT_SHARE = 0.25
# Labels and headings cost a little: some inside a text are fine, a text does not begin or end with a heap of them.
LABEL = -8.0
# Text has a mark every so many letters at the least. Keyword lists, code and data have fewer, and must not win by bulk.
PHRASE = 80
# A menu between two paragraphs is no worse than a few links.
GAP = 100
# Ten paragraphs are better evidence than one endless block; what exceeds this counts a tenth.
SATURATION = 1000
# What remains of a teaser: text that breaks off, or a list item with a headline's share of links.
TEASER = 0.3
TEASER_LINKS = 0.12
# What furniture keeps of its weight, once and again; more levels say nothing more.
FURNITURE = (1.0, 0.3, 0.09)
# An element that holds more of the page's text than this is a wrapper, whatever it is called ("with-sidebar").
WRAPPER = 0.8
# Likewise in the chosen container: an element with half of its text stays, unless a paragraph or three remain without
# it, for comments outgrow articles.
PRUNABLE = 0.5
ENOUGH = 300
# A block between links or labels on both sides is rather the summary on a card than a paragraph among others.
ALONE = 0.5
# What a container hands on to the one around it. At 1 the body would win everywhere.
DECAY = 0.6
# Go up one level if the siblings of the same tag and class add this share: the text was cut into sections.
ASCENT = 0.25
# A short line in the very format of the paragraphs (a signature, a verse) belongs to them.
LINE = 2.0
# Less than two sentences: a wall, a notice, a motto.
TOO_LITTLE = 150


# How a paragraph is set: the tag and the class of its element and of the one around that. Plain, for one is made for
# each block, and a named tuple costs five times as much.
_Format: TypeAlias = "tuple[str, str | None, str, str | None]"


def choose(page: PageBlocks) -> list[Block]:
    """Return the blocks of *page* that are its main text, in document order; none if it has no main text."""
    weights = [_weigh(block, page) for block in page.blocks]
    furniture, levels, held = _furniture(page, weights)
    evidence = _evidence(page, weights, levels)
    container = _ascend(page, *_container(page, evidence))
    end = _end(page, container)
    pruned = _pruned(page, container, end, furniture, held)
    inside = [container <= block.node < end and block.node not in pruned for block in page.blocks]
    return _best_run(_candidates(page, weights, levels, inside))


def _weigh(block: Block, page: PageBlocks) -> float:
    """Return how much *block* looks like running text, `LABEL` for not at all. O(1)."""
    text, node, size, linked, _ = block
    tag = page.tags[node]
    if tag in HEADINGS:
        return LABEL
    weight = size * (1 - 2 * linked)
    if size < SHORT:
        if not has_mark(text):
            return LABEL
        weight *= SHORT_SHARE
    elif size > PHRASE:
        weight = min(weight, PHRASE * (1 + count_marks(text[:LOOKED_AT], weight / PHRASE - 1)))
        if weight > SATURATION:
            weight = SATURATION + (weight - SATURATION) / 10
    if ENDS_CUT_OFF.search(text, max(0, len(text) - 8)):
        weight *= TEASER
    if linked > TEASER_LINKS and "li" in (tag, page.tags[page.parents[node]]):
        weight *= TEASER
    return weight


def _furniture(page: PageBlocks, weights: Sequence[float]) -> tuple[list[bool], list[int], list[float]]:
    """Return for each element whether it is furniture, how many furniture elements it is in, and what text it holds."""
    parents = page.parents
    held = [0.0] * len(parents)
    for block, weight in zip(page.blocks, weights, strict=True):
        if weight > 0:
            held[block.node] += min(weight, SATURATION)
    for node in range(len(parents) - 1, 0, -1):
        held[parents[node]] += held[node]
    furniture, levels = page.furniture.copy(), [0] * len(parents)
    wrapper = WRAPPER * held[0]
    for node in range(1, len(parents)):
        if furniture[node] and held[node] >= wrapper:
            furniture[node] = False
        levels[node] = levels[parents[node]] + furniture[node]
    return furniture, levels, held


def _evidence(page: PageBlocks, weights: Sequence[float], levels: Sequence[int]) -> list[float]:
    """Return for each element what its own blocks say for its being, or being in, the container of the main text."""
    evidence = [0.0] * len(page.parents)
    blocks = page.blocks
    last = len(blocks) - 1
    for i, (block, weight) in enumerate(zip(blocks, weights, strict=True)):
        share = 1.0
        if weight > 0:
            share = FURNITURE[min(levels[block.node], 2)]
            begins = i == 0 or block.gap or weights[i - 1] <= 0
            if begins and (i == last or blocks[i + 1].gap or weights[i + 1] <= 0):
                share *= ALONE
        evidence[block.node] += weight * share
    return evidence


def _container(page: PageBlocks, evidence: Sequence[float]) -> tuple[int, list[float]]:
    """Return the element that the evidence points to, and the sums of the evidence under each element.

    Text counts fully for the element that it is in and for the parent of that, and less for each one further up.
    """
    parents, tags = page.parents, page.tags
    scores = [0.0] * len(parents)
    sums = [0.0] * len(parents)
    best, top = 0, 0.0
    for node in range(len(parents) - 1, 0, -1):
        own, inherited, parent = evidence[node], scores[node], parents[node]
        if own > 0:
            sums[node] += own
        sums[parent] += sums[node]
        is_part = tags[node] in PARTS_OF_TEXT
        if own + inherited > top and not is_part:
            best, top = node, own + inherited
        if inherited > 0:
            own += inherited if is_part else inherited * DECAY
        scores[parent] += own
    return best, sums


def _end(page: PageBlocks, node: int) -> int:
    """Return the index after the last element inside *node*."""
    end = node + 1
    while end < len(page.parents) and page.parents[end] >= node:
        end += 1
    return end


def _ascend(page: PageBlocks, node: int, sums: Sequence[float]) -> int:
    """Climb from *node* while its like among the siblings add much.

    Each step adds a quarter to the sum, so there are few, however deep the page.
    """
    parents, tags, classes = page.parents, page.tags, page.classes
    while parents[node] > 0:
        up = parents[node]
        twins = (
            other
            for other in range(up + 1, _end(page, up))
            if parents[other] == up and tags[other] == tags[node] and classes[other] == classes[node]
        )
        if sum(sums[twin] for twin in twins) < (1 + ASCENT) * sums[node]:
            break
        node = up
    return node


def _pruned(page: PageBlocks, container: int, end: int, furniture: Sequence[bool], held: Sequence[float]) -> set[int]:
    """Return the elements between *container* and *end* that are left out of the main text."""
    total = held[container]
    pruned: set[int] = set()
    for node in range(container + 1, end):
        furnishes = furniture[node] and (held[node] < PRUNABLE * total or total - held[node] >= ENOUGH)
        if furnishes or page.parents[node] in pruned:
            pruned.add(node)
    return pruned


def _candidates(
    page: PageBlocks, weights: Sequence[float], levels: Sequence[int], inside: Sequence[bool]
) -> list[tuple[Block, float]]:
    """Return the blocks of the container, with weights, and those elsewhere that are set as its paragraphs are."""
    formats: defaultdict[_Format, float] = defaultdict(float)
    for block, weight, is_inside in zip(page.blocks, weights, inside, strict=True):
        if is_inside and weight > 0:
            formats[_format(block.node, page)] += weight
    if not formats:
        return []
    main = max(formats, key=formats.__getitem__)
    candidates = []
    for block, weight, is_inside in zip(page.blocks, weights, inside, strict=True):
        if is_inside:
            is_line = weight < 0 and block.linked < TEASER and _format(block.node, page) == main
            candidates.append((block, LINE if is_line else weight))
        elif weight > 0 and not levels[block.node] and _is_set_as(main, block.node, page):
            candidates.append((block, weight))
    return candidates


def _format(node: int, page: PageBlocks) -> _Format:
    parent = page.parents[node]
    return page.tags[node], page.classes[node], page.tags[parent], page.classes[parent]


def _is_set_as(main: _Format, node: int, page: PageBlocks) -> bool:
    """Say whether *node* has the class of the *main* format; without a class only a whole match of ``<p>`` tells."""
    tag, class_, _, _ = main
    if class_:
        return page.classes[node] == class_
    return tag == "p" and _format(node, page) == main


def _best_run(candidates: Iterable[tuple[Block, float]]) -> list[Block]:
    """Return the run of candidates with the largest sum; nothing if that is too little."""
    run: list[Block] = []
    best: list[Block] = []
    length = 0
    total = top = 0.0
    for block, weight in candidates:
        total -= min(block.gap, GAP)
        if total <= 0:
            run, total = [], 0.0
        run.append(block)
        total += weight
        if total > top:
            best, length, top = run, len(run), total
    if top < TOO_LITTLE:
        return []
    return best[:length]
