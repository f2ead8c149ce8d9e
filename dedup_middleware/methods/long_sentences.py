"""A page is its longest sentences, and pages are alike by how many of these they share.

Source: Liu Siwei, Zhang Yi, Xia Yongming and Qian Songrong (Fudan University), web page deduplication by HTML marks and
the extraction of long sentences, Microcomputer Applications, no. 8 of 2009, in Chinese.

Specified: the main text loses its first and last tenth, where those who repost a text put what is their own; it is cut
at every punctuation mark; of the parts of at least *k* characters (8 in the example) the *m* longest are kept, each as
its MD5 of 16 bytes; two pages are alike if |A & B| / |A | B| is over a threshold; a red-black tree leads from a
sentence to its pages.

Left open: *m* and the threshold. Ours are 20 and 0.5: of 505 labelled Chinese pages they drop no story and keep 5 of
211 copies, where 0.3 keeps no copy and drops two stories; among news with many daily reports 0.5 drops 2 of 573
stories, and 0.3 drops 12. What becomes of a sentence that the cut goes through: it is dropped, for half of one is no
sentence, and a line more at the top would make another half. Characters are letters and digits, folded as everywhere in
this product. Of sentences of one length the first are kept.

Departures: an MD5 is cut to the 8 bytes of a feature. The removal of links, and of all but the largest run of one
format, is no part of it: that is an extraction of its own, which is chosen separately. What leads from a sentence to
its pages is the store; docs/feature-index.md measures it beside a sorted container in memory.
"""

from __future__ import annotations

from hashlib import md5
from typing import TYPE_CHECKING

from dedup_middleware.fingerprints.method import FEATURE_BYTES, Method, Print, Text, WeightedSet, within
from dedup_middleware.text.clauses import portions, reduced

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LONGEST = 10**6


class LongSentences(Method):
    """Long sentences, as a set."""

    def __init__(self, *, trim: float = 0.1, least: int = 8, most: int = 20, threshold: float = 0.5) -> None:
        """Drop the share *trim* of a text, 0 to 0.49, at each end.

        Keep the *most* longest sentences of at *least* so many characters. Texts are alike from *threshold*, 0.01 to 1.
        """
        self._trim = within("trim", trim, 0, 0.49)
        self._least = int(within("least", least, 1, _LONGEST))
        self._most = int(within("most", most, 1, _LONGEST))
        self.threshold = within("threshold", threshold, 0.01, 1)

    def fingerprint(self, text: Text) -> Print | None:
        """Return the hashes of the long sentences, each of weight 1. O(characters)."""
        found = longest(middle(sentences(text.paragraphs), self._trim), self._least, self._most)
        return WeightedSet({sentence_hash(sentence): 1.0 for sentence in found}) if found else None


def sentences(paragraphs: Iterable[str]) -> list[str]:
    """Return what stands between punctuation marks, its letters and digits only. O(characters)."""
    return [part for portion in portions(paragraphs) for part in reduced(portion).split("\n") if part]


def middle(parts: Sequence[str], trim: float) -> list[str]:
    """Return the *parts* that are whole once the share *trim* of all their characters is cut off at each end."""
    total = sum(map(len, parts))
    kept, end = [], 0
    for part in parts:
        start, end = end, end + len(part)
        if trim * total <= start and end <= total - trim * total:
            kept.append(part)
    return kept


def longest(parts: Iterable[str], least: int, most: int) -> list[str]:
    """Return the *most* longest of the *parts* of at *least* so many characters, each once, the longest first."""
    return sorted(dict.fromkeys(part for part in parts if len(part) >= least), key=len, reverse=True)[:most]


def sentence_hash(sentence: str) -> bytes:
    """Return a sentence as a feature: the first bytes of its MD5."""
    return md5(sentence.encode("utf8", "surrogatepass"), usedforsecurity=False).digest()[:FEATURE_BYTES]
