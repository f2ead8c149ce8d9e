"""Compares texts by a digest of their whole content: `TwoStage`, with other features beside it, and `BloomFilter`."""

from __future__ import annotations

from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING

from dedup_middleware.fingerprints.method import Digest, Method, WeightedSet, feature, one_of, within
from dedup_middleware.methods.words import by_frequency, content_words, load_dictionary
from dedup_middleware.terminal import required
from dedup_middleware.text.clauses import folded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rbloom import Bloom

    from dedup_middleware.fingerprints.method import Text

_FEATURES = ("url", "title", "keywords", "text")
# The first byte of a feature is its place; this is the place of the group.
_GROUP = b"\0"
# rbloom takes all positions from one hash.
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

    def keys(self, made: WeightedSet) -> Iterable[bytes]:
        """Yield the group."""
        return (part for part in made.weights if part.startswith(_GROUP))


class BloomFilter(Method):
    """Equal hashes of the content, and a filter of such hashes.

    Source: B. Bloom, "Space/time trade-offs in hash coding with allowable errors", Communications of the ACM 13 (7),
    1970; a text in Chinese on the web about crawlers, of unknown author, proposes it for pages.

    Specified: an array of m bits and k hash functions. A content sets the bits of its k positions, and a content whose
    bits are all set counts as seen. A content that was seen always counts as seen. With n contents in the filter, a new
    one counts as seen with the probability p = (1 - e^(-kn/m))^k, which is least at k = ln 2 · m/n; so n and p
    determine m and k.

    Left open: what is hashed, n and p. Here the main text, folded, with single spaces, by BLAKE2b, which has no known
    collisions; a million pages, and one new page in a hundred.

    Departures: none in `seen`, which is the filter, by the library rbloom. But a filter cannot return which text is
    repeated, so it does not compare two texts. The fingerprint is therefore the input of the filter, 128 bits that
    determine all k positions, and two texts are alike if these are equal. That is the filter without its false
    positives, and *capacity* and *rate* make no difference to it.
    """

    threshold = 1.0

    def __init__(self, *, capacity: int = 1_000_000, rate: float = 0.01) -> None:
        """Let the filter take the share *rate* of new contents, 1e-9 to 0.5, for seen once *capacity* are in it.

        At a hundredth, each content takes 10 bits. `ConfigError` if rbloom is not installed.
        """
        self._capacity = within("capacity", capacity, 1, 100_000_000)
        self._rate = within("rate", rate, 1e-9, 0.5)
        required("rbloom", "the method 'bloom'")

    @cached_property
    def _filter(self) -> Bloom:
        # Fingerprints alone need no memory for it.
        from rbloom import Bloom  # noqa: PLC0415 - only this method needs it

        return Bloom(self._capacity, self._rate, lambda value: int.from_bytes(value, "big", signed=True))

    def fingerprint(self, text: Text) -> Digest | None:
        """Return the hash of the content of *text*; ``None`` if it has none."""
        content = single_spaced(text.body).encode("utf8", "surrogatepass")
        return Digest(blake2b(content, digest_size=_HASH_BYTES).digest()) if content else None

    def seen(self, made: Digest) -> bool:
        """Return whether *made* counts as seen, and add it. O(1). The same in every process."""
        is_seen = made.value in self._filter
        self._filter.add(made.value)
        return is_seen


def single_spaced(text: str) -> str:
    """Return *text* on one line, folded, with single spaces. O(len(text))."""
    return " ".join(folded(text).split())
