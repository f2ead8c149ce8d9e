"""The words of a text by how often they stand in it: what the methods that hash a few keywords have in common."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def by_frequency(words: Iterable[str]) -> list[tuple[str, int]]:
    """Return each of *words* once, with its count, the most frequent first, ties by word. O(n log n)."""
    return sorted(Counter(words).items(), key=lambda counted: (-counted[1], counted[0]))


def as_bytes(words: Iterable[str]) -> bytes:
    """Return *words*, which have no white space in them, as what to hash."""
    return " ".join(words).encode("utf8", "surrogatepass")
