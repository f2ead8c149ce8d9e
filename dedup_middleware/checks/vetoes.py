"""Numbers and names that make another report of the same words.

Pure functions over what two texts say; a veto only keeps.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dedup_middleware.model import Objection
from dedup_middleware.reasons import Reason
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import clauses, reduced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from dedup_middleware.checks.alignment import Comparison
    from dedup_middleware.features import PageFeatures
    from dedup_middleware.model import Fingerprint, StoredPage

#: Of what a page is called, its owner's names must have so much for both to be called the same.
NAMESAKE = 0.8
# Four digits that are no year: whoever has these says the same number.
_LONG_NUMBER = re.compile(r"(?<!\d)(?!(?:19|20)\d\d(?!\d))\d{4,}")


def other_numbers(
    fingerprint: Fingerprint, owner: StoredPage, said: AbstractSet[bytes] = frozenset()
) -> AbstractSet[bytes]:
    """Return the clauses that *owner* says with other numbers: a daily report, a price, a score.

    *said*: clauses that its items say beside its own.
    """
    return {
        clause_hash
        for clause_hash, skeleton in fingerprint.skeletons.items()
        if skeleton in owner.skeletons and clause_hash not in owner.hashes and clause_hash not in said
    }


def said_nowhere(
    others: AbstractSet[bytes],
    texts: Sequence[str],
    said: Callable[[], Sequence[str]],
    hash_clause: Callable[[str], bytes],
) -> Objection | None:
    """Object to those *others* among the clauses of *texts* whose numbers are not *said*, or may be by chance."""
    if not others:
        return None
    numbers = set(_LONG_NUMBER.findall(reduced("\n".join(said()))))
    found = [clause for clause, _ in clauses("\n".join(texts)) if hash_clause(clause) in others]
    own = tuple(clause for clause in found if numbers.isdisjoint(_LONG_NUMBER.findall(clause)))
    return Objection(Reason.OTHER_NUMBERS, own) if own else None


def replaced(opinion: Comparison, *, nearly: bool, namesakes: bool) -> Objection | None:
    """Return the replacements of the second *opinion* that are a veto, if any.

    *nearly*: clauses alone did not settle it; if they did, a number must stand alone in the place of another one.
    *namesakes*: both are called the same; there, words that look like names are replaced by editors.
    """
    numbers = [pair for pair in opinion.other_numbers if nearly or "".join(pair).replace(" ", "").isdigit()]
    if numbers:
        return Objection(Reason.OTHER_NUMBERS, _shown(numbers))
    return Objection(Reason.OTHER_NAMES, _shown(opinion.other_names)) if opinion.other_names and not namesakes else None


def _shown(pairs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(f"{here} (not {there})" for there, here in pairs)


def are_namesakes(page: PageFeatures | None, owner: PageFeatures | None) -> bool:
    """Tell whether *page* is called as its *owner* is."""
    if page is None or owner is None or not (found := titles.parts(page.title or page.heading)):
        return False
    return titles.shared_terms([titles.longest(found)], owner, list) >= NAMESAKE
