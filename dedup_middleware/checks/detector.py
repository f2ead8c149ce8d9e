"""Finds the candidates for a page, compares it with each, and returns the verdict."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING

from dedup_middleware.checks import checklist
from dedup_middleware.checks.alignment import MAX_CHARACTERS, compare, cover
from dedup_middleware.checks.checklist import LITTLE_TEXT_WEIGHT
from dedup_middleware.checks.pair import Pair, Sites
from dedup_middleware.checks.templates import Templates
from dedup_middleware.index.lookup import own_template_id
from dedup_middleware.model import Match, Rejection, Verdict, VerdictKind, Witness
from dedup_middleware.reasons import Reason
from dedup_middleware.urls import host_of, origin_of

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Collection, Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from dedup_middleware.checks.alignment import Comparison
    from dedup_middleware.index.index import Index
    from dedup_middleware.index.lookup import Lookup
    from dedup_middleware.model import Page, StoredPage
    from dedup_middleware.urls import HostPattern

#: Why a page that repeats another one is kept, and becomes the original.
REPLACES = (Reason.PREFERRED, Reason.STORYS_OWN)


@dataclass(frozen=True, slots=True)
class Preferences:
    """The pages that a project prefers."""

    preferred: Collection[HostPattern | re.Pattern[str]] = ()
    """Searched in URLs; one match is enough."""

    def include(self, url: str) -> bool:
        """Return whether the page at *url* is preferred."""
        return any(pattern.search(url) for pattern in self.preferred)

    def applied(self, page: Page, verdict: Verdict, index: Lookup) -> Verdict:
        """Return *verdict*; of a duplicate that is the better original, ``related`` with the reason."""
        if verdict.kind is not VerdictKind.DUPLICATE or verdict.match is None:
            return verdict
        original = verdict.match.owner
        is_preferred, original_is_preferred = self.include(page.url), self.include(original.url)
        if is_preferred and not original_is_preferred:
            reason = Reason.PREFERRED
        elif is_preferred == original_is_preferred and is_storys_own(page, original, index):
            reason = Reason.STORYS_OWN
        else:
            return verdict
        return Verdict(VerdictKind.RELATED, verdict.match, reason)


def is_storys_own(page: Page, owner: StoredPage, index: Lookup) -> bool:
    """Return whether *owner* is a view of *page*, for print or phones: its ``rel=canonical`` names *page*.

    Both must have one origin, and *page* must name no other canonical URL. One or two gets.
    """
    features = page.features
    if features is None or features.canonical or owner.pending or origin_of(page.url) != origin_of(owner.url):
        return False
    return index.names(owner, page.identities)


#: Less live text than this, in letters (50 Han characters), and a page is not judged: bios, teasers and walls share
#: that much by chance.
MIN_LIVE_WEIGHT = 150
#: From this share on a stored page is a candidate: a copy with edits in most of its clauses shares few of them.
CANDIDATE_SHARE = 0.02
# A stored page with fewer clauses than this share of the page's is too short to contain its text.
_MIN_CLAUSE_SHARE = 0.5
#: From this share on a page is related to another: worth a record, never a drop.
RELATED_THRESHOLD = 0.5
#: Candidates looked at for one page: where the best may not drop it (other numbers, out of scope), the next one may.
_MAX_MATCHES = 5
# Reasons given here; the others are given by checks.
_OURS = (Reason.BELOW_THRESHOLD, Reason.DOUBTFUL)
#: Dropped pages of earlier crawls that are looked at for one text.
_MAX_SUSPECTS = 16


@dataclass(frozen=True, slots=True)
class Detector:
    """Judges pages against the originals of one index."""

    index: Index
    hash_clause: Callable[[str], bytes]
    threshold: float
    """Least share of a page's non-boilerplate text in the original of a duplicate, above 0.5 and up to 1."""
    preferences: Preferences = field(default_factory=Preferences)
    """The pages that are preferred as originals."""
    sites: Sites = field(default_factory=Sites)
    templates: Templates = field(default_factory=Templates)
    feeds: frozenset[str] = frozenset()
    """The kinds of the crawl's feeds: originals that have reached them all are preferred."""

    def judge(
        self, page: Page, *, threshold: float | None = None, objects: Callable[[StoredPage], object] = lambda _: None
    ) -> Verdict:
        """Return the verdict on *page*. Reads the store, about 40 gets for a news page; notes its site and templates.

        *objects* returns why an original is rejected for an item of the page, or ``None``.
        """
        if page.features is not None:
            self.sites.note(host_of(page.url), page.features, self.index.titles_beside(page))
        verdict = self._judge(page, self.least_score(self.threshold if threshold is None else threshold), objects)
        return self.preferences.applied(page, verdict, self.index)

    def judge_unread(self, page: Page) -> Verdict | None:
        """Return the verdict on an unread *page*, an original that has not changed; ``None`` if it must be read.

        Unlike :meth:`judge`, it notes nothing of the context: the store has only parts of its hashes.
        """
        known = page.known
        if known is None or known.features is None or not self._may_drop(known, page):
            return None
        self.sites.note_title(host_of(page.url), known.features)
        return Verdict(VerdictKind.SAME)

    def judge_stored(self, page: Page) -> Verdict:
        """Return the verdict on a *page* that was read again from the store: ``new`` if its clauses have no weights."""
        if not any(page.fingerprint.weights.values()):
            return Verdict(VerdictKind.NEW)
        return self.preferences.applied(
            page, self._judge(page, self.least_score(self.threshold), _no_objection), self.index
        )

    def judge_pair(self, page: Page, candidate: Match, live: AbstractSet[bytes]) -> Verdict:
        """Return the verdict on *page* if *candidate* were the only stored page; notes templates, and nothing else.

        *live*: the clauses of *page* that are not boilerplate.
        """
        return self._best(page, [candidate], live, self.threshold, _no_objection)

    def least_score(self, threshold: float) -> float:
        """Return the least score of a duplicate, for the *threshold* of a setting or a request."""
        return threshold

    def suspected_template(self, page: Page, verdict: Verdict) -> bytes:
        """Return `Templates.suspected_template` after a *verdict* on *page*; empty unless that is a duplicate."""
        if verdict.kind is not VerdictKind.DUPLICATE or verdict.match is None:
            return b""
        return self.templates.suspected_template(page, verdict.match.owner)

    def as_kept(self, page: Page, verdict: Verdict, threshold: float) -> Page:
        """Return *page* as it is kept beside its match: clauses that both have are listed for the match only.

        All clauses of *page* are listed if it replaces the match, or fills in a template of another host.
        """
        match = verdict.match
        if match is not None and verdict.reason in REPLACES:
            return replace(page, instead_of=match.owner)
        if match is None or (host_of(match.owner.url) != host_of(page.url) and self.templates.has(page, match.owner)):
            return page
        return page.beside(match, threshold)

    def _judge(self, page: Page, threshold: float, objects: Callable[[StoredPage], object]) -> Verdict:
        owns = self.index.same(page.identities)
        unchanged = [stored for stored in owns if stored.digest == page.fingerprint.digest]
        if any(stored.owner is None and self._may_drop(stored, page) for stored in unchanged):
            return Verdict(VerdictKind.SAME)
        itself = {stored.number for stored in owns}
        for stored in unchanged:
            if stored.owner in itself:
                continue
            again = self._still_duplicate(page, stored, threshold)
            if again is not None and again.match is not None and not objects(again.match.owner):
                return again
        return self._judge_text(page, owns, threshold, objects)

    def _judge_text(
        self, page: Page, owns: list[StoredPage], threshold: float, objects: Callable[[StoredPage], object]
    ) -> Verdict:
        live = self.index.live_clauses(page, owns)
        enough = sum(map(page.fingerprint.weights.__getitem__, live)) >= MIN_LIVE_WEIGHT
        candidates = self._candidates(page, owns, live) if enough else self._equals(page, owns)
        best = self._best(page, candidates, live.keys(), threshold, objects)
        if best.kind is VerdictKind.NEW and not enough:
            return Verdict(VerdictKind.UNJUDGED, reason=Reason.TOO_LITTLE_TEXT)
        return best

    def _candidates(self, page: Page, owns: list[StoredPage], live: dict[bytes, tuple[int, ...]]) -> Iterator[Match]:
        """Yield candidates: pages with the same text, then those with some of the clauses, the best first."""
        seen = set()
        for equal in self._equals(page, owns):
            seen.add(equal.owner.number)
            yield equal
        weights = {h: page.fingerprint.weights[h] for h in live}
        # Without kept texts there is no comparison, and only a page that holds half of this one matters. Clauses
        # that do not lead to it lead to its look-alike: one of the two is known to hold a quarter.
        first = 0.0 if self.index.has_texts else RELATED_THRESHOLD / 2
        matches = self.index.matches(page.fingerprint, live, least=CANDIDATE_SHARE, first=first)
        # A holder of few of its clauses may say them all, and be a look-alike of who holds the rest.
        found = [Match(m.owner, cover(weights, m.owner.hashes), m.shared) for m in islice(matches, _MAX_MATCHES)]
        found.sort(key=lambda match: -match.score)
        yield from (match for match in found if match.owner.number not in seen)

    def _equals(self, page: Page, owns: list[StoredPage]) -> Iterator[Match]:
        """Yield the pages with the same text, boilerplate included."""
        if page.fingerprint.weight >= MIN_LIVE_WEIGHT:
            for owner in islice(self.index.equals(page, owns), _MAX_MATCHES):
                yield Match(owner, 1.0, frozenset(page.fingerprint.weights))

    def _best(
        self,
        page: Page,
        candidates: Iterable[Match],
        live: AbstractSet[bytes],
        threshold: float,
        objects: Callable[[StoredPage], object],
    ) -> Verdict:
        best = Verdict(VerdictKind.NEW)
        duplicate, rank = None, (False, False)
        for exact in candidates:
            if not self._may_drop(exact.owner, page) or (page.source and exact.owner.source == page.source):
                continue
            match, objected = self._look_closely(page, exact, live, threshold)
            if objected is None and not objects(match.owner):
                how = _how(page, match, nearly=exact.score < threshold)
                verdict = Verdict(VerdictKind.DUPLICATE, match, how, Witness.PAGE)
                if all(this := self._rank(match.owner)):
                    return verdict
                if duplicate is None or this > rank:
                    duplicate, rank = verdict, this
            elif best.match is None and match.score >= RELATED_THRESHOLD and objected is not None:
                witness = None if objected.reason in _OURS else Witness.PAGE
                best = Verdict(VerdictKind.RELATED, match, objected.reason, witness, objected.difference)
        return duplicate or best

    def _look_closely(
        self, page: Page, exact: Match, live: AbstractSet[bytes], threshold: float
    ) -> tuple[Match, Rejection | None]:
        """Return the match, with the score by word-by-word comparison, and why the page is not a duplicate."""
        text = cache(partial(self.index.text, exact.owner.number))
        pair = Pair(page, exact.owner, self.sites, text, self.hash_clause, live, exact.shared, score=exact.score)
        # On one site a copy has no word of its own, and nearly the same words are other words.
        if pair.are_items or not pair.is_one_site:
            pair = self._aligned(pair, threshold)
        match = replace(exact, score=pair.score, shared=pair.shared)
        has_all = threshold < 1 or page.fingerprint.weights.keys() <= match.owner.hashes
        if match.score < threshold or not has_all:
            return match, Rejection(Reason.BELOW_THRESHOLD)
        return match, self._first_rejection(pair)

    def _aligned(self, pair: Pair, threshold: float) -> Pair:
        """Return *pair* with the word-by-word comparison, where that can be made, and the better score."""
        comparison = self._compare(pair, threshold)
        if comparison is None or not pair.score < threshold <= comparison.cover:
            return replace(pair, comparison=comparison)
        shared = pair.shared.union(map(self.hash_clause, comparison.near))
        return replace(pair, comparison=comparison, score=comparison.cover, shared=shared, is_nearly=True)

    def _first_rejection(self, pair: Pair) -> Rejection | None:
        """Return the first rejection by the checks that apply to *pair*, or ``None`` for a duplicate."""
        is_template = self.templates.has(pair.page, pair.original)
        rejection = checklist.first_rejection(pair, is_template=is_template)
        if rejection is None and not is_template and self._learns_template(pair):
            rejection = checklist.first_rejection(pair, is_template=True)
        return rejection

    def _learns_template(self, pair: Pair) -> bool:
        """Note that the page of *pair* would be dropped; return whether this shows a template."""
        page, original = pair.page, pair.original
        if pair.is_one_site or original.source or page.features is None or self.templates.has(page, original):
            return False
        if self.index.is_template(own := own_template_id(page)):
            self.templates.recognised.add(own)
            return True
        return self.templates.learn(pair, partial(self._dropped_for, page))

    def _dropped_for(self, page: Page, template: bytes) -> list[tuple[StoredPage, list[str]]] | None:
        """Return the stored pages on the host of *page* that were dropped for a text, each with its own text.

        ``None`` if the text is a known template.
        """
        if (suspects := self.index.suspects_unless_known(template)) is None:
            return None
        found = [other for other in islice(suspects, _MAX_SUSPECTS) if self._may_drop(other, page)]
        return [(other, self.index.text(other.number)) for other in found]

    def _compare(self, pair: Pair, threshold: float) -> Comparison | None:
        """Return the word-by-word comparison, or ``None`` where it cannot change the verdict or takes too long."""
        page, owner, live, score = pair.page, pair.original, pair.live, pair.score
        has_enough = len(owner.hashes) >= _MIN_CLAUSE_SHARE * len(live)
        could_cover = has_enough and page.fingerprint.weight >= LITTLE_TEXT_WEIGHT
        if (
            1 in (score, threshold)
            or (score < threshold and not could_cover)
            or sum(map(len, page.paragraphs)) > MAX_CHARACTERS
            or not pair.text
        ):
            return None
        return compare(
            page.paragraphs,
            pair.text,
            votes=lambda clause: self.hash_clause(clause) in live,
            says=lambda clause: self.hash_clause(clause) in owner.hashes,
            glance=score < threshold,
            enough=threshold if score < threshold else 0.0,
        )

    def _may_drop(self, owner: StoredPage, page: Page) -> bool:
        has_reach = self.index.reach.has(owner, page.run)
        return has_reach and not self.index.overrides.mark(page.identities, owner.identities)

    def _rank(self, owner: StoredPage) -> tuple[bool, bool]:
        """Return how good an original is: the greater, the better, and ``(True, True)`` is the best."""
        is_preferred = not self.preferences.preferred or self.preferences.include(owner.url)
        return is_preferred, owner.delivery.has_reached(self.feeds)

    def _still_duplicate(self, page: Page, own: StoredPage, threshold: float) -> Verdict | None:
        """Return the verdict of an earlier crawl if neither the page nor its original has changed.

        What is boilerplate changes as a store grows; a recrawl must not deliver other pages for that.
        """
        owner = self.index.page(own.owner) if own.owner is not None else None
        if owner is None or not owner.is_owner_of(own) or own.score < round(threshold, 4):
            return None
        if not self._may_drop(owner, page):
            return None
        match = Match(owner, own.score, owner.hashes & page.fingerprint.weights.keys())
        text, all_clauses = partial(self.index.text, owner.number), page.fingerprint.weights.keys()
        pair = Pair(page, owner, self.sites, text, self.hash_clause, all_clauses, match.shared, score=own.score)
        if self.templates.has(page, owner) or self._learns_template(pair):
            return None
        return Verdict(VerdictKind.DUPLICATE, match, _how(page, match, nearly=False), Witness.PAGE)


def _no_objection(_: StoredPage) -> None:
    """Have no objection to any original."""


def _how(page: Page, match: Match, *, nearly: bool) -> str:
    """Return the reason that a record has for a duplicate."""
    elsewhere = host_of(page.url) != host_of(match.owner.url)
    return ", ".join([Reason.NEARLY] * nearly + [Reason.ANOTHER_HOST] * elsewhere)
