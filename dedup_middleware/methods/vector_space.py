"""Compares texts by the angle between their vectors, of words by TF-IDF or of characters by frequency.

Source: G. Salton, A. Wong and C. Yang, "A vector space model for automatic indexing", Communications of the ACM 18(11),
1975; the IDF is K. Sparck Jones's, "A statistical interpretation of term specificity and its application in
retrieval", Journal of Documentation 28(1), 1972. A Chinese journal article on removing duplicate pages mentions single
characters, without segmentation, as a known method.

Specified: a text is a vector with one dimension a word, its weight there the number of times it occurs, times
log(N / n), where n of N texts have it; or one a character, weighted by occurrences alone. Texts are alike if their
cosine exceeds a threshold.

Left open: the threshold, here 0.9 for both. Stop words are not dimensions of `WordVectors`, while `CharacterVectors`
takes all characters. In scripts with spaces a character is a whole word, for letters are equally frequent in all
English pages.

Departures: the IDF is log((N + 1) / n), so that a word of all texts still has some weight, and a text of such words a
vector. Before `fit`, all words have the same IDF. Texts are looked up by the dimensions without which they cannot reach
the threshold, rare ones first: the prefix filter of R. Bayardo, Y. Ma and R. Srikant, "Scaling up all pairs similarity
search", WWW 2007, with the Cauchy-Schwarz bound on the rest, which misses none.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from dedup_middleware.methods.method import FEATURE_BYTES, Method, WeightedSet, feature, within
from dedup_middleware.methods.vocabulary import STOP_WORDS, FrequencyMethod
from dedup_middleware.text.words import words_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.methods.method import Text

# Stores round a weight to 32 bits.
_ROUNDING = 1e-6


class _Vectors(Method):
    """Texts as vectors. A feature begins with a byte that is the greater, the more frequent the feature is."""

    def __init__(self, *, threshold: float = 0.9) -> None:
        self.threshold = within("threshold", threshold, 0.01, 1)

    def similarity(self, new: WeightedSet, old: WeightedSet) -> float:
        """Return the cosine of the angle between two vectors."""
        ours, theirs = new.weights, old.weights
        product = math.fsum(weight * theirs[name] for name, weight in ours.items() if name in theirs)
        return min(product / (math.hypot(*ours.values()) * math.hypot(*theirs.values())), 1.0)

    def keys(self, signature: WeightedSet) -> Iterable[bytes]:
        """Yield the first dimensions, until the rest is too short a vector to reach the threshold."""
        names = sorted(signature.weights)
        squares = [signature.weights[name] ** 2 for name in names]
        left = total = math.fsum(squares)
        for name, square in zip(names, squares, strict=True):
            # Two texts that share dimensions only in the rest have a cosine of at most the length of the rest.
            if left < total * (self.threshold - _ROUNDING) ** 2:
                return
            yield name
            left -= square


class WordVectors(FrequencyMethod, _Vectors):
    """Words by TF-IDF; from a cosine of *threshold* on, texts are alike."""

    def __init__(self, *, threshold: float = 0.9) -> None:
        FrequencyMethod.__init__(self)
        _Vectors.__init__(self, threshold=threshold)

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the vector of the words of *text*; ``None`` if all are stop words. O(characters)."""
        texts = max(self.texts, 1) + 1
        weights: dict[bytes, float] = {}
        for word, count in Counter(self.words_of(text)).items():
            having = self.frequency(word)
            weights[_dimension(having.bit_length(), word)] = count * math.log(texts / having)
        return WeightedSet(weights) if weights else None


class CharacterVectors(_Vectors):
    """Characters by frequency; from a cosine of *threshold* on, texts are alike."""

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the vector of the characters of *text*; ``None`` if it has only punctuation. O(characters)."""
        counts = Counter(words_of(text.body))
        return WeightedSet({_dimension(c in STOP_WORDS, c): float(n) for c, n in counts.items()}) if counts else None


def _dimension(frequency: int, name: str) -> bytes:
    """Return *name* as a feature that comes the later in sorted order, the greater its *frequency*, up to 255."""
    return bytes([frequency]) + feature(name)[: FEATURE_BYTES - 1]
