"""P-SimHash: SimHash of the heaviest words, where co-occurring words weigh less and places count.

Source: Zhang Yanan, Chen Weiwei, Fu Yinjin and Xu Kun, on text deduplication by an improved SimHash, Computer
Technology and Development (China) 32(8), 2022. BDR: R. Pratap, R. Kulkarni and I. Sohony, "Efficient dimensionality
reduction for sparse binary data", IEEE Big Data 2018.

Specified: the 20 words with the greatest TF-IDF (TFC). J-Tidf: less weight for a word that occurs in the same texts of
a corpus as another one. PBDR: every place of a text is mapped to one of the bits at random, the places of a word are
counted by bit, and the bits with more than the mean form the signature of its places; BDR, its parent, takes those with
an odd number. A word's vector is mu x the signs of its hash + (1 - mu) x the signs of its places, each bit 1 for +1 and
0 for -1; mu is best from 1.4 to 1.9, and 1.5. These are added by J-Tidf; 10 of 64 bits may differ.

Left open: in the text that we have, formulas 1, 3, 5 and 6 are lost. Ours are: 1, the similarity, the share of equal
bits; 3, TFC, the TF-IDF of `charikar`, for its norm would move no sign; 5, how far two words occur together, the sum
over the texts of the smaller of their counts by the sum of the larger; 6, J-Tidf, TF-IDF x (1 - the largest such value
with a heavier word of the same text). What a place is: the number of words before it, stop words left out. The random
map is a hash of that number. The 20 words are chosen before J-Tidf, which else would compare all words with all.

Departures: co-occurrence is learned from the first 3,000 texts (the authors use 2,831), and for words that two of them
have: a pair seen in one text only tells nothing of the language, and a fingerprint must not look through a whole crawl.

A word that occurs once sets but one bit of its places. With mu above 1 that vector is subtracted, and raises every
other bit by mu - 1 for each word. So most bits of a text whose words occur a few times are set, whatever they are: at
1.5, 47 to 59 of 64 in the short stories of our tests, which stand 9 to 29 bits apart, 18 in the median instead of 32.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from xxhash import xxh3_64_intdigest

from dedup_middleware.errors import UnreadableError
from dedup_middleware.fingerprints.method import Bits, Method, least_score, one_of, within
from dedup_middleware.methods.charikar import LEAST_BITS, MOST_BITS, hash_of, signs, tf_idf
from dedup_middleware.methods.learned import packed_before, unpacked_before
from dedup_middleware.methods.wording import DocumentFrequencies, telling_words, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dedup_middleware.fingerprints.method import Text

#: Whose words are counted for co-occurrence: the authors learn from 2,831.
MOST_TEXTS = 3_000
# Each is compared with all that are heavier.
_MOST_WORDS = 100


class PSimHash(Method):
    """The *top* heaviest words of a text as *bits* signs; at most *distance* of them differ in texts that are alike.

    *mu*, 0 to 10, is the share of a word's hash, and 1 - *mu* that of its places: at 1, none. *positions*: how they are
    reduced to bits, ``"pbdr"`` or ``"bdr"``.

    3 ms for a page of 1,000 words on top of its segmentation; up to 40 more where its heaviest words are common in the
    corpus. `fit` holds the counts of the words of `MOST_TEXTS` texts in memory, and so does `learned`.
    """

    learns = True

    def __init__(
        self, *, bits: int = 64, distance: int = 10, top: int = 20, mu: float = 1.5, positions: str = "pbdr"
    ) -> None:
        within("bits", bits, LEAST_BITS, MOST_BITS)
        within("distance", distance, 0, bits // 2)
        within("top", top, 1, _MOST_WORDS)
        self.threshold = least_score(distance, bits)
        self._bits = bits
        self._top = top
        self._mu = within("mu", mu, 0, 10)
        self._signature = {"pbdr": pbdr, "bdr": bdr}[one_of("positions", positions, ("pbdr", "bdr"))]
        self._frequencies = DocumentFrequencies()
        self._occurrences: dict[str, dict[int, int]] = {}

    def fit(self, texts: Iterable[Text]) -> None:
        occurrences: defaultdict[str, dict[int, int]] = defaultdict(dict)

        def read() -> Iterable[Counter[str]]:
            for number, text in enumerate(texts):
                counts = Counter(telling_words(whole(text)))
                if number < MOST_TEXTS:
                    for word, count in counts.items():
                        occurrences[word][number] = count
                yield counts

        self._frequencies.fit(read())
        self._occurrences = {word: counts for word, counts in sorted(occurrences.items()) if len(counts) > 1}

    def learned(self) -> bytes:
        occurrences = {word: [*counts.items()] for word, counts in self._occurrences.items()}
        return packed_before(self._frequencies.learned(), occurrences)

    def recall(self, learned: bytes) -> None:
        known, rest = unpacked_before(learned)
        try:
            occurrences = {str(word): {int(text): int(n) for text, n in counts} for word, counts in known.items()}
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            raise UnreadableError(f"occurrences of words cannot be read: {error}") from error
        self._frequencies.recall(rest)
        self._occurrences = occurrences

    def fingerprint(self, text: Text) -> Bits | None:
        """Return the bits of *text*; ``None`` if it has no words but stop words."""
        words = telling_words(whole(text))
        if not words:
            return None
        weights = self.j_tidf(words)
        places: dict[str, list[int]] = {word: [] for word in weights}
        for place, word in enumerate(words):
            if word in places:
                places[word].append(place)
        vectors = []
        for word, weight in weights.items():
            vectors.append((hash_of(word, self._bits), self._mu * weight))
            vectors.append((self._signature(places[word], self._bits), (1 - self._mu) * weight))
        return Bits((signs(vectors, self._bits),), self._bits)

    def j_tidf(self, words: Iterable[str]) -> dict[str, float]:
        """Return the J-Tidf of the heaviest of the *words* of a text. O(words + top² x texts that have them)."""
        weights = tf_idf(words, self._frequencies)
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
    counts = _mapped(places, bits)
    return sum(1 << bit for bit, count in counts.items() if count * bits > len(places))


def bdr(places: Sequence[int], bits: int) -> int:
    """Return the bits to which an odd number of the *places* are mapped."""
    return sum(1 << bit for bit, count in _mapped(places, bits).items() if count % 2)


def _mapped(places: Sequence[int], bits: int) -> Counter[int]:
    return Counter(xxh3_64_intdigest(place.to_bytes(8, "big")) % bits for place in places)
