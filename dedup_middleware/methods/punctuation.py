"""The characters around punctuation marks: what stands at the edges of its clauses tells one text from another.

Source: a Chinese article of the web on how search engines detect duplicate pages; neither its author nor an earlier
publication is known.

Specified: the two characters on either side of each comma, full stop, exclamation mark and question mark, strung
together over the whole text; the string cut into three, each hashed; a hash of the title. The title weighs 1.5 and each
string 1; from 3 on two pages are duplicates: by three equal strings, or by two and the title.

Left open: where the string is cut. Into parts of as many marks each, so that a word replaced changes one part only; a
comma put in or left out may change all three, and nothing in the method helps then. Half-width and full-width marks are
the same, several marks in a row are one, and a point or comma between two digits is none. A text with fewer marks than
strings has no fingerprint: its title alone could never tell it.

Departures: none. Letters are folded before they are taken, as everywhere in this product. The score is the shared
weight as a part of the 3 that are needed, at most 1.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

from dedup_middleware.fingerprints.method import Method, Print, Text, WeightedSet, feature, within
from dedup_middleware.methods.wording import whole
from dedup_middleware.text.clauses import folded

_ASIDE = re.compile(r"[^\w,.。!?]+|(?<=\d)[.,](?=\d)")
_MARKS = re.compile(r"[,.。!?]+")


class PunctuationNeighbours(Method):
    """A `Method`: up to four features, the title and the strings. O(length of the text)."""

    threshold = 1.0

    def __init__(self, *, characters: int = 2, strings: int = 3, title: float = 1.5, needed: float = 3.0) -> None:
        """Take so many *characters* on either side of a mark, 1 to 100, and cut them into *strings*, 1 to 1000.

        A string weighs 1 and the title *title*, 0 to 1000; *needed*, 1 to *strings*, is what duplicates share.
        """
        self._characters = int(within("characters", characters, 1, 100))
        self._strings = int(within("strings", strings, 1, 1000))
        self._title = within("title", title, 0, 1000)
        self._needed = within("needed", needed, 1, strings)

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the title and the strings; ``None`` for a text with fewer marks than strings."""
        around = neighbours(whole(text), self._characters)
        if len(around) < self._strings:
            return None
        edges = [len(around) * n // self._strings for n in range(self._strings + 1)]
        # A text that repeats itself has equal strings; each counts.
        strings = Counter(feature("".join(around[start:end])) for start, end in pairwise(edges))
        heading = " ".join(folded(text.title).split())
        title = {feature(f"title {heading}"): self._title} if heading and self._title else {}
        return WeightedSet({**strings, **title})

    def score(self, new: Print, old: Print) -> float:
        """Return the shared weight as a part of what is needed, 0 to 1."""
        if not (isinstance(new, WeightedSet) and isinstance(old, WeightedSet)):
            return 0.0
        shared = sum(min(weight, old.weights.get(part, 0.0)) for part, weight in new.weights.items())
        return min(1.0, shared / self._needed)


def neighbours(text: str, characters: int = 2) -> list[str]:
    """Return what stands at each mark of *text*: up to so many *characters* before it and after it. O(len(text)).

    Where the clause on one side is shorter, or the text ends there, they are fewer.
    """
    clauses = _MARKS.split(_ASIDE.sub("", folded(text)))
    around = (before[-characters:] + after[:characters] for before, after in pairwise(clauses))
    return [both for both in around if both]
