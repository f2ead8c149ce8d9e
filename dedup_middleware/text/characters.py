"""Defines the classes of characters: scripts, punctuation and noise."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from dedup_middleware.common.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Thai and Lao.
THAI = "\u0e00-\u0eff"
MYANMAR = "\u1000-\u109f"
KHMER = "\u1780-\u17ff"
KANA = "\u3040-\u30ff"
HANGUL = "\uac00-\ud7af"
#: The basic block: what texts of today are written in.
HAN = "\u4e00-\u9fff"
HAN_EXTENSION_A = "\u3400-\u4dbf"
HAN_COMPATIBILITY = "\uf900-\ufaff"
#: The planes above the basic one.
HAN_RARE = "\U00020000-\U0003ffff"

#: Without spaces between words, and without a dictionary here.
SPACELESS = THAI + MYANMAR + KHMER
#: What a font of its own or a wrong charset hides: private use, and the mark of what cannot be decoded.
UNKNOWN = "\ue000-\uf8ff\ufffd\U000f0000-\U0010ffff"


_MARKS = ("Zs", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So")
_INVISIBLE = ("Cc", "Cf")

# Marks that stand inside a clause: quotes and titles come and go between reposts, hyphens and slashes join words.
_INSIDE = frozenset("'\"`´‘’‚‛“”„‟‹›«»「」『』〝〞〟《》〈〉-‐‑‒/\\&@#%*‰′″〃\u00b7\u30fb\u2027")

#: Stands for the point of a number with decimals, so that it is no punctuation. No text has it: `clauses` takes it out.
DECIMAL_POINT = "\0"


def _by_category() -> dict[str, list[str]]:
    # The basic plane has every mark in common use, and none among Han, Hangul, surrogates and private use; the planes
    # above would cost a tenth of a second at import.
    found: dict[str, list[str]] = {category: [] for category in (*_MARKS, *_INVISIBLE, "Mn", "Mc", "Me", "Lm")}
    for start, end in ((0, 0x3400), (0x4DC0, 0x4E00), (0xA000, 0xAC00), (0xF900, 0x10000)):
        for character in map(chr, range(start, end)):
            if (category := unicodedata.category(character)) in found:
                found[category].append(character)
    return found


def _class(characters: Iterable[str]) -> str:
    """Return a class of *characters*; as ranges, for `re` compiles these in a quarter of the time."""
    ranges: list[list[int]] = []
    for code in sorted(set(map(ord, characters))):
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "[" + "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ranges) + "]"


# Deleted below: each full garbage collection of a crawl would look at all of it.
_category = _by_category()
_breaks = frozenset(chain("\n\r\u2028\u2029", *map(_category.__getitem__, ("Po", "Ps", "Pe", "Pd")))) - _INSIDE
_noise = frozenset(chain(map(chr, range(0x1F000, 0x1FB00)), *map(_category.__getitem__, (*_MARKS, *_INVISIBLE)))) - {
    "\n",
    "\ufffd",
    DECIMAL_POINT,
}
# What NFKC may have to sort, by what it makes of a character: a few without an order are made of two marks with one.
_stacked = [
    c
    for c in chain(*map(_category.__getitem__, ("Mn", "Mc", "Lm")))
    if unicodedata.combining(unicodedata.normalize("NFKD", c)[0])
]
LETTER_MARKS = (
    _class(chain(*map(_category.__getitem__, ("Mn", "Mc", "Me"))))[1:-1] + "\U00010a01-\U00011fff\U0001e000-\U0001e94a"
)
"""Vowel signs, viramas, points and accents, as a class of characters: to Python they are no letters. Beyond the basic
plane whole scripts, of letters and marks."""
# `re` tries ranges beyond the basic plane one by one, at each character: in a pattern of their own, for texts with any.
_SCRIPTS_BEYOND = "\U00010000-\U0001efff"
_stacked_beyond = filter(
    unicodedata.combining,
    map(chr, chain(range(0x10000, 0x11E00), range(0x16A00, 0x17000), range(0x1BC00, 0x1EA00))),
)

# Each pattern begins with one class of characters, which `re` looks for far quicker than for anything else.
BREAK = pattern(_class(_breaks) + "+")
"""What ends a clause."""
NOISE = pattern(_class(_noise) + "+")
"""What is neither a letter, a mark on one, nor a digit."""
ZERO_WIDTH = pattern(_class(_category["Cf"]) + "+")
MANY_MARKS, MANY_MARKS_BEYOND = (
    pattern(f"({marks}{{30}}){marks}+") for marks in (_class(_stacked), _class([*_stacked, *_stacked_beyond]))
)
"""More marks on one letter than any language writes: 30 (UAX #15, stream-safe). Group 1 is the first thirty."""
RARE = pattern(f"{_class([*_category['Cf'], *_stacked])[:-1]}{_SCRIPTS_BEYOND}]")
"""What the patterns above begin with: one look instead of two for most texts."""
BEYOND = pattern(f"[{_SCRIPTS_BEYOND}]")
"""Where `MANY_MARKS_BEYOND` is needed: scripts beyond the basic plane, which emoji and Han are not."""
DENSE = pattern(f"[{KANA}{HAN_EXTENSION_A}{HAN}{HANGUL}{HAN_COMPATIBILITY}{HAN_RARE}]+")
"""Scripts that write a word or syllable in one character: Han, kana, Hangul."""
SPACELESS_CHARACTER = pattern(f"[{SPACELESS}]")
"""Thai, Lao, Myanmar and Khmer write no spaces between words: there a space is punctuation."""

#: For `str.translate`, which takes a tenth of the time of `BREAK` and `NOISE`, as long as it meets ASCII only.
PLAIN = {code: "\n" if chr(code) in _breaks else None if chr(code) in _noise else chr(code) for code in range(128)}
#: The marks that most often keep a text from being ASCII, with others of the same effect.
TYPOGRAPHIC = (("‘", "'"), ("’", "'"), ("“", "'"), ("”", "'"), ("–", ";"), ("—", ";"), ("£", "$"), ("€", "$"))
#: What Chinese texts are full of. With these replaced, NFKC finds nothing to do in most, in a fortieth of the time. The
#: last two are whole Arabic phrases, of which NFKC makes eighteen and eight characters slowly.
FULL_WIDTH = [(wide, unicodedata.normalize("NFKC", wide)) for wide in "，：；！？（）．　…\ufdfa\ufdfb"]

del _category, _breaks, _noise, _stacked, _stacked_beyond

_HAN = pattern(f"[{HAN_EXTENSION_A}{HAN}]")


@cache
def _traditional() -> tuple[re.Pattern[str], dict[int, str]]:
    # Character by character, not by OpenCC's phrases, so that what surrounds a clause cannot change it.
    from opencc import OpenCC  # noqa: PLC0415 - 20 ms, with the table, that a crawl without Chinese need not spend

    characters = [chr(c) for start, end in ((0x3400, 0x4DC0), (0x4E00, 0xA000)) for c in range(start, end)]
    simplified = OpenCC("t2s").convert("\n".join(characters)).split("\n")
    table = {ord(old): new for old, new in zip(characters, simplified, strict=True) if old != new}
    return pattern(_class(map(chr, table))), table


def simplified(text: str) -> str:
    """Return *text* with every Traditional Chinese character as its Simplified one. O(len(text))."""
    if not _HAN.search(text):
        return text
    any_of, table = _traditional()
    return text.translate(table) if any_of.search(text) else text
