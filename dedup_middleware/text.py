"""Text -> clauses.

Law of this file: Unicode only. It knows nothing of HTML, hashes or stores.

A clause is a run of text between punctuation marks, reduced to its letters, marks and digits, so that quote style,
spacing, letter case and full-width forms do not matter. Sentences are kept as they were written: they are the evidence.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: A clause lighter than this is not telling: "he said", "据报道", dates, names. About 15 letters or 5 Han characters.
MIN_CLAUSE_WEIGHT = 15

#: From two letters or Han characters on a number has a label: "wind40kmh", "收盘价6830元", but not "5km".
MIN_LABEL_WEIGHT = 6

#: Marks that stand inside a clause: quotes and titles come and go between reposts, hyphens and slashes join words.
_INSIDE = frozenset("'\"`´‘’‚‛“”„‟‹›«»「」『』〝〞〟《》〈〉-‐‑‒/\\&@#%*‰′″〃\u00b7\u30fb\u2027")
#: Between two digits these are a part of the number: 3.14, 1,000, 12:30; so is a colon before it: "Wind: 40 km/h".
_NUMBER_MARKS = ",.:"


def _class(characters: Iterable[str]) -> str:
    return "[" + "".join(map(re.escape, characters)) + "]"


def _by_category() -> dict[str, list[str]]:
    # The basic plane has every mark in common use; the planes above would cost a tenth of a second at import.
    by_category: dict[str, list[str]] = defaultdict(list)
    for character in map(chr, range(0x10000)):
        by_category[unicodedata.category(character)].append(character)
    return by_category


_CHARACTERS = _by_category()


def _characters(*categories: str) -> list[str]:
    return [c for category in categories for c in _CHARACTERS[category]]


# A label and its number are one fact: "Temperature: 23 degrees", "收盘价：6830元".
_BREAKS = [c for c in _characters("Po", "Ps", "Pe", "Pd") if c not in _INSIDE and c not in _NUMBER_MARKS]
# Thai, Lao, Myanmar and Khmer write no spaces between words: there a space is punctuation.
_SPACE_IS_A_MARK = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_CLAUSE_BREAK = re.compile(
    rf"{_class(_BREAKS)}+|[.,](?!\d)|(?<!\d)[.,]|:(?! *\d)|[\n\r\u2028\u2029]+"
    rf"|(?<=[{_SPACE_IS_A_MARK}]) +(?=[{_SPACE_IS_A_MARK}])"
)
# Sorting marks into canonical order is quadratic in their run; no language writes more than 30 (UAX #15, stream-safe).
_MANY_MARKS = re.compile("({0}{{30}}){0}+".format(_class(c for c in _characters("Mn") if unicodedata.combining(c))))
_ZERO_WIDTH = re.compile(_class(_characters("Cf")) + "+")
# 1.5 is not 15. Three digits after the only point may as well be thousands; more points are dates and versions.
_DECIMAL = re.compile(r"(?<![\d.])(\d+)\.(?!\d{3}(?!\d))(\d+)(?![\d.])")
#: A private-use character: no punctuation, so that it stays in the clause, and nobody writes it.
_DECIMAL_POINT = "\ue000"
_DIGIT_SEPARATOR = re.compile(r"(?<=\d)[,' \u00a0\u2009\u202f](?=\d{3}(?!\d))")
_NOISE = re.compile(
    "[\U0001f000-\U0001faff"
    + "".join(re.escape(c) for c in _characters("Zs", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So"))
    + "".join(re.escape(c) for c in _characters("Cc", "Cf") if c != "\n")
    + "]+"
)
# Scripts that write a word or syllable in one character: Han, kana, Hangul.
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
#: What a character of a dense script weighs, in letters: 50 Han characters tell about as much as 150 letters.
DENSE_WEIGHT = 3

_SENTENCE = re.compile(r"[^。！？!?；;…।؟\n]+?(?:[。！？!?；;…।؟]+[”’」』\"')）]*|\.(?=\s|$)[”\"')]*|\n|$)")


def weight(clause: str) -> int:
    """Return how much a reduced clause tells, in letters; a Han character counts for three. O(len)."""
    return len(clause) if clause.isascii() else len(clause) + (DENSE_WEIGHT - 1) * len(_DENSE.findall(clause))


def clauses(text: str) -> Iterator[tuple[str, int]]:
    """Yield the telling clauses of *text*, reduced, with their weights, in reading order. O(len(text)).

    A labelled number that is too light to tell weighs nothing: it makes no duplicate, but may prevent one.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _MANY_MARKS.sub(r"\1", _ZERO_WIDTH.sub("", text)))
    text = _DIGIT_SEPARATOR.sub("", text.casefold())
    text = _DECIMAL.sub(rf"\1{_DECIMAL_POINT}\2", text)
    for clause in _NOISE.sub("", _CLAUSE_BREAK.sub("\n", text)).split("\n"):
        if (w := weight(clause)) >= MIN_CLAUSE_WEIGHT:
            yield clause, w
        elif _is_fact(clause):
            yield clause, 0


def _is_fact(clause: str) -> bool:
    """Tell whether a light *clause* is a number with its label; a date is none, for reposts have other dates."""
    named, numbers = _DIGITS.subn("", clause)
    return bool(numbers) and weight(named) >= MIN_LABEL_WEIGHT and not _DATE.search(clause)


def sentences(paragraph: str) -> list[str]:
    """Return the sentences of *paragraph* as written; every end of a sentence is a clause break too."""
    return [s for m in _SENTENCE.finditer(paragraph) if (s := m.group().strip())]


def without_digits(clause: str) -> str | None:
    """Return *clause* with every run of digits replaced by one mark; ``None`` if it has no digits."""
    replaced, count = _DIGITS.subn("#", clause)
    return replaced if count else None


_DATE = re.compile(r"\d[年月日]|^(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)")
_DIGITS = re.compile(rf"\d+(?:{_DECIMAL_POINT}\d+)?")


def one_line(text: str, limit: int = sys.maxsize) -> str:
    """Return *text* on one line without control characters, cut to *limit* characters with an ellipsis."""
    text = " ".join(_CONTROLS.sub("", " ".join(text.split())).split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


# C0, C1 and the bidirectional overrides: a page must not steer the terminal that shows it.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
