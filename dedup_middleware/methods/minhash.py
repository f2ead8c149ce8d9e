"""Compares texts by MinHash with LSH: by the share of random orders in which the same shingle comes first.

Source: A. Broder, "On the resemblance and containment of documents", SEQUENCES 1997, for MinHash; P. Indyk and
R. Motwani, "Approximate nearest neighbors: towards removing the curse of dimensionality", STOC 1998, for LSH. Corpora
for language models are deduplicated with it today. The permutations and the choice of bands are those of the library
datasketch.

Specified: the share of permutations under which two sets have the same smallest element estimates their resemblance.
Bands of the signature are looked up: b bands of r values find a resemblance of s with a chance of 1 - (1 - s^r)^b.

Left open: everything else. Here the common choice: 128 permutations, shingles of 5 words, a threshold of 0.7, and the
bands for which datasketch expects the fewest errors.

Departures: none in the method; shingles are those of `shingling`. The estimate decides, not the bands: a text that
bands find below the threshold is not alike. Bands miss some texts above it: at the default of 0.7, more than half of
those with a resemblance of 0.7, one in eight at 0.8, one in a thousand at 0.9.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import xxhash

from dedup_middleware.common.registry import required
from dedup_middleware.errors import ConfigError
from dedup_middleware.methods.method import WeightedSet, within
from dedup_middleware.methods.shingling import ShingleMethod, in_common

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.methods.method import Text

# The same permutations in every process.
_SEED = 1


class MinHashLSH(ShingleMethod):
    """The smallest hashes of a text's shingles under random *permutations*.

    `ConfigError` if datasketch is not installed.
    """

    def __init__(self, *, permutations: int = 128, threshold: float = 0.7, k: int = 5, unit: str = "words") -> None:
        datasketch = required("datasketch", "the method 'minhash'", extra="compare")
        self._permutations = within("permutations", permutations, 2, 1024)
        super().__init__(k, unit)
        self.threshold = within("threshold", threshold, 0.1, 1)
        self._empty = datasketch.MinHash(self._permutations, seed=_SEED, hashfunc=xxhash.xxh32_intdigest)
        try:
            # For the number of bands only: their contents are in our own stores.
            lsh = datasketch.MinHashLSH(self.threshold, self._permutations)
        except ValueError as error:
            raise ConfigError(
                f"no bands for threshold = {threshold}, permutations = {permutations}: {error}"
            ) from error
        self._bands, self._rows = int(lsh.b), int(lsh.r)

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the signature of *text*, each number with its place; ``None`` if it has no words. O(characters)."""
        found = {shingle.encode("utf8", "surrogatepass") for shingle in self.shingles(text)}
        if not found:
            return None
        signature = self._empty.copy()
        signature.update_batch(found)
        return WeightedSet({struct.pack(">II", *placed): 1.0 for placed in enumerate(signature.digest().tolist())})

    def similarity(self, new: WeightedSet, old: WeightedSet) -> float:
        """Return the share of numbers that are equal, an estimate of the resemblance."""
        return in_common(new, old) / self._permutations

    def keys(self, signature: WeightedSet) -> Iterable[bytes]:
        """Yield the bands: by default 14 of 9 numbers."""
        placed = sorted(signature.weights)
        for start in range(0, self._bands * self._rows, self._rows):
            # Each number has its place with it, and so has the band.
            yield xxhash.xxh3_64_digest(b"".join(placed[start : start + self._rows]))
