"""Compares texts by the characters around their punctuation marks, that is by the edges of their clauses.

Source: a Chinese article on the web about how search engines detect duplicate pages; neither its author nor an earlier
publication is known.

Specified: the two characters on either side of each comma, full stop, exclamation mark and question mark, strung
together over the whole text. The string is cut into three, each hashed, and the title is hashed. The title weighs 1.5
and each string 1. From 3 on two pages are duplicates: by three equal strings, or by two and the title.

Left open: where the string is cut. Here into parts of equally many marks, so that a replaced word changes one part
only. A comma more or less may change all three. Half-width and full-width marks are the same, several marks in a row
are one, and a point or comma between two digits is not a mark. A text with fewer marks than strings has no fingerprint:
the title alone never makes two pages duplicates.

Departures: none. Letters are folded before they are taken, as in the whole package. The score is the shared weight as a
part of the 3 that are needed, at most 1.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from dedup_middleware.methods.content_digests import single_spaced
from dedup_middleware.methods.method import Method, WeightedSet, feature, within
from dedup_middleware.text.clauses import folded

if TYPE_CHECKING:
    from dedup_middleware.methods.method import Text

_ASIDE = re.compile(r"[^\w,.。!?]+|(?<=\d)[.,](?=\d)")
_MARKS = re.compile(r"[,.。!?]+")


class PunctuationNeighbours(Method):
    """The title and the strings of neighbours, as up to four features."""

    threshold = 1.0

    def __init__(self, *, characters: int = 2, strings: int = 3, title: float = 1.5, needed: float = 3.0) -> None:
        """Take so many *characters* on either side of a mark, and cut them into *strings*.

        A string weighs 1 and the title *title*; duplicates share a weight of *needed*, 1 to *strings*.
        """
        self._characters = within("characters", characters, 1, 100)
        self._strings = within("strings", strings, 1, 1000)
        self._title = within("title", title, 0, 1000)
        self._needed = within("needed", needed, 1, strings)

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the title and the strings; ``None`` for a text with fewer marks than strings. O(characters)."""
        around = neighbours(text.body, self._characters)
        if len(around) < self._strings:
            return None
        edges = [len(around) * n // self._strings for n in range(self._strings + 1)]
        # A text that repeats itself has equal strings, and each counts.
        strings = Counter(feature("".join(around[start:end])) for start, end in pairwise(edges))
        heading = single_spaced(text.title)
        title = {feature(f"title {heading}"): self._title} if heading and self._title else {}
        return WeightedSet({**strings, **title})

    def similarity(self, new: WeightedSet, old: WeightedSet) -> float:
        """Return the shared weight as a part of the *needed* one, 0 to 1."""
        shared = sum(min(weight, old.weights.get(part, 0.0)) for part, weight in new.weights.items())
        return min(1.0, shared / self._needed)


def neighbours(text: str, characters: int = 2) -> list[str]:
    """Return the neighbours of each mark of *text*: up to so many *characters* before it and after it. O(len(text)).

    They are fewer where the clause on one side is shorter, or the text ends.
    """
    clauses = _MARKS.split(_ASIDE.sub("", folded(text)))
    around = (before[-characters:] + after[:characters] for before, after in pairwise(clauses))
    return [both for both in around if both]
