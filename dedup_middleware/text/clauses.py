"""Splits texts into clauses and sentences.

A clause is a run of text between punctuation marks, reduced to its letters, marks and digits, so that quote style,
spacing, letter case, full-width forms and the script of Chinese (Traditional or Simplified) do not matter. Sentences
are kept as they were written: they are the evidence.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from bisect import bisect
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from dedup_middleware.common.budget import PORTION, UncheckableError
from dedup_middleware.text.characters import (
    BEYOND,
    BREAK,
    DECIMAL_POINT,
    DENSE,
    FULL_WIDTH,
    MANY_MARKS,
    MANY_MARKS_BEYOND,
    NOISE,
    PLAIN,
    RARE,
    SPACELESS_CHARACTER,
    TYPOGRAPHIC,
    ZERO_WIDTH,
    simplified,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from dedup_middleware.common.budget import Budget
    from dedup_middleware.model import Page

#: A lighter clause is not counted: "he said", "据报道", dates, names. About 15 letters or 5 Han characters.
MIN_CLAUSE_WEIGHT = 15

#: From two letters or Han characters on a number has a label: "wind40kmh", "收盘价6830元", but not "5km".
MIN_LABEL_WEIGHT = 6

#: Less text than this, in letters (50 Han characters), proves no copy: bios, teasers and walls share that much by
#: chance; in an item it is a value.
MIN_TEXT_WEIGHT = 150

# Each pattern that is looked for in every text begins with one class of characters: `re` is far quicker then.
# Only the first of several spaces can be where it begins: at each of them, it would be quadratic.
_SPACE_BREAK = re.compile(rf" (?<={SPACELESS_CHARACTER.pattern} ) *(?={SPACELESS_CHARACTER.pattern})")
_DIGIT_SEPARATOR = re.compile(r"[,' \u00a0\u2009\u202f](?<=\d.)(?=\d{3}(?!\d))")
# 1.5 is not 15. Three digits after the only point may as well be thousands; more points are dates and versions.
_DECIMAL = re.compile(r"\.(?<=\d\.)(?<!\.\d\.)(?<!\.\d\d\.)(?<!\.\d{4}\.)(?=\d+(?![\d.]))(?!\d{3}(?!\d))")
# Between two digits a mark is a part of the number (5.12.2024, 12:30), and so is the colon between it and its label:
# "Temperature: 23 degrees", "收盘价：6830元".
_NUMBER_MARK = re.compile(r"[.,](?<=\d.)(?=\d)")
# But not between a label and a date: reposts are "Published: 5 May" on another day.
# "40 decibels", "5 marchers" and "3 novels" are not dates: short names end where the word ends. Long ones may go on,
# for clauses have no spaces: "on5decemberinlondon".
MONTHS = (
    r"(?:january|february|april|august|september|october|november|december|"
    r"(?:jan|feb|mar|march|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?![a-z]))"
)
#: A date behind a label.
DATE_FOLLOWS = rf" *(?:\d{{1,4}} ?[-/年月]|\d\d?\.\d\d?\.|\d\d?:\d\d|\d\d?(?:st|nd|rd|th)? {MONTHS}|(?:19|20)\d\d)"
_LABEL_MARK = re.compile(rf":(?= *\d)(?!(?<!\d:){DATE_FOLLOWS})")
# A longer text is no news page, and is not kept in memory.
_MAX_REMEMBERED_LENGTH = 20_000
#: The weight of a character of a dense script, in letters: 50 Han characters say about as much as 150 letters.
DENSE_WEIGHT = 3


# Vowel points of Hebrew and Arabic, and the Arabic tatweel: most texts leave them out.
_POINTS = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]+")
#: Marks at which a sentence ends.
ENDS = frozenset(".。！？!?；;…।؟")
# After a digit: a raised one, a lowered one, a fraction.
_BESIDE_DIGIT = re.compile(r"[²³¹⁰⁴-⁹₀-₉¼-¾⅐-⅞](?<=\d.)")
# Runs of one class each, for `re` is slow where it stops at every character.
_SENTENCE = re.compile(
    r"[^。！？!?；;…।؟\n][^.。！？!?；;…।؟\n]*(?:(?:\.(?!\s|$)|!(?==)|(?<![^\s(])!(?=[A-Za-z_(]))[^.。！？!?；;…।؟\n]*)*(?:[。！？!?；;…।؟]+[”’」』\"')）]*|\.|\n|$)"
)


def weight(clause: str) -> int:
    """Return the weight of a reduced clause, in letters; a Han character counts for three. O(len)."""
    letters = len(clause) if clause.isascii() else len(DENSE.sub("", clause))
    return letters + DENSE_WEIGHT * (len(clause) - letters)


def folded(text: str) -> str:
    """Return *text* as compared: NFKC, case-folded, Traditional as Simplified, nothing invisible. O(len(text))."""
    return plain(text).casefold()


def plain(text: str) -> str:
    """Return *text* as :func:`folded` does, with its capitals. O(len(text))."""
    if not text.isascii():
        if RARE.search(text):
            # Sorting marks into canonical order is quadratic in their run.
            marks = MANY_MARKS_BEYOND if BEYOND.search(text) else MANY_MARKS
            text = marks.sub(r"\1", ZERO_WIDTH.sub("", text))
        text = _POINTS.sub("", text)
        for wide, narrow in FULL_WIDTH:
            text = text.replace(wide, narrow)
        text = _BESIDE_DIGIT.sub(_apart, text)
        text = simplified(unicodedata.normalize("NFKC", text))
    return text


def _apart(found: re.Match[str]) -> str:
    # NFKC makes "106" of 10⁶, and "11⁄2" of 1½.
    return f"^{found[0]}" if found[0] in "²³¹⁰⁴⁵⁶⁷⁸⁹" else f" {found[0]}"


def clauses(text: str) -> list[tuple[str, int]]:
    """Return :func:`significant_clauses` of any *text*. O(len(text)).

    >>> clauses("On Monday, the bridge was closed; trams turn back.")
    [('thebridgewasclosed', 18)]
    """
    return significant_clauses(reduced(text))


def significant_clauses(text: str) -> list[tuple[str, int]]:
    """Return the clauses of a :func:`reduced` *text* from `MIN_CLAUSE_WEIGHT` on, with their weights, in reading order.

    A lighter number with a label has the weight 0: it makes no duplicate, but may prevent one. O(len(text)).
    """
    light = text if text.isascii() else DENSE.sub("", text)
    # A list, for a generator is entered again for each clause.
    found = []
    for clause, letters in zip(text.split("\n"), light.split("\n"), strict=True):
        clause_weight = len(letters) + DENSE_WEIGHT * (len(clause) - len(letters))
        if clause_weight >= MIN_CLAUSE_WEIGHT:
            found.append((clause, clause_weight))
        elif clause and _is_fact(clause):
            found.append((clause, 0))
    return found


def reduced(text: str) -> str:
    """Return the letters, marks and digits of *text*, folded, with a line end at each clause break. O(len(text))."""
    # As `folded` does: a page has many sentences.
    text = (text if text.isascii() else plain(text)).casefold().replace(DECIMAL_POINT, "")
    text = _LABEL_MARK.sub("", _DIGIT_SEPARATOR.sub("", text))
    text = _NUMBER_MARK.sub("", _DECIMAL.sub(DECIMAL_POINT, text))
    if not text.isascii():
        for mark, usual in TYPOGRAPHIC:
            text = text.replace(mark, usual)
    if text.isascii():
        return text.translate(PLAIN)
    if SPACELESS_CHARACTER.search(text):
        text = _SPACE_BREAK.sub("\n", text)
    return NOISE.sub("", BREAK.sub("\n", text).replace(" ", ""))


def reduced_once(text: str) -> str:
    """Return :func:`reduced` of *text*, cached: a page's text is compared several times."""
    return _remembered(text) if len(text) <= _MAX_REMEMBERED_LENGTH else reduced(text)


# Of a page, its item and its original: 5 kB each, and 20 MB in all for hostile pages of nothing but ligatures.
_remembered = lru_cache(maxsize=16)(reduced)


def without_separators(text: str) -> str:
    """Return *text* with 1,600 as 1600. O(len(text))."""
    return _DIGIT_SEPARATOR.sub("", text)


def pieces(paragraphs: Iterable[str]) -> list[str]:
    """Return *paragraphs*, those of more than `PORTION` characters in pieces, as `portions` cuts them. O(length)."""
    found: list[str] = []
    for paragraph in paragraphs:
        if len(paragraph) > PORTION:
            found += [paragraph[start : start + PORTION] for start in range(0, len(paragraph), PORTION)]
        else:
            found.append(paragraph)
    return found


def portions(paragraphs: Iterable[str]) -> Iterator[str]:
    """Yield the text of *paragraphs* in pieces of at most `PORTION` characters, one paragraph a line. O(characters).

    Their clauses are those of the whole text, but for one that goes on after `PORTION` characters without a line end.
    A longer text is not reduced at once, because NFKC may make eighteen characters of one.
    """
    lines: list[str] = []
    room = PORTION
    for paragraph in paragraphs:
        for piece in (paragraph,) if len(paragraph) <= PORTION else pieces([paragraph]):
            if len(piece) > room and lines:
                yield "\n".join(lines)
                lines, room = [], PORTION
            lines.append(piece)
            room -= len(piece) + 1
    if lines:
        yield "\n".join(lines)


def _is_fact(clause: str) -> bool:
    """Return whether a light *clause* is a number with a label; a date does not count, for reposts have other dates."""
    if clause.isalpha():
        return False
    named, numbers = _DIGITS.subn("", clause)
    is_date = _MONTH.fullmatch(named) or _DATE.search(clause)
    return numbers > 0 and weight(named) >= MIN_LABEL_WEIGHT and not is_date


#: Letters of a line by itself: a price, a name, a label.
SHORT = 60


def is_label(line: str) -> bool:
    """Return whether *line* stands by itself, such as a price, a name or a date, and is no sentence of a text."""
    return len(line) <= SHORT and line[-1:] not in '.!?。！？…"”'


def sentences(paragraph: str) -> list[str]:
    """Return the sentences of *paragraph* as written; every end of a sentence is a clause break too.

    >>> sentences("Trams stood. 桥关了。渡轮开。")
    ['Trams stood.', '桥关了。', '渡轮开。']
    """
    return [*filter(None, map(str.strip, _SENTENCE.findall(paragraph)))]


_DATE = re.compile(r"\d[年月日]")
# What is left of a date without its digits: "monday5thmay" has "mondaythmay".
_MONTH = re.compile(
    rf"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?)?(?:st|nd|rd|th)?{MONTHS}(?:st|nd|rd|th)?"
)
_DIGITS = re.compile(rf"\d+(?:{DECIMAL_POINT}\d+)?")


def one_line(text: str, limit: int = sys.maxsize) -> str:
    """Return *text* on one line without control characters, cut to *limit* characters with an ellipsis."""
    text = " ".join(_CONTROLS.sub("", " ".join(text.split())).split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


# C0, C1 and the bidirectional marks and overrides: a page must not steer the terminal that shows it.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


#: A sentence is repeated when the original has at least this share of its clauses, by weight.
_REPEATED = 0.5
# Sentences between two looks at the budget.
_CHECKED_AFTER = 16
# Characters, of any script, from which on a sentence can have a clause that counts.
_MIN_SENTENCE = MIN_CLAUSE_WEIGHT // DENSE_WEIGHT


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as written, and the share of it, 0-1, that is repeated; ``None`` if it is too short to tell."""

    text: str
    share: float | None

    @property
    def repeated(self) -> bool:
        """Whether the original has it too."""
        return self.share is not None and self.share >= _REPEATED


def marked_sentences(
    paragraphs: Iterable[str], held: Collection[bytes], hash_clause: Callable[[str], bytes]
) -> Iterator[Sentence]:
    """Yield every sentence of *paragraphs*, marked by the clause hashes *held* by the original."""
    for paragraph in paragraphs:
        for sentence in sentences(paragraph):
            total = shared = 0
            # A long text may be of very many sentences that are too short.
            for clause, weight in significant_clauses(reduced(sentence)) if len(sentence) >= _MIN_SENTENCE else ():
                total += weight
                shared += weight * (hash_clause(clause) in held)
            yield Sentence(sentence, shared / total if total else None)


def repeated_sentences(
    page: Page, held: Collection[bytes], hash_clause: Callable[[str], bytes], budget: Budget, most: int = sys.maxsize
) -> list[str]:
    """Return the first sentences of *page*, *most* of them, that repeat clauses *held*, until the *budget* is spent.

    Only the portions of the text in which such clauses were first read are looked at, 20 µs a sentence.
    """
    starts = page.fingerprint.portions
    numbers = {bisect(starts, place) - 1 for place, h in enumerate(page.fingerprint.weights) if h in held}
    found: list[str] = []
    for number, portion in enumerate(portions(page.paragraphs)):
        for count, sentence in enumerate(marked_sentences([portion] if number in numbers else [], held, hash_clause)):
            try:
                if count % _CHECKED_AFTER == 0:
                    budget.check_time()
            except UncheckableError:
                return found
            if sentence.share is not None and sentence.share >= _REPEATED:
                found.append(sentence.text)
                if len(found) >= most:
                    return found
    return found


def as_written(texts: Iterable[str], reduced_clauses: Sequence[str]) -> list[str]:
    """Return the sentences of *texts* with these clauses, as written, or the clauses where not found. O(characters).

    Where *texts* are watched by a budget, what is not found until that is spent is not found.
    """
    missing = dict.fromkeys(reduced_clauses)
    written: dict[str, str] = {}
    with suppress(UncheckableError):
        for sentence in (sentence for text in texts for sentence in sentences(text)):
            found = {*reduced(sentence).split("\n")} & missing.keys()
            written |= dict.fromkeys(found - written.keys(), sentence)
            if len(written) == len(missing):
                break
    return [*dict.fromkeys(written.get(clause, clause) for clause in missing)]
