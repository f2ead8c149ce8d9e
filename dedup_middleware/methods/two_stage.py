"""Two stages of a crawler's deduplication: pages of one content hash, told apart again by their features.

Source: a text in Chinese of the web on how crawlers remove duplicate pages; its author is not known, and it describes
common practice.

Specified: first, pages are put into groups by a hash of their content. Then, within a group, a page whose features are
known already is a duplicate; features are the URL, the title, the keywords and the text.

Left open: which features must be equal. Three of the four, for two pages of a crawl seldom have one
URL. What the content is: the main text, folded, with single spaces. What the keywords are: the ten words that are most
frequent in the text, stop words left out, whatever their order.

Departures: none by default, and then the second stage can only split a group: equal contents have equal texts and
keywords, so what decides is whether the title or the URL is the same too. ``first=keywords`` makes the groups coarser,
by the keywords alone, so that edited pages come into one group and the features have something to decide:
``two-stage:first=keywords,equal=2`` takes those with the same title for duplicates.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from dedup_middleware.fingerprints.method import Method, Print, Text, WeightedSet, feature, one_of, within
from dedup_middleware.methods.wording import load_words, telling_words, whole
from dedup_middleware.text.clauses import folded

if TYPE_CHECKING:
    from collections.abc import Iterator

_FEATURES = ("url", "title", "keywords", "text")
# The first byte of a feature says which one it is: this one is the group.
_GROUP = b"\0"


class TwoStage(Method):
    """A `Method`: the group and the four features, each of the weight 1. O(length of the text)."""

    def __init__(self, *, first: str = "content", equal: int = 3, keywords: int = 10) -> None:
        """Group by *first*, ``content`` or ``keywords``; in a group, so many *equal* features tell, 1 to 4.

        *keywords*, 1 to 1000, is how many there are at most.
        """
        self._first = one_of("first", first, ("content", "keywords"))
        self._keywords = int(within("keywords", keywords, 1, 1000))
        self.threshold = within("equal", equal, 1, len(_FEATURES)) / len(_FEATURES)
        load_words()

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the group and the features of *text*; ``None`` if there is nothing to group it by."""
        found = content(text)
        keywords = " ".join(self._most_frequent(found))
        group = found if self._first == "content" else keywords
        if not group:
            return None
        said = (group, text.url, " ".join(folded(text.title).split()), keywords, found)
        return WeightedSet({bytes([place]) + feature(part)[1:]: 1.0 for place, part in enumerate(said)})

    def score(self, new: Print, old: Print) -> float:
        """Return the share of the features that are equal, 0 to 1; 0 for pages of different groups."""
        if not (isinstance(new, WeightedSet) and isinstance(old, WeightedSet)):
            return 0.0
        shared = [part for part in new.weights if part in old.weights]
        if not any(part.startswith(_GROUP) for part in shared):
            return 0.0
        return (len(shared) - 1) / len(_FEATURES)

    def keys(self, made: Print) -> Iterator[bytes]:
        """Yield the group."""
        assert isinstance(made, WeightedSet)
        return (part for part in made.weights if part.startswith(_GROUP))

    def _most_frequent(self, found: str) -> list[str]:
        counts = Counter(telling_words(found))
        return sorted(sorted(counts, key=lambda word: (-counts[word], word))[: self._keywords])


def content(text: Text) -> str:
    """Return the paragraphs of *text* on one line, folded, with single spaces. O(length of the text)."""
    return " ".join(folded(whole(text)).split())
