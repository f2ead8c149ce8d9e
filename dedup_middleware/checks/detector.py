"""Finds the candidates for a page, compares it with each, and returns the verdict. Recognises templates.

A template is a text that several pages of one host fill in, each with content of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import combinations, islice
from operator import attrgetter
from typing import TYPE_CHECKING

from dedup_middleware.checks import checklist
from dedup_middleware.checks.address import is_same_address, is_view_of
from dedup_middleware.checks.alignment import MAX_CHARACTERS, compare, containment, differences
from dedup_middleware.checks.checklist import LITTLE_TEXT_WEIGHT
from dedup_middleware.checks.page_changes import changes_of
from dedup_middleware.checks.pair import Pair, SiteNames, titled_as
from dedup_middleware.common.budget import UncheckableError
from dedup_middleware.common.urls import canonical_identities, host_of, origin_of
from dedup_middleware.index import schema
from dedup_middleware.index.lookup import Distinctive, own_template_id
from dedup_middleware.model import Changes, Match, PageFeatures, Rejection, Verdict, VerdictKind, is_cut
from dedup_middleware.reasons import Reason
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import as_written

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from dedup_middleware.checks.alignment import Comparison
    from dedup_middleware.common.urls import HostPattern
    from dedup_middleware.index.index import Index
    from dedup_middleware.index.lookup import Found, Lookup
    from dedup_middleware.model import Page, StoredPage

# Pages that are compared for one text; if these do not show a template, more are not tried.
_MAX_PAGES = 16
# Texts, of which most have one page: 1 kB each.
_MAX_KEPT = 1_000


class Templates:
    """The texts of one crawl for which pages with content of their own would be dropped, by :func:`template_id`."""

    def __init__(self) -> None:
        self.recognised: set[bytes] = set()
        """The keys of texts that are templates."""
        # Of each key: what each page adds, by the identity of the page.
        self._texts: OrderedDict[bytes, dict[bytes, frozenset[str]]] = OrderedDict()

    def has(self, page: Page, original: StoredPage) -> bool:
        """Return whether the text of *original*, or that of *page*, is a template on the host of *page*."""
        keys = self.recognised and {template_id(page, original), own_template_id(page)}
        return not self.recognised.isdisjoint(keys)

    def learn(self, pair: Pair, earlier: Callable[[bytes], Iterable[tuple[StoredPage, Sequence[str]]] | None]) -> bool:
        """Note that the page of *pair* would be dropped; return whether its original is a template by now.

        *earlier* returns the pages of earlier crawls that were dropped for the text with a key, each with its text, or
        ``None`` for a text that is a template; it is called once a text.
        """
        page, original = pair.page, pair.original
        own = _own(page, page.paragraphs, pair)
        if not own:
            return False
        key = template_id(page, original)
        if key not in self._texts:
            stored = earlier(key)
            if stored is None:
                self.recognised.add(key)
            self._texts[key] = {other.identities[0]: _own(other, text, pair) for other, text in stored or ()}
        fillings = self._texts[key]
        self._texts.move_to_end(key)
        while len(self._texts) > _MAX_KEPT:
            self._texts.popitem(last=False)
        is_new = page.identities[0] not in fillings and not any(own <= other for other in fillings.values())
        if is_new and len(fillings) < _MAX_PAGES:
            apart = [other for other in fillings.values() if _are_apart(own, other)]
            fillings[page.identities[0]] = own
            if any(_are_apart(one, other) for one, other in combinations(apart, 2)):
                self.recognised.add(key)
        return key in self.recognised

    def suspected_template(self, page: Page, original: StoredPage) -> bytes:
        """Return the key of the text that *page* would be dropped for and that may be a template.

        Empty where the text is a known template, and where the page adds nothing to *original*.
        """
        key = template_id(page, original)
        is_filling = page.identities[0] in self._texts.get(key, {})
        return key if is_filling and key not in self.recognised else b""


def template_id(page: Page, original: StoredPage) -> bytes:
    """Return 8 bytes that identify the text and title of *original* among those of the host of *page*."""
    title = "" if original.features is None else titles.main_part(original.features.title, original.features.heading)
    return schema.template_hash(host_of(page.url), original.digest, title)


def _are_apart(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether each of two pages adds what the other one lacks."""
    return not one <= other and not other <= one


def _own(page: Page | StoredPage, paragraphs: Sequence[str], pair: Pair) -> frozenset[str]:
    """Return what *page*, with this text, adds to the original of *pair*: clauses, parts of its title, and facts."""
    features = page.features or PageFeatures()
    called = titles.own_parts(features, pair.there, lambda: pair.text)
    edits = [] if [*paragraphs] == [*pair.text] else differences(paragraphs, pair.text)
    own = {" ".join(edit.here) for edit in edits if edit.here}
    return frozenset([*own, *map(titles.row_of, called), *map(bytes.hex, features.facts - pair.there.facts)])


#: Why a page that repeats another one is kept, and becomes the original.
REPLACES = (Reason.PREFERRED, Reason.CANONICAL)


@dataclass(frozen=True, slots=True)
class Preferences:
    """The pages that a project prefers."""

    preferred: Collection[HostPattern | re.Pattern[str]] = ()
    """Searched in URLs; one match is enough."""

    def include(self, url: str) -> bool:
        """Return whether the page at *url* is preferred."""
        return bool(self.preferred) and any(pattern.search(url) for pattern in self.preferred)

    def applied(self, page: Page, verdict: Verdict, index: Lookup) -> Verdict:
        """Return *verdict*; of a duplicate that is the better original, ``related`` with the reason."""
        if verdict.kind is not VerdictKind.DUPLICATE or verdict.match is None:
            return verdict
        original = verdict.match.original
        is_preferred, original_is_preferred = self.include(page.url), self.include(original.url)
        if is_preferred and not original_is_preferred:
            reason = Reason.PREFERRED
        elif is_preferred == original_is_preferred and is_canonical_of(page, original, index):
            reason = Reason.CANONICAL
        else:
            return verdict
        return Verdict(VerdictKind.RELATED, verdict.match, reason)


def is_canonical_of(page: Page, original: StoredPage, index: Lookup) -> bool:
    """Return whether *original* is a view of *page*, for print or phones: its ``rel=canonical`` names *page*.

    Both must have one origin, and *page* must name no other canonical URL. One or two gets.
    """
    features = page.features
    if features is None or features.canonical or original.pending or host_of(page.url) != host_of(original.url):
        return False
    return origin_of(page.url) == origin_of(original.url) and index.names(original, page.identities)


#: A page with less non-boilerplate text than this, in letters (50 Han characters), is not checked: bios, teasers and
#: walls share that much by chance.
MIN_DISTINCTIVE_WEIGHT = 150
#: From this share on a stored page is a candidate: a copy with edits in most of its clauses shares few of them.
CANDIDATE_SHARE = 0.02
# A stored page with fewer clauses than this share of the page's is too short to contain its text.
_MIN_CLAUSE_SHARE = 0.5
#: From this share on a page is related to another: worth a record, never a drop.
RELATED_THRESHOLD = 0.5
#: Candidates looked at for one page: where the best may not drop it (other numbers, out of scope), the next one may.
_MAX_MATCHES = 5
#: Dropped pages of earlier crawls that are looked at for one text.
_MAX_SUSPECTS = 16


@dataclass(frozen=True, slots=True)
class Examined:
    """How a page compares with one other."""

    url: str
    other_url: str
    verdict: Verdict
    score: float
    """The share of the page's text that the other one has, 0 to 1."""
    is_one_site: bool
    is_same_address: bool
    outcomes: tuple[tuple[str, Rejection | None], ...]
    """Each check that applies, with its rejection."""


@dataclass(frozen=True, slots=True)
class Detector:
    """Checks pages against the originals of one index."""

    index: Index
    hash_clause: Callable[[str], bytes]
    threshold: float
    """Least share of a page's non-boilerplate text in the original of a duplicate, above 0.5 and up to 1."""
    preferences: Preferences = field(default_factory=Preferences)
    """The pages that are preferred as originals."""
    names: SiteNames = field(default_factory=SiteNames)
    templates: Templates = field(default_factory=Templates)
    feeds: frozenset[str] = frozenset()
    """The kinds of the crawl's feeds: originals that have reached them all are preferred."""

    def check(self, page: Page, *, rejects: Callable[[StoredPage], object] = lambda _: None) -> Verdict:
        """Return the verdict on *page*. Reads the store, about 40 gets for a news page; notes its site and templates.

        *rejects* returns why an original is rejected for an item of the page, or ``None``. Unchecked once the budget is
        spent that watches the text of *page*.
        """
        if page.features is not None:
            self.names.note(host_of(page.url), page.features.title)
        try:
            return self._check(page, rejects)
        except UncheckableError as error:
            return Verdict(VerdictKind.UNCHECKED, reason=error.reason)

    def check_unread(self, page: Page) -> Verdict | None:
        """Return the verdict on an unread *page* that has not changed; ``None`` if it must be read.

        A duplicate stays one as long as its original is as it was. Unlike :meth:`check`, it notes nothing of the
        context: the store has only parts of its hashes.
        """
        known = page.known
        if known is None or known.features is None:
            return None
        verdict: Verdict | None = Verdict(VerdictKind.UNCHANGED) if self._may_drop(known, page) else None
        if known.original is not None:
            # Of little text, or of another detector, the store does not have what the verdict rests on.
            is_known = known.exact_digest and self.index.beside is None
            verdict = self._still_duplicate(page, known) if is_known else None
            if verdict is not None and self.preferences.applied(page, verdict, self.index) is not verdict:
                return None
        if verdict is not None:
            self.names.note(host_of(page.url), known.features.title)
        return verdict

    def check_stored(self, page: Page) -> Verdict:
        """Return the verdict on a *page* that was read again from the store: ``new`` if its clauses have no weights."""
        if not page.fingerprint.weight:
            return Verdict(VerdictKind.NEW)
        return self._check(page, lambda _: None)

    def check_pair(self, page: Page, candidate: Match, distinctive: Distinctive) -> Verdict:
        """Return the verdict on *page* if *candidate* were the only stored page; notes templates, and nothing else.

        *distinctive*: the clauses of *page* that are not boilerplate of its host.
        """
        return self._best(page, [candidate], distinctive, lambda _: None)

    def examine(self, page: Page, original: StoredPage) -> Examined:
        """Return the verdict on *page* if *original* were the only stored page, and what each check finds.

        For a person: it makes every check that applies, and takes twice the time of a verdict. The crawl's scope and
        expiry do not count, nor do overrides.
        """
        looked_up = self.index.look_up(page)
        distinctive = self.index.distinctive_clauses(page, looked_up)
        exact, counted = match_of(page, original, distinctive), distinctive.beside(original)
        match, rejection = self._look_closely(page, exact, counted)
        if not has_enough(page, distinctive) and not _shows_same(page, original):
            verdict = Verdict(VerdictKind.UNCHECKED, match, Reason.TOO_LITTLE_TEXT)
        elif rejection is None:
            verdict = Verdict(VerdictKind.DUPLICATE, match, _how(page, match, nearly=exact.score < self.least_score))
        else:
            kind = VerdictKind.RELATED if match.score >= RELATED_THRESHOLD else VerdictKind.NEW
            verdict = Verdict(kind, match, rejection.reason, rejection.difference)
        pair = self._pair_of(page, exact, counted)
        is_template = self.templates.has(page, original)
        # Of little text, all that is shown is one clause, and no check applies.
        checks = () if page.fingerprint.is_whole else checklist.checks_for(pair, is_template=is_template)
        found = [(check.__name__, check(pair)) for check in checks]
        outcomes = tuple(
            (name, each and Rejection(each.reason, tuple(as_written(page.paragraphs, each.difference))))
            for name, each in found
        )
        score = 1.0 if verdict.kind is VerdictKind.DUPLICATE and not counted else match.score
        return Examined(page.url, original.url, verdict, score, pair.is_one_site, pair.is_same_address, outcomes)

    def nearest(self, page: Page) -> Match | None:
        """Return the stored page that shares most with *page*, if any shares something, however little."""
        found = self.index.look_up(page)
        candidates = self._candidates(page, found, self.index.distinctive_clauses(page, found))
        return max(candidates, key=attrgetter("score"), default=None)

    @property
    def least_score(self) -> float:
        """The least score of a duplicate."""
        return self.threshold

    def suspected_template(self, page: Page, verdict: Verdict) -> bytes:
        """Return `Templates.suspected_template` after a *verdict* on *page*; empty unless that is a duplicate."""
        if verdict.kind is not VerdictKind.DUPLICATE or verdict.match is None:
            return b""
        return self.templates.suspected_template(page, verdict.match.original)

    def to_stored(self, page: Page, verdict: Verdict) -> Page:
        """Return *page* as it is stored: posting lists of clauses that its match has too lead to the match only.

        Those of all clauses lead to *page* if it replaces the match, or fills in a template of another host.
        """
        match = verdict.match
        if match is not None and verdict.reason in REPLACES:
            return replace(page, replaces=match.original)
        if match is None or (
            host_of(match.original.url) != host_of(page.url) and self.templates.has(page, match.original)
        ):
            return page
        return page.near(match, self.threshold)

    def _check(self, page: Page, rejects: Callable[[StoredPage], object]) -> Verdict:
        found = self.index.look_up(page)
        changes = self._changes(page, found.own)
        if changes is not None and not changes:
            return Verdict(VerdictKind.UNCHANGED)
        unchanged = [stored for stored in found.own if stored.digest == page.fingerprint.digest]
        numbers = [stored.number for stored in found.own]
        for stored in unchanged:
            verdict = None if stored.original in numbers else self._still_duplicate(page, stored)
            if verdict is not None and verdict.match is not None and not rejects(verdict.match.original):
                break
        else:
            verdict = self._check_text(page, found, rejects)
        verdict = self.preferences.applied(page, verdict, self.index)
        if changes is None:
            return verdict
        if verdict.kind is VerdictKind.UNCHECKED:
            # Too little text of its own to find another page by is enough to compare it with itself.
            verdict = Verdict(VerdictKind.NEW)
        kind = verdict.kind if verdict.kind is VerdictKind.DUPLICATE else VerdictKind.CHANGED
        return replace(verdict, kind=kind, changes=changes)

    def _changes(self, page: Page, own: Iterable[StoredPage]) -> Changes | None:
        """Return what has changed on *page* since the store got it; ``None`` if it has no text of its *own*.

        Of a page that was dropped, only a change counts: what has not changed is still to be compared with others.
        """
        known = [each for each in own if self._may_drop(each, page)]
        stored = min(known, key=lambda each: each.original is not None, default=None)
        if stored is None:
            return None
        is_equal = stored.digest == page.fingerprint.digest
        if page.source or stored.source or page.fingerprint.is_whole or stored.pending:
            # Of an item, and of little text, only digests are known.
            return Changes() if is_equal and stored.original is None else None
        # Of a page with several items, the store has their text.
        has_text = stored.exact_digest and not (is_equal and stored.original is not None)
        text = self.index.text(stored.number) if has_text else None
        found = changes_of(page, stored, text, is_cut=text is not None and is_cut(text))
        return found if found or stored.original is None else None

    def _check_text(self, page: Page, found: Found, rejects: Callable[[StoredPage], object]) -> Verdict:
        if page.fingerprint.is_whole:
            return self._check_whole(page, found, rejects)
        distinctive = self.index.distinctive_clauses(page, found)
        enough = has_enough(page, distinctive)
        candidates = self._candidates(page, found, distinctive) if enough else self._equals(page, found)
        best = self._best(page, candidates, distinctive, rejects)
        if best.kind is VerdictKind.NEW and not enough:
            return Verdict(VerdictKind.UNCHECKED, reason=Reason.TOO_LITTLE_TEXT)
        return best

    def _check_whole(self, page: Page, found: Found, rejects: Callable[[StoredPage], object]) -> Verdict:
        """Return the verdict on a *page* with little text: a copy of a page at its address that shows the same.

        At another address that may be a wall or a notice, which shows the same wherever it stands.
        """
        equal = (
            Match(original, 1.0, frozenset(page.fingerprint.weights))
            for original in self.index.shows_same(page, found, _MAX_MATCHES)
            if original.features == (page.features and page.features.stored())
            and is_same_address(page.url, original.url)
        )
        best = self._best(page, equal, Distinctive({}), rejects)
        is_copy = best.kind is VerdictKind.DUPLICATE
        return best if is_copy else Verdict(VerdictKind.UNCHECKED, reason=Reason.TOO_LITTLE_TEXT)

    def _candidates(self, page: Page, found: Found, distinctive: Distinctive) -> Iterator[Match]:
        """Yield candidates: pages with the same text, then those with some of the clauses, the best first."""
        seen = set()
        for equal in self._equals(page, found):
            seen.add(equal.original.number)
            yield equal
        matches = self.index.matches(page.fingerprint, distinctive, _MAX_MATCHES, least=CANDIDATE_SHARE)
        # A page may be listed for few of the clauses that it has, and be a look-alike of a page listed for the rest.
        best = [match_of(page, match.original, distinctive) for match in matches]
        best.sort(key=attrgetter("score"), reverse=True)
        yield from [match for match in best if match.original.number not in seen]

    def _equals(self, page: Page, found: Found) -> Iterator[Match]:
        """Yield the pages with the same text, boilerplate included."""
        if page.fingerprint.weight >= MIN_DISTINCTIVE_WEIGHT:
            for original in self.index.equals(page, found, _MAX_MATCHES):
                yield Match(original, 1.0, frozenset(page.fingerprint.weights))

    def _best(
        self,
        page: Page,
        candidates: Iterable[Match],
        distinctive: Distinctive,
        rejects: Callable[[StoredPage], object],
    ) -> Verdict:
        best = Verdict(VerdictKind.NEW)
        duplicate, rank = None, (False, False)
        for exact in candidates:
            if not self._may_drop(exact.original, page) or (page.source and exact.original.source == page.source):
                continue
            match, rejection = self._look_closely(page, exact, distinctive.beside(exact.original))
            if rejection is None and not rejects(match.original):
                how = _how(page, match, nearly=exact.score < self.least_score)
                verdict = Verdict(VerdictKind.DUPLICATE, match, how)
                if all(this := self._rank(match.original)):
                    return verdict
                if duplicate is None or this > rank:
                    duplicate, rank = verdict, this
            elif best.match is None and match.score >= RELATED_THRESHOLD and rejection is not None:
                best = Verdict(VerdictKind.RELATED, match, rejection.reason, rejection.difference)
        return duplicate or best

    def _look_closely(
        self, page: Page, exact: Match, distinctive: AbstractSet[bytes]
    ) -> tuple[Match, Rejection | None]:
        """Return the match, with the score by word-by-word comparison, and why the page is not a duplicate."""
        if page.fingerprint.is_whole:
            return exact, None
        pair = self._pair_of(page, exact, distinctive)
        match = replace(exact, score=pair.score, shared=pair.shared)
        has_all = self.threshold < 1 or page.fingerprint.weights.keys() <= match.original.hashes
        if match.score < self.threshold or not has_all:
            return match, Rejection(Reason.BELOW_THRESHOLD)
        rejection = self._first_rejection(pair)
        if rejection is None and self._is_beyond_stored(pair):
            rejection = Rejection(Reason.EXTRA_TEXT)
        return match, rejection

    def _pair_of(self, page: Page, exact: Match, distinctive: AbstractSet[bytes]) -> Pair:
        """Return *page* and its candidate as a pair, with the word-by-word comparison where that counts."""
        if is_view_of(exact.original.url, page.url):
            page = titled_as(page, exact.original)
        text = cache(partial(self.index.text, exact.original.number))
        pair = Pair(
            page,
            exact.original,
            self.names,
            text,
            self.hash_clause,
            distinctive,
            exact.shared,
            score=exact.score,
            find_canonical=partial(self._find_canonical, page, exact.original),
        )
        # On one site a copy has no word of its own, and nearly the same words are other words.
        return self._aligned(pair) if pair.are_items or not pair.is_one_site else pair

    def _is_beyond_stored(self, pair: Pair) -> bool:
        """Return whether a text on the original's site goes on beyond what is stored, and is not equal to that one's.

        Clauses have no symbols, so that only a digest shows whether the rest is equal.
        """
        if not pair.is_one_site or pair.has_same_letters:
            return False
        return is_cut(pair.page.paragraphs) or is_cut(pair.text)

    def _find_canonical(self, page: Page, original: StoredPage) -> bool:
        """Return whether *page* or *original* names the other as its canonical URL. One read at most."""
        is_named = not set(canonical_identities(page.features, page.url)).isdisjoint(original.identities)
        return is_named or self.index.names(original, page.identities)

    def _aligned(self, pair: Pair) -> Pair:
        """Return *pair* with the word-by-word comparison, where that can be made, and the better score."""
        comparison = self._compare(pair)
        if comparison is None or not pair.score < self.threshold <= comparison.containment:
            return replace(pair, comparison=comparison)
        shared = pair.shared.union(map(self.hash_clause, comparison.near))
        return replace(pair, comparison=comparison, score=comparison.containment, shared=shared, is_nearly=True)

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
        if self.index.is_template(template):
            return None
        suspects = islice(self.index.suspect_drops(template), _MAX_SUSPECTS)
        found = [other for other in suspects if self._may_drop(other, page)]
        return [(other, self.index.text(other.number)) for other in found]

    def _compare(self, pair: Pair) -> Comparison | None:
        """Return the word-by-word comparison, or ``None`` where it cannot change the verdict or takes too long."""
        page, original, distinctive, score = pair.page, pair.original, pair.distinctive, pair.score
        has_enough = len(original.hashes) >= _MIN_CLAUSE_SHARE * len(distinctive)
        could_contain = has_enough and page.fingerprint.weight >= LITTLE_TEXT_WEIGHT
        could_contain = could_contain and self.threshold < 1
        if (
            pair.has_same_text
            or (score < self.threshold and not could_contain)
            or sum(map(len, page.paragraphs)) > MAX_CHARACTERS
            or not pair.text
        ):
            return None
        return compare(
            page.paragraphs,
            pair.text,
            votes=lambda clause: self.hash_clause(clause) in distinctive,
            has=lambda clause: self.hash_clause(clause) in original.hashes,
            is_filtered=score < self.threshold,
        )

    def _may_drop(self, original: StoredPage, page: Page) -> bool:
        has_reach = self.index.eligibility.has(original, page.run)
        return has_reach and not self.index.overrides.mark(page.identities, original.identities)

    def _rank(self, original: StoredPage) -> tuple[bool, bool]:
        """Return how good an original is: the greater, the better, and ``(True, True)`` is the best."""
        is_preferred = not self.preferences.preferred or self.preferences.include(original.url)
        return is_preferred, original.kept.has_reached(self.feeds)

    def _still_duplicate(self, page: Page, own: StoredPage) -> Verdict | None:
        """Return the verdict of an earlier crawl if neither the page nor its original has changed.

        What is boilerplate changes as a store grows; a recrawl must not keep other pages for that.
        """
        original = self.index.page(own.original) if own.original is not None else None
        if original is None or not original.is_original_of(own) or own.score < round(self.least_score, 4):
            return None
        if not self._may_drop(original, page):
            return None
        match = Match(original, own.score, original.hashes & page.fingerprint.weights.keys())
        text, all_clauses = partial(self.index.text, original.number), page.fingerprint.weights.keys()
        pair = Pair(page, original, self.names, text, self.hash_clause, all_clauses, match.shared, score=own.score)
        if self.templates.has(page, original) or self._learns_template(pair):
            return None
        return Verdict(VerdictKind.DUPLICATE, match, _how(page, match, nearly=False))


def match_of(page: Page, original: StoredPage, distinctive: Distinctive) -> Match:
    """Return *original* as a match of *page*, by the clauses of that which count beside it."""
    weights = page.fingerprint.weights
    counted = {h: weights[h] for h in distinctive.beside(original)}
    return Match(original, containment(counted, original.hashes), original.hashes & weights.keys())


def has_enough(page: Page, distinctive: Distinctive) -> bool:
    """Return whether the text of *page* that not many pages contain is enough to find another one by."""
    weights = page.fingerprint.weights
    return sum(weights[h] for h in distinctive.holders if h not in distinctive.common) >= MIN_DISTINCTIVE_WEIGHT


def _shows_same(page: Page, original: StoredPage) -> bool:
    """Return whether a *page* with little text has the letters of *original*, or shows the same at its address."""
    fingerprint = page.fingerprint
    if not fingerprint.is_whole:
        return fingerprint.exact_digest != b"" and fingerprint.exact_digest == original.exact_digest
    has_same = original.features == (page.features and page.features.stored())
    return has_same and fingerprint.digest == original.digest and is_same_address(page.url, original.url)


def _how(page: Page, match: Match, *, nearly: bool) -> str:
    """Return the reason that a record has for a duplicate."""
    if nearly:
        return Reason.NEAR_MATCH
    return Reason.CROSS_HOST if host_of(page.url) != host_of(match.original.url) else ""
