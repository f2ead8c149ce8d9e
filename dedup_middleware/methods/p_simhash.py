"""P-SimHash: SimHash of the heaviest words, in which co-occurring words weigh less and positions count.

Source: Zhang Yanan, Chen Weiwei, Fu Yinjin and Xu Kun, on text deduplication by an improved SimHash, Computer
Technology and Development (China) 32(8), 2022. BDR: R. Pratap, R. Kulkarni and I. Sohony, "Efficient dimensionality
reduction for sparse binary data", IEEE Big Data 2018.

Specified: the 20 words with the greatest TF-IDF (TFC). J-Tidf: less weight for a word that occurs in the same texts of
a corpus as another one. PBDR: every position of a text is mapped to one of the bits at random, the positions of a word
are counted by bit, and the bits with more than the mean are the signature of its positions. BDR, the earlier method,
takes the bits with an odd number. The vector of a word is mu x the signs of its hash + (1 - mu) x the signs of its
positions, each bit 1 for +1 and 0 for -1; mu is best from 1.4 to 1.9, and 1.5. These vectors are added by J-Tidf, and
10 of 64 bits may differ.

Left open: formulas 1, 3, 5 and 6, which our copy of the text lacks. Ours are:

- 1, the similarity: the share of equal bits.
- 3, TFC: the TF-IDF of `SimHash`, for a norm would change no sign.
- 5, how far two words occur together: the sum over the texts of the smaller of their counts / that of the larger.
- 6, J-Tidf: TF-IDF x (1 - the largest such value with a heavier word of the same text).

A position is the number of words before it, stop words left out. The random map is a hash of that number. The 20 words
are chosen before J-Tidf, which otherwise would compare all words with all.

Departures: co-occurrence is learned from the first 3,000 texts (the authors use 2,831), and only for words that occur
in two of them. A pair in one text may be chance, and a fingerprint must not search a whole crawl.

With mu above 1 the signature of positions is subtracted, and a word that occurs once sets a single bit of it. So most
bits are set in a short text: at mu = 1.5, two of our tests' stories differ in 18 bits instead of 32.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, ClassVar

from xxhash import xxh3_64_intdigest

from dedup_middleware.methods.method import one_of, within
from dedup_middleware.methods.simhash import SimHash, hash_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dedup_middleware.methods.method import Text

#: Texts that co-occurrence is learned from.
MOST_TEXTS = 3_000
# Each is compared with all that are heavier.
_MOST_WORDS = 100


class PSimHash(SimHash):
    """The *top* heaviest words of a text as *bits* signs, of which *distance* may differ.

    *mu*, 0 to 10, is the share of a word's hash, and 1 - *mu* that of its positions. *positions* are reduced to bits by
    ``pbdr`` or ``bdr``. A page whose heaviest words are common in the corpus takes up to 40 ms.
    """

    memory: ClassVar[Mapping[str, Any]] = {**SimHash.memory, "_occurrences": dict[str, dict[int, int]]}

    def __init__(
        self, *, bits: int = 64, distance: int = 10, top: int = 20, mu: float = 1.5, positions: str = "pbdr"
    ) -> None:
        super().__init__(bits=bits, distance=distance)
        self._top = within("top", top, 1, _MOST_WORDS)
        self._mu = within("mu", mu, 0, 10)
        self._signature = pbdr if one_of("positions", positions, ("pbdr", "bdr")) == "pbdr" else bdr
        self._occurrences: dict[str, dict[int, int]] = {}

    def fit(self, texts: Iterable[Text]) -> None:
        """Learn from *texts*. Holds all their words in memory, and keeps the counts of the first `MOST_TEXTS`."""
        found = [self.words_of(text) for text in texts]
        self.count(found)
        occurrences: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for number, words in enumerate(found[:MOST_TEXTS]):
            for word, count in Counter(words).items():
                occurrences[word][number] = count
        self._occurrences = {word: counts for word, counts in sorted(occurrences.items()) if len(counts) > 1}

    def vectors(self, found: Sequence[str]) -> list[tuple[int, float]]:
        weights = self.j_tidf(found)
        places: dict[str, list[int]] = {word: [] for word in weights}
        for place, word in enumerate(found):
            if word in places:
                places[word].append(place)
        vectors = []
        for word, weight in weights.items():
            vectors.append((hash_of(word, self._bits), self._mu * weight))
            vectors.append((self._signature(places[word], self._bits), (1 - self._mu) * weight))
        return vectors

    def j_tidf(self, found: Iterable[str]) -> dict[str, float]:
        """Return the J-Tidf of the heaviest of the words *found* in a text. O(words + top² x texts with them)."""
        weights = self.weights(found)
        heaviest = sorted(weights, key=lambda word: (-weights[word], word))[: self._top]
        known = [self._occurrences.get(word, {}) for word in heaviest]
        return {
            word: weights[word] * (1 - max((overlap(known[n], heavier) for heavier in known[:n]), default=0))
            for n, word in enumerate(heaviest)
        }


def overlap(ours: Mapping[int, int], theirs: Mapping[int, int]) -> float:
    """Return sum of the smaller / sum of the larger counts of two words, text by text, 0 to 1."""
    few, many = sorted((ours, theirs), key=len)
    shared = sum(min(count, many[text]) for text, count in few.items() if text in many)
    return shared / (sum(ours.values()) + sum(theirs.values()) - shared) if shared else 0.0


def pbdr(places: Sequence[int], bits: int) -> int:
    """Return the bits to which more of the *places* are mapped than to the mean bit."""
    return sum(1 << bit for bit, count in _mapped(places, bits).items() if count * bits > len(places))


def bdr(places: Sequence[int], bits: int) -> int:
    """Return the bits to which an odd number of the *places* are mapped."""
    return sum(1 << bit for bit, count in _mapped(places, bits).items() if count % 2)


def _mapped(places: Sequence[int], bits: int) -> Counter[int]:
    return Counter(xxh3_64_intdigest(place.to_bytes(8, "big")) % bits for place in places)
