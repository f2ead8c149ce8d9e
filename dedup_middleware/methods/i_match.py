"""I-Match: a digest of all words that a corpus calls telling.

Source: A. Chowdhury, O. Frieder, D. Grossman and M. C. McCabe, "Collection statistics for fast duplicate document
detection", ACM Transactions on Information Systems 20 (2), 2002; as the Chinese literature tells it, with IDF alone.

Specified: A word's IDF is log10(N / n), where n of N texts have it: 0.699 for 200 of 1000, 0.046 for 900. After stop
words, words with an IDF below a threshold, 0.5, are out; the digest of the others, in descending order, is the
fingerprint. Texts are alike if theirs are equal. The digest is SHA-1 in the paper.

Left open: What the order descends by: by IDF, and ties by word. A word that the corpus lacks counts as one that a
single text has.

Departures: The threshold is never above the IDF of a word that a single text has: in a corpus of three texts, or before
there is one, 0.5 would leave no word at all. The paper also drops the rarest words, and scales IDF to 0..1; what is
called I-Match here does neither.
"""

from __future__ import annotations

import hashlib
from math import log10
from typing import TYPE_CHECKING

from dedup_middleware.fingerprints.method import Digest, within
from dedup_middleware.methods.ranked_words import as_bytes
from dedup_middleware.methods.wording import FrequencyMethod, telling_words, whole

if TYPE_CHECKING:
    from dedup_middleware.fingerprints.method import Text


class IMatch(FrequencyMethod):
    """Equal digests of the words with a high IDF."""

    threshold = 1.0

    def __init__(self, *, idf: float = 0.5) -> None:
        """Leave out words whose IDF is below *idf*, 0 to 9. `ConfigError` if jieba is not installed."""
        self._least = within("idf", idf, 0, 9)
        super().__init__()

    def idf(self, word: str) -> float:
        """Return the IDF of a folded *word*: log10(N / n)."""
        return log10(max(self._frequencies.texts, 1) / self._frequencies[word])

    def telling(self, text: Text) -> list[str]:
        """Return the words that the digest of *text* is made of, in its order. O(n log n)."""
        least = min(self._least, log10(max(self._frequencies.texts, 1)))
        found = {word: idf for word in telling_words(whole(text)) if (idf := self.idf(word)) >= least}
        return sorted(found, key=lambda word: (-found[word], word))

    def fingerprint(self, text: Text) -> Digest | None:
        """Return the digest of *text*; ``None`` if all of its words are common."""
        telling = self.telling(text)
        return Digest(hashlib.sha1(as_bytes(telling), usedforsecurity=False).digest()) if telling else None
