"""Splits texts into words, measures how much two runs of words are alike, and removes credits and links.

A word is a run of letters with their marks, a run of digits, or one character, with its vowel signs and marks, of a
script that writes no spaces.
"""

from __future__ import annotations

import re
import unicodedata
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
from dedup_middleware.text.clauses import DATE_FOLLOWS, folded, is_label, weight, without_separators

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
_NUMBER = pattern(rf"\d+(?:[.:,/^-]\d+)*|{_NUMERAL}(?: ?{_NUMERAL})*")
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
OPERATORS = frozenset("-+×÷±=!")
_DASHES = frozenset("-\u2212\u2013")
# Of a number, of a grade ("A-"), and in the place of a value (": -"): other dashes are typography.
_MINUS = r"(?<![\w)])[-\u2212\u2013](?=\d)|(?<=[:(]\s)-(?=\s)|(?<=[A-Za-z])-(?!\w)"
# "a != b", "(!ready)": elsewhere the mark of an exclamation is typography.
_NOT = "!"
# "r^2", "r/2".
_OF_FORMULA = r"(?<=[^\W\d])[/^](?=\d)"
_SYMBOL = pattern(rf"[{SIGNS}]|{_NOT}(?==)|(?<![^\s(]){_NOT}(?=[A-Za-z_(])|{_OF_FORMULA}|{_MINUS}")
# A number with its marks: "25:23", "1.5", "1/2", "10^6"; a comma between numbers of a list has three digits after it,
# or another one. With a space on each side, or on none, a dash joins two numbers.
_TOKEN = pattern(rf"\d+(?:(?:[.:/^-]\d+)+|,\d\d?(?![\d,]))|{WORD.pattern}|{_SYMBOL.pattern}")
_DASH = pattern(r"[ \u2010-\u2014\u2212](?<=\d.)(?:(?<! )|[-\u2012-\u2014\u2212] )(?=\d)")
# A pair of characters of a script without spaces (the next one is found again), the last one of a run, or a word.
_TERM = pattern(rf"(?=([{_DENSE}]{{2}})).|(?<=[{_DENSE}])[{_DENSE}]|({WORD.pattern})")
# Variants of Chinese characters, as dictionaries have them; particles; and what is written for a times sign.
_VARIANTS = [
    frozenset("的地得"),
    frozenset("x×"),
    *map(frozenset, zip("账唯复苏了卫着借台痹叙背具仿", "帐惟覆甦瞭衞著藉枱痺敍揹俱彷", strict=True)),
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

    >>> tokens("It lost 25:23, at -1,600 m, in 2019 – 2020")
    ['It', 'lost', '25:23', 'at', '-', '1600', 'm', 'in', '2019-2020']
    """
    text = _DASH.sub(MINUS, without_separators(text).replace("⁄", "/"))
    return [MINUS if token in _DASHES else token for token in _TOKEN.findall(text)]


def is_symbol(token: str) -> bool:
    """Return whether one of the :func:`tokens` of a text is a symbol."""
    return token in {MINUS, _NOT} or _SYMBOL.fullmatch(token) is not None


def weight_of(words: Iterable[str]) -> int:
    """Return the weight of *words*, :func:`tokens` of a text, in letters; see `clauses.weight`. O(characters)."""
    return weight("".join([w for w in words if (w.isascii() and w.isalnum()) or not is_symbol(w)]))


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
    |(?P<named>(?:(?:additional\ )?reporting|editing|edited|written|compiled|translated|photos?|photography|pictures?
        |image|video|source|credits?|quelle|foto|bild|crédits?|fuente)\b
        (?:\ and\ \w+)?\s?(?:by\b|von\b|par\b|por\b|[:：]))
    |(?:first|last|originally|zuletzt)?\ ?
        (?:updated|published|posted|modified|aktualisiert|veröffentlicht|publié|actualizado)\b
        (?=\W*(?:on|at|am|le|el)?\W*(?:[^\W\d]+,?\ )?[^\W\d]*\.?\ ?\d)
    |(?:责任编辑|责编|编辑|编审|来源|稿源|出处|作者|记者|校对|审核|图源|摄影|发布时间|更新时间|責任編輯|來源|記者)\s?[:：/／]
    |(?:完|end|ends|fin)\W*$
    |(?:url|permalink|link)\s?[:：]
    )""",
    re.IGNORECASE | re.VERBOSE,
)
# In the place of a name: "Credits: 30", "Credit: EUR 500".
_QUANTITY = pattern(rf"\W{{0,3}}(?:[^\W\d]{{1,3}}\W{{1,2}})?(?!{DATE_FOLLOWS})\d", re.IGNORECASE)
# At the beginning of a paragraph, with a day or an agency: "LONDON (Reuters) - ", "新华社北京4月1日电（记者王明）".
_DATELINE = pattern(
    r"[（(【]?[^\s，。（(]{0,14}\d{1,2}月\d{1,2}日[电電讯訊][)）】]?(?:\s?[（(][^）)]{0,30}[）)])?"
    r"|[A-Z][A-Z.,/ ]{2,30}(?:,? [A-Z][a-z]{2,8}\.? \d{1,2}|\s?(?=\())\s?(?:\([A-Z][\w .]{1,20}\))?\s?[-—–]+\s"
)
# The local part of an address has at most 64 characters (RFC 5321); without the limit a long word takes quadratic time.
_LINK = pattern(r"(?:\b[a-z]{3,6}://|\bwww\.)[^\s<>（）]+|(?<![A-Za-z0-9_.+-])[A-Za-z0-9_.+-]{1,64}@[\w-]+\.[\w.]+")


def without_credits(paragraphs: Iterable[str]) -> Iterator[str]:
    """Yield *paragraphs* without credits and datelines. O(characters)."""
    for paragraph in paragraphs:
        credit = _CREDIT.match(paragraph) if len(paragraph) <= _MAX_LINE else None
        if credit and not (credit["named"] and _QUANTITY.match(paragraph, credit.end())):
            continue
        dateline = _DATELINE.match(paragraph)
        yield paragraph[dateline.end() :] if dateline else paragraph


# "1 ", "12. ", "3:1 ", "(4) " before a line; group 2 is a mark behind the number.
_NUMBERED = pattern(r"\W{0,2}(?:\d{1,3}[:.])?(\d{1,3})([.:)\]]{0,2})\s+(?=\D)")
# Lines in a row, from 1 on, and from another number on: three quantities may follow one another.
_FEWEST_NUMBERED, _FEWEST_FURTHER = 3, 5


def without_numbering(paragraphs: Iterable[str]) -> list[str]:
    """Return *paragraphs* without the numbers of lines, verses or sections, each by one more than the last.

    Sites number the same lines in ways of their own, or not at all. Those of short lines begin with 1, and have a
    mark behind them: "2 eggs" has none. O(paragraphs).

    >>> without_numbering(["1. Wash your hands", "2. Open the box", "3. Count the pills", "20 pills are in it"])
    ['Wash your hands', 'Open the box', 'Count the pills', '20 pills are in it']
    """
    lines = [*paragraphs]
    runs: dict[str, list[tuple[int, re.Match[str]]]] = {}
    for place, line in enumerate(lines):
        if found := _NUMBERED.match(line):
            run = runs.setdefault(found[2], [])
            if run and int(found[1]) != int(run[-1][1][1]) + 1:
                _strip(lines, run)
                run.clear()
            run.append((place, found))
    for run in runs.values():
        _strip(lines, run)
    return lines


def _strip(lines: list[str], run: list[tuple[int, re.Match[str]]]) -> None:
    """Remove the numbers of a *run* of lines, if they number these."""
    begins = run[0][1][1] == "1"
    is_marked = begins and run[0][1][2] != ""
    is_text = is_marked or 2 * sum(is_label(lines[place]) for place, _ in run) <= len(run)
    if is_text and len(run) >= (_FEWEST_NUMBERED if begins else _FEWEST_FURTHER):
        for place, found in run:
            lines[place] = lines[place][found.end() :]


def without_links(paragraphs: Iterable[str]) -> Iterator[str]:
    """Yield *paragraphs* without URLs and e-mail addresses, which another template shows as links. O(characters)."""
    for text in paragraphs:
        yield _LINK.sub(" ", text) if "://" in text or "@" in text or "www." in text else text
