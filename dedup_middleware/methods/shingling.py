"""Compares texts by shingles, the runs of k characters or words that both have: all of them, or a sample.

Source: A. Broder, S. Glassman, M. Manasse and G. Zweig, "Syntactic clustering of the Web", WWW6, 1997, for shingles and
resemblance. N. Heintze, "Scalable document fingerprinting", USENIX Workshop on Electronic Commerce, 1996. K. Bharat and
A. Broder, "Mirror, mirror on the Web: a study of host pairs with replicated content", WWW8, 1999. The samples are as
Chinese surveys of near-duplicate detection describe them, and so are a k of 5 and a threshold of 0.3.

Specified: a shingle is a run of k neighbours, and a text the set of its shingles. Resemblance is |A & B| / |A | B|.
Heintze keeps the N smallest hashes, without shingles that are frequent in the corpus. Bharat keeps the hashes that 25
divides, at most 400.

Left open: what a neighbour is. The surveys write of words and cut characters, as here; ``unit=words`` cuts words. Only
letters and digits count, folded. A shingle may begin in one paragraph and end in the next, for reposts join and split
them. N is 100. A shingle is frequent if it occurs in more than a hundredth of the texts, and in more than 10, for in a
small corpus a share means nothing. The 400 are the smallest, so that two texts choose the same. Samples are alike by
the same threshold, of their own resemblance.

Departures: hashes are xxHash's, 64 bits, not Rabin's of 40. Only the first 100,000 characters of a text count, some
thirty news pages. A text of less than k characters or words is one shingle. Only the 4 N smallest hashes of each text
are counted for frequency: others hardly ever become the N that stay. Texts are looked up by the prefix filter of S.
Chaudhuri, V. Ganti and R. Kaushik (ICDE 2006), which misses no text above the threshold.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections import Counter
from itertools import combinations
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

import xxhash

from dedup_middleware.common.registry import required
from dedup_middleware.errors import ConfigError
from dedup_middleware.methods.method import FEATURE_BYTES, ROUNDING, Method, WeightedSet, feature, one_of, within
from dedup_middleware.methods.vocabulary import load_dictionary, words
from dedup_middleware.text.characters import NOISE
from dedup_middleware.text.clauses import folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dedup_middleware.methods.method import Text


#: Of a text, in characters.
LONGEST = 100_000

BHARAT_MODULUS = 25
BHARAT_MOST = 400

# Times as many as Heintze's method keeps are counted in each text of the corpus.
_COUNTED = 4
# A shingle in so many texts is not frequent, however small the corpus.
_NOT_FREQUENT = 10


class ShingleMethod(Method):
    """A method that cuts texts into shingles of *k* neighbours, in *unit*: ``characters`` or ``words``."""

    def __init__(self, k: int, unit: str) -> None:
        self._k = within("k", k, 1, 1000)
        self._unit = one_of("unit", unit, ("characters", "words"))
        if unit == "words":
            load_dictionary()

    def shingles(self, text: Text) -> list[str]:
        """Return the shingles of *text*, in reading order; one if it is shorter; or none.

        Folded, of letters and digits only. O(k * characters), of the first `LONGEST`.
        """
        read = text.body[:LONGEST]
        if self._unit == "words":
            cut = words(read)
            return [" ".join(cut[at : at + self._k]) for at in self._starts(len(cut))]
        line = NOISE.sub("", folded(read)).replace("\n", "")
        return [line[at : at + self._k] for at in self._starts(len(line))]

    def _starts(self, length: int) -> range:
        return range(max(length - self._k + 1, min(length, 1)))

    def hashes(self, text: Text) -> set[bytes]:
        """Return the shingles of *text* as features."""
        return {feature(shingle) for shingle in self.shingles(text)}


class Shingling(ShingleMethod):
    """Texts as sets of shingles, of which each subclass keeps all or a sample.

    From a resemblance of *threshold* on, texts are alike.
    """

    def __init__(self, *, k: int = 5, unit: str = "characters", threshold: float = 0.3) -> None:
        super().__init__(k, unit)
        self.threshold = within("threshold", threshold, 0.01, 1)

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the shingles of *text* that are kept; ``None`` if the text has no shingle. O(characters)."""
        kept = self._kept(self.hashes(text))
        return WeightedSet(dict.fromkeys(kept, 1.0)) if kept else None

    def keys(self, signature: WeightedSet) -> Iterable[bytes]:
        """Yield the smallest (1 - threshold) n + 1 of n shingles: two texts that are alike share one of these."""
        smallest = sorted(signature.weights)
        yield from smallest[: len(smallest) - ceil((self.threshold - ROUNDING) * len(smallest)) + 1]

    @abstractmethod
    def _kept(self, found: set[bytes]) -> list[bytes]:
        """Return which of the shingles *found* in a text its fingerprint has, in the same order in every process."""


class Shingles(Shingling):
    """All shingles."""

    def _kept(self, found: set[bytes]) -> list[bytes]:
        return sorted(found)


class Heintze(Shingling):
    """The *smallest* shingles that are not frequent: not in more than the share *frequent* of the corpus."""

    learns = True
    memory: ClassVar[Mapping[str, Any]] = {"_frequent": frozenset[bytes]}

    def __init__(
        self,
        *,
        k: int = 5,
        unit: str = "characters",
        threshold: float = 0.3,
        smallest: int = 100,
        frequent: float = 0.01,
    ) -> None:
        super().__init__(k=k, unit=unit, threshold=threshold)
        self._smallest = within("smallest", smallest, 1, LONGEST)
        self._share = within("frequent", frequent, 0, 1)
        self._frequent: frozenset[bytes] = frozenset()

    def fit(self, texts: Iterable[Text]) -> None:
        """Learn which shingles are frequent. Takes some 40 kB of memory a text by default."""
        counts: Counter[bytes] = Counter()
        number = 0
        for text in texts:
            number += 1
            counts.update(sorted(self.hashes(text))[: _COUNTED * self._smallest])
        most = max(_NOT_FREQUENT, self._share * number)
        self._frequent = frozenset(shingle for shingle, count in counts.items() if count > most)

    def _kept(self, found: set[bytes]) -> list[bytes]:
        return sorted(found - self._frequent)[: self._smallest]


class Bharat(Shingling):
    """The shingles whose hashes 25 divides, at most 400; some 36 of a news page of 900 Han characters."""

    def _kept(self, found: set[bytes]) -> list[bytes]:
        return divisible(found, BHARAT_MODULUS)[:BHARAT_MOST]


def in_common(new: WeightedSet, old: WeightedSet) -> int:
    """Return how many features two sets have in common."""
    return len(new.weights.keys() & old.weights.keys())


def divisible(found: Iterable[bytes], modulus: int) -> list[bytes]:
    """Return which hashes *found* are multiples of *modulus*, in ascending order: about one in *modulus*."""
    return sorted(shingle for shingle in found if int.from_bytes(shingle, "big") % modulus == 0)


#: Of Fetterly: the samples in a supershingle, and the supershingles of a text.
SAMPLES, SUPERSHINGLES = 14, 6


class SuperShingles(ShingleMethod):
    """The runs of neighbours in a sorted sample of shingles.

    One shingle in *modulus* is in the sample, *span* make a supershingle, and
    texts with *shared* supershingles in common are alike.

    Source: A. Broder, S. Glassman, M. Manasse and G. Zweig, "Syntactic clustering of the Web", WWW6, 1997, for
    `SuperShingles`. D. Fetterly, M. Manasse and M. Najork, "On the evolution of clusters of near-duplicate Web pages",
    LA-WEB 2003, for `Fetterly`.

    Specified: Broder sorts a sample of a text's shingles and takes each run of neighbours in it as one supershingle.
    Texts that share one are alike; short texts have too few. Fetterly takes shingles of 5 words and 84 samples, each
    the smallest under a hash of its own. 14 samples make a supershingle, so a text has 6; texts with 2 equal ones are
    alike.

    Left open: for `SuperShingles`, how many shingles make one: 14, as in the authors' later work. Which sample: one
    shingle in 4 by its hash, where the AltaVista of 1997 took one in 25, for the text of a news page is short. Two
    texts of 900 characters then share a supershingle from a resemblance of about 0.7 on. Shingles have 5 characters, as
    in `shingling`. For `Fetterly`, a word of Chinese is one of jieba's.

    Departures: hashes are xxHash's, not Rabin's. Shingles are those of `shingling`. `Fetterly` looks texts up by pairs
    of supershingles, the megashingles of A. Broder, "Identifying and filtering near-duplicate documents" (CPM 2000),
    which miss none.
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


# The same permutations in every process.
_SEED = 1


class MinHashLSH(ShingleMethod):
    """The smallest hashes of a text's shingles under random *permutations*.

    `ConfigError` if datasketch is not installed.

    Source: A. Broder, "On the resemblance and containment of documents", SEQUENCES 1997, for MinHash; P. Indyk and R.
    Motwani, "Approximate nearest neighbors: towards removing the curse of dimensionality", STOC 1998, for LSH. Corpora
    for language models are deduplicated with it today. The permutations and the choice of bands are those of the
    library datasketch.

    Specified: the share of permutations under which two sets have the same smallest element estimates their
    resemblance. Bands of the signature are looked up: b bands of r values find a resemblance of s with a chance of 1 -
    (1 - s^r)^b.

    Left open: everything else. Here the common choice: 128 permutations, shingles of 5 words, a threshold of 0.7, and
    the bands for which datasketch expects the fewest errors.

    Departures: none in the method; shingles are those of `shingling`. The estimate decides, not the bands: a text that
    bands find below the threshold is not alike. Bands miss some texts above it: at the default of 0.7, more than half
    of those with a resemblance of 0.7, one in eight at 0.8, one in a thousand at 0.9.
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
