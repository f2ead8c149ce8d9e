"""Finds the originals that a page may repeat, and judges its items, or the page, against them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING

from dedup_middleware.checks.proof import Proof, Prover
from dedup_middleware.checks.recrawl import changes_since, earlier_match, has_named, is_eligible, may_drop, moved_from
from dedup_middleware.checks.subject import Subject, is_same_page, relation_of
from dedup_middleware.common.budget import UncheckableError
from dedup_middleware.common.urls import host_of
from dedup_middleware.index.candidates import MAX_MATCHES, Candidates, has_enough, match_of
from dedup_middleware.index.lookup import Distinctive
from dedup_middleware.model import Match, Rejection, Verdict, VerdictKind
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Collection, Iterable

    from dedup_middleware.checks.table import CopyRules, Edit, Relation
    from dedup_middleware.common.urls import HostPattern
    from dedup_middleware.index.index import Index
    from dedup_middleware.index.lookup import Found
    from dedup_middleware.items.reading import ItemText
    from dedup_middleware.model import Page, StoredPage


@dataclass(frozen=True, slots=True)
class Preferences:
    """The pages that a project prefers."""

    preferred: Collection[HostPattern | re.Pattern[str]] = ()
    """Searched in URLs; one match is enough."""

    def include(self, url: str) -> bool:
        """Return whether the page at *url* is preferred."""
        return bool(self.preferred) and any(pattern.search(url) for pattern in self.preferred)

    def applied(self, page: Page, verdict: Verdict) -> Verdict:
        """Return *verdict*; of a duplicate that is preferred to its original, ``related`` with the reason."""
        if verdict.kind is not VerdictKind.DUPLICATE or verdict.match is None or verdict.candidates:
            return verdict
        if self.include(page.url) and not self.include(verdict.match.original.url):
            return Verdict(VerdictKind.RELATED, verdict.match, Reason.PREFERRED)
        return verdict


#: From this share on a page is related to another: worth a record, never a drop.
RELATED_THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class Examined:
    """How a page compares with one other."""

    url: str
    other_url: str
    verdict: Verdict
    score: float
    """The share of the page's text that the other one has, 0 to 1."""
    relation: Relation
    edits: tuple[tuple[Edit, bool], ...]
    """How they differ, and whether a copy may."""


@dataclass(frozen=True, slots=True)
class Detector:
    """Judges pages and their items against the originals of one index."""

    index: Index
    hash_clause: Callable[[str], bytes]
    rules: CopyRules
    preferences: Preferences = field(default_factory=Preferences)
    """The pages that are preferred as originals."""
    feeds: frozenset[str] = frozenset()
    """The kinds of the crawl's feeds: originals that have reached them all are preferred."""

    @property
    def prover(self) -> Prover:
        """What compares a subject with an original; of what is not even related, no record names the edits."""
        return Prover(self.index, self.hash_clause, self.rules, RELATED_THRESHOLD)

    @property
    def _find(self) -> Candidates:
        return Candidates(self.index, self.hash_clause, self.rules.threshold)

    def check(self, page: Page) -> Verdict:
        """Return the provisional verdict on *page*: a ``duplicate`` with candidates is still to be judged.

        Reads the store, about 40 gets for a news page. Unchecked once the budget is spent that watches the text of
        *page*.
        """
        try:
            return self._check(page)
        except UncheckableError as error:
            return Verdict(VerdictKind.UNCHECKED, reason=error.reason)

    def judge(
        self,
        page: Page,
        verdict: Verdict,
        item: ItemText | None = None,
        rejects: Callable[[StoredPage], Rejection | None] = lambda _: None,
    ) -> Verdict:
        """Return the verdict on *page* and its *item*: a copy of one of the candidates of *verdict*, or none.

        *rejects* returns why an original does not count. Where the claim of an original is open, the verdict stays
        provisional: what its items contain is known once that has ended.
        """
        if not verdict.candidates:
            return verdict
        try:
            return self._judged(page, verdict, Subject.of(page, item), rejects)
        except UncheckableError as error:
            return Verdict(VerdictKind.UNCHECKED, reason=error.reason)

    def verdict(self, page: Page) -> Verdict:
        """Return the verdict on *page* without an item."""
        return self.judge(page, self.check(page))

    def examine(self, page: Page, original: StoredPage) -> Examined:
        """Return the verdict on *page* if *original* were the only stored page, and how the two differ.

        For a person: the crawl's scope and expiry do not count, nor do overrides.
        """
        found = self.index.look_up(page)
        distinctive = self.index.distinctive_clauses(page, found)
        match = replace(match_of(page, original, distinctive), counted=distinctive.beside(original))
        proof = self._proof_of(replace(self.prover, least=0.0), Subject.of(page), match)
        match = replace(match, score=proof.score)
        is_enough = has_enough(page, distinctive) or _shows_same(page, original)
        if not is_enough and not (page.fingerprint.is_whole and proof.rejection is None):
            verdict = Verdict(VerdictKind.UNCHECKED, match, Reason.TOO_LITTLE_TEXT)
        elif proof.rejection is None:
            verdict = Verdict(VerdictKind.DUPLICATE, match, self._how(page, match))
        else:
            verdict = _kept(match, proof.rejection)
        relation = relation_of(page, original)
        allowed = self.rules.allowed(relation)
        edits = tuple((edit, edit.kind in allowed) for edit in proof.edits)
        return Examined(page.url, original.url, verdict, proof.score, relation, edits)

    def check_unread(self, page: Page) -> Verdict | None:
        """Return the verdict on an unread *page* that has not changed; ``None`` if it must be read.

        A duplicate stays one as long as its original is as it was.
        """
        known = page.known
        if known is None or known.features is None or self.index.leading_to(page):
            return None
        if known.original is None:
            return Verdict(VerdictKind.UNCHANGED) if is_eligible(self.index, known, page) else None
        # Of little text, or of another detector, the store does not have what the verdict rests on.
        is_known = known.exact_digest and self.index.beside is None
        match = earlier_match(self.index, page, known, self.least_score) if is_known else None
        if match is None or has_named(self.index, match.original, page):
            return None
        verdict = Verdict(VerdictKind.DUPLICATE, match, self._how(page, match))
        return verdict if self.preferences.applied(page, verdict) is verdict else None

    def check_pair(self, page: Page, candidate: Match, distinctive: Distinctive) -> Verdict:
        """Return the verdict on *page* if *candidate* were the only stored page.

        *distinctive*: the clauses of *page* that are not boilerplate of its host.
        """
        return self.judge(page, self._provisional(page, [candidate], distinctive))

    def nearest(self, page: Page) -> Match | None:
        """Return the stored page that shares most with *page*, if any shares something, however little."""
        found = self.index.look_up(page)
        candidates = self._find.like(page, found, self.index.distinctive_clauses(page, found))
        return max(candidates, key=attrgetter("score"), default=None)

    @property
    def least_score(self) -> float:
        """The least score of a duplicate."""
        return self.rules.threshold

    def to_stored(self, page: Page, verdict: Verdict) -> Page:
        """Return *page* as it is stored: posting lists of clauses that its match has too lead to the match only.

        Those of all clauses lead to *page* if it replaces the match.
        """
        match = verdict.match
        if verdict.moved is not None:
            page = replace(page, former=verdict.moved.identities)
        if match is not None and verdict.reason == Reason.PREFERRED:
            return replace(page, replaces=match.original)
        return page if match is None else page.near(match, self.rules.threshold)

    # --- provisional

    def _check(self, page: Page) -> Verdict:
        found = self.index.look_up(page)
        verdict = self._check_found(page, found)
        moved = moved_from(self.index, page, found, verdict.candidates, self.rules.threshold)
        if moved is None:
            return verdict
        page = replace(page, former=moved.identities)
        return replace(self._check_found(page, self.index.look_up(page)), moved=moved)

    def _check_found(self, page: Page, found: Found) -> Verdict:
        changes = changes_since(self.index, page, found.own)
        if changes is not None and not changes:
            return Verdict(VerdictKind.UNCHANGED)
        numbers = [stored.number for stored in found.own]
        unchanged = [stored for stored in found.own if stored.digest == page.fingerprint.digest]
        dropped = (each for each in unchanged if each.original not in numbers)
        earlier = (earlier_match(self.index, page, each, self.least_score) for each in dropped)
        match = next(filter(None, earlier), None)
        fresh = self._check_text(page, found)
        if match is not None:
            others = [each for each in fresh.candidates if each.original.number != match.original.number]
            fresh = Verdict(VerdictKind.DUPLICATE, match, self._how(page, match), candidates=(match, *others))
        if changes is None:
            return fresh
        if fresh.kind is VerdictKind.UNCHECKED:
            # Too little text of its own to find another page by is enough to compare it with itself.
            fresh = Verdict(VerdictKind.NEW)
        kind = fresh.kind if fresh.kind is VerdictKind.DUPLICATE else VerdictKind.CHANGED
        return replace(fresh, kind=kind, changes=changes)

    def _check_text(self, page: Page, found: Found) -> Verdict:
        if page.fingerprint.is_whole:
            return self._check_whole(page, found)
        distinctive = self.index.distinctive_clauses(page, found)
        enough = has_enough(page, distinctive)
        candidates = self._find.like(page, found, distinctive) if enough else self._find.equal(page, found)
        verdict = self._provisional(page, candidates, distinctive)
        if verdict.kind is VerdictKind.NEW and not enough:
            return Verdict(VerdictKind.UNCHECKED, reason=Reason.TOO_LITTLE_TEXT)
        return verdict

    def _provisional(self, page: Page, candidates: Iterable[Match], distinctive: Distinctive) -> Verdict:
        """Return a duplicate with those *candidates* that may be proved originals; else what it is related to."""
        found: list[Match] = []
        related: Match | None = None
        for match in candidates:
            original = match.original
            if not may_drop(self.index, original, page) or (page.source and original.source == page.source):
                continue
            if self._may_contain(page, match, distinctive):
                found.append(replace(match, counted=distinctive.beside(original)))
                if original.pending and self._is_preferred_copy(page, found[-1]):
                    # It waits for no page that it replaces.
                    return Verdict(VerdictKind.RELATED, found[-1], Reason.PREFERRED)
            elif related is None and match.score >= RELATED_THRESHOLD:
                related = match
        if found:
            found.sort(key=lambda match: self._rank(match.original), reverse=True)
            return Verdict(VerdictKind.DUPLICATE, found[0], candidates=tuple(found))
        if related is not None:
            return Verdict(VerdictKind.RELATED, related, Reason.BELOW_THRESHOLD)
        return Verdict(VerdictKind.NEW)

    def _is_preferred_copy(self, page: Page, match: Match) -> bool:
        duplicate = Verdict(VerdictKind.DUPLICATE, match)
        is_preferred = self.preferences.applied(page, duplicate) is not duplicate
        return is_preferred and self._proof_of(self.prover, Subject.of(page), match).rejection is None

    def _may_contain(self, page: Page, match: Match, distinctive: Distinctive) -> bool:
        return self._find.may_contain(page, match, distinctive)

    def _check_whole(self, page: Page, found: Found) -> Verdict:
        """Return the verdict on a *page* with little text: a copy of a page at its address that shows the same.

        At another address that may be a wall or a notice, which shows the same wherever it stands.
        """
        # Oldest first.
        numbers = [n for numbers in found.holders.values() for n in numbers][:MAX_MATCHES]
        equal = [
            Match(original, 1.0, frozenset(page.fingerprint.weights))
            for original in self.index.numbered(numbers)
            if original.digest == page.fingerprint.digest and is_same_page(page, original)
        ]
        best = self._provisional(page, equal, Distinctive({}))
        is_copy = best.kind is VerdictKind.DUPLICATE
        return best if is_copy else Verdict(VerdictKind.UNCHECKED, reason=Reason.TOO_LITTLE_TEXT)

    # --- judged

    def _judged(
        self, page: Page, verdict: Verdict, subject: Subject, rejects: Callable[[StoredPage], Rejection | None]
    ) -> Verdict:
        related: Verdict | None = None
        prover = self.prover
        for place, candidate in enumerate(verdict.candidates):
            rejection = rejects(candidate.original)
            proof = Proof(candidate.score, rejection) if rejection else self._proof_of(prover, subject, candidate)
            match = replace(candidate, score=proof.score)
            if proof.rejection is not None:
                related = related or _kept(match, proof.rejection)
            elif match.original.pending:
                return replace(verdict, match=match, candidates=verdict.candidates[place:])
            else:
                found = replace(verdict, match=match, reason=self._how(page, match), candidates=())
                return self.preferences.applied(page, found)
        assert related is not None
        kind = VerdictKind.CHANGED if verdict.changes else related.kind
        return replace(related, kind=kind, changes=verdict.changes, moved=verdict.moved)

    def _proof_of(self, prover: Prover, subject: Subject, match: Match) -> Proof:
        return prover.check(subject, match.original, match.score, match.counted or subject.weights.keys())

    def _how(self, page: Page, match: Match) -> str:
        """Return the reason that a record has for a duplicate."""
        if match.score < 1:
            return Reason.NEAR_MATCH
        return Reason.CROSS_HOST if host_of(page.url) != host_of(match.original.url) else ""

    def _rank(self, original: StoredPage) -> tuple[bool, bool]:
        """Return how good an original is: the greater, the better, and ``(True, True)`` is the best."""
        is_preferred = not self.preferences.preferred or self.preferences.include(original.url)
        return is_preferred, original.kept.has_reached(self.feeds)


def _shows_same(page: Page, original: StoredPage) -> bool:
    """Return whether the text of *page*, boilerplate included, is that of *original*."""
    digest = page.fingerprint.exact_digest
    return digest != b"" and digest == original.exact_digest


def _kept(match: Match, rejection: Rejection) -> Verdict:
    """Return the verdict on a page that is no copy of the original of *match*."""
    if match.score < RELATED_THRESHOLD:
        return Verdict(VerdictKind.NEW)
    return Verdict(VerdictKind.RELATED, match, rejection.reason, rejection.difference)
