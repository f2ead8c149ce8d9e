"""Other methods that could tell whether a text is known, on the same extracted text, with our folding of letters."""

from __future__ import annotations

import collections
import hashlib
import itertools
import re
from typing import TYPE_CHECKING

import xxhash

from dedup_middleware.text.clauses import folded

if TYPE_CHECKING:
    from collections.abc import Sequence

SHINGLE = 5


def shingles(paragraphs: Sequence[str]) -> set[str]:
    """Return all runs of five characters of a text."""
    said = " ".join(folded(" ".join(paragraphs)).split())
    return {said[i : i + SHINGLE] for i in range(len(said) - SHINGLE + 1)}


class Exact:
    """Equal or not: one hash of the whole text."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def drops(self, _: object, paragraphs: Sequence[str]) -> bool:
        """Tell whether a text is known; remember it if not."""
        digest = hashlib.sha256("\n".join(paragraphs).encode("utf8", "surrogatepass")).digest()
        is_known = bool(paragraphs) and digest in self._seen
        self._seen.add(digest)
        return is_known


class Shingles:
    """Jaccard of sets of 5-character shingles: the value that MinHash estimates, without its error."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._sizes: list[int] = []
        self._holders: dict[str, list[int]] = collections.defaultdict(list)

    def drops(self, _: object, paragraphs: Sequence[str]) -> bool:
        """Tell whether a text is known; remember it if not."""
        said = shingles(paragraphs)
        held = [self._holders[s] for s in said if s in self._holders]
        shared = collections.Counter(itertools.chain.from_iterable(held))
        size = len(said)
        if any(n / (size + self._sizes[page] - n) >= self._threshold for page, n in shared.items()):
            return True
        for shingle in said:
            self._holders[shingle].append(len(self._sizes))
        self._sizes.append(size)
        return False


class SimHash:
    """The classical one: 64 bits of a page's words and pairs of Han characters, at most 3 of them different."""

    BITS = 64
    DISTANCE = 3
    # A bit as a number of its own in one wide sum, so that all 64 columns are added at once.
    _LANE_OFF, _LANE_ON = "0" * 8, "1".zfill(8)
    _TOKEN = re.compile("[\u3400-\u9fff]+|[^\\W\u3400-\u9fff]+")

    def __init__(self) -> None:
        self._kept: list[int] = []

    def drops(self, _: object, paragraphs: Sequence[str]) -> bool:
        """Tell whether a text is known; remember it if not."""
        tokens = self._tokens(folded("\n".join(paragraphs)))
        bits = self._majority(tokens)
        if tokens and any((bits ^ other).bit_count() <= self.DISTANCE for other in self._kept):
            return True
        if tokens:
            self._kept.append(bits)
        return False

    def _tokens(self, said: str) -> collections.Counter[str]:
        tokens: collections.Counter[str] = collections.Counter()
        for run in self._TOKEN.findall(said):
            is_han = "\u3400" <= run[0] <= "\u9fff"
            tokens.update(map("".join, itertools.pairwise(run)) if is_han and run[1:] else [run])
        return tokens

    def _majority(self, tokens: collections.Counter[str]) -> int:
        lanes = 0
        for token, count in tokens.items():
            bits = f"{xxhash.xxh64_intdigest(token.encode('utf8', 'surrogatepass')):0{self.BITS}b}"
            lanes += count * int(bits.replace("0", self._LANE_OFF).replace("1", self._LANE_ON), 16)
        half, width = tokens.total() / 2, 4 * len(self._LANE_ON)
        return sum(1 << bit for bit in range(self.BITS) if (lanes >> width * bit & (1 << width) - 1) > half)
