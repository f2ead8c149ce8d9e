"""Compares texts by a few of their words, in three ways that are ascribed to search engines.

All three are described in Chinese articles on how search engines drop copies of pages, which name no author. Stop words
are left out everywhere: they are the most frequent words of nearly every page.
"""

from __future__ import annotations

from collections import Counter
from hashlib import md5
from typing import TYPE_CHECKING

from dedup_middleware.methods.method import ROUNDING, Digest, Method, WeightedSet, feature, within
from dedup_middleware.methods.vocabulary import by_frequency, content_words, joined, load_dictionary
from dedup_middleware.text.clauses import reduced

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.methods.method import Text

SUMMARY_BYTES = 512

_SUMMARY = 1
_SORTED = (3, 5)
_WEIGHED = (4, 5)


class KeywordDigests(Method):
    """Equal digests of a summary or of keywords, whose weights may have to be alike too.

    Source: ascribed to the search engine Tianwang of Peking University.

    Specified: of each page, the N keywords of the largest weight, and a summary: the page's own description, or 512
    bytes of its text. Pages are alike if the MD5 is equal (1) of their summaries, (2) of their keywords by weight, (3)
    of their keywords sorted; (4), (5) as (2), (3) if besides, with Wi and Wj for the vectors of their weights,
    |Wi - Wj|^2 / (|Wi|^2 + |Wj|^2) is below a threshold. That is to keep pages that are only partly the same. About ten
    keywords served best in Tianwang. A weight is the density of the keyword.

    Left open: which of the five to use. Here the fifth: the threshold is said to improve (2) and (3), and only (3) and
    (5) allow two keywords of nearly the same weight to change places. The threshold is 0.05, which is reached where all
    weights differ by 38 %. The summary without a description is the first 512 bytes in UTF-8 of the text's letters and
    digits. Ties are by word.

    Departures: "at most" the threshold instead of "below" it.
    """

    def __init__(self, *, variant: int = 5, keywords: int = 10, difference: float = 0.05) -> None:
        """Compare by *variant*, 1 to 5, and by so many *keywords*; the weights of 4 and 5 may have the *difference*."""
        self._variant = within("variant", variant, 1, 5)
        self._keywords = within("keywords", keywords, 1, 1000)
        difference = within("difference", difference, 0, 1)
        self.threshold = 1 - difference if variant in _WEIGHED else 1.0
        load_dictionary()

    def fingerprint(self, text: Text) -> Digest | WeightedSet | None:
        """Return what this variant compares of *text*; ``None`` if it has no summary or no keywords. O(n log n)."""
        if self._variant == _SUMMARY:
            summary = summary_of(text)
            return Digest(_md5(summary)) if summary else None
        words = content_words(text.body)
        top = by_frequency(words)[: self._keywords]
        if not top:
            return None
        names = [word for word, _ in top]
        digest = _md5(joined(sorted(names) if self._variant in _SORTED else names))
        if self._variant not in _WEIGHED:
            return Digest(digest)
        # With the digest in each feature, two sets have all features in common, or none.
        return WeightedSet({feature(f"{digest.hex()} {word}"): count / len(words) for word, count in top})

    def similarity(self, new: Digest | WeightedSet, old: Digest | WeightedSet) -> float:
        """Return 1 - the difference of the weights where the keywords are equal, else 0; 1 or 0 for digests."""
        if not isinstance(new, WeightedSet) or not isinstance(old, WeightedSet):
            return super().similarity(new, old)
        ours, theirs = new.weights, old.weights
        if not ours or ours.keys() != theirs.keys():
            return 0.0
        apart = sum((weight - theirs[name]) ** 2 for name, weight in ours.items())
        return 1 - apart / sum(weight**2 for weights in (ours, theirs) for weight in weights.values())

    def keys(self, signature: Digest | WeightedSet) -> Iterable[bytes]:
        """Yield the digest, or one of the features: two sets share all features, or none."""
        return [min(signature.weights)] if isinstance(signature, WeightedSet) else super().keys(signature)


class TopWords(Method):
    """Equal digests of the most frequent words and their counts.

    Source: the articles that the module names.

    Specified: words by frequency; the MD5 of the first N of them, each followed by its count. Texts are alike if their
    digests are equal. The example has three words, and prints their digest.

    Left open: N, which is 3 as in the example, and what exactly is hashed. The digest of the example is that of words
    and counts in GBK, with nothing between them and a line end after the last, so this is hashed. Ties are by word.

    Departures: GB 18030 instead of GBK: the same bytes for all that GBK has, and it has the rest of Unicode.
    """

    threshold = 1.0

    def __init__(self, *, words: int = 3) -> None:
        self._words = within("words", words, 1, 1000)
        load_dictionary()

    def fingerprint(self, text: Text) -> Digest | None:
        """Return the digest of *text*, of all its words if it has fewer; ``None`` if it has none. O(n log n)."""
        top = by_frequency(content_words(text.body))[: self._words]
        line = "".join(f"{word}{count}" for word, count in top) + "\n"
        # GB 18030 cannot encode half a surrogate pair.
        return Digest(_md5(line.encode("gb18030", "backslashreplace"))) if top else None


class NearPages(Method):
    """Equal digests of a rounded number of the most frequent words.

    Source: the articles that the module names.

    Specified: words without stop words, by frequency, ties by their characters in descending order. Of these sum1 words
    the first sum2 = sum1 * Percentage are candidates, and of these the first sum3 = sum2 DIV Sum_interval *
    Sum_interval are taken, so that a few words more or less do not change their number. They are sorted by character,
    descending, and their MD5 is the fingerprint. Sorting the fingerprints of all pages brings copies together.

    Left open: Percentage and Sum_interval, here 0.5 and 10, so that a page needs twenty words; and what separates the
    words in the string, here a space.

    Departures: digests are looked up instead of sorted, which finds the same pages. A text with so few words that sum3
    is 0 has no fingerprint.
    """

    threshold = 1.0

    def __init__(self, *, percentage: float = 0.5, sum_interval: int = 10) -> None:
        self._percentage = within("percentage", percentage, 0.01, 1)
        self._sum_interval = within("sum_interval", sum_interval, 1, 1000)
        load_dictionary()

    def fingerprint(self, text: Text) -> Digest | None:
        """Return the digest of *text*; ``None`` if it has too few words. O(n log n)."""
        chosen = self.chosen(content_words(text.body))
        return Digest(_md5(joined(chosen))) if chosen else None

    def chosen(self, words: Iterable[str]) -> list[str]:
        """Return which of *words* go into a digest, in its order."""
        counts = Counter(words)
        ranked = sorted(counts, key=lambda word: (counts[word], word), reverse=True)
        return sorted(ranked[: self.taken(len(ranked))], reverse=True)

    def taken(self, count: int) -> int:
        """Return how many of *count* different words go into a digest."""
        candidates = int(count * self._percentage + ROUNDING)
        return candidates // self._sum_interval * self._sum_interval


def summary_of(text: Text) -> bytes:
    """Return the description of *text*, or the first `SUMMARY_BYTES` of its body; letters and digits, folded."""
    summary = reduced(text.description) or reduced(text.body)
    return summary.replace("\n", "").encode("utf8", "surrogatepass")[:SUMMARY_BYTES]


def _md5(data: bytes) -> bytes:
    return md5(data, usedforsecurity=False).digest()
