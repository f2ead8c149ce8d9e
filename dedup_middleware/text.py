"""Text -> clauses.

Law of this file: Unicode only. It knows nothing of HTML, hashes or stores.

A clause is a run of text between punctuation marks, reduced to its letters, marks and digits, so that quote style,
spacing, letter case, full-width forms and the script of Chinese (Traditional or Simplified) do not matter. Sentences
are kept as they were written: they are the evidence.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import defaultdict
from typing import TYPE_CHECKING

from opencc import OpenCC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

#: A clause lighter than this is not telling: "he said", "据报道", dates, names. About 15 letters or 5 Han characters.
MIN_CLAUSE_WEIGHT = 15

#: From two letters or Han characters on a number has a label: "wind40kmh", "收盘价6830元", but not "5km".
MIN_LABEL_WEIGHT = 6

#: Marks that stand inside a clause: quotes and titles come and go between reposts, hyphens and slashes join words.
_INSIDE = frozenset("'\"`´‘’‚‛“”„‟‹›«»「」『』〝〞〟《》〈〉-‐‑‒/\\&@#%*‰′″〃\u00b7\u30fb\u2027")


def _class(characters: Iterable[str]) -> str:
    return "[" + "".join(map(re.escape, characters)) + "]"


def _reader_of_categories() -> Callable[..., list[str]]:
    # The basic plane has every mark in common use; the planes above would cost a tenth of a second at import.
    by_category: dict[str, list[str]] = defaultdict(list)
    for character in map(chr, range(0x10000)):
        by_category[unicodedata.category(character)].append(character)
    return lambda *categories: [c for category in categories for c in by_category[category]]


_characters = _reader_of_categories()


# Each pattern below begins with one class of characters, which `re` looks for far quicker than for anything else.
_BREAK = re.compile(
    _class(c for c in (*_characters("Po", "Ps", "Pe", "Pd"), *"\n\r\u2028\u2029") if c not in _INSIDE) + "+"
)
# Thai, Lao, Myanmar and Khmer write no spaces between words: there a space is punctuation.
_SPACELESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
# Only the first of several spaces can be where it begins: at each of them, it would be quadratic.
_SPACE_BREAK = re.compile(rf" (?<={_SPACELESS.pattern} ) *(?={_SPACELESS.pattern})")
# Sorting marks into canonical order is quadratic in their run; no language writes more than 30 (UAX #15, stream-safe).
_MANY_MARKS = re.compile("({0}{{30}}){0}+".format(_class(c for c in _characters("Mn") if unicodedata.combining(c))))
# What Chinese texts are full of. With these replaced, NFKC finds nothing to do in most, in a fortieth of the time.
_FULL_WIDTH = [(wide, unicodedata.normalize("NFKC", wide)) for wide in "，：；！？（）．　…"]
_ZERO_WIDTH = re.compile(_class(_characters("Cf")) + "+")
_DIGIT_SEPARATOR = re.compile(r"[,' \u00a0\u2009\u202f](?<=\d.)(?=\d{3}(?!\d))")
# 1.5 is not 15. Three digits after the only point may as well be thousands; more points are dates and versions.
_DECIMAL = re.compile(r"\.(?<=\d\.)(?<!\.\d\.)(?<!\.\d\d\.)(?<!\.\d{4}\.)(?=\d+(?![\d.]))(?!\d{3}(?!\d))")
# Between two digits a mark is a part of the number (5.12.2024, 12:30), and so is the colon between it and its label:
# "Temperature: 23 degrees", "收盘价：6830元".
_NUMBER_MARK = re.compile(r"[.,](?<=\d.)(?=\d)")
# But not between a label and a date: reposts are "Published: 5 May" on another day.
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATE_FOLLOWS = (
    rf" *(?:\d{{1,4}} ?[-/年月]|\d\d?\.\d\d?\.|\d\d?:\d\d|\d\d?(?:st|nd|rd|th)? (?:{_MONTHS})|(?:19|20)\d\d)"
)
_LABEL_MARK = re.compile(rf":(?= *\d)(?!(?<!\d:){_DATE_FOLLOWS})")
#: A private-use character: no punctuation, so that it stays in the clause, and nobody writes it.
_DECIMAL_POINT = "\ue000"
NOISE = re.compile(
    "[\U0001f000-\U0001faff"
    + "".join(re.escape(c) for c in _characters("Zs", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So"))
    + "".join(re.escape(c) for c in _characters("Cc", "Cf") if c != "\n")
    + "]+"
)
# Each full garbage collection of the crawl would look at its 65 536 strings, and take a quarter longer.
del _characters
# Scripts that write a word or syllable in one character: Han, kana, Hangul.
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+")
#: What a character of a dense script weighs, in letters: 50 Han characters tell about as much as 150 letters.
DENSE_WEIGHT = 3


def _to_simplified() -> dict[int, str]:
    # Character by character, not by OpenCC's phrases, so that what surrounds a clause cannot change it.
    characters = [chr(c) for start, end in ((0x3400, 0x4DC0), (0x4E00, 0xA000)) for c in range(start, end)]
    simplified = OpenCC("t2s").convert("\n".join(characters)).split("\n")
    return {ord(old): new for old, new in zip(characters, simplified, strict=True) if old != new}


_TO_SIMPLIFIED = _to_simplified()
_TRADITIONAL = re.compile(_class(map(chr, _TO_SIMPLIFIED)))

_SENTENCE = re.compile(r"[^。！？!?；;…।؟\n]+?(?:[。！？!?；;…।؟]+[”’」』\"')）]*|\.(?=\s|$)[”\"')]*|\n|$)")


def weight(clause: str) -> int:
    """Return how much a reduced clause tells, in letters; a Han character counts for three. O(len)."""
    letters = len(clause) if clause.isascii() else len(_DENSE.sub("", clause))
    return letters + DENSE_WEIGHT * (len(clause) - letters)


def folded(text: str) -> str:
    """Return *text* as compared: NFKC, case-folded, Traditional as Simplified, nothing invisible. O(len(text))."""
    if not text.isascii():
        text = _MANY_MARKS.sub(r"\1", _ZERO_WIDTH.sub("", text))
        for wide, narrow in _FULL_WIDTH:
            text = text.replace(wide, narrow)
        text = unicodedata.normalize("NFKC", text)
        if _TRADITIONAL.search(text):
            text = text.translate(_TO_SIMPLIFIED)
    return text.casefold()


def clauses(text: str) -> Iterator[tuple[str, int]]:
    """Yield the telling clauses of *text*, reduced, with their weights, in reading order. O(len(text)).

    A labelled number that is too light to tell weighs nothing: it makes no duplicate, but may prevent one.
    """
    text = _LABEL_MARK.sub("", _DIGIT_SEPARATOR.sub("", folded(text)))
    text = _NUMBER_MARK.sub("", _DECIMAL.sub(_DECIMAL_POINT, text))
    if not text.isascii() and _SPACELESS.search(text):
        text = _SPACE_BREAK.sub("\n", text)
    text = NOISE.sub("", _BREAK.sub("\n", text).replace(" ", ""))
    light = text if text.isascii() else _DENSE.sub("", text)
    for clause, letters in zip(text.split("\n"), light.split("\n"), strict=True):
        clause_weight = len(letters) + DENSE_WEIGHT * (len(clause) - len(letters))
        if clause_weight >= MIN_CLAUSE_WEIGHT:
            yield clause, clause_weight
        elif clause and _is_fact(clause):
            yield clause, 0


def _is_fact(clause: str) -> bool:
    """Tell whether a light *clause* is a number with its label; a date is none, for reposts have other dates."""
    if clause.isalpha():
        return False
    named, numbers = _DIGITS.subn("", clause)
    is_date = _MONTH.match(named) or _DATE.search(clause)
    return numbers > 0 and weight(named) >= MIN_LABEL_WEIGHT and not is_date


def sentences(paragraph: str) -> list[str]:
    """Return the sentences of *paragraph* as written; every end of a sentence is a clause break too."""
    return [s for m in _SENTENCE.finditer(paragraph) if (s := m.group().strip())]


def without_digits(clause: str) -> str | None:
    """Return *clause* with every run of digits replaced by one mark; ``None`` if it has no digits."""
    if clause.isalpha():
        return None
    replaced, count = _DIGITS.subn("#", clause)
    return replaced if count else None


_DATE = re.compile(r"\d[年月日]")
_MONTH = re.compile(
    r"(?:(?:mon|tue|tues|wed|wednes|thu|thurs|fri|sat|satur|sun)(?:day)?)?"
    rf"(?:{_MONTHS})"
)
_DIGITS = re.compile(rf"\d+(?:{_DECIMAL_POINT}\d+)?")


def one_line(text: str, limit: int = sys.maxsize) -> str:
    """Return *text* on one line without control characters, cut to *limit* characters with an ellipsis."""
    text = " ".join(_CONTROLS.sub("", " ".join(text.split())).split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


# C0, C1 and the bidirectional overrides: a page must not steer the terminal that shows it.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
