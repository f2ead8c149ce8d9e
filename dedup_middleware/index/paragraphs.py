"""Which pages have paragraphs like those of a new page, by their SimHashes.

It proposes pages to compare with and decides nothing. It finds what was written by it, that is, under
``DEDUP_FINGERPRINT = "clauses+simhash"``.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING

from dedup_middleware.index.hamming import HammingIndex

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from dedup_middleware.stores.protocol import Store

# A paragraph that more pages have is boilerplate, and proposes none in particular.
_MAX_HOLDERS = 16
# Compared beyond a full list, 1 to 3 µs each. More that share 21 bits are a flood: crafted, or of one template.
_CROWD = 5_000


class ParagraphIndex:
    """The paragraph SimHashes of the pages in *stored*, and of the open claims in *claimed*, a store in memory.

    *distance*: how many of the 128 bits may differ, 0 to 16; :class:`StoreVersionError` where a store was filled under
    a distance that splits the bits otherwise.
    """

    def __init__(self, stored: Store, claimed: Store, distance: int) -> None:
        self._stored = HammingIndex(stored, distance, crowd=_CROWD)
        self._claimed = HammingIndex(claimed, distance, crowd=_CROWD)
        self._claims = claimed

    def changes(
        self, before: AbstractSet[tuple[int, int]], now: AbstractSet[tuple[int, int]]
    ) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
        """Return the puts and deletes by which the pairs (bits, stored page) *now* take the place of those *before*."""
        return self._stored.changes(added=now - before, removed=before - now)

    def claim(self, number: int, simhashes: Iterable[int]) -> None:
        """Note the paragraphs of the open claim *number*, which is negative."""
        self._claims.write(*self._claimed.changes(added=[(bits, -number) for bits in simhashes]))

    def release(self, number: int, simhashes: Iterable[int]) -> None:
        """Forget the paragraphs of the open claim *number*."""
        self._claims.write(*self._claimed.changes(removed=[(bits, -number) for bits in simhashes]))

    def near(self, simhashes: Iterable[int]) -> list[int]:
        """Return the numbers of the pages with paragraphs near *simhashes*, those with most of them first.

        Of equals, a stored page comes before a claimed one and an older before a younger. Gets: some 230 a paragraph at
        distance 10, half of them in memory.
        """
        counts: Counter[int] = Counter()
        for bits in simhashes:
            claimed = ((-number, distance) for number, distance in self._claimed.search(bits))
            holders = islice(chain(self._stored.search(bits), claimed), _MAX_HOLDERS)
            counts.update({number for number, _ in holders})
        return sorted(counts, key=lambda number: (-counts[number], number < 0, abs(number)))
