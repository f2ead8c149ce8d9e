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

from abc import abstractmethod
from collections import Counter
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

from dedup_middleware.methods.method import ROUNDING, Method, WeightedSet, feature, one_of, within
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
