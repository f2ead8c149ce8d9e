"""Finds the candidates of a page: the stored pages that it may repeat, the best first."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from dedup_middleware.model import Match
from dedup_middleware.text.clauses import MIN_TEXT_WEIGHT, reduced_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from dedup_middleware.index.lookup import Distinctive, Found, Lookup
    from dedup_middleware.model import Page, StoredPage

#: From this share on a stored page is a candidate: a copy with edits in most of its clauses shares few of them.
CANDIDATE_SHARE = 0.02
#: Candidates looked at for one page: where the best is another text, the next one may be the original.
MAX_MATCHES = 5
# A stored page with fewer clauses than this share of the page's is too short to contain its text.
_MIN_CLAUSE_SHARE = 0.5
#: With less of a text than this in clauses of which the other one has a third, it is another story: copies edited or
#: misread all over have two thirds and more.
MIN_IN_PIECES = 0.5


@dataclass(frozen=True, slots=True)
class Candidates:
    """Finds pages in one index by the clauses that they share."""

    index: Lookup
    hash_clause: Callable[[str], bytes]
    threshold: float
    """Least share of a text in the original of a duplicate, above 0.5 and up to 1."""

    def like(self, page: Page, found: Found, distinctive: Distinctive) -> Iterator[Match]:
        """Yield candidates: pages with the same text, then those with some of the clauses, the best first."""
        seen = set()
        for equal in self.equal(page, found):
            seen.add(equal.original.number)
            yield equal
        # A page may be listed for few of the clauses that it has, and be a look-alike of a page listed for the rest.
        listed = self.index.numbered(_listed(page, distinctive))
        best = [match_of(page, original, distinctive) for original in listed if original.number not in seen]
        yield from sorted(best, key=attrgetter("score"), reverse=True)

    def equal(self, page: Page, found: Found) -> Iterator[Match]:
        """Yield the pages with the same text, boilerplate included."""
        if page.fingerprint.weight >= MIN_TEXT_WEIGHT:
            for original in self.index.numbered(found.equal[:MAX_MATCHES]):
                if original.exact_digest == page.fingerprint.exact_digest:
                    yield Match(original, 1.0, frozenset(page.fingerprint.weights))

    def may_contain(self, page: Page, match: Match, distinctive: Distinctive) -> bool:
        """Return whether the original of *match* may contain most of the text of *page*, reworded in places.

        A bound, in .2 ms: the share of the text in clauses of which the original has a third.
        """
        if match.score >= self.threshold or page.fingerprint.is_whole:
            return True
        if self.threshold == 1 or len(match.original.hashes) < _MIN_CLAUSE_SHARE * len(distinctive.holders):
            return False
        weights = page.fingerprint.weights
        beside = distinctive.beside(match.original)
        missing = beside - match.original.hashes
        left = sum(map(weights.__getitem__, missing))
        counted = sum(map(weights.__getitem__, beside))
        needed = MIN_IN_PIECES * counted - (counted - left)
        if needed <= 0:
            return True
        there = reduced_once("\n".join(self.index.text(match.original.number))).replace("\n", "")
        for clause in set(reduced_once("\n".join(page.paragraphs)).split("\n")):
            if not 0 < needed <= left:
                break
            if (hash_ := self.hash_clause(clause)) in missing:
                left -= weights[hash_]
                if any(clause[len(clause) * n // 3 : len(clause) * (n + 1) // 3] in there for n in range(3)):
                    needed -= weights[hash_]
        return needed <= 0


def _listed(page: Page, distinctive: Distinctive) -> list[int]:
    """Return the numbers of the pages that are listed for most of the weight of *distinctive* clauses, the best first.

    Of equals, a stored page comes before a pending one and an older before a younger.
    """
    weights, contained = page.fingerprint.weights, Counter[int]()
    for clause_hash, holders in distinctive.holders.items():
        for number in holders if clause_hash not in distinctive.common else ():
            contained[number] += weights[clause_hash]
    total = sum(map(weights.__getitem__, distinctive.holders))
    best = sorted(contained, key=lambda n: (-contained[n], n < 0, abs(n)))[:MAX_MATCHES]
    # Clauses that only prevent duplicates weigh nothing.
    return [number for number in best if contained[number] >= CANDIDATE_SHARE * total > 0]


def match_of(page: Page, original: StoredPage, distinctive: Distinctive) -> Match:
    """Return *original* as a match of *page*, by the clauses of that which count beside it."""
    weights = page.fingerprint.weights
    counted = {h: weights[h] for h in distinctive.beside(original)}
    return Match(original, containment(counted, original.hashes), original.hashes & weights.keys())


def has_enough(page: Page, distinctive: Distinctive) -> bool:
    """Return whether the text of *page* that not many pages contain is enough to find another one by."""
    weights = page.fingerprint.weights
    return sum(weights[h] for h in distinctive.holders if h not in distinctive.common) >= MIN_TEXT_WEIGHT


def containment(weights: Mapping[bytes, int], hashes: AbstractSet[bytes]) -> float:
    """Return the containment of a text in the clauses with these *hashes*, 0-1 by weight; 0 for an empty text."""
    total = sum(weights.values())
    return sum(map(weights.__getitem__, weights.keys() & hashes)) / total if total else 0.0
