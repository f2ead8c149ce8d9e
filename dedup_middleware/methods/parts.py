"""Compares texts by parts of them: the longest sentences, segments, or the neighbours of punctuation marks."""

from __future__ import annotations

import re
from collections import Counter
from hashlib import md5
from itertools import pairwise
from math import floor, log
from typing import TYPE_CHECKING

from dedup_middleware.methods.method import FEATURE_BYTES, Method, WeightedSet, feature, jaccard, within
from dedup_middleware.methods.vocabulary import single_spaced
from dedup_middleware.text.clauses import folded, portions, reduced, sentences

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
        found = longest(middle(clauses_of(text.paragraphs), self._trim), self._least, self._most)
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
        # Class n begins at ratio ** (n - 1), but for rounding.
        number = 1 + floor(log(sum(map(len, clauses_of(text.paragraphs))), self._ratio))
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


def _parts(signature: WeightedSet) -> tuple[int, WeightedSet]:
    """Return the class of *signature*, and its sentences."""
    sentences_only = {name: weight for name, weight in signature.weights.items() if name != _CLASS}
    return int(signature.weights[_CLASS]), WeightedSet(sentences_only)


def clauses_of(paragraphs: Iterable[str]) -> list[str]:
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


class Segments(Method):
    """Texts as sets of segments, of which some must be equal.

    Source: Chinese articles on how search engines drop copies of pages, which name no author. The idea is that of S.
    Brin, J. Davis and H. Garcia-Molina, "Copy detection mechanisms for digital documents", SIGMOD 1995.

    Specified: a page is cut into N segments by some rule, and each segment is signed. Pages with M equal signatures are
    alike. The method is said to suit small collections.

    Left open: N and M, the rule of cutting, whether the place of a segment counts, and the signature. Here N is 10 and
    M is 6: in three labelled crawls 5 of 10 made two different pages alike, and 6 made no such pair. The letters and
    digits of the text are cut into N equal parts, and each sentence goes to the part where its middle is. So a changed
    word moves few sentences, if any, into the next segment. A segment may stand anywhere. A text with too few sentences
    has fewer segments, and the same share of them, M / N, must be equal. A signature has 64 bits of xxHash.

    Departures: none.
    """

    def __init__(self, *, segments: int = 10, equal: int = 6) -> None:
        self._segments = within("segments", segments, 1, 1000)
        self.threshold = within("equal", equal, 1, segments) / segments

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the signatures of *text*, which all weigh 1; ``None`` if it has no letters. O(characters)."""
        signed = {feature(segment): 1.0 for segment in cut(text, self._segments)}
        return WeightedSet(signed) if signed else None

    def similarity(self, new: WeightedSet, old: WeightedSet) -> float:
        """Return the number of equal segments / that of the segments of the text which has more."""
        most = max(len(new.weights), len(old.weights))
        return len(new.weights.keys() & old.weights.keys()) / most if most else 0.0


def cut(text: Text, count: int) -> list[str]:
    """Return the letters, marks and digits of *text*, folded, in *count* segments or fewer, in order, none empty."""
    written = (sentence for paragraph in text.paragraphs for sentence in sentences(paragraph))
    letters = [reduced(sentence).replace("\n", "") for sentence in written]
    total = sum(map(len, letters))
    segments: list[list[str]] = [[] for _ in range(count)]
    start = 0
    for sentence in filter(None, letters):
        segments[(2 * start + len(sentence)) * count // (2 * total)].append(sentence)
        start += len(sentence)
    return ["".join(segment) for segment in segments if segment]


_ASIDE = re.compile(r"[^\w,.。!?]+|(?<=\d)[.,](?=\d)")
_MARKS = re.compile(r"[,.。!?]+")


class PunctuationNeighbours(Method):
    """The title and the strings of neighbours, as up to four features.

    Source: a Chinese article on the web about how search engines detect duplicate pages; neither its author nor an
    earlier publication is known.

    Specified: the two characters on either side of each comma, full stop, exclamation mark and question mark, strung
    together over the whole text. The string is cut into three, each hashed, and the title is hashed. The title weighs
    1.5 and each string 1. From 3 on two pages are duplicates: by three equal strings, or by two and the title.

    Left open: where the string is cut. Here into parts of equally many marks, so that a replaced word changes one part
    only. A comma more or less may change all three. Half-width and full-width marks are the same, several marks in a
    row are one, and a point or comma between two digits is not a mark. A text with fewer marks than strings has no
    fingerprint: the title alone never makes two pages duplicates.

    Departures: none. Letters are folded before they are taken, as in the whole package. The score is the shared weight
    as a part of the 3 that are needed, at most 1.
    """

    threshold = 1.0

    def __init__(self, *, characters: int = 2, strings: int = 3, title: float = 1.5, needed: float = 3.0) -> None:
        """Take so many *characters* on either side of a mark, and cut them into *strings*.

        A string weighs 1 and the title *title*; duplicates share a weight of *needed*, 1 to *strings*.
        """
        self._characters = within("characters", characters, 1, 100)
        self._strings = within("strings", strings, 1, 1000)
        self._title = within("title", title, 0, 1000)
        self._needed = within("needed", needed, 1, strings)

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the title and the strings; ``None`` for a text with fewer marks than strings. O(characters)."""
        around = neighbours(text.body, self._characters)
        if len(around) < self._strings:
            return None
        edges = [len(around) * n // self._strings for n in range(self._strings + 1)]
        # A text that repeats itself has equal strings, and each counts.
        strings = Counter(feature("".join(around[start:end])) for start, end in pairwise(edges))
        heading = single_spaced(text.title)
        title = {feature(f"title {heading}"): self._title} if heading and self._title else {}
        return WeightedSet({**strings, **title})

    def similarity(self, new: WeightedSet, old: WeightedSet) -> float:
        """Return the shared weight as a part of the *needed* one, 0 to 1."""
        shared = sum(min(weight, old.weights.get(part, 0.0)) for part, weight in new.weights.items())
        return min(1.0, shared / self._needed)


def neighbours(text: str, characters: int = 2) -> list[str]:
    """Return the neighbours of each mark of *text*: up to so many *characters* before it and after it. O(len(text)).

    They are fewer where the clause on one side is shorter, or the text ends.
    """
    clauses = _MARKS.split(_ASIDE.sub("", folded(text)))
    around = (before[-characters:] + after[:characters] for before, after in pairwise(clauses))
    return [both for both in around if both]
