"""What pages and items say beside the main text, and what is made of it, as frozen types.

No I/O, as in `model`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

#: What a store keeps of the hash of a text around a page.
STORED_TEXT_BYTES = 2
# Two texts with this share of their clauses in common are one.
_SAME_TEXT_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class PageFeatures:
    """What a page says beside its main text: what it is called, and what stands around it."""

    title: str = ""
    """As written, on one line."""
    heading: str = ""
    """The first heading, where the title does not contain it."""
    texts: frozenset[bytes] = frozenset()
    """Hashes of the texts around the main text, links and digits apart: labels, addresses, furniture. 4 bytes each of a
    page that is fetched, 2 of one that is stored."""
    facts: frozenset[bytes] = frozenset()
    """Hashes, 4 bytes each, of the facts there and in what scripts carry as data: prices, amounts, serial numbers."""
    canonical: str = ""
    """The address that it names as its story's own (``rel=canonical``), as written; of a page whose address is known,
    absolute, and empty if it is the same. Not stored."""

    # Asked for when a page opens its claim, and when that is confirmed.
    @lru_cache(maxsize=256)  # noqa: B019 - what is kept is few, small and refers to nothing
    def stored(self) -> PageFeatures:
        """Return them as they are stored: of two pages' few texts, one in a thousand is taken for another."""
        texts = frozenset([h[:STORED_TEXT_BYTES] for h in self.texts])
        return PageFeatures(self.title, self.heading, texts, self.facts)


@dataclass(frozen=True, slots=True)
class ItemContent:
    """What the items of an owner said when it was delivered, all of them together."""

    hashes: frozenset[bytes]
    """Of the clauses of their texts, 8 bytes each."""
    values: frozenset[bytes]
    """Hashes (4 bytes each) of their short values: names, prices, labels."""
    has_text: bool
    """Whether their texts are enough to be compared."""
    texts: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """Their texts, as long as it has not been stored."""

    def is_text_of(self, hashes: AbstractSet[bytes]) -> bool:
        """Tell whether this is most of what a page with clauses of these *hashes* says, and no more."""
        return self.hashes <= hashes and len(self.hashes) >= _SAME_TEXT_SHARE * len(hashes)


class Made(NamedTuple):
    """What a published method has made of a text, see `fingerprints.literature.method`."""

    value: bytes
    """Its fingerprint, packed."""
    keys: frozenset[bytes]
    """What to look it up by, 8 bytes each."""
