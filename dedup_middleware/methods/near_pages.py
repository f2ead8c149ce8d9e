"""Near pages: a digest of a rounded number of the most frequent words.

Source: Told in Chinese articles on how search engines drop copies of pages, which name no author.

Specified: Words without stop words, by frequency, ties by their characters in descending order; of those sum1 words
the first sum2 = sum1 * Percentage are candidates, and of these the first sum3 = sum2 DIV Sum_interval * Sum_interval
are taken, so that a few words more or less do not change their number. They are sorted by character, descending, and
their MD5 is the fingerprint. Sorting the fingerprints of all pages brings copies together.

Left open: Percentage and Sum_interval, for which we take 0.5 and 10, which make twenty words a short page; what
separates the words in the string: a space.

Departures: The digests are looked up instead of sorted, which finds the same pages. A text with so few words that sum3
is 0 has no fingerprint.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

from dedup_middleware.fingerprints.method import ROUNDING, Digest, Method, within
from dedup_middleware.methods.ranked_words import as_bytes
from dedup_middleware.methods.wording import load_words, telling_words, whole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.fingerprints.method import Text


class NearPages(Method):
    """Equal digests of the most frequent words, so many that a few more make no difference."""

    threshold = 1.0

    def __init__(self, *, percentage: float = 0.5, sum_interval: int = 10) -> None:
        """Take the share *percentage* of the words, 0.01 to 1, in steps of *sum_interval*, 1 to 1000.

        `ConfigError` if jieba is not installed.
        """
        self._percentage = within("percentage", percentage, 0.01, 1)
        self._sum_interval = int(within("sum_interval", sum_interval, 1, 1000))
        load_words()

    def taken(self, count: int) -> int:
        """Return how many of *count* different words go into a digest."""
        candidates = int(count * self._percentage + ROUNDING)
        return candidates // self._sum_interval * self._sum_interval

    def chosen(self, words: Iterable[str]) -> list[str]:
        """Return which of *words* go into a digest, in its order. O(n log n)."""
        counts = Counter(words)
        ranked = sorted(counts, key=lambda word: (counts[word], word), reverse=True)
        return sorted(ranked[: self.taken(len(ranked))], reverse=True)

    def fingerprint(self, text: Text) -> Digest | None:
        """Return the digest of *text*; ``None`` if it has too few words."""
        chosen = self.chosen(telling_words(whole(text)))
        return Digest(hashlib.md5(as_bytes(chosen), usedforsecurity=False).digest()) if chosen else None
