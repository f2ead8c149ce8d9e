"""Shingles: texts are alike by the runs of k characters or words that both have; all of them, or a sample.

Source: A. Broder, S. Glassman, M. Manasse and G. Zweig, "Syntactic clustering of the Web", WWW6, 1997, for shingles and
resemblance. N. Heintze, "Scalable document fingerprinting", USENIX Workshop on Electronic Commerce, 1996. K. Bharat and
A. Broder, "Mirror, mirror on the Web: a study of host pairs with replicated content", WWW8, 1999. The samples are as
Chinese surveys of near-duplicate detection sum them up, and so are a k of 5 and a threshold of 0.3.

Specified: a shingle is a run of k neighbours, a text the set of its shingles; resemblance is |A & B| / |A | B|. Heintze
keeps the N smallest hashes, without shingles that are frequent in the corpus; Bharat the hashes that 25 divides, at
most 400.

Left open: what a neighbour is. The surveys say words and cut characters, as we do; ``unit=words`` cuts words. Only
letters and digits count, folded, and a shingle may begin in one paragraph and end in the next, for reposts join and
split them. N is 100. Frequent is what stands in more than a hundredth of the texts, and in more than 10, for in a small
corpus a share says nothing. Which 400: the smallest, so that two texts choose alike. What makes samples alike: the
same threshold, of the resemblance of the samples.

Departures: hashes are xxHash's, 64 bits, not Rabin's of 40. A text is read up to its 100,000th character, some thirty
news pages. A text of less than k characters or words is one shingle. What is frequent is told from the 4 N smallest
hashes of each text: others hardly ever come to be among the N that stay. Texts are looked up by a part of their
features that texts above the threshold cannot but share: the prefix filter of S. Chaudhuri, V. Ganti and R. Kaushik
(ICDE 2006), which loses nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from math import ceil
from typing import TYPE_CHECKING

from dedup_middleware.errors import UnreadableError
from dedup_middleware.fingerprints.method import ROUNDING, Method, WeightedSet, feature, one_of, within
from dedup_middleware.methods.learned import packed_before, unpacked_before
from dedup_middleware.methods.wording import load_words, whole, words
from dedup_middleware.text.characters import NOISE
from dedup_middleware.text.clauses import folded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.fingerprints.method import Print, Text

#: Of a text, in characters.
LONGEST = 100_000

BHARAT_MODULUS = 25
BHARAT_MOST = 400

# Of what Heintze's method may take, so much is counted in each text of the corpus.
_COUNTED = 4
# In so many texts a shingle may stand, however small the corpus.
_NOT_FREQUENT = 10


class Shingling(Method):
    """Texts as sets of shingles; what they keep of these is the methods' own.

    *k* is the length of a shingle, in *unit*: ``characters`` or ``words``; from a resemblance of *threshold* on, texts
    are alike. `ConfigError` if words are asked for and jieba is not installed.
    """

    def __init__(self, *, k: int = 5, unit: str = "characters", threshold: float = 0.3) -> None:
        self._k = int(within("k", k, 1, 1000))
        self._unit = shingle_unit(unit)
        self.threshold = within("threshold", threshold, 0.01, 1)

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the shingles of *text* that are kept; ``None`` if there are none. O(characters)."""
        kept = self._kept(self._shingles(text))
        return WeightedSet(dict.fromkeys(kept, 1.0)) if kept else None

    def keys(self, made: Print) -> Iterable[bytes]:
        """Yield the smallest (1 - threshold) n + 1 of n shingles: two that are alike share one of these."""
        assert isinstance(made, WeightedSet)
        smallest = sorted(made.weights)
        yield from smallest[: len(smallest) - ceil((self.threshold - ROUNDING) * len(smallest)) + 1]

    def _shingles(self, text: Text) -> set[bytes]:
        return {feature(shingle) for shingle in shingles(text, self._k, self._unit)}

    @abstractmethod
    def _kept(self, found: set[bytes]) -> list[bytes]:
        """Return those *found* in a text that its fingerprint has, in the same order in every process."""


class Shingles(Shingling):
    """All shingles. 1 ms for a news page."""

    def _kept(self, found: set[bytes]) -> list[bytes]:
        return sorted(found)


class Heintze(Shingling):
    """The smallest shingles that are not frequent.

    *smallest* of them are kept. In more than the share *frequent* of the corpus, and in more than 10 texts, one is
    frequent; unfitted, none is.
    """

    learns = True

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
        self._smallest = int(within("smallest", smallest, 1, LONGEST))
        self._share = within("frequent", frequent, 0, 1)
        self._frequent: frozenset[bytes] = frozenset()

    def fit(self, texts: Iterable[Text]) -> None:
        """Learn which shingles are frequent. Some 100 bytes for each that is counted, 400 a text by default."""
        counts: Counter[bytes] = Counter()
        number = 0
        for text in texts:
            number += 1
            counts.update(sorted(self._shingles(text))[: _COUNTED * self._smallest])
        most = max(_NOT_FREQUENT, self._share * number)
        self._frequent = frozenset(shingle for shingle, count in counts.items() if count > most)

    def learned(self) -> bytes:
        """Return the frequent shingles."""
        return packed_before(b"", sorted(shingle.hex() for shingle in self._frequent))

    def recall(self, learned: bytes) -> None:
        """Know these as frequent; :class:`UnreadableError` if they are no shingles."""
        try:
            known, _ = unpacked_before(learned)
            self._frequent = frozenset(map(bytes.fromhex, known))
        except (ValueError, TypeError) as error:
            raise UnreadableError(f"the frequent shingles cannot be read: {error}") from error

    def _kept(self, found: set[bytes]) -> list[bytes]:
        return sorted(found - self._frequent)[: self._smallest]


class Bharat(Shingling):
    """The shingles whose hashes 25 divides, at most 400: of a news page of 900 Han characters, some 36."""

    def _kept(self, found: set[bytes]) -> list[bytes]:
        return divisible(found, BHARAT_MODULUS)[:BHARAT_MOST]


def shingle_unit(unit: str) -> str:
    """Return *unit* if it is one, and load what it needs; else :class:`ConfigError`."""
    if one_of("unit", unit, ("characters", "words")) == "words":
        load_words()
    return unit


def shingles(text: Text, k: int, unit: str) -> list[str]:
    """Return the runs of *k* ``characters`` or ``words`` of *text*, in reading order; one if it is shorter; or none.

    Folded, of letters and digits only. O(k * characters), of the first `LONGEST`.
    """
    read = whole(text)[:LONGEST]
    if unit == "words":
        cut = words(read)
        return [" ".join(cut[at : at + k]) for at in range(max(len(cut) - k + 1, min(len(cut), 1)))]
    line = NOISE.sub("", folded(read)).replace("\n", "")
    return [line[at : at + k] for at in range(max(len(line) - k + 1, min(len(line), 1)))]


def in_common(new: Print, old: Print) -> int:
    """Return how many features two sets have in common; 0 if either is none."""
    if isinstance(new, WeightedSet) and isinstance(old, WeightedSet):
        return len(new.weights.keys() & old.weights.keys())
    return 0


def divisible(found: Iterable[bytes], modulus: int) -> list[bytes]:
    """Return those *found* that *modulus* divides, as numbers, in ascending order: about one of as many."""
    return sorted(shingle for shingle in found if int.from_bytes(shingle, "big") % modulus == 0)
