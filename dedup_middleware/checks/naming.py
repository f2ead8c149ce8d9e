"""Compares what two pages call themselves, by title and heading.

A title that is the original's but for a number, a letter or a name is that of another thing: another lot, another town,
another year. Other words that differ are an editor's.
"""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TYPE_CHECKING

from rapidfuzz.distance import Indel

from dedup_middleware.checks.alignment import NEGATIONS
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import plain, weight
from dedup_middleware.text.words import are_letters, is_unspaced, split_words, terms

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from dedup_middleware.model import PageFeatures

#: From this share of common words on, two titles are one, in which some words differ.
ALIKE = 0.5
#: Parts of titles that are compared.
MAX_NAMES = 8
# Letters of a word that does not stand in any text by chance.
LONG_TERM = 4
# Symbols that carry meaning in a title: "A+", "C#", "50 %".
_SYMBOL = re.compile(r"[+#%‰°$€£¥₹₽]")
_NUMERAL = re.compile(r"[\d〇一二三四五六七八九十百千万]|^[IVX]+$")
# Not 【】, in which Chinese titles begin with a label.
_BRACKETED = re.compile(r"[(（\[]([^()（）\[\]]+)[)）\]]")
# The number of a section: "printf(3)".
_SECTION = re.compile(r"(?<=[A-Za-z0-9])\(\d[a-z]?\)")


def names_of(features: PageFeatures) -> list[str]:
    """Return the parts of the heading and of the title that may name the page.

    A title that contains the heading has only the site's name beside it.
    """
    heading = [*filter(None, map(titles.without_view, titles.parts(features.heading)))]
    title = [*filter(None, map(titles.without_view, titles.parts(features.title)))]
    row = titles.row_of(" ".join(heading))
    is_in_title = row and f" {row} " in f" {titles.row_of(features.title)} "
    return (heading if is_in_title else [*heading, *title])[:MAX_NAMES]


def other_words(
    here: PageFeatures, there: PageFeatures, text: Callable[[], Iterable[str]], is_around: Callable[[str], bool]
) -> tuple[bool, list[str]]:
    """Return whether two pages have one title, and the words of the first that make it another one.

    Words that the original's *text* has, in their order and beside the word before or after, make no other title.
    """
    ours, theirs = names_of(here), names_of(there)
    if not ours or not theirs:
        return not ours, []
    # What both have beside a longer part is the site's.
    main = {titles.row_of(titles.longest(names)) for names in (ours, theirs)}
    pairs = [
        (name, other) for name in ours for other in theirs if not main.isdisjoint(map(titles.row_of, (name, other)))
    ]
    alike, name, other = max(((_alike(*pair, main), *pair) for pair in pairs), key=itemgetter(0))
    if alike < ALIKE:
        return False, []
    own = _own(name, other, text)
    # Around a text, numbers do not count.
    return True, [] if own and is_around(name) and not any(map(_NUMERAL.search, own)) else own


def _alike(name: str, other: str, main: Collection[str]) -> float:
    """Return the share of the longer of two titles that both have, word by word, 0-1.

    It is 1 if one contains the other, and that is one of the *main* titles.
    """
    rows = titles.row_of(name), titles.row_of(other)
    shorter, longer = sorted(rows, key=len)
    if shorter in main and f" {shorter} " in f" {longer} ":
        return 1.0
    here, there = (row.split() for row in rows)
    blocks = Indel.editops(here, there).as_matching_blocks()
    common = sum(weight("".join(here[block.a : block.a + block.size])) for block in blocks)
    return common / max(1, weight("".join(here)), weight("".join(there)))


def _own(name: str, other: str, text: Callable[[], Iterable[str]]) -> list[str]:
    """Return the runs of words in *name* that *other* has not at this place, and the *text* nowhere."""
    if _SECTION.search(name) is None or _SECTION.search(other) is None:
        name, other = _SECTION.sub("", name), _SECTION.sub("", other)
    here, there = split_words(plain(name)), split_words(plain(other))
    folded_here, folded_there = [*map(str.casefold, here)], [*map(str.casefold, there)]
    own: list[str] = []
    row = ""
    start = begin = 0
    for block in Indel.editops(folded_here, folded_there).as_matching_blocks():
        run, instead = folded_here[start : block.a], folded_there[begin : block.b]
        if run:
            row = row or titles.row_of_all(text())
            before, after = folded_here[start - 1 : start], folded_here[block.a : block.a + 1]
            written = here[start : block.a]
            is_other = _is_slot(written, name) if instead else _is_added(written)
            in_brackets = _bracketed(written, name)
            is_in_text = (
                f" {in_brackets} " in row if in_brackets else _is_in_text(run, before, after, folded_there, row)
            )
            if is_other and not is_in_text:
                own.append(" ".join(written))
        start, begin = block.a + block.size, block.b + block.size
    if not own and _symbols(name) != _symbols(other):
        own.append(name)
    return own


def _is_added(run: list[str]) -> bool:
    """Return whether a *run* that a title has more than another tells one thing from another.

    It does with a number or a letter: "lot 4". Else it is a label, such as "Report", or the name of an edition.
    """
    return any(_is_label([word]) or _NUMERAL.search(word) for word in run)


def _bracketed(run: list[str], name: str) -> str:
    """Return the words, folded, of the brackets in *name* that a *run* of words stands in; empty without brackets."""
    rows = map(titles.row_of, _BRACKETED.findall(name))
    return next((row for row in rows if f" {' '.join(run).casefold()} " in f" {row} "), "")


def _is_slot(run: list[str], name: str) -> bool:
    """Return whether a *run* of words tells one thing from another: it stands in brackets, or names something.

    Other words in an otherwise equal title are an editor's: "Ferry returns", "Ferry comes back".
    """
    if _bracketed(run, name):
        return True
    return any(len(word) == 1 or not word.islower() or word in NEGATIONS for word in run)


def _is_in_text(run: list[str], before: list[str], after: list[str], title: list[str], row: str) -> bool:
    """Return whether the words of a *run* are in the text of the original, a *row* of words, and not in its *title*.

    A number, a letter or a short word is looked for with the word *before* it or *after* it: it may be anywhere else.
    """
    if not set(run).isdisjoint(title):
        return False
    phrases = [" ".join(words) for words in ([*before, *run], [*run, *after]) if len(words) > len(run)]
    if any(f" {phrase} " in row for phrase in phrases):
        return True
    telling = [term for term in terms(" ".join(run)) if len(term) >= LONG_TERM or is_unspaced(term)]
    joined = "".join(run)
    if is_unspaced(joined):
        telling = terms(joined) if len(joined) > 1 else []
        return bool(telling) and are_letters(joined) and f" {' '.join(run)} " in row
    return len(telling) == len(run) and are_letters(joined) and all(f" {term} " in row for term in telling)


def _is_label(words: list[str]) -> bool:
    """Return whether *words* end in a number or a letter by itself: "lot 4", "part B"."""
    last = words[-1]
    return last.isdecimal() or (len(last) == 1 and last.isupper())


def _symbols(name: str) -> list[str]:
    return sorted(_SYMBOL.findall(plain(name)))
