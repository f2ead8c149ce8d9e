"""Compares texts by the distances between the words of a topic.

Source: Chen Yafeng, Guo Yifan and Wang Zheng, an article in Chinese on removing duplicate pages by the meaning and the
distance of topic words; journal and year are not known.

Specified: a topic of words w1 .. wm, as the user of a search engine gives it, and the positions of each in the text.
All vectors of one position for each word that occurs, and of each vector (p1 .. pm) the distance
|p2 - p1| + ... + |pm - p(m-1)|. A text repeats another one if each of its distances equals one of the other's, or
differs from it by a number in the interval [a, b], which is [1, 4] in the example.

Left open: how positions count. Here from 1, a punctuation mark as one, and a number with its decimals as one: so the
example counts in two of its four texts. A word of other scripts is one too. Without a user, the topic is the words of
the title, without stop words unless fewer than two others occur in the text. Texts under different titles are
different, for their distances are of different words. With fewer than two words in the text there is no distance, and
no fingerprint. The source has several tests for whether a text is on the topic; this is the first of them.

Departures: only the first 16 words of a topic count, and of their positions only so many that there are no more than
1024 vectors: their number is a product. The printed example has misprints, so the definition is followed, with the
printed verdicts. The positions given for texts A and D omit some occurrences: with all of them, D still repeats A, and
so does C. The source also calls texts different whose numbers of distances differ, but its own duplicates have 3 and
16, so there is no such test here.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING

from xxhash import xxh3_64_intdigest

from dedup_middleware.errors import ConfigError
from dedup_middleware.methods.method import FEATURE_BYTES, Method, WeightedSet, within
from dedup_middleware.methods.vocabulary import UNSPACED, content_words, load_dictionary, words
from dedup_middleware.text.characters import HAN
from dedup_middleware.text.clauses import folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dedup_middleware.methods.method import Text

#: Of one text.
MAX_VECTORS = 1024
#: Of one topic.
MAX_WORDS = 16

_UNIT = re.compile(rf"\d+(?:[.,]\d+)*|[^\W\d_{HAN}{UNSPACED}]+|\S")
# A feature is half the topic, half the distance: distances are numbers, to be compared as such.
_DISTANCE_BITS = 32


class TopicDistances(Method):
    """The distances as features, each of weight 1."""

    threshold = 1.0

    def __init__(self, *, topic: str = "", a: int = 1, b: int = 4) -> None:
        """Use the words of *topic*, at least two with spaces between; if empty, those of each title.

        Distances agree that are equal, or differ by *a* to *b*; 1 <= a <= b <= 10 000.
        """
        self._b = within("b", b, 1, 10_000)
        self._a = within("a", a, 1, b)
        self._topic = _distinct(folded(topic).split())
        if len(self._topic) == 1:
            raise ConfigError(f"topic = {topic!r} is one word", "give at least two, with spaces between")
        if not self._topic:
            load_dictionary()

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the distances in *text*; ``None`` if fewer than two words of the topic occur.

        O(characters x words of the topic that begin alike).
        """
        units = _UNIT.findall(folded(text.body))
        topics = [self._topic] if self._topic else [_distinct(content_words(text.title)), _distinct(words(text.title))]
        for topic in topics:
            places = [found for found in positions(topic, units) if found]
            if len(places) > 1:
                return as_print(topic, distances(places))
        return None

    def similarity(self, new: WeightedSet, old: WeightedSet) -> float:
        """Return the share of the distances of *new* that agree with one of *old*, 0 to 1."""
        known = sorted(_numbers(old))
        agreeing = sum(self._agrees(number, known) for number in _numbers(new))
        return agreeing / max(len(new.weights), 1)

    def keys(self, signature: WeightedSet) -> Iterator[bytes]:
        """Yield two stretches of *b* for each distance, its own and the next: distances within *b* share one."""
        own = [number // self._b for number in _numbers(signature)]
        for stretch in sorted({*own, *(stretch + 1 for stretch in own)}):
            yield stretch.to_bytes(FEATURE_BYTES + 1, "big")

    def _agrees(self, number: int, known: Sequence[int]) -> bool:
        ranges = ((number, number), (number + self._a, number + self._b), (number - self._b, number - self._a))
        return any(bisect_left(known, least) < bisect_right(known, most) for least, most in ranges)


def positions(topic: Iterable[str], units: Sequence[str]) -> list[list[int]]:
    """Return where each word of *topic* begins among *units*, from 1: characters, numbers, words of other scripts."""
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
    """Return the distance of each vector of one position from each of *places*, at most `MAX_VECTORS`.

    No place is empty. The last position changes quickest in the order of the vectors.
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


def _numbers(signature: WeightedSet) -> Iterator[int]:
    return (int.from_bytes(name, "big") for name in signature.weights)


def _distinct(found: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(found))[:MAX_WORDS]
