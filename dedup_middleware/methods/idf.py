"""Compares texts by their words with a high IDF, as one digest: `IMatch` and `IdfTop`."""

from __future__ import annotations

from hashlib import blake2b, sha1
from math import log10
from typing import TYPE_CHECKING

from dedup_middleware.methods.method import ROUNDING, Digest, within
from dedup_middleware.methods.vocabulary import FrequencyMethod, joined, words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.methods.method import Text

HASH_BYTES = 4
_STRING_BYTES = 16


class IMatch(FrequencyMethod):
    """Equal digests of the words with a high IDF.

    Source: A. Chowdhury, O. Frieder, D. Grossman and M. C. McCabe, "Collection statistics for fast duplicate document
    detection", ACM Transactions on Information Systems 20 (2), 2002; as Chinese surveys describe it, with IDF alone.

    Specified: a word's IDF is log10(N / n), where n of N texts have it: 0.699 for 200 of 1000, 0.046 for 900. After
    stop words, words with an IDF below a threshold, 0.5, are left out. The digest of the others, in descending order,
    is the fingerprint: SHA-1 in the paper. Texts are alike if theirs are equal.

    Left open: the order; here by IDF, and ties by word.

    Departures: the threshold is never above the IDF of a word that a single text has. In a corpus of three texts, or
    before `fit`, 0.5 would leave out every word. The paper also drops the rarest words, and scales IDF to 0..1; the
    surveys do neither.
    """

    threshold = 1.0

    def __init__(self, *, idf: float = 0.5) -> None:
        self._least = within("idf", idf, 0, 9)
        super().__init__()

    def fingerprint(self, text: Text) -> Digest | None:
        """Return the digest of *text*; ``None`` if all of its words are common."""
        chosen = self.chosen(text)
        return Digest(sha1(joined(chosen), usedforsecurity=False).digest()) if chosen else None

    def chosen(self, text: Text) -> list[str]:
        """Return the words that the digest of *text* is made of, in its order. O(n log n)."""
        least = min(self._least, log10(max(self.texts, 1)))
        found = {word: idf for word in self.words_of(text) if (idf := self.idf(word)) >= least}
        return sorted(found, key=lambda word: (-found[word], word))

    def idf(self, word: str) -> float:
        """Return the IDF of a folded *word*."""
        return log10(max(self.texts, 1) / self.frequency(word))


class IdfTop(FrequencyMethod):
    """Equal strings of the rarer words, looked up by a hash.

    Source: Chinese articles on duplicate detection, which name no author. The hash is A. Partow's, revised, of his
    "General Purpose Hash Function Algorithms".

    Specified: the IDF of all words of the corpus. The 70 % of a text's words with the larger IDF, in descending order,
    are its string. Texts with equal 32-bit hashes are compared by their strings, and are alike if these are equal. Of
    eight classical hashes tried on 1000 pages AP, with the fewest collisions, was chosen.

    Left open: ties, of which there are many; here by word. 70 % of few words are rounded down, but not to 0.

    Departures: instead of the string, which is as long as the text, a 128-bit digest of it is kept beside the hash.
    """

    threshold = 1.0

    def __init__(self, *, share: float = 0.7) -> None:
        self._share = within("share", share, 0.01, 1)
        super().__init__()

    def words_of(self, text: Text) -> list[str]:
        """Return all words of *text*, in reading order."""
        return words(text.body)

    def fingerprint(self, text: Text) -> Digest | None:
        """Return the hash and the digest of the string of *text*; ``None`` if it has no words."""
        string = self.string(text)
        value = ap_hash(string).to_bytes(HASH_BYTES, "big") + blake2b(string, digest_size=_STRING_BYTES).digest()
        return Digest(value) if string else None

    def string(self, text: Text) -> bytes:
        """Return the string of *text*; empty if it has no words. O(n log n)."""
        # A larger IDF is a smaller frequency.
        ranked = sorted({*self.words_of(text)}, key=lambda word: (self.frequency(word), word))
        return joined(ranked[: max(1, int(len(ranked) * self._share + ROUNDING))])

    def keys(self, signature: Digest) -> Iterable[bytes]:
        """Yield the hash."""
        return [signature.value[:HASH_BYTES]]


def ap_hash(data: bytes) -> int:
    """Return A. Partow's hash of *data*, 32 bits: bytes at even and at odd places are mixed in differently."""
    found = 0xAAAAAAAA
    for place, byte in enumerate(data):
        mixed = ~((found << 11) + (byte ^ found >> 5)) if place & 1 else (found << 7) ^ byte * (found >> 3)
        found = (found ^ mixed) & 0xFFFFFFFF
    return found
