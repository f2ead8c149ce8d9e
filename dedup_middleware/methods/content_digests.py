"""Compares texts by a digest of their whole content: `BloomFilter`, and `TwoStage`, with other features beside it."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from dedup_middleware.methods.method import Digest, Method, WeightedSet, feature, one_of, within
from dedup_middleware.methods.vocabulary import by_frequency, content_words, load_dictionary
from dedup_middleware.text.clauses import folded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.methods.method import Text

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


def single_spaced(text: str) -> str:
    """Return *text* on one line, folded, with single spaces. O(len(text))."""
    return " ".join(folded(text).split())
