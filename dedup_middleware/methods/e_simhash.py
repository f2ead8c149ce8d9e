"""E-SimHash: SimHash whose weights know the neighbours of a word, and whose hashes know its place.

Source: Zhang Hang, Sheng Zhiwei, Zhang Shibin and Yang Min, "Application of Simhash algorithm in text deduplication",
Computer Engineering and Applications 56(11), 2020; here by what the article on P-SimHash tells of it.

Specified: a word weighs by its TF-IDF, normalised as TFC, and by its left and right information entropy: of what stands
before and after it in the corpus. Its hash is combined with each of its places in the text by exclusive or. 64 bits, of
which 10 may differ.

Left open: how TF-IDF and entropies are combined: TF-IDF x (1 + the mean of both entropies in bits), so that a word the
corpus lacks, or always has between the same neighbours, keeps its TF-IDF, and no unit is weighed against another. What
a place is: the number of words before it, stop words left out. What several places weigh: the weight of the word in
equal parts, for its frequency is in it already. Neighbours are counted without stop words too; before the first word
and after the last there is none.

Departures: TFC divides all weights of a text by the same norm. That moves no sign, and is left out.

A place touches as many bits as its number has: with a word added in front, the low bits of all hashes are others, some
ten of 64 in a news page, and the rest are those of SimHash.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from math import log2
from typing import TYPE_CHECKING

from dedup_middleware.errors import UnreadableError
from dedup_middleware.fingerprints.method import Bits, Method, least_score, within
from dedup_middleware.methods.charikar import LEAST_BITS, MOST_BITS, hash_of, signs, tf_idf
from dedup_middleware.methods.learned import packed_before, unpacked_before
from dedup_middleware.methods.wording import DocumentFrequencies, telling_words, whole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.fingerprints.method import Text

# Of an entropy, in its learned form as in this one.
_DIGITS = 6


class ESimHash(Method):
    """The words of a text, each at its places, as *bits* signs; at most *distance* of them differ in alike texts.

    5 ms for a page of 1,000 words on top of its segmentation. `fit` holds all pairs of neighbours of the corpus in
    memory, and keeps a number for each word.
    """

    learns = True

    def __init__(self, *, bits: int = 64, distance: int = 10) -> None:
        within("bits", bits, LEAST_BITS, MOST_BITS)
        within("distance", distance, 0, bits // 2)
        self.threshold = least_score(distance, bits)
        self._bits = bits
        self._frequencies = DocumentFrequencies()
        self._entropies: dict[str, float] = {}

    def fit(self, texts: Iterable[Text]) -> None:
        before: defaultdict[str, Counter[str]] = defaultdict(Counter)
        after: defaultdict[str, Counter[str]] = defaultdict(Counter)

        def read() -> Iterable[list[str]]:
            for text in texts:
                words = telling_words(whole(text))
                for one, next_one in pairwise(words):
                    after[one][next_one] += 1
                    before[next_one][one] += 1
                yield words

        self._frequencies.fit(read())
        means = {
            word: round((entropy(before[word]) + entropy(after[word])) / 2, _DIGITS)
            for word in sorted(before.keys() | after.keys())
        }
        self._entropies = {word: mean for word, mean in means.items() if mean}

    def learned(self) -> bytes:
        return packed_before(self._frequencies.learned(), self._entropies)

    def recall(self, learned: bytes) -> None:
        known, rest = unpacked_before(learned)
        try:
            entropies = {str(word): float(mean) for word, mean in known.items()}
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            raise UnreadableError(f"the entropies of words cannot be read: {error}") from error
        self._frequencies.recall(rest)
        self._entropies = entropies

    def fingerprint(self, text: Text) -> Bits | None:
        """Return the bits of *text*; ``None`` if it has no words but stop words."""
        words = telling_words(whole(text))
        if not words:
            return None
        counts = Counter(words)
        shares = {word: weight / counts[word] for word, weight in self.weights(words).items()}
        hashes = {word: hash_of(word, self._bits) for word in counts}
        every = (1 << self._bits) - 1
        vectors = [(hashes[word] ^ place & every, shares[word]) for place, word in enumerate(words)]
        return Bits((signs(vectors, self._bits),), self._bits)

    def weights(self, words: Iterable[str]) -> dict[str, float]:
        """Return what each of the *words* of a text weighs."""
        return {
            word: weight * (1 + self._entropies.get(word, 0))
            for word, weight in tf_idf(words, self._frequencies).items()
        }


def entropy(counts: Counter[str]) -> float:
    """Return the information entropy of a word's neighbours on one side, in bits: 0 if it has but one."""
    total = counts.total()
    # Sorted, for a sum of floats depends on its order.
    return sum(n / total * log2(total / n) for n in sorted(counts.values()))
