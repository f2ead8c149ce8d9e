"""Finds what one text contains and another one does not: clauses and symbols."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from dedup_middleware.text.clauses import MIN_CLAUSE_WEIGHT, reduced_once, sentences, weight
from dedup_middleware.text.titles import row_of_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet


def _symbols() -> str:
    found = (c for c in map(chr, range(0x2000)) if unicodedata.category(c) in {"Sm", "Sc"})
    return "".join(map(re.escape, found))


# Symbols that clauses lose and that carry meaning: signs, currencies, check marks, arrows, suits, emoji, "&&", "C++".
# Bullets, quotes, dashes and other punctuation are typography.
# The first class of each pattern has all that a symbol can begin with: `re` is six times as fast then.
_SIGNS = rf"{_symbols()}%‰&#*@\\\u2070-\u209f\u20a0-\u20bf\u2100-\u2bff\U0001f000-\U0001faff"
_IS_SYMBOL = rf"(?<=[{_SIGNS}])|(?<=[-\u2013])(?<!\w.)(?=\d)|(?<=[:(]\s-)(?=\s)|(?<=[A-Za-z]-)(?!\w)"
_IS_NUMBER = r"(?<=\d)\d*(?:(?:[.:]\d+)+|,\d\d?(?!\d))"
_SYMBOL = re.compile(rf"[{_SIGNS}\-\u2013\d](?:{_IS_SYMBOL}|{_IS_NUMBER})")
symbols_of = re.compile(rf"[{_SIGNS}\-\u2013](?:{_IS_SYMBOL})").findall

_MINUS = "-\u2212\u2013"
_HAS_WORDS = re.compile(r"[^\W_]").search

#: Clauses that are found before a text counts as another one: more than a record shows.
MAX_FOUND = 8


def own_clauses(
    texts: Sequence[str], original: Iterable[str], has: Callable[[str], bool] = lambda _: False
) -> list[str]:
    """Return the first clauses of *texts*, however light, that *original* lacks, reduced. O(characters).

    *has* returns whether the original has a clause by other evidence than its text.
    """
    original = [*original]
    known = frozenset(_clauses(original))
    own = [clause for clause in dict.fromkeys(_clauses(texts)) if clause not in known and not has(clause)]
    return not_contained(own, texts, original)


def not_contained(clauses: Iterable[str], texts: Sequence[str], original: Iterable[str]) -> list[str]:
    """Return the first of these *clauses* of *texts* whose sentence *original* does not contain, word by word.

    Another template may break lines elsewhere, and so clauses too.
    """
    left = dict.fromkeys(clauses)
    row = row_of_all(original) if left else ""
    found: list[str] = []
    for sentence in [sentence for text in (texts if left else ()) for sentence in sentences(text)]:
        here = [clause for clause in _clauses([sentence]) if clause in left]
        if here and row_of_all([sentence]) not in row:
            found += here
            if len(found) >= MAX_FOUND:
                break
        for clause in here:
            left.pop(clause, None)
    return [*dict.fromkeys(found or left)]


def moved_clauses(texts: Sequence[str], original: Sequence[str]) -> list[str]:
    """Return the light clauses of *texts* that follow another one than in *original*, which has the same clauses.

    "Guilty" is said of the name before it. O(characters).
    """
    here, there = _clauses(texts), _clauses(original)
    if here == there or sorted(here) != sorted(there):
        return []
    pairs = set(pairwise(there))
    light = [" ".join(two) for two in pairwise(here) if weight(two[1]) < MIN_CLAUSE_WEIGHT and two not in pairs]
    return light if len(light) > 1 else []


def own_symbols(texts: Sequence[str], original: Sequence[str], *, replaced: bool = False) -> list[str]:
    """Return the symbols and signed numbers of *texts* that *original* lacks beside the same words. O(characters).

    *replaced*: only those in whose place the original has others. A number without the sign that it has there is
    another one, and so is a grade.
    """
    own = _own_symbols(texts, original, replaced=replaced)
    return own or [symbol for symbol in _own_symbols(original, texts, replaced=False) if symbol in _MINUS]


def _own_symbols(texts: Sequence[str], original: Sequence[str], *, replaced: bool) -> list[str]:
    ours = _symbols_by_sentence(texts, frozenset(original))
    theirs = _symbols_by_sentence(original) if ours else {}
    new = [pair for pair in ours if pair not in theirs]
    if not new:
        return []
    known: dict[str, list[str]] = {}
    for sentence, symbols in theirs:
        known.setdefault(letters_of([sentence]), []).extend(symbols)
    own: list[str] = []
    letters = letters_of(original)
    for sentence, symbols in new:
        # Another sentence is other words, see `own_clauses`.
        same = letters_of([sentence])
        left = Counter(known.get(same, () if same in letters else symbols))
        missing = Counter(symbols) - left
        own += missing.elements() if left - Counter(symbols) or not replaced else []
    return own


def _symbols_by_sentence(
    texts: Iterable[str], known: AbstractSet[str] = frozenset()
) -> dict[tuple[str, tuple[str, ...]], None]:
    """Return the sentences of *texts* that have symbols, with these; those of *known* texts are left out.

    A symbol by itself belongs to the sentence or the text before it.
    """
    found: dict[tuple[str, tuple[str, ...]], None] = {}
    before = ""
    for text in texts:
        if not _HAS_WORDS(text):
            found["".join(sentences(before)[-1:]), tuple(text)] = None
            continue
        if text not in known and _SYMBOL.search(text):
            label = before
            for sentence in sentences(text):
                symbols = [*sentence]
                if _HAS_WORDS(sentence):
                    label, symbols = sentence, _SYMBOL.findall(unicodedata.normalize("NFKC", sentence))
                    symbols = ["-" if symbol in _MINUS else symbol for symbol in symbols]
                if symbols:
                    found[label, tuple(symbols)] = None
        before = text
    return found


def letters_of(texts: Iterable[str]) -> str:
    """Return the letters and digits of *texts* in one run, folded. O(characters)."""
    return reduced_once("\n".join(texts)).replace("\n", "")


def _clauses(texts: Iterable[str]) -> list[str]:
    return [*filter(None, reduced_once("\n".join(texts)).split("\n"))]
