"""The blocks of a page -> those of its main text.

Nothing is thrown away before the choice: what an element calls itself weighs less (`weights`), and is left out once the
container is known, and if it holds but a part of it. Every step is linear in blocks and elements. The thresholds are in
letters of a Latin script, like those of `weights`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dedup_middleware.extraction.blocks import HEADLINE, LOOKED_AT
from dedup_middleware.extraction.names import (
    BOILERPLATE,
    HEADINGS,
    HIDDEN,
    LISTED,
    MAIN,
    MILD,
    PARTS_OF_TEXT,
    count_marks,
    ends_cut_off,
    has_mark,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from dedup_middleware.extraction.blocks import Block, PageBlocks

# In the chosen container, an element with half of its text stays, unless a paragraph or three remain without it, for
# comments outgrow articles. So does one that is called by a word that wrappers have too, and holds as much itself.
PRUNABLE = 0.5
ENOUGH = 300
# A menu between two paragraphs is no worse than a few links.
GAP = 100
# What a container hands on to the one around it. At 1 the body would win everywhere.
DECAY = 0.6
# Go up to where this much more text is, in places of any make, as page builders and product pages have it, if what
# separates it (links and labels, in letters) is less than it is. The less it adds, the less may separate it: lists of
# teasers have a link for each.
SPREAD = 0.5
SPREAD_AT_EASE = 2.0
# A short line in the very format of the paragraphs (a signature, a verse) belongs to them.
LINE = 2.0
# A list beside the text has so many lines and letters at the least.
LIST = 3
LIST_LETTERS = 60
# Less than two sentences: a wall, a notice, a motto.
TOO_LITTLE = 150


# How a paragraph is set: the tag and the class of its element and of the one around that. Plain, for one is made for
# each block, and a named tuple costs five times as much.
_Format: TypeAlias = "tuple[str, str | None, str, str | None]"


class Choice(NamedTuple):
    """The main text of a page."""

    blocks: list[Block]
    """In document order; none if it has no main text."""
    share: float
    """How much of the page's running text that is, outside of its boilerplate: 0 to 1."""
    is_boilerplate: bool = False
    """Whether it stands in what calls itself something else, although other text does not."""


def choose(page: PageBlocks) -> Choice:
    """Return the blocks of *page* that are its main text."""
    weights = [weigh(block, page) for block in page.blocks]
    held = held_text(page, weights)
    signs, levels = boilerplate_levels(page, held)
    container, sums = _container(page, weights, shares_of(page, weights, levels))
    formats = [_format(block.node, page) for block in page.blocks]
    alike = _set_alike(page, weights, levels, formats, container)
    if held[0] - held[container] >= SPREAD * sums[container]:
        first, container = container, _spread(page, weights, levels, alike, container)
        while first > container:
            signs[first], first = 0, page.parents[first]
    end = _end(page, container)
    pruned = _pruned(page, container, end, signs, held)
    inside = [container <= b.node < end and (b.node not in pruned or i in alike) for i, b in enumerate(page.blocks)]
    run, weight = _best_run(page, _candidates(page, weights, levels, formats, inside))
    base = levels[container]
    run = _with_lists(page, weights, levels, formats, run)
    total = sum(w for b, w in zip(page.blocks, weights, strict=True) if w > 0 and levels[b.node] <= base)
    share = min(1.0, weight / total) if total else 0.0
    return Choice([page.blocks[i] for i in run], share, _is_boilerplate(page, weights, container))


def _is_boilerplate(page: PageBlocks, weights: Sequence[float], container: int) -> bool:
    """Return whether the *container* is in boilerplate by name, or hidden, and other running text is not."""
    node = container
    while node and not page.signs[node] & (BOILERPLATE | HIDDEN | MAIN):
        node = page.parents[node]
    if not node or page.signs[node] & MAIN:
        return False
    boilerplate = within(BOILERPLATE | HIDDEN, page)
    others = (w for b, w in zip(page.blocks, weights, strict=True) if w > 0 and not boilerplate[b.node])
    return sum(others) >= TOO_LITTLE


def shown_blocks(page: PageBlocks) -> list[Block]:
    """Return the blocks that a *page* without main text shows.

    These are all in the elements that call themselves the main text, menus among them, as on a table of contents. On a
    page without such elements they are what no element around them calls boilerplate.
    """
    main = within(MAIN, page)
    if any(main):
        hidden = within(HIDDEN, page)
        shown = [is_main and not is_hidden for is_main, is_hidden in zip(main, hidden, strict=True)]
    else:
        shown = [not is_boilerplate for is_boilerplate in within(MILD | BOILERPLATE | HIDDEN, page)]
    return [block for block in page.blocks if shown[block.node] and any(map(str.isalnum, block.text))]


def _container(page: PageBlocks, weights: Sequence[float], shares: Sequence[float]) -> tuple[int, list[float]]:
    """Return the element that the weights point to, and what text each element holds, boilerplate's for its share.

    Text counts fully for the element that it is in and for the parent of that, and less for each one further up.
    """
    parents, tags = page.parents, page.tags
    evidence = [0.0] * len(parents)
    for block, weight, share in zip(page.blocks, weights, shares, strict=True):
        evidence[block.node] += weight * share
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


def _set_alike(
    page: PageBlocks, weights: Sequence[float], levels: Sequence[int], formats: Sequence[_Format], container: int
) -> set[int]:
    """Return the indices of the blocks in boilerplate that are set as the text in the *container* is.

    The replies of a thread are set as its first post is; the comments below an article are not. A format without any
    class tells nothing.
    """
    end, base = _end(page, container), levels[container]
    in_boilerplate = [i for i, block in enumerate(page.blocks) if levels[block.node] > base]
    if not in_boilerplate:
        return set()
    own: defaultdict[_Format, float] = defaultdict(float)
    other: defaultdict[_Format, float] = defaultdict(float)
    for block, weight, format_ in zip(page.blocks, weights, formats, strict=True):
        if weight > 0 and container <= block.node < end:
            (own if levels[block.node] == base else other)[format_] += weight
    found = own or other
    main = max(found, key=found.__getitem__, default=None)
    if main is None or not (main[1] or main[3]):
        return set()
    return {i for i in in_boilerplate if formats[i] == main}


def _spread(
    page: PageBlocks, weights: Sequence[float], levels: Sequence[int], alike: Collection[int], container: int
) -> int:
    """Climb from the *container* to the last element around it that adds much text and little else."""
    parents, base = page.parents, levels[container]
    texts, between = [0.0] * len(parents), [0.0] * len(parents)
    shares = shares_of(page, weights, levels, base=base, alike=alike, least=NEXT_TO_NOTHING)
    for i, (block, weight, share) in enumerate(zip(page.blocks, weights, shares, strict=True)):
        # What is hidden draws nothing out of where it is.
        if weight > 0 and share > HIDDEN_SHARE:
            texts[block.node] += weight * share
        if levels[block.node] <= base or i in alike:
            between[block.node] += min(block.gap, GAP) - min(weight, 0.0)
    for node in range(len(parents) - 1, 0, -1):
        texts[parents[node]] += texts[node]
        between[parents[node]] += between[node]
    best, up = container, parents[container]
    while up >= 0:
        added = texts[up] - texts[best]
        ease = min(1.0, added / (SPREAD_AT_EASE * texts[best])) if texts[best] else 1.0
        if added >= SPREAD * texts[best] and between[up] - between[best] <= added * ease:
            best = up
        up = parents[up]
    return best


def _pruned(page: PageBlocks, container: int, end: int, signs: Sequence[int], held: Sequence[float]) -> set[int]:
    """Return the elements between *container* and *end* that are left out of the main text."""
    total = held[container]
    pruned: set[int] = set()
    for node in range(container + 1, end):
        sign = signs[node]
        furnishes = sign and (held[node] < PRUNABLE * total or total - held[node] >= ENOUGH)
        if furnishes and not sign & BOILERPLATE and held[node] >= ENOUGH:
            furnishes = False
        if furnishes or page.parents[node] in pruned:
            pruned.add(node)
    return pruned


def _candidates(
    page: PageBlocks,
    weights: Sequence[float],
    levels: Sequence[int],
    formats: Sequence[_Format],
    inside: Sequence[bool],
) -> list[tuple[int, float]]:
    """Return the blocks of the container by their indices, with weights, and those elsewhere set as its paragraphs."""
    sums: defaultdict[_Format, float] = defaultdict(float)
    for format_, weight, is_inside in zip(formats, weights, inside, strict=True):
        if is_inside and weight > 0:
            sums[format_] += weight
    if not sums:
        return []
    main = max(sums, key=sums.__getitem__)
    candidates = []
    for i, (block, format_, weight, is_inside) in enumerate(zip(page.blocks, formats, weights, inside, strict=True)):
        if is_inside:
            is_line = weight < 0 and block.linked < TEASER and format_ == main
            candidates.append((i, LINE if is_line else weight))
        elif weight > 0 and not levels[block.node] and _is_set_as(main, format_):
            candidates.append((i, weight))
    return candidates


def _format(node: int, page: PageBlocks) -> _Format:
    parent = page.parents[node]
    return page.tags[node], page.classes[node], page.tags[parent], page.classes[parent]


def _is_set_as(main: _Format, other: _Format) -> bool:
    """Say whether *other* has the class of the *main* format; without a class only a whole match of ``<p>`` tells."""
    tag, class_, _, _ = main
    return other[1] == class_ if class_ else tag == "p" and other == main


def _best_run(page: PageBlocks, candidates: Iterable[tuple[int, float]]) -> tuple[list[int], float]:
    """Return the indices of the run of candidates with the largest sum, and that; nothing if it is too little."""
    run: list[int] = []
    best: list[int] = []
    length = 0
    total = top = 0.0
    for i, weight in candidates:
        total -= min(page.blocks[i].gap, GAP)
        if total <= 0:
            run, total = [], 0.0
        run.append(i)
        total += weight
        if total > top:
            best, length, top = run, len(run), total
    return (best[:length], top) if top >= TOO_LITTLE else ([], 0.0)


def _with_lists(
    page: PageBlocks, weights: Sequence[float], levels: Sequence[int], formats: Sequence[_Format], run: Sequence[int]
) -> list[int]:
    """Return the indices in *run* with those of the lists right before and after it.

    The ingredients of a recipe, the rows of a table often stand in an element of their own beside the text.
    """
    if not run:
        return []
    before = _list_beside(page, weights, levels, formats, range(run[0] - 1, -1, -1))
    after = _list_beside(page, weights, levels, formats, range(run[-1] + 1, len(page.blocks)))
    return [*reversed(before), *run, *after]


def _list_beside(
    page: PageBlocks, weights: Sequence[float], levels: Sequence[int], formats: Sequence[_Format], indices: range
) -> list[int]:
    """Return the *indices*, away from the text, up to the end of the list that they begin with; none without a list.

    Boilerplate in between is left out. Like links and labels, it only separates the list from the text.
    """
    blocks, base = page.blocks, levels[page.blocks[indices.start - indices.step].node]
    found: list[int] = []
    length = lines = 0
    total = top = 0.0
    for i in indices:
        block = blocks[i]
        total -= min(blocks[max(i, i - indices.step)].gap, GAP)
        is_boilerplate = levels[block.node] > base
        if not is_boilerplate:
            found.append(i)
        if not is_boilerplate and _is_line(i, page, formats):
            lines += 1
            total += block.size * (1 - 2 * block.linked)
            if lines >= LIST and total > top:
                length, top = len(found), total
        else:
            total -= min(weights[i], GAP) if weights[i] > 0 else -LABEL
        if total < -GAP:
            break
    return found[:length] if top >= LIST_LETTERS else []


def _is_line(i: int, page: PageBlocks, formats: Sequence[_Format]) -> bool:
    """Tell whether block *i* is a line of a list: by its element, or as one of several short ones in one format."""
    block, format_ = page.blocks[i], formats[i]
    # What follows a headline with a link is a teaser.
    if block.gap >= HEADLINE:
        return False
    if is_listed(block.node, page):
        return True
    # Before the first block stands the last, and after the last the first: no page is so short that it matters.
    return block.size < PHRASE and (format_ == formats[i - 1] or format_ == formats[i + 1 - len(formats)])


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
# All outside of it then counts as what stands in two elements of boilerplate.
OUTSIDE = 2
# What remains of a teaser: text that breaks off.
TEASER = 0.3
# What boilerplate keeps of its weight, once and again; more levels say nothing more.
BOILERPLATE_SHARES = (1.0, 0.3, 0.09)
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


def boilerplate_levels(page: PageBlocks, held: Sequence[float]) -> tuple[list[int], list[int]]:
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

    Levels of boilerplate up to *base* do not count, nor those of the blocks *alike*, given by their indices. A block of
    *least* weight or less separates blocks as a link does.
    """
    blocks, last = page.blocks, len(weights) - 1
    shares = [1.0] * len(weights)
    for i, weight in enumerate(weights):
        if weight <= 0:
            continue
        block = blocks[i]
        level = levels[block.node] - base
        if level > 0 and i not in alike:
            shares[i] = BOILERPLATE_SHARES[min(level, 2)] if level < HIDDEN_LEVEL else HIDDEN_SHARE
        begins = i == 0 or block.gap or weights[i - 1] <= least
        if begins and (i == last or blocks[i + 1].gap or weights[i + 1] <= least):
            shares[i] *= ALONE
    return shares
