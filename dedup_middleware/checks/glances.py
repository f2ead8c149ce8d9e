"""Quick looks at two texts, by which most comparisons need not be made.

Pure functions. The first is a rule of its own; the second is exact: what it leaves out could not come out otherwise.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from dedup_middleware.text.characters import DENSE
from dedup_middleware.text.clauses import reduced_once, weight
from dedup_middleware.text.words import VARIANTS, is_unspaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_INTERCHANGED = frozenset(chain.from_iterable(VARIANTS))


def in_pieces(missing: Mapping[str, int], owner: Sequence[str]) -> int:
    """Return the weight of the *missing* clauses of which *owner* says a third, letter by letter."""
    said = reduced_once("\n".join(owner)).replace("\n", "")
    return sum(
        w
        for clause, w in missing.items()
        if any(clause[len(clause) * n // 3 : len(clause) * (n + 1) // 3] in said for n in range(3))
    )


def characters_of(words: Iterable[str]) -> frozenset[str]:
    """Return the characters that may stand for those of *words*."""
    return _INTERCHANGED.union(*words)


def may_be_near(words: Sequence[str], there: frozenset[str], share: float) -> bool:
    """Tell whether *share* of the weight of a sentence's *words* may be aligned with a text of the characters *there*.

    Of a gap with n characters that the text does not have and m others, at most 2m / (2m + n) counts as said. A Han
    character weighs three letters, so that n of them take at least n (1/2 + n / (n + l)) from the sentence, where l
    counts its letters of other scripts; of these nothing is known, for words may be alike. O(words).
    """
    absent = sum(word not in there and is_unspaced(word) and bool(DENSE.match(word)) for word in words)
    if not absent:
        return True
    sentence = "".join(words)
    others = len(DENSE.sub("", sentence))
    return absent * (0.5 + absent / (absent + others)) <= (1 - share) * weight(sentence)
