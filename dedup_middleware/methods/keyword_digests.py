"""Five ways to compare pages by what a search engine keeps of them: a summary, and the keywords with their weights.

Source: Ascribed to the search engine Tianwang of Peking University; told in Chinese articles on how search engines drop
copies of pages, which name no author.

Specified: Of each page, the N keywords of the largest weight, and a summary: the page's own description, or 512 bytes
of its text. Pages are alike if the MD5 is equal (1) of their summaries, (2) of their keywords by weight, (3) of their
keywords sorted; (4), (5) as (2), (3), and besides, with Wi and Wj for the vectors of their weights,
|Wi - Wj|^2 / (|Wi|^2 + |Wj|^2) is below a threshold, which is to spare pages that are only partly the same. About ten
keywords served best in Tianwang. A weight is the density of the keyword.

Left open: Which of the five to use: the last, as the threshold is said to mend the second and the third, and only the
third and the fifth stand it that two keywords of nearly the same weight change places. The threshold: 0.05, what is
reached where all weights differ by 38 %. The summary: the description where a page has one, else the first 512 bytes in
UTF-8 of the text's letters and digits. Ties are by word. Stop words are no keywords.

Departures: "At most" the threshold instead of "below" it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from dedup_middleware.fingerprints.method import Digest, Method, WeightedSet, feature, within
from dedup_middleware.methods.ranked_words import as_bytes, by_frequency
from dedup_middleware.methods.wording import load_words, telling_words, whole
from dedup_middleware.text.clauses import reduced

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.fingerprints.method import Print, Text

SUMMARY_BYTES = 512

_SUMMARY = 1
_SORTED = (3, 5)
_WEIGHED = (4, 5)


class KeywordDigests(Method):
    """Equal digests of a summary or of keywords, whose weights may have to be alike too."""

    def __init__(self, *, variant: int = 5, keywords: int = 10, difference: float = 0.05) -> None:
        """Compare by *variant*, 1 to 5, and by so many *keywords*, 1 to 1000.

        *difference*, 0 to 1, is that of the weights in variants 4 and 5. `ConfigError` if jieba is not installed.
        """
        self._variant = int(within("variant", variant, 1, 5))
        self._keywords = int(within("keywords", keywords, 1, 1000))
        difference = within("difference", difference, 0, 1)
        self.threshold = 1 - difference if variant in _WEIGHED else 1.0
        load_words()

    def fingerprint(self, text: Text) -> Digest | WeightedSet | None:
        """Return what this variant compares of *text*; ``None`` if it has no summary or no keywords. O(n log n)."""
        if self._variant == _SUMMARY:
            summary = summary_of(text)
            return Digest(_md5(summary)) if summary else None
        words = telling_words(whole(text))
        top = by_frequency(words)[: self._keywords]
        if not top:
            return None
        names = [word for word, _ in top]
        digest = _md5(as_bytes(sorted(names) if self._variant in _SORTED else names))
        if self._variant not in _WEIGHED:
            return Digest(digest)
        # With the digest in each feature, sets are equal or have nothing in common.
        return WeightedSet({feature(f"{digest.hex()} {word}"): count / len(words) for word, count in top})

    def score(self, new: Print, old: Print) -> float:
        """Return 1 - the difference of the weights where the keywords are equal; else 0; 1 or 0 of digests."""
        if not isinstance(new, WeightedSet) or not isinstance(old, WeightedSet):
            return super().score(new, old)
        ours, theirs = new.weights, old.weights
        if not ours or ours.keys() != theirs.keys():
            return 0.0
        apart = sum((weight - theirs[name]) ** 2 for name, weight in ours.items())
        return 1 - apart / sum(weight**2 for weights in (ours, theirs) for weight in weights.values())

    def keys(self, made: Print) -> Iterable[bytes]:
        """Yield the digest, or one of the features: they are all equal or none of them is."""
        if isinstance(made, WeightedSet):
            yield min(made.weights)
        else:
            yield from super().keys(made)


def summary_of(text: Text) -> bytes:
    """Return the description of *text*, or the first `SUMMARY_BYTES` of its own; letters and digits, folded."""
    said = reduced(text.description) or reduced(whole(text))
    return said.replace("\n", "").encode("utf8", "surrogatepass")[:SUMMARY_BYTES]


def _md5(said: bytes) -> bytes:
    return hashlib.md5(said, usedforsecurity=False).digest()
