"""judge(page) -> verdict: the whole story.

Law of this file: it decides and never acts. What each rule earns on labelled pages stands in docs/verdict.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from itertools import islice, takewhile
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dedup_middleware.addresses import host_of, is_under
from dedup_middleware.comparison import MOST_CHARACTERS, compare
from dedup_middleware.fingerprints import fast_hash
from dedup_middleware.model import Match, Scope, Surroundings, Verdict, VerdictKind
from dedup_middleware.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from dedup_middleware.comparison import Comparison
    from dedup_middleware.index import Index
    from dedup_middleware.model import Fingerprint, Page, StoredPage

#: Less live text than this, in letters (50 Han characters), and a page is not judged: bios, teasers and walls share
#: that much by chance.
MIN_LIVE_WEIGHT = 150
#: From this share on a stored page is a candidate for the second opinion.
CANDIDATE_SHARE = 0.15
# With a smaller share of the page's number of clauses an owner has too little text to say it, however nearly.
_FEWEST_CLAUSES = 0.5
#: From this share on a page is related to another: worth a record, never a drop.
RELATED_THRESHOLD = 0.5
#: Candidates looked at for one page: where the best may not drop it (other numbers, out of scope), the next one may.
_MAX_MATCHES = 5

#: A text of less than this, in letters (200 Han characters), may be a notice, a wall or an introduction that many pages
#: of a host share, and what sets them apart may be too short to be a clause. On pages of news sites, one repost in
#: twenty is as short, and few of these are on the host of their owner.
LITTLE_TEXT_WEIGHT = 600

TOO_LITTLE_TEXT = "too little text"
RESIDUE = "little text, at another address of the host or with another title or numbers"
OTHER_NUMBERS = "other numbers in the same sentences"
OTHER_NAMES = "other names in the same sentences"
NEARLY = "in nearly the same words"
ANOTHER_HOST = "on another host"
PREFERRED_HOST = "a preferred host"
BELOW_THRESHOLD = "below the threshold"


@dataclass(frozen=True, slots=True)
class Detector:
    """Judge pages against the owners of one index."""

    index: Index
    hash_clause: Callable[[str], bytes]
    threshold: float
    """Share of a page's live text that one owner must hold for a duplicate, above 0.5 and up to 1."""
    scope: Scope = Scope.STORE
    lease: timedelta | None = None
    """How long after it was fetched last an owner may drop a page; ``None`` for ever."""
    preferred_hosts: Collection[str] = ()
    """Hosts, with their subdomains, whose pages are never duplicates and are preferred as owners."""
    feeds: frozenset[str] = frozenset()
    """The kinds of the crawl's feeds: owners that have reached them all are preferred."""

    def judge(self, page: Page, *, threshold: float | None = None) -> Verdict:
        """Return what *page* is. Reads the store, changes nothing. About 40 gets for a news page."""
        verdict = self._judge(page, self.threshold if threshold is None else threshold)
        if verdict.kind is VerdictKind.DUPLICATE and self._is_preferred(page.url):
            return replace(verdict, kind=VerdictKind.RELATED, reason=PREFERRED_HOST)
        return verdict

    def _judge(self, page: Page, threshold: float) -> Verdict:
        owns = self.index.same(page.identities)
        unchanged = [stored for stored in owns if stored.digest == page.fingerprint.digest]
        if any(stored.owner is None and self._in_scope(stored, page) for stored in unchanged):
            return Verdict(VerdictKind.SAME)
        itself = {stored.number for stored in owns}
        for stored in unchanged:
            if stored.owner in itself:
                continue
            if (again := self._still_duplicate(page, stored, threshold)) is not None:
                return again
        live = self.index.live_clauses(page, owns)
        if sum(page.fingerprint.weights[h] for h in live) < MIN_LIVE_WEIGHT:
            return Verdict(VerdictKind.UNJUDGED, reason=TOO_LITTLE_TEXT)
        return self._best(page, self._candidates(page, owns, live), live.keys(), threshold)

    def _candidates(self, page: Page, owns: list[StoredPage], live: dict[bytes, tuple[int, ...]]) -> Iterator[Match]:
        """Yield the pages worth a closer look: those that share clauses, best first, then those near by SimHash."""
        seen = set()
        matches = self.index.matches(page.fingerprint, live)
        for match in islice(takewhile(lambda m: m.score >= CANDIDATE_SHARE, matches), _MAX_MATCHES):
            seen.add(match.owner.number)
            yield match
        weights = {h: page.fingerprint.weights[h] for h in live}
        for owner in islice(self.index.near(page, owns), _MAX_MATCHES):
            if owner.number not in seen:
                yield Match(owner, cover(weights, owner.hashes), owner.hashes & page.fingerprint.weights.keys())

    def _best(self, page: Page, candidates: Iterable[Match], live: AbstractSet[bytes], threshold: float) -> Verdict:
        best = Verdict(VerdictKind.NEW)
        duplicate = None
        for exact in candidates:
            if not self._in_scope(exact.owner, page) or (page.source and exact.owner.source == page.source):
                continue
            match, obstacle = self._look_closely(page, exact, live, threshold)
            if not obstacle:
                verdict = Verdict(VerdictKind.DUPLICATE, match, _how(page, match, nearly=exact.score < threshold))
                if self._is_best(match.owner):
                    return verdict
                duplicate = duplicate or verdict
            elif best.match is None and match.score >= RELATED_THRESHOLD:
                best = Verdict(VerdictKind.RELATED, match, obstacle)
        return duplicate or best

    def _look_closely(self, page: Page, exact: Match, live: AbstractSet[bytes], threshold: float) -> tuple[Match, str]:
        """Return the match with the second opinion on it, and why it may not make a duplicate, or nothing."""
        match, other = exact, ""
        opinion = self._compare(page, exact, live, threshold)
        if opinion is not None:
            if exact.score < threshold <= opinion.cover:
                nearly = frozenset(map(self.hash_clause, opinion.near))
                match = Match(exact.owner, opinion.cover, exact.shared | nearly)
                other = OTHER_NUMBERS if opinion.other_numbers else ""
            if opinion.other_names:
                other = OTHER_NAMES
        if match.score < threshold:
            return match, BELOW_THRESHOLD
        if has_other_numbers(page.fingerprint, match.owner):
            return match, OTHER_NUMBERS
        if is_residue(page, match.owner):
            return match, RESIDUE
        return match, other

    def _compare(self, page: Page, exact: Match, live: AbstractSet[bytes], threshold: float) -> Comparison | None:
        """Return the second opinion, or ``None`` where it could not change the verdict, or would take too long."""
        owner, score = exact.owner, exact.score
        could_cover = page.fingerprint.weight >= LITTLE_TEXT_WEIGHT and len(owner.hashes) >= _FEWEST_CLAUSES * len(live)
        if score == 1 or (score < threshold and not could_cover) or sum(map(len, page.paragraphs)) > MOST_CHARACTERS:
            return None
        text = self.index.text(owner.number)
        if not text:
            return None
        return compare(
            page.paragraphs,
            text,
            votes=lambda clause: self.hash_clause(clause) in live,
            says=lambda clause: self.hash_clause(clause) in owner.hashes,
        )

    def _in_scope(self, owner: StoredPage, page: Page) -> bool:
        if self.lease is not None and datetime.fromisoformat(owner.time) < datetime.now(timezone.utc) - self.lease:
            return False
        return self.scope is Scope.STORE or owner.run == page.run

    def _is_best(self, owner: StoredPage) -> bool:
        return owner.delivery.has_reached(self.feeds) and (not self.preferred_hosts or self._is_preferred(owner.url))

    def _is_preferred(self, url: str) -> bool:
        return bool(self.preferred_hosts) and is_under(host_of(url), self.preferred_hosts)

    def _still_duplicate(self, page: Page, own: StoredPage, threshold: float) -> Verdict | None:
        """Return the verdict of an earlier crawl while both the page and its owner are as they were.

        What is boilerplate changes as a store grows; a recrawl must not deliver other pages for that.
        """
        owner = self.index.page(own.owner) if own.owner is not None else None
        if owner is None or not owner.is_owner_of(own) or own.score < round(threshold, 4):
            return None
        if not self._in_scope(owner, page):
            return None
        match = Match(owner, own.score, owner.hashes & page.fingerprint.weights.keys())
        return Verdict(VerdictKind.DUPLICATE, match, _how(page, match, nearly=False))


def _how(page: Page, match: Match, *, nearly: bool) -> str:
    """Return what else a record should say of a duplicate."""
    elsewhere = host_of(page.url) != host_of(match.owner.url)
    return ", ".join([NEARLY] * nearly + [ANOTHER_HOST] * elsewhere)


def has_other_numbers(fingerprint: Fingerprint, owner: StoredPage) -> bool:
    """Tell whether the page says a sentence of *owner* with other numbers: a daily report, a price, a score."""
    return any(
        skeleton in owner.skeletons and clause_hash not in owner.hashes
        for clause_hash, skeleton in fingerprint.skeletons.items()
    )


def is_repeated(fingerprint: Fingerprint, owner: StoredPage, threshold: float) -> bool:
    """Tell whether *owner* says what one item of a duplicate page says."""
    return cover(fingerprint.weights, owner.hashes) >= threshold and not has_other_numbers(fingerprint, owner)


def is_something_else(fingerprint: Fingerprint, match: Match) -> bool:
    """Tell whether the one item of a page that repeats *match* is mainly about what the owner does not say."""
    # What the page says nearly as the owner does is in the match, and not in the owner.
    said = match.shared | match.owner.hashes
    return fingerprint.weight >= MIN_LIVE_WEIGHT and cover(fingerprint.weights, said) < RELATED_THRESHOLD


def with_surroundings(page: Page, title: str, numbers: Callable[[], Collection[str]]) -> Page:
    """Return *page* with what :func:`is_residue` asks; *numbers* is asked for only where the text is little."""
    has_little = page.fingerprint.weight < LITTLE_TEXT_WEIGHT
    hashes = frozenset(map(fast_hash, numbers())) if has_little else None
    return replace(page, around=Surroundings(fast_hash(one_line(title)), hashes))


def is_residue(page: Page, owner: StoredPage) -> bool:
    """Tell whether *page* has so little text that its owner's, on the same host, may be what both have in common only.

    Walls, directory entries, price tables under one notice. Another address of the same page (a session id) differs in
    its query only, and has the same title and no other numbers.
    """
    if page.around is None or owner.around is None or page.fingerprint.weight >= LITTLE_TEXT_WEIGHT:
        return False
    if host_of(page.url) != host_of(owner.url):
        return False
    here, there = urlsplit(page.url), urlsplit(owner.url)
    has_other = bool((page.around.numbers or frozenset()) - (owner.around.numbers or frozenset()))
    return here.path != there.path or page.around.title != owner.around.title or has_other


def cover(weights: Mapping[bytes, int], said: AbstractSet[bytes]) -> float:
    """Return the share of a text's weight that is in the clauses *said*, 0-1; 0 for a text without telling clauses."""
    total = sum(weights.values())
    return sum(w for h, w in weights.items() if h in said) / total if total else 0.0
