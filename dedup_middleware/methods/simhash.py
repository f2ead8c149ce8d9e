"""Compares texts by the signs of their words' vectors: `SimHash` and its descendants, and `RandomProjection`."""

from __future__ import annotations

from collections import Counter, defaultdict
from hashlib import shake_128
from itertools import pairwise
from math import frexp, fsum, ldexp, log, log2
from struct import unpack
from typing import TYPE_CHECKING, Any, ClassVar

from xxhash import xxh3_64_intdigest, xxh3_128_intdigest

from dedup_middleware.methods.method import Bits, Method, least_score, one_of, within
from dedup_middleware.methods.vocabulary import FrequencyMethod, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dedup_middleware.methods.method import Text


# Each bit has a vector of its own, and Hamming distances of fewer than 8 bits say nothing. `hash_of` has 128 bits.
_LEAST_BITS, _MOST_BITS = 8, 128
_MOST_PROJECTED = 4096
# A column of a wide sum has 32 bits: 31 for the weights and one for what their rounding adds.
_WEIGHT_BITS = 31
_COLUMN_GAP = "0" * 7


class SimHash(FrequencyMethod):
    """The words of a text as *bits* signs; at most *distance* of them differ in texts that are alike.

    Source: M. Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002. Users of the method
    hash words instead of drawing hyperplanes, and allow 3 of 64 bits: G. Manku, A. Jain and A. Das Sarma, "Detecting
    near-duplicates for web crawling", WWW 2007.

    Specified: every feature has a vector of +1 and -1, the bits of its hash. A text is the sum of these vectors times
    the weights of its features, and a bit of the signature is set where the sum is above 0. The share of equal bits
    estimates 1 - angle / π between two vectors of weights. Texts are alike within a Hamming distance.

    Left open: features and weights. Here the features are the words without stop words. The weights are TF-IDF, with
    ln(1 + texts / texts with the word), which is above 0 for every word, even before `fit`. The distance is 3, as Manku
    et al. have it; the experiments of P-SimHash use 10 for all their rivals. With 64 bits, 3 is a change of about a
    hundredth of the weight.

    Departures: weights are rounded to 2**-31 of their sum, so that a sum does not depend on the order of the words, and
    opposite weights are exactly 0.
    """

    def __init__(self, *, bits: int = 64, distance: int = 3) -> None:
        self._bits = within("bits", bits, _LEAST_BITS, _MOST_BITS)
        self.threshold = least_score(within("distance", distance, 0, bits // 2), bits)
        super().__init__()

    def fingerprint(self, text: Text) -> Bits | None:
        """Return the bits of *text*; ``None`` if all its words are stop words."""
        found = self.words_of(text)
        return Bits((signs(self.vectors(found), self._bits),), self._bits) if found else None

    def vectors(self, found: Sequence[str]) -> list[tuple[int, float]]:
        """Return the vectors of the words *found* in a text, for `signs`."""
        return [(hash_of(word, self._bits), weight) for word, weight in self.weights(found).items()]

    def weights(self, found: Iterable[str]) -> dict[str, float]:
        """Return the TF-IDF of each of the words *found* in a text."""
        texts = max(self.texts, 1)
        return {word: count * log(1 + texts / self.frequency(word)) for word, count in Counter(found).items()}


class RandomProjection(Method):
    """The words of a text as *bits* signs; texts are alike if the share *threshold* of the bits is equal.

    Source: Charikar's method (see `SimHash`) as M. Henzinger, "Finding near-duplicate web pages: a large-scale
    evaluation of algorithms", SIGIR 2006, uses it for web pages.

    Specified: the vector of a token is drawn once and is the same in every text. The vectors of all tokens of a text
    are added, as often as they occur, and a bit is set where the sum is above 0. The similarity is the share of equal
    bits. Henzinger uses 384 bits, of which 372 have to be equal.

    Left open: tokens; here all words, stop words too. How vectors are drawn and kept: the token is the seed of
    SHAKE128, so there is no table to keep, and every process draws the same vectors.

    Departures: none.
    """

    def __init__(self, *, bits: int = 384, threshold: float = 372 / 384) -> None:
        self._bits = within("bits", bits, _LEAST_BITS, _MOST_PROJECTED)
        # Unrelated texts have half of their bits in common.
        self.threshold = within("threshold", threshold, 0.5, 1)

    def fingerprint(self, text: Text) -> Bits | None:
        """Return the bits of *text*; ``None`` if it has no words."""
        counts = Counter(words(text.body))
        if not counts:
            return None
        return Bits((signs([(self._drawn(token), n) for token, n in counts.items()], self._bits),), self._bits)

    def _drawn(self, token: str) -> int:
        drawn = shake_128(token.encode("utf8", "surrogatepass")).digest(-(-self._bits // 8))
        return int.from_bytes(drawn, "big") & (1 << self._bits) - 1


def hash_of(word: str, bits: int) -> int:
    """Return *bits* of a hash, at most 128."""
    return xxh3_128_intdigest(word.encode("utf8", "surrogatepass")) & (1 << bits) - 1


def signs(vectors: Iterable[tuple[int, float]], bits: int) -> int:
    """Return the bits where the sum of *vectors* is above 0. O(vectors x bits).

    A vector is given by its signs, a bit 1 for +1 and 0 for -1, and by its weight, which may be below 0. All columns
    are added at once, as one wide number: a loop over bits takes ten times as long.
    """
    every = (1 << bits) - 1
    # -1 times a vector is the vector of the other signs.
    upright = [(ones, weight) if weight >= 0 else (ones ^ every, -weight) for ones, weight in vectors]
    _, exponent = frexp(fsum(weight for _, weight in upright))
    total = columns = 0
    for ones, weight in upright:
        scaled = round(ldexp(weight, _WEIGHT_BITS - exponent))
        total += scaled
        # In hexadecimal a column has eight digits, and the last of them is the bit of the vector.
        columns += scaled * int(_COLUMN_GAP.join(f"{ones:0{bits}b}"), 16)
    above = 0
    for column in unpack(f">{bits}I", columns.to_bytes(4 * bits, "big")):
        above = above << 1 | (2 * column > total)
    return above


# Of an entropy: the same after `recall`.
_DIGITS = 6


class ESimHash(SimHash):
    """The words of a text, each at its positions, as *bits* signs, of which *distance* may differ.

    Source: Zhang Hang, Sheng Zhiwei, Zhang Shibin and Yang Min, "Application of Simhash algorithm in text
    deduplication", Computer Engineering and Applications 56(11), 2020; here as the article on P-SimHash describes it.

    Specified: a word weighs its TF-IDF, normalised as TFC, and its left and right information entropy: that of the
    words before it and after it in the corpus. Its hash is combined with each of its positions in the text by exclusive
    or. 64 bits, of which 10 may differ.

    Left open: how TF-IDF and entropies are combined. Here TF-IDF x (1 + the mean of both entropies in bits), so a word
    that the corpus lacks, or that has the same neighbours everywhere, keeps its TF-IDF. A position is the number of
    words before it, stop words left out. Several positions share the weight of their word in equal parts, for its
    frequency is in that weight already. Neighbours are counted without stop words; the first word has none before it
    and the last none after it.

    Departures: TFC divides all weights of a text by the same norm. That changes no sign, and is left out.
    """

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
        for one, next_one in (pair for each in found for pair in pairwise(each)):
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


#: Texts that co-occurrence is learned from.
MOST_TEXTS = 3_000
# Each is compared with all that are heavier.
_MOST_WORDS = 100


class PSimHash(SimHash):
    """The *top* heaviest words of a text as *bits* signs, of which *distance* may differ.

    *mu*, 0 to 10, is the share of a word's hash, and 1 - *mu* that of its positions. *positions* are reduced to bits by
    ``pbdr`` or ``bdr``. A page whose heaviest words are common in the corpus takes up to 40 ms.

    Source: Zhang Yanan, Chen Weiwei, Fu Yinjin and Xu Kun, on text deduplication by an improved SimHash, Computer
    Technology and Development (China) 32(8), 2022. BDR: R. Pratap, R. Kulkarni and I. Sohony, "Efficient dimensionality
    reduction for sparse binary data", IEEE Big Data 2018.

    Specified: the 20 words with the greatest TF-IDF (TFC). J-Tidf: less weight for a word that occurs in the same texts
    of a corpus as another one. PBDR: every position of a text is mapped to one of the bits at random, the positions of
    a word are counted by bit, and the bits with more than the mean are the signature of its positions. BDR, the earlier
    method, takes the bits with an odd number. The vector of a word is mu x the signs of its hash + (1 - mu) x the signs
    of its positions, each bit 1 for +1 and 0 for -1; mu is best from 1.4 to 1.9, and 1.5. These vectors are added by
    J-Tidf, and 10 of 64 bits may differ.

    Left open: formulas 1, 3, 5 and 6, which our copy of the text lacks. Ours are:

    - 1, the similarity: the share of equal bits.
    - 3, TFC: the TF-IDF of `SimHash`, for a norm would change no sign.
    - 5, how far two words occur together: the sum over the texts of the smaller of their counts / that of the larger.
    - 6, J-Tidf: TF-IDF x (1 - the largest such value with a heavier word of the same text).

    A position is the number of words before it, stop words left out. The random map is a hash of that number. The 20
    words are chosen before J-Tidf, which otherwise would compare all words with all.

    Departures: co-occurrence is learned from the first 3,000 texts (the authors use 2,831), and only for words that
    occur in two of them. A pair in one text may be chance, and a fingerprint must not search a whole crawl.

    With mu above 1 the signature of positions is subtracted, and a word that occurs once sets a single bit of it. So
    most bits are set in a short text: at mu = 1.5, two of our tests' stories differ in 18 bits instead of 32.
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
        for number, each in enumerate(found[:MOST_TEXTS]):
            for word, count in Counter(each).items():
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
