"""Compares texts by one digest: of a few of their words, of those with a high IDF, or of their whole content.

`KeywordDigests`, `TopWords` and `NearPages` are ascribed to search engines, in Chinese articles on how these drop
copies of pages, which name no author. They leave stop words out: the most frequent words of nearly every page.
"""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b, md5, sha1
from math import log10
from typing import TYPE_CHECKING

from dedup_middleware.methods.method import ROUNDING, Digest, Method, WeightedSet, feature, one_of, within
from dedup_middleware.methods.vocabulary import (
    FrequencyMethod,
    by_frequency,
    content_words,
    joined,
    load_dictionary,
    single_spaced,
    words,
)
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


_FEATURES = ("url", "title", "keywords", "text")
# The first byte of a feature is its place; this is the place of the group.
_GROUP = b"\0"
_HASH_BYTES = 16


class TwoStage(Method):
    """Groups by a hash of the content, split by URL, title, keywords and text.

    Source: a text in Chinese on the web about how crawlers remove duplicate pages; its author is not known, and it
    describes common practice.

    Specified: first, pages are put into groups by a hash of their content. Then, within a group, a page whose features
    occurred before is a duplicate. Features are the URL, the title, the keywords and the text.

    Left open: which features must be equal. Here three of the four, for two pages of a crawl seldom have one URL. The
    content is the main text, folded, with single spaces. The keywords are the ten words that are most frequent in the
    text, stop words left out, in any order.

    Departures: none by default. Equal contents have equal texts and keywords, so the second stage then only splits a
    group by title or URL. ``first=keywords`` makes coarser groups, by the keywords alone: then an edited page comes
    into the group of its original, and ``two-stage:first=keywords,equal=2`` takes pages with the same title for
    duplicates.
    """

    def __init__(self, *, first: str = "content", equal: int = 3, keywords: int = 10) -> None:
        """Group by *first*, ``content`` or ``keywords``; pages of a group with *equal* features are alike."""
        self._first = one_of("first", first, ("content", "keywords"))
        self._keywords = within("keywords", keywords, 1, 1000)
        self.threshold = within("equal", equal, 1, len(_FEATURES)) / len(_FEATURES)
        load_dictionary()

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the group and the features of *text*, each of weight 1; ``None`` if the group would be empty."""
        content = single_spaced(text.body)
        most_frequent = by_frequency(content_words(content))[: self._keywords]
        keywords = " ".join(sorted(word for word, _ in most_frequent))
        group = content if self._first == "content" else keywords
        if not group:
            return None
        parts = (group, text.url, single_spaced(text.title), keywords, content)
        return WeightedSet({bytes([place]) + feature(part)[1:]: 1.0 for place, part in enumerate(parts)})

    def similarity(self, new: WeightedSet, old: WeightedSet) -> float:
        """Return the share of the features that are equal; 0 for pages of different groups."""
        shared = [part for part in new.weights if part in old.weights]
        return (len(shared) - 1) / len(_FEATURES) if any(part.startswith(_GROUP) for part in shared) else 0.0

    def keys(self, signature: WeightedSet) -> Iterable[bytes]:
        """Yield the group."""
        return (part for part in signature.weights if part.startswith(_GROUP))


class BloomFilter(Method):
    """Equal hashes of the content.

    Source: B. Bloom, "Space/time trade-offs in hash coding with allowable errors", Communications of the ACM 13 (7),
    1970; a text in Chinese on the web about crawlers, of unknown author, proposes it for pages.

    Specified: an array of m bits and k hash functions. A content sets the bits of its k positions, and a content whose
    bits are all set counts as seen: always if it was seen, and with a small probability if it was not.

    Left open: what is hashed. Here the main text, folded, with single spaces, by BLAKE2b.

    Departures: a filter cannot return which text is repeated, so it does not compare two texts. The fingerprint is the
    input of a filter, 128 bits that determine all k positions, and two texts are alike if these are equal. That is the
    filter without its false positives, so there is no m and no k.
    """

    threshold = 1.0

    def fingerprint(self, text: Text) -> Digest | None:
        """Return the hash of the content of *text*; ``None`` if it has none. O(characters)."""
        content = single_spaced(text.body).encode("utf8", "surrogatepass")
        return Digest(blake2b(content, digest_size=_HASH_BYTES).digest()) if content else None
