"""Compares texts by the signs of their words' vectors on random hyperplanes: `SimHash` and `RandomProjection`."""

from __future__ import annotations

from collections import Counter
from hashlib import shake_128
from math import frexp, fsum, ldexp, log
from struct import unpack
from typing import TYPE_CHECKING

from xxhash import xxh3_128_intdigest

from dedup_middleware.methods.method import Bits, Method, least_score, within
from dedup_middleware.methods.vocabulary import FrequencyMethod, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
