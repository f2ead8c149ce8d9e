"""Splits texts into words, measures how much two runs of words are alike, and removes credits and links.

A word is a run of letters with their marks, a run of digits, or one character, with its vowel signs and marks, of a
script that writes no spaces.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import TYPE_CHECKING

from dedup_middleware.common.patterns import pattern
from dedup_middleware.text.characters import (
    HAN,
    HAN_COMPATIBILITY,
    HAN_EXTENSION_A,
    KANA,
    LETTER_MARKS,
    SPACELESS,
    SPACELESS_CHARACTER,
    UNKNOWN,
)
from dedup_middleware.text.clauses import folded, without_separators

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_DENSE = KANA + HAN_EXTENSION_A + HAN + HAN_COMPATIBILITY + "\U00020000-\U0003ffff"
_UNSPACED = SPACELESS + _DENSE
_UNSPACED_WORD = pattern(rf"[{_UNSPACED}]")


def _symbols() -> str:
    found = (c for c in map(chr, range(0x2000)) if unicodedata.category(c) in {"Sm", "Sc"})
    return "".join(map(re.escape, found))


#: Symbols that carry meaning, as a class of characters: signs, currencies, check marks, arrows, suits, emoji, "C++".
#: Bullets, quotes, dashes and other punctuation are typography.
SIGNS = rf"{_symbols()}%‰&#*@\\\u2070-\u209f\u20a0-\u20bf\u2100-\u2bff\U0001f000-\U0001faff"
_NUMERAL = "[零〇一二三四五六七八九十百千万亿两]"
# A space may stand between characters of a script without spaces: each is a word.
_NUMBER = pattern(rf"\d+(?:[.:,]\d+)*|{_NUMERAL}(?: ?{_NUMERAL})*")
_ASCII_WORD = pattern(r"[0-9]+|[A-Za-z]+")
# A consonant of Thai, Lao, Burmese or Khmer, with the vowels written before and after it, and those stacked below.
_BASE = rf"(?=\w)(?!\d)[{SPACELESS}]"
_CLUSTER = (
    rf"[\u0e40-\u0e44\u0ec0-\u0ec4]?{_BASE}"
    rf"(?:[\u17d2\u1039]{_BASE}|[{LETTER_MARKS}\u0e30\u0e32\u0e33\u0e45\u0eb0\u0eb2\u0eb3\u0ebd])*"
)
WORD = pattern(rf"[{_DENSE}{UNKNOWN}]|\d+|[^\W\d_{_UNSPACED}]+(?:[{LETTER_MARKS}]+[^\W\d_{_UNSPACED}]*)*|{_CLUSTER}")
#: A run of letters with their marks, as a pattern: `str.isalpha` and ``[^\W\d_]`` know no vowel signs.
LETTERS = rf"[^\W\d_]+(?:[{LETTER_MARKS}]+[^\W\d_]*)*"
_LETTERS = pattern(LETTERS)
MINUS = "-"
#: To leave one of these out is to write another formula.
OPERATORS = frozenset("-+×÷±=")
_DASHES = frozenset("-\u2212\u2013")
# Of a number, of a grade ("A-"), and in the place of a value (": -"): other dashes are typography.
_MINUS = r"(?<![\w)])[-\u2212\u2013](?=\d)|(?<=[:(]\s)-(?=\s)|(?<=[A-Za-z])-(?!\w)"
# "a != b", "a == b": elsewhere the mark of an exclamation is typography.
_NOT = "!"
_SYMBOL = pattern(rf"[{SIGNS}]|{_NOT}(?==)|{_MINUS}")
# A number with its marks: "25:23", "1.5"; a comma between numbers of a list has three digits after it, or another one.
_TOKEN = pattern(rf"\d+(?:(?:[.:]\d+)+|,\d\d?(?![\d,]))|{WORD.pattern}|{_SYMBOL.pattern}")
# A pair of characters of a script without spaces (the next one is found again), the last one of a run, or a word.
_TERM = pattern(rf"(?=([{_DENSE}]{{2}})).|(?<=[{_DENSE}])[{_DENSE}]|({WORD.pattern})")
# What writers of Chinese interchange, and what is left of Traditional characters where the word decides.
_VARIANTS = [
    frozenset("的地得"),
    frozenset("x×"),
    *map(frozenset, zip("做他账像份唯那坐需复苏了", "作它帐象分惟哪座须覆甦瞭", strict=True)),
    *map(frozenset, zip("卫着借台痹叙背具仿", "衞著藉枱痺敍揹俱彷", strict=True)),
]


# British and American English: "neighbours", "realising", "centre"; not "hour", "prise".
_BRITISH = pattern(r"(?<=[a-z]{3})our|(?<=[a-z]{3})is(?=e|ing|ation)|(?<=[a-z])tre(?=s?\b)")
_AMERICAN = {"our": "or", "is": "iz", "tre": "ter"}


def is_variant(word: str, other: str) -> bool:
    """Return whether two words, folded, are two spellings of one word.

    >>> is_variant("colours", "colors"), is_variant("sugar", "salt")
    (True, False)
    """
    if any(word in both and other in both for both in _VARIANTS):
        return True
    one, two = (_BRITISH.sub(lambda found: _AMERICAN[found[0]], each) for each in (word, other))
    return one == two


def words_of(text: str) -> list[str]:
    """Return the words of *text*, folded, in reading order. O(len(text))."""
    return split_words(folded(text))


def split_words(text: str) -> list[str]:
    """Return the words of *text* as they are written. O(len(text))."""
    return (_ASCII_WORD if text.isascii() else WORD).findall(text)


def symbols_of(text: str) -> list[str]:
    """Return the symbols in *text* that carry meaning, with one minus. O(len(text))."""
    return [MINUS if symbol in _DASHES else symbol for symbol in _SYMBOL.findall(text)]


def tokens(text: str) -> list[str]:
    """Return the words, the numbers and the symbols of *text*, as they are written. O(len(text)).

    >>> tokens("It lost 25:23, at -1,600 m")
    ['It', 'lost', '25:23', 'at', '-', '1600', 'm']
    """
    return [MINUS if token in _DASHES else token for token in _TOKEN.findall(without_separators(text))]


def is_symbol(token: str) -> bool:
    """Return whether one of the :func:`tokens` of a text is a symbol."""
    return token in {MINUS, _NOT} or _SYMBOL.fullmatch(token) is not None


def are_letters(text: str) -> bool:
    """Return whether *text* is letters with their marks, and nothing else; see `LETTERS`."""
    return text.isalpha() or _LETTERS.fullmatch(text) is not None


def is_unspaced(word: str) -> bool:
    """Return whether *word* begins with a character of a script that writes no spaces between words."""
    return _UNSPACED_WORD.match(word) is not None


def terms(text: str) -> list[str]:
    """Return the words of *text*; in scripts without spaces pairs of characters, where one alone means little.

    >>> terms("北京市2 news")
    ['北京', '京市', '2', 'news']
    """
    if text.isascii():
        return _ASCII_WORD.findall(text)
    if SPACELESS_CHARACTER.search(text):
        return [*_pairs(text)]
    return [term for pair, word in _TERM.findall(text) if (term := pair or word)]


def _pairs(text: str) -> Iterator[str]:
    """Yield :func:`terms` of a *text* in which the characters of a script without spaces have signs of their own."""
    before, end, was_pair = "", -1, False
    for found in WORD.finditer(text):
        word = found[0]
        is_pair = bool(before) and found.start() == end and is_unspaced(word)
        if is_pair:
            yield before + word
        elif before and not was_pair:
            yield before
        was_pair = is_pair
        before, end = (word, found.end()) if is_unspaced(word) else ("", -1)
        if not before:
            yield word
    if before and not was_pair:
        yield before


def numbers_in(words: Iterable[str]) -> list[str]:
    """Return the numbers in *words*, each as it is divided: "1.2" is another one than "12", and "3-1" than "1-3".

    >>> numbers_in(["v1.2", "of", "3", "kg"])
    ['1.2', '3']
    """
    return [number.replace(" ", "") for number in _NUMBER.findall(" ".join(words))]


# A negation by itself, in the languages that have one; those of one root together.
_NEGATION = pattern(
    r"not?|never|cannot|(?:is|was|are|were|do|does|did|would|could|should|has|have|had)n|t|without|neither|nor|hardly|"
    "nicht|kein(?:e[mnrs]?)?|nie(?:mals)?|ohne|niet|geen|nooit|zonder|inte|ej|aldrig|utan|ikke|uden|uten|"
    "ne|pas|jamais|sans|aucune?|non|senza|nunca|jamás|sin|não|sem|nu|fără|"
    "не|нет|ни|без|ні|немає|nie|bez|není|δεν?|μην?|χωρίς|değil|yok|nem|nincs|ei|eivät|ilman|tidak|bukan|tanpa|"
    "không|chưa|chẳng|لا|لم|لن|ليس|ليست|غير|دون|بدون|نه|نیست|לא|אין|בלי|नहीं|न|मत|बिना|না|নয়|নেই|안|못|않|ไม่|ບໍ່|"
    "[不没沒未无無勿非]"
)


def is_negation(word: str) -> bool:
    """Return whether a *word*, folded, is a negation by itself: "not", "kein", "не", "不"."""
    return _NEGATION.fullmatch(word) is not None


# Longer lines that begin like a credit are sentences.
_MAX_LINE = 120
# English, German, French, Spanish and Chinese, as a line of its own.
_CREDIT = pattern(
    r"""\W{0,3}(?:
    (?:©|\(c\)|copyright\b|all\ rights\ reserved)
    |(?:(?:additional\ )?reporting|editing|edited|written|compiled|translated|photos?|photography|pictures?|image|video
        |source|credits?|quelle|foto|bild|crédits?|fuente)\b(?:\ and\ \w+)?\s?(?:by\b|von\b|par\b|por\b|[:：])
    |(?:first|last|originally|zuletzt)?\ ?
        (?:updated|published|posted|modified|aktualisiert|veröffentlicht|publié|actualizado)\b
        (?=\W*(?:on|at|am|le|el)?\W*(?:[^\W\d]+,?\ )?[^\W\d]*\.?\ ?\d)
    |(?:责任编辑|责编|编辑|编审|来源|稿源|出处|作者|记者|校对|审核|图源|摄影|发布时间|更新时间|責任編輯|來源|記者)\s?[:：/／]
    |(?:完|end|ends|fin)\W*$
    |(?:url|permalink|link)\s?[:：]
    )""",
    re.IGNORECASE | re.VERBOSE,
)
# At the beginning of a paragraph: "LONDON (Reuters) - ", "新华社北京4月1日电（记者王明）".
_DATELINE = pattern(
    r"[（(【]?[^\s，。（(]{0,14}\d{1,2}月\d{1,2}日[电電讯訊][)）】]?(?:\s?[（(][^）)]{0,30}[）)])?"
    r"|[A-Z][A-Z.,/ ]{2,30}(?:,? (?:[A-Z][a-z]{2,8}\.? \d{1,2}))?\s?(?:\([A-Z][\w .]{1,20}\))?\s?[-—–]+\s"
)
# The local part of an address has at most 64 characters (RFC 5321); without the limit a long word takes quadratic time.
_LINK = pattern(r"(?:\b[a-z]{3,6}://|\bwww\.)[^\s<>（）]+|(?<![A-Za-z0-9_.+-])[A-Za-z0-9_.+-]{1,64}@[\w-]+\.[\w.]+")


def without_credits(paragraphs: Iterable[str]) -> Iterator[str]:
    """Yield *paragraphs* without credits and datelines. O(characters)."""
    for paragraph in paragraphs:
        if len(paragraph) <= _MAX_LINE and _CREDIT.match(paragraph):
            continue
        dateline = _DATELINE.match(paragraph)
        yield paragraph[dateline.end() :] if dateline else paragraph


# "1 ", "12. ", "3:1 ", "(4) " before a line.
_NUMBERED = pattern(r"\W{0,2}(?:\d{1,3}[:.])?(\d{1,4})[.:)\]]{0,2}\s+(?=\D)")
# Lines in a row, and the share of these whose numbers follow one another.
_FEWEST_NUMBERED, _IN_ORDER = 3, 0.8


def without_numbering(paragraphs: Iterable[str]) -> list[str]:
    """Return *paragraphs* without the numbers of lines, verses or sections, if they are numbered in their order.

    Sites number the same lines in ways of their own, or not at all. O(paragraphs).

    >>> without_numbering(["1 In the beginning", "2 And the earth", "3 And God said"])
    ['In the beginning', 'And the earth', 'And God said']
    """
    lines = [*paragraphs]
    if not any(map(_NUMBERED.match, lines)):
        return lines
    found = [(place, match, int(match[1])) for place, line in enumerate(lines) if (match := _NUMBERED.match(line))]
    steps = sum(after[2] - before[2] == 1 for before, after in pairwise(found))
    if len(found) >= _FEWEST_NUMBERED and steps >= _IN_ORDER * (len(found) - 1):
        for place, match, _ in found:
            lines[place] = lines[place][match.end() :]
    return lines


def without_links(paragraphs: Iterable[str]) -> Iterator[str]:
    """Yield *paragraphs* without URLs and e-mail addresses, which another template shows as links. O(characters)."""
    for text in paragraphs:
        yield _LINK.sub(" ", text) if "://" in text or "@" in text or "www." in text else text
