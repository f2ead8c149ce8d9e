"""Chooses the blocks of a page that are its main text.

Nothing is removed before the choice: what an element calls itself weighs less, and is left out once the container is
known, if it holds only a part of it. A page with several texts, such as cards or sections, has no main text: what it
shows is what stands outside of its frame. Every step is linear in blocks and elements. The thresholds are in letters of
a Latin script.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from enum import Enum
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dedup_middleware.extraction.blocks import HEADLINE
from dedup_middleware.extraction.names import (
    BOILERPLATE,
    HEADINGS,
    HIDDEN,
    MAIN,
    MILD,
    PARTS_OF_TEXT,
)
from dedup_middleware.extraction.weights import LABEL, NEXT_TO_NOTHING, PHRASE, SATURATION, is_listed, weigh

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from dedup_middleware.extraction.blocks import Block, PageBlocks

# --- boilerplate
# What calls itself the main text counts if it holds as much as a sentence: an app fills its own later.
SOME_TEXT = 50
# All outside of it then counts as what stands in two elements of boilerplate.
OUTSIDE = 2
# What boilerplate keeps of its weight, once and again; more levels add nothing.
BOILERPLATE_SHARES = (1.0, 0.3, 0.09)
# What is not shown is looked at last.
HIDDEN_SHARE = 0.02
HIDDEN_LEVEL = 10
# An element with a larger share of the page's text is a wrapper, also under a name such as "with-sidebar". A hidden
# element is one (until a script shows it) where nearly nothing is shown: less than a paragraph or three.
WRAPPER = 0.8
SHOWN = 300
# A block between links or labels on both sides is rather the summary on a card than a paragraph among others.
ALONE = 0.5

# --- the container and its edges
# In the chosen container, an element with half of its text stays, unless a paragraph or three remain without it, for
# comments outgrow articles. So does one with a name that wrappers have too, if it holds as much itself.
PRUNABLE = 0.5
ENOUGH = 300
# A menu between two paragraphs is no worse than a few links.
GAP = 100
# Elements of any other tag show by a class only that they are set alike: columns, cells of a layout have none.
SECTIONS = frozenset({"article", "section"})
# What a container hands on to the one around it. At 1 the body would win everywhere.
DECAY = 0.6
# Go up to where this much more text is, in places of any make, as page builders and product pages have it, if what
# separates it (links and labels, in letters) is less than it is. The less it adds, the less may separate it: lists of
# teasers have a link for each.
SPREAD = 0.5
SPREAD_AT_EASE = 2.0
# A short line in the very format of the paragraphs (a signature, a verse) belongs to them, if less of it is links.
LINE = 2.0
LINE_LINKED = 0.3
# A list beside the text has so many lines and letters at the least.
LIST = 3
LIST_LETTERS = 60
# Less than two sentences: a wall, a notice, a motto.
TOO_LITTLE = 150

# --- pages with several texts
# One run with less of the page's running text is not what the page is about: cards, sections, rows are.
MOST = 0.7
# Nor is one with so many letters of links between its texts, for each letter of them: these are cards.
CARDS = 0.1
# But so many sentences, nearly all of them in one element, are a text, however many teasers there are around it.
SENTENCES = 3
IN_ONE = 0.9
# With so many of its letters inside links it is a list.
LINKED = 0.25
# With less it is rather a short text than a list.
MUCH = 600
# What such a page is about is in the innermost element with so much of what stands outside of its frame.
NEARLY_ALL = 0.8

# They are no running text, and may still show what the page is about: a form that is filled in, a caption.
SHOWING = frozenset({"aside", "form", "figcaption", "noscript"})

# How a paragraph is set: the tag and the class of its element and of the one around that.
_Format: TypeAlias = "tuple[str, str | None, str, str | None]"


class PageType(str, Enum):
    """What a page is made of."""

    ARTICLE = "article"
    """One running text."""
    THREAD = "thread"
    """A post and its replies; the page says so."""
    LIST = "list"
    """Several texts, with many links: the cards of a collection, the rows of a listing."""
    PARTS = "parts"
    """Several texts, with few links: the sections of a product, of a service."""


class Choice(NamedTuple):
    """The main text of a page."""

    places: list[int]
    """The indices of its blocks, in document order; empty if it has no main text."""
    share: float
    """How much of the page's running text that is, outside of its boilerplate: 0 to 1."""
    type: PageType = PageType.ARTICLE
    is_boilerplate: bool = False
    """Whether it stands in what calls itself boilerplate, although other text does not."""
    frame: Sequence[bool] = ()
    """Of each element, whether it is in the page's frame: in menus, footers, sidebars or comments."""


def choose(page: PageBlocks) -> Choice:
    """Return the blocks of *page* that are its main text."""
    return _WeighedPage(page).choose()


def choose_all(page: PageBlocks) -> Choice:
    """Return the blocks of *page*, links among them, that are its content if that is more than one text.

    None if that is little, or outside of what calls itself the main text: then it is what `shown_blocks` returns.
    """
    return _WeighedPage(page).choose_all()


def shown_blocks(page: PageBlocks) -> list[Block]:
    """Return the blocks that a *page* without main text shows.

    These are all in the elements that call themselves the main text, menus among them, as on a table of contents. On a
    page without such elements they are those outside of all boilerplate.
    """
    signs = _signs(page)
    main = _within(MAIN, signs, page.parents)
    if any(main):
        hidden = _within(HIDDEN, signs, page.parents)
        shown = [is_main and not is_hidden for is_main, is_hidden in zip(main, hidden, strict=True)]
    else:
        shown = [not is_boilerplate for is_boilerplate in _within(MILD | BOILERPLATE | HIDDEN, signs, page.parents)]
    return [block for block in page.blocks if shown[block.node] and any(map(str.isalnum, block.text))]


def _within(wanted: int, signs: Sequence[int], parents: Sequence[int]) -> list[bool]:
    """Return for each element whether it, or one around it, has any of the *wanted* signs, even a mere wrapper."""
    found = [False] * len(parents)
    for node in range(1, len(found)):
        found[node] = found[parents[node]] or bool(signs[node] & wanted)
    return found


def _summed(own: list[float], parents: Sequence[int]) -> list[float]:
    """Return *own*, a value of each element, with those of the elements inside added to it."""
    for node in range(len(parents) - 1, 0, -1):
        own[parents[node]] += own[node]
    return own


def _around(node: int, parents: Sequence[int]) -> list[int]:
    """Return *node* and the elements around it, innermost first, the page last."""
    around = []
    while node >= 0:
        around.append(node)
        node = parents[node]
    return around


def _end(node: int, parents: Sequence[int]) -> int:
    """Return the index after the last element inside *node*."""
    end = node + 1
    while end < len(parents) and parents[end] >= node:
        end += 1
    return end


def _signs(page: PageBlocks) -> list[int]:
    """Return the signs of each element of *page*. Of elements that call themselves the main text, the innermost does.

    A package index has a README, which is a main text in itself, in its main element. But two that are beside each
    other, as the texts of teasers are, leave the name to what is around them.
    """
    main = [node for node, sign in enumerate(page.signs) if sign & MAIN]
    if len(main) < 2:  # noqa: PLR2004 - one has no other around it
        return page.signs.copy()
    held = [0.0] * len(page.parents)
    for block in page.blocks:
        held[block.node] += block.size
    _summed(held, page.parents)
    *others, last = [node for node in main if held[node] >= SOME_TEXT] or [0]
    around = set(_around(page.parents[last], page.parents))
    if not around.issuperset(others):
        around.clear()
    return [sign & ~MAIN if node in around else sign for node, sign in enumerate(page.signs)]


class _WeighedPage:
    """A page whose main text is chosen; lists by block (weights, formats) and by element (held, signs, levels)."""

    def __init__(self, page: PageBlocks) -> None:
        parents, tags, classes = page.parents, page.tags, page.classes
        self.page = page
        self.weights = [weigh(block, page) for block in page.blocks]
        self.formats: list[_Format] = [
            (tags[node], classes[node], tags[parents[node]], classes[parents[node]]) for _, node, _, _, _ in page.blocks
        ]
        self.held = [0.0] * len(parents)
        """The text that each element holds."""
        for block, weight in zip(page.blocks, self.weights, strict=True):
            if weight > 0:
                self.held[block.node] += min(weight, SATURATION)
        _summed(self.held, parents)
        self.asides: set[int] = set()
        """The asides of the page: those in a section are about its text."""
        self.signs, self.levels = self._levels()

    def choose(self) -> Choice:
        """Return the main text."""
        page, weights, levels, parents = self.page, self.weights, self.levels, self.page.parents
        heaviest, texts = self._container()
        container, sections = self._document(heaviest)
        document = range(container, _end(container, parents))
        alike = self._set_alike(container)
        if self.held[0] - self.held[container] >= SPREAD * texts[container]:
            container = self._spread(alike, container)
        for node in (*sections, *takewhile(container.__lt__, _around(heaviest, parents))):
            self.signs[node] = 0
        end = _end(container, parents)
        pruned = self._pruned(container, end)
        inside = [container <= b.node < end and (b.node not in pruned or i in alike) for i, b in enumerate(page.blocks)]
        candidates = self._candidates(inside)
        run, weight = self._best_run(candidates)
        run = self._whole(run, candidates, document) if sections else self._with_lists(run)
        base = levels[container]
        total = sum([w for b, w in zip(page.blocks, weights, strict=True) if w > 0 and levels[b.node] <= base])
        share = min(1.0, weight / total) if total else 0.0
        is_one_text = (share >= MOST or self._is_running(run)) and self._between(run) < CARDS * weight
        type_ = PageType.THREAD if page.is_thread else PageType.ARTICLE if is_one_text else PageType.PARTS
        return Choice(run, share, type_, self._is_boilerplate(container), self._frame(container))

    def choose_all(self) -> Choice:
        """Return what stands outside of the frame and the asides of the page, links among it."""
        parents = self.page.parents
        heaviest, _ = self._container()
        frame = self._frame(heaviest)
        for node in range(1, len(parents)):
            frame[node] = frame[node] or frame[parents[node]] or node in self.asides
        shown = [0.0] * len(parents)
        for block in self.page.blocks:
            if not frame[block.node]:
                shown[block.node] += min(block.size, SATURATION)
        _summed(shown, parents)
        container = next(node for node in _around(heaviest, parents) if shown[node] >= NEARLY_ALL * shown[0])
        inside = range(container, _end(container, parents))
        places = [i for i, block in enumerate(self.page.blocks) if block.node in inside and not frame[block.node]]
        blocks = [self.page.blocks[i] for i in places]
        linked = sum(block.size * block.linked for block in blocks)
        type_ = PageType.LIST if linked >= LINKED * sum(block.size for block in blocks) else PageType.PARTS
        main = _within(MAIN, _signs(self.page), parents)
        is_beside = any(main) and not any(main[block.node] and block.size >= HEADLINE for block in blocks)
        is_content = shown[container] >= MUCH and not is_beside
        return Choice(self._titled(places) if is_content else [], 0.0, type_, frame=frame)

    def _titled(self, places: list[int]) -> list[int]:
        """Return *places* without what stands before the title of the page, if that is the smaller part."""
        blocks, tags = self.page.blocks, self.page.tags
        first = next((n for n, i in enumerate(places) if tags[blocks[i].node] == "h1"), 0)
        before = sum(blocks[i].size for i in places[:first])
        return places[first:] if before < sum(blocks[i].size for i in places[first:]) else places

    def _is_running(self, run: Iterable[int]) -> bool:
        """Return whether nearly all sentences of the *run* stand in one element, and these are several."""
        held: Counter[int] = Counter()
        sentences = [i for i in run if self.weights[i] >= PHRASE]
        for i in sentences:
            held.update({self._holder(i): int(min(self.weights[i], SATURATION))})
        return len(sentences) >= SENTENCES and max(held.values()) >= IN_ONE * held.total()

    def _holder(self, place: int) -> int:
        """Return the innermost element around the block at *place* that is no mere part of a text."""
        node = self.page.blocks[place].node
        while self.page.tags[node] in PARTS_OF_TEXT:
            node = self.page.parents[node]
        return node

    def _between(self, run: Sequence[int]) -> int:
        """Return how many letters of links stand between the blocks of the *run*."""
        return sum(min(self.page.blocks[i].gap, 2 * GAP) for i in run[1:])

    def _is_boilerplate(self, container: int) -> bool:
        """Return whether the *container* is in boilerplate, or is hidden, and other running text is not."""
        page = self.page
        signs = [page.signs[node] & (BOILERPLATE | HIDDEN | MAIN) for node in _around(container, page.parents)]
        if next(filter(None, signs), MAIN) & MAIN:
            return False
        boilerplate = _within(BOILERPLATE | HIDDEN, page.signs, page.parents)
        others = [w for b, w in zip(page.blocks, self.weights, strict=True) if w > 0 and not boilerplate[b.node]]
        return sum(others) >= TOO_LITTLE

    def _frame(self, container: int) -> list[bool]:
        """Return of each element whether it is in the frame: in boilerplate that the *container* is not in.

        What is hidden is not, for a script may show it, and a sidebar is not, for it may have facts about the page.
        """
        parents, signs, tags = self.page.parents, self.signs, self.page.tags
        around = set(_around(container, parents))
        frame = [False] * len(parents)
        for node in range(1, len(parents)):
            is_frame = signs[node] & BOILERPLATE and not signs[node] & HIDDEN and node not in around
            is_frame = is_frame and tags[node] not in SHOWING
            frame[node] = frame[parents[node]] or bool(is_frame)
        return frame

    def _levels(self) -> tuple[list[int], list[int]]:
        """Return for each element its signs, 0 for a mere wrapper, and in how many elements of boilerplate it is.

        A hidden one counts as `HIDDEN_LEVEL` at the least, and so does an aside of the page. Where an element with text
        calls itself the main text, all outside of it is `OUTSIDE` levels further out, and the names of the elements
        around it do not count inside.
        """
        held, parents, tags, signs = self.held, self.page.parents, self.page.tags, _signs(self.page)
        outside = any(sign & MAIN and text >= SOME_TEXT for sign, text in zip(signs, held, strict=True))
        levels = [OUTSIDE if outside else 0] * len(parents)
        main = [not outside] * len(parents)
        in_section = [False] * len(parents)
        wrapper, shown = WRAPPER * held[0], held[0] - SHOWN
        for node in range(1, len(parents)):
            parent, sign = parents[node], signs[node]
            level, main[node] = levels[parent], main[parent]
            in_section[node] = in_section[parent] or tags[node] in SECTIONS or bool(sign & MAIN)
            is_beside = tags[node] == "aside" and not in_section[node]
            if sign & MAIN and not main[node]:
                main[node] = True
                sign &= HIDDEN
                level -= level % HIDDEN_LEVEL
            sign &= ~MAIN
            if is_beside:
                sign |= BOILERPLATE
                self.asides.add(node)
            if is_beside or (sign & HIDDEN and held[node] <= shown):
                level += HIDDEN_LEVEL
            elif sign and held[node] >= wrapper:
                sign = 0
            elif sign:
                level += 1
            signs[node], levels[node] = sign, level
        return signs, levels

    def _shares(self, *, base: int = 0, alike: Collection[int] = (), least: float = 0.0) -> list[float]:
        """Return for each block the share of its weight that supports its place as the main text's; 1 for labels.

        Levels of boilerplate up to *base* do not count, nor those of the blocks *alike*, given by their indices. What
        weighs *least* or less separates blocks as a link does.
        """
        blocks, weights, last = self.page.blocks, self.weights, len(self.weights) - 1
        shares = [1.0] * len(weights)
        for i, weight in enumerate(weights):
            if weight <= 0:
                continue
            block = blocks[i]
            level = self.levels[block.node] - base
            if level > 0 and i not in alike:
                shares[i] = BOILERPLATE_SHARES[min(level, 2)] if level < HIDDEN_LEVEL else HIDDEN_SHARE
            begins = i == 0 or block.gap or weights[i - 1] <= least
            if begins and (i == last or blocks[i + 1].gap or weights[i + 1] <= least):
                shares[i] *= ALONE
        return shares

    def _container(self) -> tuple[int, list[float]]:
        """Return the element that the weights point to, and what text each one holds, boilerplate for its share.

        Text counts fully for the element that it is in and for the parent of that, and less for each one further up.
        """
        parents, tags = self.page.parents, self.page.tags
        evidence = [0.0] * len(parents)
        for block, weight, share in zip(self.page.blocks, self.weights, self._shares(), strict=True):
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

    def _document(self, container: int) -> tuple[int, list[int]]:
        """Return the element that has the *container* in one of its sections, and others of these, if any.

        The sections of a document stand side by side, are set alike, and begin with a heading of one rank. Teasers do
        not: their headings are links.
        """
        parents, tags, classes = self.page.parents, self.page.tags, self.page.classes
        around = [node for node in _around(container, parents) if classes[node] or tags[node] in SECTIONS]
        own = {parents[node]: node for node in around if self._rank(node)}
        sections = [
            node
            for node, (parent, tag, class_) in enumerate(zip(parents, tags, classes, strict=True))
            if parent in own and (tag, class_) == (tags[own[parent]], classes[own[parent]])
            if node != own[parent] and self._rank(node) == self._rank(own[parent])
        ]
        return min([container, *(parents[node] for node in sections)]), sections

    def _rank(self, node: int) -> str:
        """Return the tag of the heading that is the first element inside *node*, empty without one."""
        parents, tags = self.page.parents, self.page.tags
        inside = node + 1
        while inside < len(parents) and parents[inside] == inside - 1:
            if tags[inside] in HEADINGS:
                return tags[inside]
            inside += 1
        return ""

    def _set_alike(self, container: int) -> set[int]:
        """Return the indices of the blocks in boilerplate that are set as the text in the *container* is.

        The replies of a thread are set as its first post is; the comments below an article are not. A format without
        any class shows nothing.
        """
        blocks, levels, base = self.page.blocks, self.levels, self.levels[container]
        end = _end(container, self.page.parents)
        in_boilerplate = [i for i, block in enumerate(blocks) if levels[block.node] > base]
        if not in_boilerplate:
            return set()
        own: defaultdict[_Format, float] = defaultdict(float)
        other: defaultdict[_Format, float] = defaultdict(float)
        for block, weight, format_ in zip(blocks, self.weights, self.formats, strict=True):
            if weight > 0 and container <= block.node < end:
                (own if levels[block.node] == base else other)[format_] += weight
        found = own or other
        main = max(found, key=found.__getitem__, default=None)
        if main is None or not (main[1] or main[3]):
            return set()
        return {i for i in in_boilerplate if self.formats[i] == main}

    def _spread(self, alike: Collection[int], container: int) -> int:
        """Return the last element up from the *container* that adds much text and little else.

        To a text under the title of the page, what calls itself boilerplate adds nothing, but for what is set *alike*.
        """
        parents, signs, base = self.page.parents, self.signs, self.levels[container]
        texts, between = [0.0] * len(parents), [0.0] * len(parents)
        shares = self._shares(base=base, alike=alike, least=NEXT_TO_NOTHING)
        is_titled = "h1" in map(self._rank, _around(container, parents))
        boilerplate = _within(MILD | BOILERPLATE, signs, parents) if is_titled else [False] * len(parents)
        for i, (block, weight, share) in enumerate(zip(self.page.blocks, self.weights, shares, strict=True)):
            is_beside = self.levels[block.node] <= base or i in alike
            # What is hidden draws nothing out of where it is.
            if weight > 0 and share > HIDDEN_SHARE and (is_beside or not boilerplate[block.node]):
                texts[block.node] += weight * share
            if is_beside:
                between[block.node] += min(block.gap, GAP) - min(weight, 0.0)
        _summed(texts, parents)
        _summed(between, parents)
        best = container
        for up in _around(parents[container], parents):
            added = texts[up] - texts[best]
            ease = min(1.0, added / (SPREAD_AT_EASE * texts[best])) if texts[best] else 1.0
            if added >= SPREAD * texts[best] and between[up] - between[best] <= added * ease:
                best = up
        return best

    def _pruned(self, container: int, end: int) -> set[int]:
        """Return the elements between *container* and *end* that are left out of the main text."""
        held, total = self.held, self.held[container]
        pruned: set[int] = set()
        for node in range(container + 1, end):
            sign = self.signs[node]
            is_most = held[node] >= PRUNABLE * total and total - held[node] < ENOUGH
            is_boilerplate = sign and (node in self.asides or not is_most)
            if is_boilerplate and not sign & BOILERPLATE and held[node] >= ENOUGH:
                is_boilerplate = False
            if is_boilerplate or self.page.parents[node] in pruned:
                pruned.add(node)
        return pruned

    def _candidates(self, inside: Sequence[bool]) -> list[tuple[int, float]]:
        """Return the indices and weights of the blocks *inside* of the container, and of those set as its paragraphs.

        Elsewhere, a block is set as they are if it has their class; without a class, only a whole match of ``<p>`` is.
        """
        sums: defaultdict[_Format, float] = defaultdict(float)
        for format_, weight, is_inside in zip(self.formats, self.weights, inside, strict=True):
            if is_inside and weight > 0:
                sums[format_] += weight
        if not sums:
            return []
        main = max(sums, key=sums.__getitem__)
        candidates = []
        for i, (block, weight, other) in enumerate(zip(self.page.blocks, self.weights, self.formats, strict=True)):
            is_set_alike = other[1] == main[1] if main[1] else main[0] == "p" and other == main
            if inside[i]:
                is_line = weight < 0 and block.linked < LINE_LINKED and other == main
                candidates.append((i, LINE if is_line else weight))
            elif weight > 0 and not self.levels[block.node] and is_set_alike:
                candidates.append((i, weight))
        return candidates

    def _best_run(self, candidates: Iterable[tuple[int, float]]) -> tuple[list[int], float]:
        """Return the indices of the run of candidates with the largest sum, and that; nothing if it is too little."""
        run: list[int] = []
        best: list[int] = []
        length = 0
        total = top = 0.0
        for i, weight in candidates:
            total -= min(self.page.blocks[i].gap, GAP)
            if total <= 0:
                run, total = [], 0.0
            run.append(i)
            total += weight
            if total > top:
                best, length, top = run, len(run), total
        return (best[:length], top) if top >= TOO_LITTLE else ([], 0.0)

    def _whole(self, run: list[int], candidates: Iterable[tuple[int, float]], document: range) -> list[int]:
        """Return the indices in *run* and those of all *candidates* in the *document* after its title."""
        if not run:
            return []
        blocks, tags = self.page.blocks, self.page.tags
        inside = [i for i, _ in candidates if run[0] <= i <= run[-1] or blocks[i].node in document]
        return inside[tags[blocks[inside[0]].node] == "h1" :]

    def _with_lists(self, run: Sequence[int]) -> list[int]:
        """Return the indices in *run* with those of the lists right before and after it.

        The ingredients of a recipe, the rows of a table often stand in an element of their own beside the text.
        """
        if not run:
            return []
        before = self._list_beside(range(run[0] - 1, -1, -1))
        after = self._list_beside(range(run[-1] + 1, len(self.page.blocks)))
        return [*reversed(before), *run, *after]

    def _list_beside(self, indices: range) -> list[int]:
        """Return the *indices*, away from the text, up to the end of the list that they begin with, if they do.

        Boilerplate in between is left out. Like links and labels, it only separates the list from the text.
        """
        blocks, weights, levels = self.page.blocks, self.weights, self.levels
        base = levels[blocks[indices.start - indices.step].node]
        found: list[int] = []
        length = lines = 0
        total = top = 0.0
        for i in indices:
            block = blocks[i]
            total -= min(blocks[max(i, i - indices.step)].gap, GAP)
            is_boilerplate = levels[block.node] > base
            if not is_boilerplate:
                found.append(i)
            # What follows a headline with a link is a teaser.
            if not is_boilerplate and block.gap < HEADLINE and is_listed(block.node, self.page):
                lines += 1
                total += block.size * (1 - 2 * block.linked)
                if lines >= LIST and total > top:
                    length, top = len(found), total
            else:
                total -= min(weights[i], GAP) if weights[i] > 0 else -LABEL
            if total < -GAP:
                break
        return found[:length] if top >= LIST_LETTERS else []
