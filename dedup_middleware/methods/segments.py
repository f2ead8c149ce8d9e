"""Cuts a text into N segments, of which M must be equal in texts that are alike.

Source: Chinese articles on how search engines drop copies of pages, which name no author. The idea is that of S. Brin,
J. Davis and H. Garcia-Molina, "Copy detection mechanisms for digital documents", SIGMOD 1995.

Specified: a page is cut into N segments by some rule, and each segment is signed. Pages with M equal signatures are
alike. The method is said to suit small collections.

Left open: N and M, the rule of cutting, whether the place of a segment counts, and the signature. Here N is 10 and M is
6: in three labelled crawls 5 of 10 made two different pages alike, and 6 made no such pair. The letters and digits
of the text are cut into N equal parts, and each sentence goes to the part where its middle is. So a changed word moves
few sentences, if any, into the next segment. A segment may stand anywhere. A text with too few sentences has fewer
segments, and the same share of them, M / N, must be equal. A signature has 64 bits of xxHash.

Departures: none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.methods.method import Method, WeightedSet, feature, within
from dedup_middleware.text.clauses import reduced, sentences

if TYPE_CHECKING:
    from dedup_middleware.methods.method import Text


class Segments(Method):
    """Texts as sets of segments, of which some must be equal."""

    def __init__(self, *, segments: int = 10, equal: int = 6) -> None:
        self._segments = within("segments", segments, 1, 1000)
        self.threshold = within("equal", equal, 1, segments) / segments

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the signatures of *text*, which all weigh 1; ``None`` if it has no letters. O(characters)."""
        signed = {feature(segment): 1.0 for segment in cut(text, self._segments)}
        return WeightedSet(signed) if signed else None

    def similarity(self, new: WeightedSet, old: WeightedSet) -> float:
        """Return the number of equal segments / that of the segments of the text which has more."""
        most = max(len(new.weights), len(old.weights))
        return len(new.weights.keys() & old.weights.keys()) / most if most else 0.0


def cut(text: Text, count: int) -> list[str]:
    """Return the letters, marks and digits of *text*, folded, in *count* segments or fewer, in order, none empty."""
    written = (sentence for paragraph in text.paragraphs for sentence in sentences(paragraph))
    letters = [reduced(sentence).replace("\n", "") for sentence in written]
    total = sum(map(len, letters))
    segments: list[list[str]] = [[] for _ in range(count)]
    start = 0
    for sentence in filter(None, letters):
        segments[(2 * start + len(sentence)) * count // (2 * total)].append(sentence)
        start += len(sentence)
    return ["".join(segment) for segment in segments if segment]
