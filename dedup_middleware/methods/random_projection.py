"""Random projection: every token has a random vector of +1 and -1, and a text has the signs of their sum.

Source: M. Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002, as M. Henzinger, "Finding
near-duplicate web pages: a large-scale evaluation of algorithms", SIGIR 2006, has it for web pages.

Specified: the vector of a token is drawn once and is the same in every text; the vectors of all tokens of a text are
added, as often as they occur; a bit is set where the sum is above 0. The similarity of two texts is the share of bits
that are equal. Henzinger has 384 bits, of which 372 have to be equal: both are the defaults.

Left open: tokens: here all words, stop words too. How vectors are drawn and kept: the token is the seed (SHAKE128), so
there is no table to keep and every process draws the same.

Departures: none.
"""

from __future__ import annotations

from collections import Counter
from hashlib import shake_128

from dedup_middleware.fingerprints.method import Bits, Method, Text, within
from dedup_middleware.methods.charikar import LEAST_BITS, signs
from dedup_middleware.methods.wording import whole, words

_MOST_BITS = 4096


class RandomProjection(Method):
    """The words of a text as *bits* signs; texts are alike if the share *threshold* of them is equal.

    5 ms for a page of 1,000 words on top of its segmentation.
    """

    def __init__(self, *, bits: int = 384, threshold: float = 372 / 384) -> None:
        within("bits", bits, LEAST_BITS, _MOST_BITS)
        self._bits = bits
        # Unrelated texts have half of the bits in common.
        self.threshold = within("threshold", threshold, 0.5, 1)

    def fingerprint(self, text: Text) -> Bits | None:
        """Return the bits of *text*; ``None`` if it has no words."""
        counts = Counter(words(whole(text)))
        if not counts:
            return None
        return Bits((signs([(self._drawn(token), n) for token, n in counts.items()], self._bits),), self._bits)

    def _drawn(self, token: str) -> int:
        """Return the signs of the vector of *token*."""
        drawn = shake_128(token.encode("utf8", "surrogatepass")).digest(-(-self._bits // 8))
        return int.from_bytes(drawn, "big") & (1 << self._bits) - 1
