"""Checks the numbers of two pages, of one site or two: the same words with other numbers make another report.

A daily report, a price list or a score repeats its words with other numbers. Dates do not count: a copy is published on
another day.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dedup_middleware.checks.own_content import not_contained
from dedup_middleware.model import Rejection
from dedup_middleware.reasons import Reason
from dedup_middleware.text.clauses import clauses, reduced_once

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from dedup_middleware.checks.pair import Pair
    from dedup_middleware.model import Fingerprint, StoredPage

# Four digits that are not a year: a text that has these somewhere has the same number.
_LONG_NUMBER = re.compile(r"(?<!\d)(?!(?:19|20)\d\d(?!\d))\d{4,}")


def other_numbers(pair: Pair) -> Rejection | None:
    """Reject a page with a clause that the original has with other digits."""
    others = renumbered(pair.page.fingerprint, pair.original)
    if not others:
        return None
    lines = [line for line in pair.page.paragraphs if not pair.is_around_original(line)]
    own = not_in_text(others, lines, pair.text, pair.hash_clause)
    return Rejection(Reason.OTHER_NUMBERS, own) if own else None


def renumbered(
    fingerprint: Fingerprint, original: StoredPage, known: AbstractSet[bytes] = frozenset()
) -> AbstractSet[bytes]:
    """Return the hashes of clauses that *original* has with other digits only, but for those *known*."""
    return {
        clause_hash
        for clause_hash, masked in fingerprint.skeletons.items()
        if masked in original.skeletons and clause_hash not in original.hashes and clause_hash not in known
    }


def not_in_text(
    hashes: AbstractSet[bytes], paragraphs: Sequence[str], text: Sequence[str], hash_clause: Callable[[str], bytes]
) -> tuple[str, ...]:
    """Return the clauses of *paragraphs* with these *hashes* whose numbers *text* has nowhere. O(characters)."""
    numbers = set(_LONG_NUMBER.findall(reduced_once("\n".join(text))))
    found = [clause for clause, _ in clauses("\n".join(paragraphs)) if hash_clause(clause) in hashes]
    others = [clause for clause in found if numbers.isdisjoint(_LONG_NUMBER.findall(clause))]
    return tuple(not_contained(others, paragraphs, text))
