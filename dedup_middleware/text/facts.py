"""Finds the facts in short texts: numbers with their unit, currency or label.

Another price, amount, size or serial number makes another page of the same words. Dates and times of day do not, for
pages show when they were fetched, published or printed.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

from dedup_middleware.text.clauses import MONTHS, folded, without_separators

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MONTH = rf"{MONTHS}\.?"
# Dates and times of day, which say when a page was made or fetched.
_TIME = re.compile(
    rf"""(?<!\d)(?:
        (?:19|20)\d\d[-/.]\d\d?[-/.]\d\d?(?:t\d\d?)? | \d\d?[-/]\d\d?[-/](?:19|20)?\d\d | \d\d?\.\d\d?\.(?:19|20)\d\d
        | \d{{1,4}}\ ?[年月日号時时分秒] | \d\d?(?:st|nd|rd|th|\.)?\ +{_MONTH}(?:,?\ +(?:19|20)\d\d)?
        | \d\d?:\d\d(?::\d\d)?(?:\ ?[ap]\.?m\b)? | (?:19|20)\d\d(?!\d)
    ) | \b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\ +(?=\d)
    | \b{_MONTH}\ +\d\d?(?:st|nd|rd|th)?\b(?:,?\ +(?:19|20)\d\d\b)?""",
    re.VERBOSE,
)
# Where the pattern above can begin: with one class of characters first, `re` finds these in a tenth of the time.
_MAY_BE_TIME = re.compile(
    r"[\dadfjmnostw](?:(?<=\d)(?<!\d\d)|(?<!\w\w)(?=on|ue|ed|hu|ri|at|un|an|eb|ar|pr|ay|ul|ug|ep|ct|ov|ec))"
)
# Folding makes digits of fractions.
_HAS_NUMBER = re.compile(r"[\d¼-¾⅐-⅞]")
_NUMBER = re.compile(r"\d+(?:[.,/⁄:x×-]\d+)*")
# What stands after a number: a unit, or a noun of one or two words.
_UNIT = re.compile(r" *([%‰°€£¥₹₽$]|[^\W\d_]+(?:[ .-]{1,2}[^\W\d_]+)?)")
_JOINED = str.maketrans(".-", "  ")
_CURRENCY, _SIGNS = frozenset("$€£¥₹₽#№"), frozenset("-−+")
_LABEL_LENGTH = 24
# A number by itself is a fact from this length on: a serial number, a price with its decimals.
_MIN_BARE = 5
#: Lines with numbers around a text that are read: some twenty times what a page has.
MAX_CHARACTERS = 10_000
# What counts readers, or the time since: it differs from one fetch of a page to the next.
_COUNTED = re.compile(
    r"comment|kommentar|coment|repl|antwort|respuesta|réponse|view|visit|hit|like|share|vote|read|follow|download|rating|"
    r"review|answer|post|star|sec|min|hour|day|week|month|year|stunde|tag|woche|jahr|heure|jour|hora|día|ago\b|"
    r"[条條次人赞讚贊顶踩楼级秒週件回]|参与|跟贴|评论|評論|回复|阅读|閱讀|浏览|点击|分享|收藏|小时|小時|天前|分钟|分鐘|周前|个月|コメント|ビュー"
)


def facts_of(text: str) -> Iterator[str]:
    """Yield the numbers of *text*, folded, with the unit, currency or label beside each. O(len(text))."""
    text = _without_times(without_separators(folded(text)), " ; ")
    for number in _NUMBER.finditer(text):
        unit = found[1].translate(_JOINED) if (found := _UNIT.match(text, number.end())) else ""
        before = text[max(0, number.start() - _LABEL_LENGTH) : number.start()]
        sign = before[-1:] if before[-1:] in _SIGNS and not before[-2:-1].isalnum() else ""
        currency = before.rstrip(" -−+")[-1:]
        if currency in _CURRENCY:
            yield f"{currency}{sign}{number[0]} {unit}"
        elif unit:
            if not _COUNTED.match(unit):
                yield f"{sign}{number[0]} {unit}"
        elif label := _last_word(before):
            if not _COUNTED.match(label):
                yield f"{label} {sign}{number[0]}"
        elif len(number[0]) >= _MIN_BARE:
            yield f"{sign}{number[0]}"


def without_dates(text: str) -> str:
    """Return *text*, folded, without dates and times of day. O(len(text))."""
    return _without_times(folded(text), "")


def _without_times(text: str, mark: str) -> str:
    """Return *text* with *mark* in place of each date and time of day."""
    pieces, end = [], 0
    for place in _MAY_BE_TIME.finditer(text):
        start = place.start()
        if start >= end and (found := _TIME.match(text, start)):
            pieces += text[end:start], mark
            end = found.end()
    return "".join([*pieces, text[end:]])


def has_number(text: str) -> bool:
    """Return whether *text* contains a digit or a fraction."""
    return _HAS_NUMBER.search(text) is not None


def all_facts(texts: Iterable[str]) -> set[str]:
    """Return the facts in *texts*; what follows the first `MAX_CHARACTERS` of them counts as one. O(characters)."""
    text = "\n".join(filter(has_number, texts))
    return {*facts_of(text[:MAX_CHARACTERS]), *([text[MAX_CHARACTERS:]] if len(text) > MAX_CHARACTERS else [])}


def facts_of_data(data: object, most: int) -> Iterator[str]:
    """Yield the facts in *data*, parsed JSON, with keys as labels; of its first *most* strings and numbers.

    URLs, dates and identifiers are left out: they differ between two fetches of one page.
    """
    lines: list[str] = []
    waiting: list[tuple[str, object]] = [("", data)]
    while waiting and len(lines) < most:
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(reversed([(str(name), each) for name, each in value.items()]))
        elif isinstance(value, list):
            waiting.extend((key, each) for each in reversed(value))
        elif isinstance(value, (int, float, str)) and not isinstance(value, bool):
            text = str(value).removesuffix(".0")
            if has_number(text) and not _IDENTIFIER.search(text):
                lines.append(f"{key}: {text}")
    # Marked, for what a script carries is compared with what another script carries, not with the text of a page.
    return (f"data {fact}" for fact in facts_of("\n".join(lines)))


def _last_word(text: str) -> str:
    return "".join(takewhile(str.isalpha, reversed(text.rstrip(" -−+").rstrip(":.").rstrip())))[::-1]


# A URL, a path, a date, a token or a time in milliseconds rather than a text: "a/b.js", "2024-05-01T10:00", "826d9947".
_IDENTIFIER = re.compile(r"://|^\S*/\S*$|^\d{4}-\d\d-\d\d|^(?=.*\d)(?=.*[a-zA-Z])[\w.~-]{8,}$|^\d{9,}$")
