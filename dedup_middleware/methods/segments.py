"""Segment signatures: a text cut into N segments, a signature each, and M of them must be equal.

Source: Told in Chinese articles on how search engines drop copies of pages, which name no author. The idea is that of
S. Brin, J. Davis and H. Garcia-Molina, "Copy detection mechanisms for digital documents", SIGMOD 1995.

Specified: A page is cut into N segments by some rule, and each segment is signed; pages with M equal signatures are
alike. It is said to suit small collections.

Left open: N and M; the rule of cutting; whether the place of a segment counts; the signature. We take 10 and 6: in
three labelled crawls 5 of 10 made a pair of other stories alike, and 6 made none. The letters and digits of the text
are cut into N equal parts, and each sentence goes to the part where its middle is, so that a changed word moves few
sentences, if any, into the next segment. A segment may stand anywhere. A text with too few sentences has fewer
segments, and the same share of them, M / N, must be equal. A segment is signed by 64 bits of xxHash.

Departures: none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.fingerprints.method import Method, WeightedSet, feature, within
from dedup_middleware.text.clauses import reduced, sentences

if TYPE_CHECKING:
    from dedup_middleware.fingerprints.method import Print, Text


class Segments(Method):
    """So many equal segments."""

    def __init__(self, *, segments: int = 10, equal: int = 6) -> None:
        """Cut into *segments*, 1 to 1000, of which *equal*, at least 1, must be equal."""
        self._segments = int(within("segments", segments, 1, 1000))
        self.threshold = within("equal", equal, 1, segments) / segments

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the signatures of *text*, which all weigh 1; ``None`` if it has no letters. O(characters)."""
        signed = {feature(segment): 1.0 for segment in cut(text, self._segments)}
        return WeightedSet(signed) if signed else None

    def score(self, new: Print, old: Print) -> float:
        """Return how many segments are equal / how many there are, in that of the two texts which has more."""
        if not isinstance(new, WeightedSet) or not isinstance(old, WeightedSet):
            return 0.0
        most = max(len(new.weights), len(old.weights))
        return len(new.weights.keys() & old.weights.keys()) / most if most else 0.0


def cut(text: Text, count: int) -> list[str]:
    """Return the letters, marks and digits of *text*, folded, in *count* segments or fewer, in order, none empty."""
    said = [reduced(sentence).replace("\n", "") for paragraph in text.paragraphs for sentence in sentences(paragraph)]
    total = sum(map(len, said))
    segments: list[list[str]] = [[] for _ in range(count)]
    start = 0
    for sentence in filter(None, said):
        segments[(2 * start + len(sentence)) * count // (2 * total)].append(sentence)
        start += len(sentence)
    return ["".join(segment) for segment in segments if segment]
