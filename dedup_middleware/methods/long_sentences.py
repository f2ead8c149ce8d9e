"""Compares texts by their longest sentences: `LongSentences`, and `LengthClasses` among texts of about one length."""

from __future__ import annotations

from hashlib import md5
from math import floor, log
from typing import TYPE_CHECKING

from dedup_middleware.methods.method import FEATURE_BYTES, Method, WeightedSet, jaccard, within
from dedup_middleware.text.clauses import portions, reduced

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dedup_middleware.methods.method import Text

_LONGEST = 10**6
# The feature whose weight is the number of the class; one in 2^64 sentences has its hash.
_CLASS = b"class".ljust(FEATURE_BYTES, b"\0")


class LongSentences(Method):
    """Long sentences, as a set.

    Source: Liu Siwei, Zhang Yi, Xia Yongming and Qian Songrong (Fudan University), web page deduplication by HTML marks
    and the extraction of long sentences, Microcomputer Applications, no. 8 of 2009, in Chinese.

    Specified: the main text loses its first and last tenth, where those who repost a text put what is their own. It is
    cut at every punctuation mark. Of the parts of at least *k* characters (8 in the example) the *m* longest are kept,
    each as its MD5 of 16 bytes. Two pages are alike if |A & B| / |A | B| is over a threshold. A red-black tree leads
    from a sentence to its pages.

    Left open: *m* and the threshold, here 20 and 0.5. Of 505 labelled Chinese pages they lose no page and keep 5 of
    211 copies, where 0.3 keeps no copy and loses two pages. Among news with many daily reports 0.5 loses 2 of 573
    pages, and 0.3 loses 12. A sentence that the cut goes through is left out: half a sentence changes with every line
    added at the top. Characters are letters and digits, folded as in the whole package. Of sentences of one length the
    first are kept.

    Departures: an MD5 is cut to the 8 bytes of a feature. The source also removes links, and all but the largest run of
    one format; here that is the extraction ``same-format``, which is chosen separately. The store leads from a sentence
    to its pages.
    """

    def __init__(self, *, trim: float = 0.1, least: int = 8, most: int = 20, threshold: float = 0.5) -> None:
        """Drop the share *trim* of a text at each end; keep the *most* longest sentences of at *least* so many letters.

        Texts are alike from *threshold* on.
        """
        self._trim = within("trim", trim, 0, 0.49)
        self._least = within("least", least, 1, _LONGEST)
        self._most = within("most", most, 1, _LONGEST)
        self.threshold = within("threshold", threshold, 0.01, 1)

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the hashes of the long sentences, each of weight 1. O(characters)."""
        found = longest(middle(sentences(text.paragraphs), self._trim), self._least, self._most)
        return WeightedSet({sentence_hash(sentence): 1.0 for sentence in found}) if found else None


class LengthClasses(LongSentences):
    """Long sentences, and the class of the text's length.

    Source: a Chinese journal article on web page deduplication by key long sentences, with pages classified by the
    length of their main text beforehand; its authors are not known to us.

    Specified: before any comparison pages are put into classes by the length of their main text. Within a class, pages
    are alike by the long sentences that are key to them.

    Left open: nearly all. Here a class reaches from one power of *ratio* to the next, in letters and digits. Unless
    *neighbours* is false the next class is compared too, as a copy with a line more may just be over the border. Key
    sentences are the *most* longest of at *least* so many characters, as in `LongSentences`, but of the whole text.
    From a Jaccard index of 0.5 on pages are alike: of 505 labelled Chinese pages that loses no page and keeps 3 of 211
    copies, where ``neighbours=False`` keeps 18.

    Departures: none.
    """

    def __init__(
        self, *, ratio: float = 2.0, neighbours: bool = True, least: int = 8, most: int = 20, threshold: float = 0.5
    ) -> None:
        self._ratio = within("ratio", ratio, 1.01, 1000)
        self._reach = int(neighbours)
        super().__init__(trim=0, least=least, most=most, threshold=threshold)

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the hashes of the key sentences, each of weight 1, beside the class. O(characters)."""
        if (signature := super().fingerprint(text)) is None:
            return None
        number = length_class(sum(map(len, sentences(text.paragraphs))), self._ratio)
        return WeightedSet({_CLASS: float(number), **signature.weights})

    def similarity(self, new: WeightedSet, old: WeightedSet) -> float:
        """Return the Jaccard index of the key sentences; 0 for classes that are not compared."""
        (ours, one), (theirs, other) = _parts(new), _parts(old)
        return jaccard(one, other) if abs(ours - theirs) <= self._reach else 0.0

    def keys(self, signature: WeightedSet) -> Iterable[bytes]:
        """Yield each sentence under its class, and under the border that the next class has in common with it."""
        number, key = _parts(signature)
        for place in range(number, number + self._reach + 1):
            yield from (place.to_bytes(4, "big") + name for name in key.weights)


def length_class(length: int, ratio: float) -> int:
    """Return the number of the class of *length*, 1 or more; class *n* begins at ratio ** (n - 1), but for rounding."""
    return 1 + floor(log(length, ratio))


def _parts(signature: WeightedSet) -> tuple[int, WeightedSet]:
    """Return the class of *signature*, and its sentences."""
    sentences_only = {name: weight for name, weight in signature.weights.items() if name != _CLASS}
    return int(signature.weights[_CLASS]), WeightedSet(sentences_only)


def sentences(paragraphs: Iterable[str]) -> list[str]:
    """Return the text between punctuation marks, its letters and digits only. O(characters)."""
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
