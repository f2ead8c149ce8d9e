"""judge(page) -> verdict: the whole story.

It decides and never acts. What each rule earns on labelled pages stands in docs/verdict.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING

from dedup_middleware.checks.alignment import MAX_CHARACTERS, compare, cover
from dedup_middleware.checks.preferences import Preferences
from dedup_middleware.checks.site import Sites
from dedup_middleware.checks.templates import Templates
from dedup_middleware.checks.vetoes import are_namesakes, other_numbers, replaced, said_nowhere
from dedup_middleware.checks.witness import LITTLE_TEXT_WEIGHT, objection
from dedup_middleware.index.whole_texts import own_template_id
from dedup_middleware.model import Match, Objection, Verdict, VerdictKind, Witness
from dedup_middleware.reasons import Reason
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from dedup_middleware.checks.alignment import Comparison
    from dedup_middleware.index.index import Index
    from dedup_middleware.model import Page, StoredPage

#: Less live text than this, in letters (50 Han characters), and a page is not judged: bios, teasers and walls share
#: that much by chance.
MIN_LIVE_WEIGHT = 150
#: So much of its text, a page is a copy even if extraction has chosen another place than that of its main text.
DOUBTFUL_THRESHOLD = 0.95
#: From this share on a stored page is a candidate for the second opinion.
CANDIDATE_SHARE = 0.02
# With a smaller share of the page's number of clauses an owner has too little text to say it, however nearly.
_MIN_CLAUSE_SHARE = 0.5
#: From this share on a page is related to another: worth a record, never a drop.
RELATED_THRESHOLD = 0.5
#: Candidates looked at for one page: where the best may not drop it (other numbers, out of scope), the next one may.
_MAX_MATCHES = 5
# Reasons that no witness gives.
_OURS = (Reason.BELOW_THRESHOLD, Reason.DOUBTFUL)
#: Dropped pages of earlier crawls that are looked at for one text.
_MAX_SUSPECTS = 16


@dataclass(frozen=True, slots=True)
class Detector:
    """Judge pages against the owners of one index."""

    index: Index
    hash_clause: Callable[[str], bytes]
    threshold: float
    """Share of a page's live text that one owner must hold for a duplicate, above 0.5 and up to 1."""
    preferences: Preferences = field(default_factory=Preferences)
    """Which pages are never duplicates, and are preferred as owners."""
    sites: Sites = field(default_factory=Sites)
    templates: Templates = field(default_factory=Templates)
    feeds: frozenset[str] = frozenset()
    """The kinds of the crawl's feeds: owners that have reached them all are preferred."""

    def judge(
        self, page: Page, *, threshold: float | None = None, objects: Callable[[StoredPage], object] = lambda _: None
    ) -> Verdict:
        """Return what *page* is. Reads the store, about 40 gets for a news page, and learns of sites and templates.

        *objects* returns what else stands against an owner, or nothing: what an item of the page says.
        """
        if page.features is not None:
            self.sites.note(host_of(page.url), page.features, self.index.titles_beside(page))
        verdict = self._judge(page, self.least_score(self.threshold if threshold is None else threshold), objects)
        return self.preferences.applied(page, verdict, self.index)

    def judge_unread(self, page: Page, *, threshold: float) -> Verdict | None:
        """Return what *page* is, which stands unread for what the store has of it; ``None`` if it must be read to tell.

        As :meth:`judge` does, but of the texts around it nothing is learned: the store has too little of them.
        """
        known = page.known
        if known is None or known.features is None:
            return None
        self.sites.note_title(host_of(page.url), known.features)
        if known.owner is None:
            return Verdict(VerdictKind.SAME) if self._may_drop(known, page) else None
        verdict = self._still_duplicate(page, known, self.least_score(threshold))
        return verdict if verdict and self.preferences.applied(page, verdict, self.index) is verdict else None

    def least_score(self, threshold: float) -> float:
        """Return the score from which on a page is a duplicate, where a setting or a request says *threshold*."""
        return threshold

    def suspected_template(self, page: Page, verdict: Verdict) -> bytes:
        """Return `Templates.suspected_template` after a *verdict* on *page*; empty unless that is a duplicate."""
        if verdict.kind is not VerdictKind.DUPLICATE or verdict.match is None:
            return b""
        return self.templates.suspected_template(page, verdict.match.owner)

    def as_kept(self, page: Page, verdict: Verdict, threshold: float) -> Page:
        """Return *page* as one that is kept beside its match, so that what both share leads to that one alone.

        Unless it supersedes that one, or fills in a text of another host's, whose pages are found among themselves.
        """
        match = verdict.match
        if match is not None and verdict.reason == Reason.STORYS_OWN:
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
        """Yield the pages worth a closer look: those with its very text, with some of its clauses, near by SimHash.

        Those of the second and the third kind best first.
        """
        seen = set()
        for equal in self._equals(page, owns):
            seen.add(equal.owner.number)
            yield equal
        weights = {h: page.fingerprint.weights[h] for h in live}
        # Without kept texts there is no second opinion, and only a page that holds half of this one matters. Clauses
        # that do not lead to it lead to its look-alike: one of the two is known to hold a quarter.
        first = 0.0 if self.index.has_texts else RELATED_THRESHOLD / 2
        matches = self.index.matches(page.fingerprint, live, least=CANDIDATE_SHARE, first=first)
        # A holder of few of its clauses may say them all, and be a look-alike of who holds the rest.
        found = [Match(m.owner, cover(weights, m.owner.hashes), m.shared) for m in islice(matches, _MAX_MATCHES)]
        found.sort(key=lambda match: -match.score)
        near = (Match(o, cover(weights, o.hashes), o.hashes & weights.keys()) for o in self.index.near(page, owns))
        for match in (*found, *islice(near, _MAX_MATCHES)):
            if match.owner.number not in seen:
                seen.add(match.owner.number)
                yield match

    def _equals(self, page: Page, owns: list[StoredPage]) -> Iterator[Match]:
        """Yield the pages with its very text, whatever of it is boilerplate, if there is any."""
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
        duplicate = None
        for exact in candidates:
            if not self._may_drop(exact.owner, page) or (page.source and exact.owner.source == page.source):
                continue
            match, objected = self._look_closely(page, exact, live, threshold)
            if objected is None and not objects(match.owner):
                how = _how(page, match, nearly=exact.score < threshold)
                verdict = Verdict(VerdictKind.DUPLICATE, match, how, Witness.PAGE)
                if self._is_best(match.owner):
                    return verdict
                duplicate = duplicate or verdict
            elif best.match is None and match.score >= RELATED_THRESHOLD and objected is not None:
                witness = None if objected.reason in _OURS else Witness.PAGE
                best = Verdict(VerdictKind.RELATED, match, objected.reason, witness, objected.difference)
        return duplicate or best

    def _look_closely(
        self, page: Page, exact: Match, live: AbstractSet[bytes], threshold: float
    ) -> tuple[Match, Objection | None]:
        """Return the match with the second opinion on it, and why it may not make a duplicate, or nothing."""
        match, text = exact, cache(partial(self.index.text, exact.owner.number))
        opinion = self._compare(page, exact, live, text, threshold)
        if opinion is not None and exact.score < threshold <= opinion.cover:
            said = exact.shared.union(map(self.hash_clause, opinion.near))
            match = Match(exact.owner, opinion.cover, said)
        if match.score < threshold or (threshold == 1 and not page.fingerprint.weights.keys() <= match.owner.hashes):
            return match, Objection(Reason.BELOW_THRESHOLD)
        nearly = exact.score < threshold
        objected = self._objection(page, match.owner, opinion, text, nearly=nearly)
        if objected is None and self._learns_template(page, match.owner, text):
            objected = self._objection(page, match.owner, opinion, text, nearly=nearly)
        if objected is None and page.is_doubtful and match.score < DOUBTFUL_THRESHOLD:
            objected = Objection(Reason.DOUBTFUL)
        return match, objected

    def _objection(
        self, page: Page, owner: StoredPage, opinion: Comparison | None, text: Callable[[], list[str]], *, nearly: bool
    ) -> Objection | None:
        """Return what vetoes, and the page itself, have against its being a copy of *owner*, whose text it has."""
        others = other_numbers(page.fingerprint, owner)
        objected = said_nowhere(others, page.paragraphs, text, self.hash_clause)
        is_template = page.is_furniture or self.templates.has(page, owner)
        objected = objected or objection(page, owner, text, self.sites, nearly=nearly, is_template=is_template)
        if objected is not None or opinion is None:
            return objected
        return replaced(opinion, nearly=nearly, namesakes=are_namesakes(page.features, owner.features))

    def _learns_template(self, page: Page, owner: StoredPage, text: Callable[[], list[str]]) -> bool:
        """Note that *page* would be dropped for *owner*; tell whether it is this that shows a template."""
        if self.templates.has(page, owner):
            return False
        if host_of(page.url) != host_of(owner.url) and self.index.is_template(own := own_template_id(page)):
            self.templates.recognised.add(own)
            return True
        return self.templates.learn(page, owner, text, partial(self._others_like, page, owner))

    def _others_like(self, page: Page, owner: StoredPage, template: bytes) -> list[tuple[StoredPage, list[str]]] | None:
        """Return the stored pages on the host of *page* that may fill in the text of *owner*, each with its own text.

        ``None`` if that is known to be a template.
        """
        if (suspects := self.index.suspects_unless_known(template)) is None:
            return None
        host = host_of(page.url)
        equals = islice(self.index.equals(page, []), _MAX_MATCHES) if host == host_of(owner.url) else ()
        found = (*equals, *islice(suspects, _MAX_SUSPECTS))
        on_host = (other for other in found if host_of(other.url) == host and self._may_drop(other, page))
        return [(other, self.index.text(other.number)) for other in on_host]

    def _compare(
        self, page: Page, exact: Match, live: AbstractSet[bytes], text: Callable[[], list[str]], threshold: float
    ) -> Comparison | None:
        """Return the second opinion, or ``None`` where it could not change the verdict, or would take too long."""
        owner, score = exact.owner, exact.score
        has_enough = len(owner.hashes) >= _MIN_CLAUSE_SHARE * len(live)
        could_cover = has_enough and page.fingerprint.weight >= LITTLE_TEXT_WEIGHT
        if (
            1 in (score, threshold)
            or (score < threshold and not could_cover)
            or sum(map(len, page.paragraphs)) > MAX_CHARACTERS
            or not text()
        ):
            return None
        return compare(
            page.paragraphs,
            text(),
            votes=lambda clause: self.hash_clause(clause) in live,
            says=lambda clause: self.hash_clause(clause) in owner.hashes,
            glance=score < threshold,
            enough=threshold if score < threshold else 0.0,
        )

    def _may_drop(self, owner: StoredPage, page: Page) -> bool:
        has_reach = self.index.reach.has(owner, page.run)
        return has_reach and not self.index.corrections.tell_apart(page.identities, owner.identities)

    def _is_best(self, owner: StoredPage) -> bool:
        return owner.delivery.has_reached(self.feeds) and self.preferences.allow(owner.url)

    def _still_duplicate(self, page: Page, own: StoredPage, threshold: float) -> Verdict | None:
        """Return the verdict of an earlier crawl while both the page and its owner are as they were.

        What is boilerplate changes as a store grows; a recrawl must not deliver other pages for that.
        """
        owner = self.index.page(own.owner) if own.owner is not None else None
        if owner is None or not owner.is_owner_of(own) or own.score < round(threshold, 4):
            return None
        if not self._may_drop(owner, page) or (page.is_doubtful and own.score < DOUBTFUL_THRESHOLD):
            return None
        text = partial(self.index.text, owner.number)
        if self.templates.has(page, owner) or self._learns_template(page, owner, text):
            return None
        match = Match(owner, own.score, owner.hashes & page.fingerprint.weights.keys())
        return Verdict(VerdictKind.DUPLICATE, match, _how(page, match, nearly=False), Witness.PAGE)


def _how(page: Page, match: Match, *, nearly: bool) -> str:
    """Return what else a record should say of a duplicate."""
    elsewhere = host_of(page.url) != host_of(match.owner.url)
    return ", ".join([Reason.NEARLY] * nearly + [Reason.ANOTHER_HOST] * elsewhere)
