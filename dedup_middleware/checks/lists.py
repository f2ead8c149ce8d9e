"""Compares two texts as lists of lines: what is at another place, values that others repeat, lines by themselves."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from dedup_middleware.checks.table import Edit, Kind
from dedup_middleware.extraction.features import is_passing
from dedup_middleware.items.item_values import is_to_come
from dedup_middleware.text.clauses import MONTHS, SHORT, folded, is_label, plain, weight
from dedup_middleware.text.words import tokens, weight_of, without_credits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

#: Letters of a value in a sentence, "part time": what is longer stands for several.
VALUE = 15
_DATED = re.compile(rf"(?:19|20)\d\d ?[-/.年] ?\d|\d ?[月日]|{MONTHS}")
_LABELLED = re.compile(r"\s*[^\W\d][^:：\d]*[:：]")
_HOUR = re.compile(r"\d[:：]\d\d")
# Lines that have an order in both texts.
_FEWEST = 3


def moved_lines(
    here: Iterable[tuple[str, bool]], there: Iterable[tuple[str, bool]], is_sites: Callable[[str], bool]
) -> Iterator[Edit]:
    """Yield the lines that are at another place of a list that both texts have, or a part of it: ranks, steps.

    Both are sentences, each with whether it is a line by itself; labels of the site have no place. Two lines of a
    longer list may be a title and what is above it. O(sentences).
    """
    lists = _lists(there)
    places = {line: (number, place) for number, lines in enumerate(lists) for place, line in enumerate(lines)}
    for lines in _lists(here):
        parts: dict[int, list[str]] = {}
        for line in lines:
            if line in places:
                parts.setdefault(places[line][0], []).append(line)
        for number, part in parts.items():
            is_list = len(part) >= _FEWEST or len(part) == len(lines) == len(lists[number])
            if is_list and part != sorted(part, key=places.__getitem__):
                own = [line for line in part if not is_sites(line)]
                other = sorted(own, key=places.__getitem__)
                yield from (Edit(Kind.LINE, one, two, one) for one, two in zip(own, other, strict=True) if one != two)


def replaced_values(here: Sequence[str], there: Sequence[str]) -> Iterator[Edit]:
    """Yield the short lines of *here* between two that *there* has with another one between them. O(lines).

    Only where one of the two stands in its text more than once, so that no sentence is missing: of "Gate", "open",
    "Bridge", "closed", the gate may be closed, too.

    >>> [*replaced_values(["Gate", "no", "Bridge", "no", "End"], ["Gate", "yes", "Bridge", "no", "End"])][0][:3]
    (<Kind.LINE: 'a line or short sentence that replaces another'>, 'no', 'yes')
    """
    texts = [[line for line in lines if line.strip()] for lines in (here, there)]
    repeated = {line for lines in texts for line, count in Counter(lines).items() if count > 1 and is_label(line)}
    if not repeated:
        return
    between: dict[tuple[str, str], list[str]] = {}
    for before, line, after in _threes(texts[1]):
        between.setdefault((folded(before), folded(after)), []).append(line)
    for before, line, after in _threes(texts[0]):
        others = between.get((folded(before), folded(after)), [line])
        is_repeated = line in repeated or others[0] in repeated
        # Ages and counts of readers are others at each fetch.
        is_value = is_label(line) and is_label(others[0]) and not (is_passing(line) and is_passing(others[0]))
        if is_repeated and is_value and folded(line) not in map(folded, others):
            yield Edit(Kind.LINE, line, others[0], line)


def _threes(lines: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Return each line with the two beside it, but for the first one: that is a title."""
    return zip(lines, lines[1:], (*lines[2:], ""), strict=False)


def _lists(text: Iterable[tuple[str, bool]]) -> list[list[str]]:
    """Return the short lines of a *text* that follow one another, short sentences among them."""
    groups = groupby(text, key=lambda each: each[1] and (is_label(each[0]) or weight(each[0]) <= SHORT))
    return [[line for line, _ in group] for is_list, group in groups if is_list]


def is_value(line: str, now: float) -> bool:
    """Return whether *line* gives a number or two: "When: 12 May 2027, 18:30"; not one to read, nor a dateline.

    A date by itself is one if it is to come at *now*, in seconds since 1970.
    """
    if is_to_come(line, now):
        return True
    if weight_of(word for word in tokens(plain(line)) if not word[:1].isdecimal()) > VALUE or is_passing(line):
        return False
    return _LABELLED.match(line) is not None or not is_dated(line)


def is_dated(line: str) -> bool:
    """Return whether *line* stands by itself and has a date."""
    return is_label(line) and _DATED.search(folded(line)) is not None


def is_free_line(text: str) -> bool:
    """Return whether a line by itself is of its publication: a credit, a dateline, a date, an age, a count of views."""
    return not [*without_credits([plain(text)])] or (
        # A date with an hour is that of an event.
        is_label(text) and is_passing(text) and _HOUR.search(text) is None
    )
