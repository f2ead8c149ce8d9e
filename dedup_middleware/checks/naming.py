"""Compares what a subject and its original call themselves: a title is a line with a rule of its own.

The words of a title that another one lacks at their place name another thing: another lot, another town, another year.
A headline is one of many ways to say what a text is about: another headline over an equal text says nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rapidfuzz.distance import Indel

from dedup_middleware.checks.edits import joined
from dedup_middleware.checks.table import Edit, Kind
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import plain, weight
from dedup_middleware.text.words import is_negation, is_symbol, numbers_in, tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: From this share of common words on, two titles are one, in which some words differ.
ALIKE = 0.6
# Symbols that carry meaning in a title: "A+", "C#", "50 %"; others stand between its parts.
_SYMBOL = re.compile(r"[+#%‰°$€£¥₹₽]")


def name_of(title: str, is_part: Callable[[str], bool], is_word: Callable[[str], bool], host: str = "") -> str:
    """Return what *title* calls a page, without the site's name and words for a view; its parts are divided by "|".

    The site's are the name of its *host*, a part for which *is_part* returns true, unless there is no other part, and a
    word for which *is_word* does. Empty if nothing else is there. What stands beside the heading of a page is not the
    site's for that: "Nurse - Leeds" under the heading "Nurse".
    """
    parts = [part for part in titles.parts(title) if not is_host(part, host)]
    named = [part for part in parts if not is_part(part)] or parts
    own = ([w for w in _tokens(titles.without_view(part)) if not is_word(w.casefold())] for part in named)
    return " | ".join([" ".join(words) for words in own if words])


def title_edits(name: str, others: Iterable[str]) -> list[Edit]:
    """Return how a *name* differs from that of the *others* that is most like it; nothing if one is equal."""
    row = titles.row_of(name)
    rows = {other: titles.row_of(other) for other in others}
    if not row or not rows:
        return []
    alike, other = max((_alike(row, there), other) for other, there in rows.items())
    if alike < ALIKE:
        return [Edit(Kind.HEADLINE if titles.is_headline(row) else Kind.TITLE, name, other)]
    if _beside(name, rows[other]):
        # "Nurse | Leeds" has all of the heading "Nurse"; so has the title over that: "Nurse | York".
        other = next((each for each in rows if any(map(str.isalpha, _beside(each, rows[other])))), other)
    return [*_edits(name, other)]


def _beside(name: str, row: str) -> list[str]:
    """Return the words of the parts of a *name* beside the one that is a *row*; none if there is no such part."""
    found = [*map(titles.row_of, titles.parts(name))]
    return [word for each in found if each != row for word in each.split()] if row in found else []


def is_host(part: str, host: str) -> bool:
    """Return whether a *part* of a title is the name of the *host*: "The Harbour Times" of harbourtimes.example."""
    letters = "".join(filter(str.isalnum, part.casefold())).removeprefix("the")
    labels = host.removeprefix("www.").split(".")
    return letters in {
        "".join(labels[n:end]).removeprefix("the") for n in range(len(labels)) for end in (n + 1, len(labels))
    }


def row_of(name: str) -> str:
    """Return the words of a *name*, folded, with the symbols that carry meaning in a title."""
    return " ".join([word.casefold() for word in _tokens(name)])


def _tokens(name: str) -> list[str]:
    return [word for word in tokens(plain(name)) if _SYMBOL.fullmatch(word) or not is_symbol(word)]


def _weight(row: str) -> int:
    return weight(row.replace(" ", ""))


def _alike(row: str, other: str) -> float:
    """Return the share of the longer of two titles that both have, word by word, 0-1; 1 if one contains the other."""
    if f" {row} " in f" {other} " or f" {other} " in f" {row} ":
        return 1.0
    here, there = row.split(), other.split()
    blocks = Indel.editops(here, there).as_matching_blocks()
    common = sum(weight("".join(here[block.a : block.a + block.size])) for block in blocks)
    return common / max(1, _weight(row), _weight(other))


def _edits(name: str, other: str) -> Iterable[Edit]:
    here, there = map(_tokens, (name, other))
    folded_here, folded_there = [*map(str.casefold, here)], [*map(str.casefold, there)]
    start = begin = 0
    for block in Indel.editops(folded_here, folded_there).as_matching_blocks():
        own, instead = folded_here[start : block.a], folded_there[begin : block.b]
        words = here[start : block.a]
        written, replaced = joined(words), joined(there[begin : block.b])
        start, begin = block.a + block.size, block.b + block.size
        if "".join(own) == "".join(instead):
            continue
        if own and instead:
            yield Edit(Kind.TITLE, written, replaced, name)
        elif own:
            tells = _tells([word for word in words if word.casefold() not in folded_there])
            yield Edit(Kind.TITLE if tells else Kind.TITLE_WORDS, written, "", name)
        elif any(_SYMBOL.fullmatch(word) or is_negation(word) for word in instead):
            yield Edit(Kind.TITLE, "", replaced, name)


def _tells(words: list[str]) -> bool:
    """Return whether *words* that a title has more tell one thing from another: a number, a symbol, "lot B"."""
    is_letter = bool(words) and len(words[-1]) == 1 and words[-1].isascii() and words[-1].isupper()
    return is_letter or any(_SYMBOL.fullmatch(w) or is_negation(w.casefold()) or numbers_in([w]) for w in words)
