"""Makes a SimHash of the heaviest sentences of each paragraph; pages are alike if all their paragraphs are.

Source: a Chinese document on the web about finding near-duplicate pages by paragraph fingerprints; its author is not
known to us. SimHash is M. Charikar's ("Similarity estimation techniques from rounding algorithms", STOC 2002).

Specified: paragraphs are those of the tags; failing these, lines; failing these, sentences joined to paragraphs. A
sentence of at least 20 characters weighs 0.3 of its length + 0.4 of its relevance to the topic + 0.3 of its place, the
first and last being high. The heaviest sentences, two in the example, are the feature of a paragraph. Their words, cut
by jieba and weighted by TF-IDF, make a SimHash of 128 bits, over MurmurHash in the plain form and BLAKE2b in the better
one. The first paragraph, and one under a heading, weigh more, and so do items, by the type and level of their list.
Pages are alike if no paragraph is farther than T bits from its counterpart. Pages with different numbers of paragraphs
are not compared.

Left open: the scales of the three parts. Here length is a share of the paragraph's longest sentence; place is 1 for its
first and last sentence, else 0; relevance is the share of the topic that the sentence contains. The topic is the ten
heaviest words of title and text (the source has a topic model or keywords). The weights in the worked example do not
follow from the formula, so that example settles only the choice of sentences. Further choices of ours:

- A paragraph joined of sentences ends with the sentence that makes it 200 characters long.
- A paragraph without a long sentence has no feature and is skipped.
- A first paragraph, or one under a heading, weighs half as much again, an item of a numbered list a quarter, of another
  list an eighth, and half of that on each level below.
- T for 128 bits is 6, the share of the bits that 3 is of 64; the example has 3 for numbers of 8 bits, and counts one
  bit where they differ in two. On 505 labelled Chinese pages 4, 8 and 16 find 43, 46 and 49 % of the copies, for most
  others have another number of paragraphs. 20 loses a page, and cuts 128 bits into 21 keys, which nearly all pages in a
  store would share.

Departures: a SimHash stays as it is if all words of its paragraph weigh more, so only the words of the topic weigh more
in such a paragraph. MurmurHash is that of the package mmh3. No principal components are taken: they are those of one
corpus, and a SimHash has few enough dimensions. Only the first 1,000 paragraphs count: without an order, all are
compared with all.
"""

from __future__ import annotations

import math
from collections import Counter
from hashlib import blake2b
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, TypeAlias

from dedup_middleware.common.registry import required
from dedup_middleware.methods.method import Bits, blocks, distance_of, least_score, one_of, within
from dedup_middleware.methods.simhash import signs
from dedup_middleware.methods.vocabulary import STOP_WORDS, FrequencyMethod, words
from dedup_middleware.text.clauses import sentences as sentences_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dedup_middleware.methods.method import Text

    #: A sentence as written, and its words.
    Sentence: TypeAlias = tuple[str, list[str]]

LENGTH, RELEVANCE, PLACE = 0.3, 0.4, 0.3
#: Words that are the topic of a text.
TOPIC_WORDS = 10
#: What a word of the topic weighs in a first paragraph or under a heading, and in items of the outermost lists.
PROMINENT = 1.5
LISTS = {"ol": 1.25, "ul": 1.125}
#: Characters, where sentences are joined to paragraphs.
JOINED = 200
#: Paragraphs of a page that count.
MOST_PARAGRAPHS = 1_000
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
# Weights are summed as whole numbers, so that the order of the words does not matter.
_UNIT = 1_024


class ParagraphSimHash(FrequencyMethod):
    """A SimHash for each paragraph."""

    sees_elements = True

    def __init__(  # noqa: PLR0913 - its options
        self,
        *,
        bits: int = 128,
        distance: int = 6,
        least: int = 20,
        sentences: int = 2,
        hash: str = "blake2b",  # noqa: A002 - the option's name
        ordered: bool = True,
    ) -> None:
        """Make SimHashes of *bits*, 128 or 64, that are alike up to a *distance*.

        They are those of the heaviest *sentences* of a paragraph with at *least* so many characters, over the *hash*
        ``blake2b`` or ``murmur3``. Unless *ordered*, each paragraph is compared with the nearest, wherever that stands.
        """
        self._bits = int(one_of("bits", str(bits), ("128", "64")))
        self.threshold = least_score(within("distance", distance, 0, bits - 1), bits)
        self._least = within("least", least, 1, 10**6)
        self._sentences = within("sentences", sentences, 1, 10**6)
        self._hash = _murmur3() if one_of("hash", hash, ("blake2b", "murmur3")) == "murmur3" else _blake2b
        self._ordered = ordered
        super().__init__()

    def words_of(self, text: Text) -> list[str]:
        """Return all words of *text*, in reading order."""
        return words(text.body)

    def fingerprint(self, text: Text) -> Bits | None:
        """Return the SimHash of each paragraph that has a long sentence. O(characters)."""
        paragraphs = [*islice(paragraphs_of(text), MOST_PARAGRAPHS)]
        cut = [[(sentence, words(sentence)) for sentence in sentences_of(paragraph)] for paragraph, _ in paragraphs]
        topic = self._topic(text.title, cut)
        values = []
        for (_, prominence), found in zip(paragraphs, cut, strict=True):
            if feature := self._feature(found, topic):
                values.append(self._simhash(feature, topic, prominence))
        return Bits(tuple(values), self._bits) if values else None

    def similarity(self, new: Bits, old: Bits) -> float:
        """Return 1 - distance / bits, of the paragraph that is farthest from its counterpart; 0 for other numbers."""
        if self._ordered:
            return super().similarity(new, old)
        if len(new.values) != len(old.values) or new.size != old.size:
            return 0.0
        return 1 - max(_farthest(new.values, old.values), _farthest(old.values, new.values)) / new.size

    def keys(self, signature: Bits) -> Iterable[bytes]:
        """Yield blocks of the paragraphs' bits, with the paragraph's place if that counts."""
        if self._ordered:
            return super().keys(signature)
        distance = distance_of(self.threshold, signature.size)
        return dict.fromkeys(
            key for value in signature.values for key in blocks(Bits((value,), signature.size), distance)
        )

    def _idf(self, word: str) -> float:
        # Above 0 for every word, and the same for all as long as there is no corpus.
        return 1 + math.log((1 + self.texts) / (1 + self.frequency(word)))

    def _topic(self, title: str, cut: Iterable[Sequence[Sentence]]) -> dict[str, float]:
        """Return the heaviest words of a text, with their weights."""
        counts = Counter(words(title))
        counts.update(word for paragraph in cut for _, found in paragraph for word in found)
        weights = {word: count * self._idf(word) for word, count in counts.items() if word not in STOP_WORDS}
        return dict(sorted(weights.items(), key=lambda pair: -pair[1])[:TOPIC_WORDS])

    def _feature(self, paragraph: Sequence[Sentence], topic: Mapping[str, float]) -> list[str]:
        """Return the words of the heaviest of the long sentences of *paragraph*."""
        long = [place for place, (sentence, _) in enumerate(paragraph) if len(sentence) >= self._least]
        longest = max((len(sentence) for sentence, _ in paragraph), default=0)
        named = sum(topic.values()) or 1.0
        weights = [
            sentence_weight(
                len(paragraph[place][0]) / longest,
                sum(topic.get(word, 0.0) for word in dict.fromkeys(paragraph[place][1])) / named,
                float(place in {0, len(paragraph) - 1}),
            )
            for place in long
        ]
        return [word for chosen in heaviest(weights, self._sentences) for word in paragraph[long[chosen]][1]]

    def _simhash(self, feature: Sequence[str], topic: Mapping[str, float], prominence: float) -> int:
        weights = {
            word: round(_UNIT * count * self._idf(word) * (prominence if word in topic else 1))
            for word, count in Counter(feature).items()
        }
        size = self._bits // 8
        hashes = ((self._hash(word.encode("utf8", "surrogatepass"), size), weight) for word, weight in weights.items())
        return signs(hashes, self._bits)


def paragraphs_of(text: Text) -> Iterator[tuple[str, float]]:
    """Yield the paragraphs of *text*, and what a word of the topic weighs in each, 1 to `PROMINENT`."""
    paragraphs = text.paragraphs if len(text.paragraphs) > 1 else split("".join(text.paragraphs))
    # The title stands above the first.
    above = "h1"
    for paragraph, path in zip_longest(paragraphs, text.elements[: len(paragraphs)], fillvalue=""):
        yield paragraph, PROMINENT if above.rpartition("/")[2] in _HEADINGS else in_lists(path)
        above = path


def in_lists(path: str) -> float:
    """Return what a word of the topic weighs in a paragraph at *path*, by the innermost list and how deep that is."""
    lists = [tag for tag in path.split("/") if tag in LISTS]
    return 1 + (LISTS[lists[-1]] - 1) / 2 ** (len(lists) - 1) if lists else 1.0


def split(text: str) -> list[str]:
    """Return the paragraphs of a *text* without any: its lines, or sentences joined to `JOINED` characters or more."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1:
        return lines
    joined = [""]
    for sentence in sentences_of(text):
        if len(joined[-1]) >= JOINED:
            joined.append("")
        joined[-1] += f" {sentence}" if joined[-1] else sentence
    return joined


def sentence_weight(length: float, relevance: float, place: float) -> float:
    """Return the weight of a sentence, 0 to 1, from three shares of 0 to 1."""
    return LENGTH * length + RELEVANCE * relevance + PLACE * place


def heaviest(weights: Sequence[float], count: int) -> list[int]:
    """Return the places of the *count* largest of *weights*, in order; of equal ones the first."""
    return sorted(sorted(range(len(weights)), key=lambda place: -weights[place])[:count])


def _blake2b(word: bytes, size: int) -> int:
    return int.from_bytes(blake2b(word, digest_size=size).digest(), "big")


def _murmur3() -> Callable[[bytes, int], int]:
    hash128 = required("mmh3", "hash = 'murmur3'", extra="compare").hash128
    return lambda word, size: hash128(word, signed=False) & (1 << 8 * size) - 1


def _farthest(these: Iterable[int], those: Sequence[int]) -> int:
    """Return the largest distance of one of *these* from the nearest of *those*."""
    return max((min((one ^ other).bit_count() for other in those) for one in {*these}.difference(those)), default=0)
