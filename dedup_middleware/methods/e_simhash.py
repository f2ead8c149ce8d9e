"""E-SimHash: SimHash with weights by the neighbours of a word, and hashes by its positions.

Source: Zhang Hang, Sheng Zhiwei, Zhang Shibin and Yang Min, "Application of Simhash algorithm in text deduplication",
Computer Engineering and Applications 56(11), 2020; here as the article on P-SimHash describes it.

Specified: a word weighs its TF-IDF, normalised as TFC, and its left and right information entropy: that of the words
before it and after it in the corpus. Its hash is combined with each of its positions in the text by exclusive or. 64
bits, of which 10 may differ.

Left open: how TF-IDF and entropies are combined. Here TF-IDF x (1 + the mean of both entropies in bits), so a word that
the corpus lacks, or that has the same neighbours everywhere, keeps its TF-IDF. A position is the number of words before
it, stop words left out. Several positions share the weight of their word in equal parts, for its frequency is in that
weight already. Neighbours are counted without stop words; the first word has none before it and the last none after it.

Departures: TFC divides all weights of a text by the same norm. That changes no sign, and is left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from math import log2
from typing import TYPE_CHECKING, Any, ClassVar

from dedup_middleware.methods.simhash import SimHash, hash_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dedup_middleware.methods.method import Text

# Of an entropy: the same after `recall`.
_DIGITS = 6


class ESimHash(SimHash):
    """The words of a text, each at its positions, as *bits* signs, of which *distance* may differ."""

    memory: ClassVar[Mapping[str, Any]] = {**SimHash.memory, "_entropies": dict[str, float]}

    def __init__(self, *, bits: int = 64, distance: int = 10) -> None:
        super().__init__(bits=bits, distance=distance)
        self._entropies: dict[str, float] = {}

    def fit(self, texts: Iterable[Text]) -> None:
        """Learn from *texts*. Holds all their words, and all pairs of neighbours, in memory."""
        found = [self.words_of(text) for text in texts]
        self.count(found)
        before: defaultdict[str, Counter[str]] = defaultdict(Counter)
        after: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for one, next_one in (pair for words in found for pair in pairwise(words)):
            after[one][next_one] += 1
            before[next_one][one] += 1
        means = {
            word: round((entropy(before[word]) + entropy(after[word])) / 2, _DIGITS)
            for word in sorted(before.keys() | after.keys())
        }
        self._entropies = {word: mean for word, mean in means.items() if mean}

    def vectors(self, found: Sequence[str]) -> list[tuple[int, float]]:
        counts = Counter(found)
        shares = {word: weight / counts[word] for word, weight in self.weights(found).items()}
        hashes = {word: hash_of(word, self._bits) for word in counts}
        every = (1 << self._bits) - 1
        return [(hashes[word] ^ place & every, shares[word]) for place, word in enumerate(found)]

    def weights(self, found: Iterable[str]) -> dict[str, float]:
        return {word: weight * (1 + self._entropies.get(word, 0)) for word, weight in super().weights(found).items()}


def entropy(counts: Counter[str]) -> float:
    """Return the information entropy of a word's neighbours on one side, in bits; 0 for a single neighbour."""
    total = counts.total()
    # Sorted, for a sum of floats depends on its order.
    return sum(n / total * log2(total / n) for n in sorted(counts.values()))
