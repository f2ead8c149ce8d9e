"""Compares texts by supershingles: hashes of several shingles at once, which are hardly ever equal by chance.

Source: A. Broder, S. Glassman, M. Manasse and G. Zweig, "Syntactic clustering of the Web", WWW6, 1997, for
`SuperShingles`. D. Fetterly, M. Manasse and M. Najork, "On the evolution of clusters of near-duplicate Web pages",
LA-WEB 2003, for `Fetterly`.

Specified: Broder sorts a sample of a text's shingles and takes each run of neighbours in it as one supershingle. Texts
that share one are alike; short texts have too few. Fetterly takes shingles of 5 words and 84 samples, each the smallest
under a hash of its own. 14 samples make a supershingle, so a text has 6; texts with 2 equal ones are alike.

Left open: for `SuperShingles`, how many shingles make one: 14, as in the authors' later work. Which sample: one shingle
in 4 by its hash, where the AltaVista of 1997 took one in 25, for the text of a news page is short. Two texts of 900
characters then share a supershingle from a resemblance of about 0.7 on. Shingles have 5 characters, as in `shingling`.
For `Fetterly`, a word of Chinese is one of jieba's.

Departures: hashes are xxHash's, not Rabin's. Shingles are those of `shingling`. `Fetterly` looks texts up by pairs of
supershingles, the megashingles of A. Broder, "Identifying and filtering near-duplicate documents" (CPM 2000), which
miss none.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import xxhash

from dedup_middleware.methods.method import FEATURE_BYTES, WeightedSet, within
from dedup_middleware.methods.shingling import LONGEST, ShingleMethod, divisible, in_common

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.methods.method import Text

#: Of Fetterly: the samples in a supershingle, and the supershingles of a text.
SAMPLES, SUPERSHINGLES = 14, 6


class SuperShingles(ShingleMethod):
    """The runs of neighbours in a sorted sample of shingles.

    One shingle in *modulus* is in the sample, *span* make a supershingle, and
    texts with *shared* supershingles in common are alike.
    """

    threshold = 1.0

    def __init__(
        self, *, k: int = 5, unit: str = "characters", modulus: int = 4, span: int = 14, shared: int = 1
    ) -> None:
        super().__init__(k, unit)
        self._modulus = within("modulus", modulus, 1, 1000)
        self._span = within("span", span, 1, 1000)
        self._shared = within("shared", shared, 1, LONGEST)

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the supershingles of *text*; ``None`` if they are too few: below some 60 characters. O(characters)."""
        sample = divisible(self.hashes(text), self._modulus)
        runs = [b"".join(sample[at : at + self._span]) for at in range(len(sample) - self._span + 1)]
        return None if len(runs) < self._shared else WeightedSet({xxhash.xxh3_64_digest(run): 1.0 for run in runs})

    def similarity(self, new: WeightedSet, old: WeightedSet) -> float:
        """Return the share of *shared* supershingles that the texts have in common; by default 0 or 1."""
        return min(in_common(new, old) / self._shared, 1.0)


class Fetterly(ShingleMethod):
    """Six supershingles of 84 samples, of shingles of *k* words; texts with *equal* supershingles are alike."""

    def __init__(self, *, k: int = 5, equal: int = 2) -> None:
        super().__init__(k, "words")
        self._equal = within("equal", equal, 1, SUPERSHINGLES)
        self.threshold = self._equal / SUPERSHINGLES

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the supershingles of *text*, each with its place; ``None`` if it has no words. O(characters)."""
        found = {shingle.encode("utf8", "surrogatepass") for shingle in self.shingles(text)}
        if not found:
            return None
        smallest = [
            min(xxhash.xxh3_64_intdigest(shingle, seed) for shingle in found).to_bytes(8, "big")
            for seed in range(SAMPLES * SUPERSHINGLES)
        ]
        return WeightedSet(
            {
                _placed(place, b"".join(smallest[SAMPLES * place : SAMPLES * (place + 1)])): 1.0
                for place in range(SUPERSHINGLES)
            }
        )

    def similarity(self, new: WeightedSet, old: WeightedSet) -> float:
        """Return the share of the six supershingles that are equal."""
        return in_common(new, old) / SUPERSHINGLES

    def keys(self, signature: WeightedSet) -> Iterable[bytes]:
        """Yield as many supershingles at once as must be equal: 15 pairs by default."""
        return map(b"".join, combinations(sorted(signature.weights), self._equal))


def _placed(place: int, samples: bytes) -> bytes:
    """Return the supershingle of *samples* as a feature that begins with its *place*."""
    return bytes([place]) + xxhash.xxh3_64_digest(samples)[: FEATURE_BYTES - 1]
