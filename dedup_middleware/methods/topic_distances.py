"""How far apart the words of a topic stand: their distances tell what a text says of the topic.

Source: Chen Yafeng, Guo Yifan and Wang Zheng, an article in Chinese on removing duplicate pages by the meaning and the
distance of topic words; journal and year are not known.

Specified: a topic of words w1 .. wm, as the user of a search engine gives it, and the positions of each in the text;
all vectors of one position for each word that occurs; of each vector (p1 .. pm) the distance
|p2 - p1| + ... + |pm - p(m-1)|. A text repeats another one if each of its distances is one of the other's, or differs
from one of those by what lies in the interval [a, b], which is [1, 4] in the example.

Left open: how positions count. From 1, a punctuation mark as one, and a number, with its decimals, as one: so the
example counts in two of its four texts. A word of other scripts is one too. What the topic is where no user is: the
words of the title, without stop words unless fewer than two others occur in the text; texts under different titles are
different, for their numbers tell of different things. With fewer than two words in the text there is no distance, and
so no fingerprint. Of the several tests that the source has for whether a text is on the topic, this is the first.

Departures: at most the first 16 words of a topic, and of their positions only so many of the first ones that there are
no more than 1024 vectors: their number is a product. The printed example does not follow from the definition
everywhere. Text A has 73 where the distance is 72, text B 115 and 107 where it is 117, and one 51 too few; the
definition is followed, and the verdicts are the printed ones. But the positions given for A and D leave out some
occurrences and miscount others: with all that are in these texts, D still repeats A, and so does C. The source also
calls texts different whose numbers of distances differ, but its own duplicates have 3 and 16, so that is no test here.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING

from xxhash import xxh3_64_intdigest

from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints.method import FEATURE_BYTES, Method, Print, Text, WeightedSet, within
from dedup_middleware.methods.wording import load_words, telling_words, whole, words
from dedup_middleware.text.characters import HAN, HAN_EXTENSION_A, HAN_RARE, KANA, SPACELESS
from dedup_middleware.text.clauses import folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: Of one text.
MAX_VECTORS = 1024
#: Of one topic.
MAX_WORDS = 16

_UNSPACED = HAN + HAN_EXTENSION_A + HAN_RARE + KANA + SPACELESS
_UNIT = re.compile(rf"\d+(?:[.,]\d+)*|[^\W\d_{_UNSPACED}]+|\S")
# A feature is half the topic, half the distance: distances are numbers, to be compared as such.
_DISTANCE_BITS = 32


class TopicDistances(Method):
    """A `Method`: the distances as features, each of the weight 1. O(length of the text · words of one beginning)."""

    threshold = 1.0

    def __init__(self, *, topic: str = "", a: int = 1, b: int = 4) -> None:
        """Look for the words of *topic*, at least two with spaces between; if empty, for those of each title.

        Distances also agree that differ by *a* to *b*; 1 <= a <= b <= 10 000.
        """
        self._b = int(within("b", b, 1, 10_000))
        self._a = int(within("a", a, 1, b))
        self._topic = _distinct(folded(topic).split())
        if len(self._topic) == 1:
            raise ConfigError(f"topic = {topic!r} is one word, and there is no distance between fewer than two")
        if not self._topic:
            load_words()

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the distances in *text*; ``None`` if fewer than two words of the topic occur."""
        units = _UNIT.findall(folded(whole(text)))
        topics = [self._topic] if self._topic else [_distinct(telling_words(text.title)), _distinct(words(text.title))]
        for topic in topics:
            places = [found for found in positions(topic, units) if found]
            if len(places) > 1:
                return as_print(topic, distances(places))
        return None

    def score(self, new: Print, old: Print) -> float:
        """Return the share of the distances of *new* that agree with one of *old*, 0 to 1."""
        if not (isinstance(new, WeightedSet) and isinstance(old, WeightedSet) and new.weights):
            return 0.0
        known = sorted(_numbers(old))
        agreeing = sum(self._agrees(number, known) for number in _numbers(new))
        return agreeing / len(new.weights)

    def keys(self, made: Print) -> Iterator[bytes]:
        """Yield two stretches of *b* for each distance, its own and the next: of two within *b*, one is the same."""
        assert isinstance(made, WeightedSet)
        own = [number // self._b for number in _numbers(made)]
        for stretch in sorted({*own, *(stretch + 1 for stretch in own)}):
            yield stretch.to_bytes(FEATURE_BYTES + 1, "big")

    def _agrees(self, number: int, known: Sequence[int]) -> bool:
        ranges = ((number, number), (number + self._a, number + self._b), (number - self._b, number - self._a))
        return any(_has_between(known, least, most) for least, most in ranges)


def positions(topic: Iterable[str], units: Sequence[str]) -> list[list[int]]:
    """Return where each word of *topic* begins among *units*, from 1: characters, numbers, words of other scripts.

    O(units · words of *topic* that begin alike).
    """
    places: list[list[int]] = []
    starts: dict[str, list[tuple[list[str], list[int]]]] = {}
    for word in topic:
        places.append([])
        if parts := _UNIT.findall(word):
            starts.setdefault(parts[0], []).append((parts, places[-1]))
    for at, unit in enumerate(units):
        for parts, found in starts.get(unit, ()):
            if units[at : at + len(parts)] == parts:
                found.append(at + 1)
    return places


def distances(places: Sequence[Sequence[int]]) -> list[int]:
    """Return the distance of each vector of one position from each of *places*, which has none empty.

    In the order of the vectors, the last position changing quickest; of the first `MAX_VECTORS` at most.
    """
    longest = max(map(len, places))
    too_many = (n for n in range(1, longest) if prod(min(n + 1, len(found)) for found in places) > MAX_VECTORS)
    count = next(too_many, longest)
    vectors = product(*(found[:count] for found in places))
    return [sum(abs(after - before) for before, after in pairwise(vector)) for vector in vectors]


def as_print(topic: Iterable[str], found: Iterable[int]) -> WeightedSet:
    """Return the fingerprint of the distances *found* for *topic*."""
    named = xxh3_64_intdigest(" ".join(topic).encode("utf8", "surrogatepass")) >> 64 - _DISTANCE_BITS
    numbers = {named << _DISTANCE_BITS | min(distance, (1 << _DISTANCE_BITS) - 1) for distance in found}
    return WeightedSet({number.to_bytes(FEATURE_BYTES, "big"): 1.0 for number in sorted(numbers)})


def _numbers(made: WeightedSet) -> Iterator[int]:
    return (int.from_bytes(name, "big") for name in made.weights)


def _has_between(ordered: Sequence[int], least: int, most: int) -> bool:
    at = bisect_left(ordered, least)
    return at < len(ordered) and ordered[at] <= most


def _distinct(found: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(found))[:MAX_WORDS]
