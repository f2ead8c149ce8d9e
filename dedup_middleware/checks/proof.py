"""Decides whether a subject is proved a copy of an original: compares them once, and reads the table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.checks.address import has_other_version, is_view, names_other
from dedup_middleware.checks.edits import Original, compare
from dedup_middleware.checks.item_values import is_url
from dedup_middleware.checks.naming import is_headline, name_of, row_of, title_edits
from dedup_middleware.checks.subject import Subject, has_other_template, relation_of
from dedup_middleware.checks.table import COPY, REWORDED, Edit, Kind, Relation, rejection_of
from dedup_middleware.common.urls import host_of
from dedup_middleware.extraction.features import MAX_TITLE, all_facts, facts_of, text_hash
from dedup_middleware.fingerprints import fast_hash
from dedup_middleware.model import STORED_TEXT_BYTES, TEXT_LIMIT, PageFeatures, Rejection, is_cut
from dedup_middleware.reasons import Reason
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import clauses, cut_to, folded, weight
from dedup_middleware.text.words import are_letters, is_unspaced, terms, without_credits, without_links

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from dedup_middleware.checks.item_values import Value
    from dedup_middleware.index.lookup import Lookup
    from dedup_middleware.model import StoredPage

#: A text lighter than this, in letters (200 Han characters), may be a notice or a wall that many URLs show.
LITTLE_TEXT_WEIGHT = 600
# Characters of a line that another template adds to a text: "Ingredients", "Back to the newsroom".
_MAX_LABEL = 30


class Proof(NamedTuple):
    """What the comparison of a subject with an original has found."""

    score: float
    """The share of the subject's text that the original has, 0 to 1."""
    rejection: Rejection | None
    """Why it is no copy; ``None`` if it is proved to be one."""
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Prover:
    """Compares subjects with the originals of one index."""

    lookup: Lookup
    hash_clause: Callable[[str], bytes]
    threshold: float
    drops_reworded: bool = False

    def check(self, subject: Subject, original: StoredPage, score: float, counted: AbstractSet[bytes]) -> Proof:
        """Return whether *subject* is a copy of *original*.

        *score*: the share of its clauses that the original has, *counted*: those that count. Two reads at most.
        """
        relation = relation_of(subject.page, original)
        there = _There(self, subject, original)
        if there.has_no_text:
            return Proof(score, Rejection(Reason.ORIGINAL_ITEM_HAS_NO_TEXT))
        if relation is Relation.SAME_SITE:
            return self._equal(subject, there, score)
        allowed = COPY[relation] | (REWORDED if self.drops_reworded and relation is Relation.ACROSS else frozenset())
        edits = [*self._names(subject, there, relation), *self._values(subject, there, relation), *self._content(subject, there, relation)]
        if (rejection := rejection_of(edits, allowed)) is not None:
            return Proof(score, rejection, tuple(edits))
        if [*subject.lines] == [*there.lines]:
            return Proof(1.0, None, tuple(edits))
        if self.threshold == 1:
            is_all = subject.weights.keys() <= there.hashes
            return Proof(score, None if is_all else Rejection(Reason.BELOW_THRESHOLD))
        lines, other = self._lines(subject, there, relation)
        is_view = relation is Relation.SAME_ADDRESS and has_other_template(subject.page, original)
        found = compare(lines, Original(other, (there.features.title, there.features.heading)), has_frame=not subject.is_item, known=partial(self.lookup.vocabulary.beside, original.number), counts=self._counting(subject, counted), is_free=(partial(self._is_label, subject.page.url, is_view), partial(self._is_label, original.url, is_view)))
        edits += found.edits
        rejection = rejection_of(found.edits, allowed)
        score = found.score
        if rejection is None and score < self.threshold:
            rejection = Rejection(Reason.BELOW_THRESHOLD)
        if rejection is None and relation is not Relation.ACROSS and self._is_beyond_stored(subject, there):
            rejection = Rejection(Reason.EXTRA_TEXT)
        return Proof(score, rejection, tuple(edits))

    def _is_label(self, url: str, is_view: bool, line: str) -> bool:
        """Return whether the short *line* is a label of the site of *url*, or of a view of a page."""
        if is_view and len(line) < _MAX_LABEL and are_letters("".join(line.split())):
            return True
        return self.lookup.is_site_line(url, line)

    def _counting(self, subject: Subject, counted: AbstractSet[bytes]) -> Callable[[str], bool] | None:
        if subject.is_item or subject.weights.keys() <= counted:
            return None

        def counts(sentence: str) -> bool:
            hashes = [self.hash_clause(clause) for clause, weight in clauses(sentence) if weight]
            return not hashes or not counted.isdisjoint(hashes)

        return counts

    def _lines(self, subject: Subject, there: _There, relation: Relation) -> tuple[list[str], list[str]]:
        lines, other = ([*without_links(without_credits(each))] for each in (subject.lines, there.lines))
        if not subject.is_item:
            lines = [line for line in lines if not there.is_known(line)]
        return lines, other

    # --- another address of one site

    def _equal(self, subject: Subject, there: _There, score: float) -> Proof:
        """Return whether everything is equal as it is written, and nothing names a difference."""
        here, features = subject.page.features or PageFeatures(), there.features
        if names_other(here.named, there.page.url) or names_other(features.named, subject.page.url):
            return Proof(score, Rejection(Reason.DIFFERENT_CONTEXT))
        own = [line for line in subject.lines if line not in set(there.lines)]
        page = subject.page
        digest = page.fingerprint.exact_digest
        is_equal = digest != b"" and digest == there.page.exact_digest
        is_equal = is_equal and [*cut_to(page.paragraphs, TEXT_LIMIT)] == self.lookup.text(there.page.number)
        if subject.is_item:
            is_equal = is_equal and _joined(subject.lines) in _joined(there.lines)
        if not is_equal:
            return Proof(score, Rejection(Reason.EXTRA_TEXT, tuple(own)))
        values = [Edit(Kind.SHOWN, f"{v.field}: {v.written}") for v in subject.values if not there.has(v)]
        if (rejection := rejection_of(values, frozenset())) is not None:
            return Proof(score, rejection)
        if not (here.content == features.content != b"" and here.facts == features.facts):
            return Proof(score, Rejection(Reason.DIFFERENT_CONTEXT))
        if not subject.is_item and subject.page.fingerprint.weight < LITTLE_TEXT_WEIGHT:
            return Proof(score, Rejection(Reason.DIFFERENT_URL_SHORT_TEXT))
        return Proof(1.0, None)

    @staticmethod
    def _is_beyond_stored(subject: Subject, there: _There) -> bool:
        """Return whether a text goes on beyond what is stored, and is not equal to the original's there."""
        digest = subject.page.fingerprint.exact_digest
        if digest and digest == there.page.exact_digest:
            return False
        return is_cut(subject.lines) or is_cut(there.lines)

    # --- what a subject is called

    def _names(self, subject: Subject, there: _There, relation: Relation) -> Iterator[Edit]:
        here, named = subject.page.features or PageFeatures(), (there.features.title, there.features.heading)

        def is_sites(word: str) -> bool:
            return any(self.lookup.is_site_word(url, word) for url in (subject.page.url, there.page.url))

        if relation is Relation.SAME_ADDRESS:
            # Versions of a document have their numbers in their titles.
            named = tuple(map(titles.without_versions, named))
        theirs = [n for name in named if (n := name_of(name, there.features.heading, is_sites, host_of(there.page.url)))]
        names = map(titles.without_versions, subject.names) if relation is Relation.SAME_ADDRESS else subject.names
        ours = [n for name in names if (n := name_of(name, here.heading, is_sites, host_of(subject.page.url), named))]
        if any(map(is_headline, {*map(row_of, ours)} & {*map(row_of, theirs)})):
            return
        for name in ours:
            if not any(map(str.isdecimal, name)) and there.is_around(name):
                continue
            if is_headline(row_of(name)) and there.contains(name):
                continue
            for edit in title_edits(name, theirs):
                if not edit.there and there.contains(edit.here):
                    continue
                is_about = edit.kind is not Kind.HEADLINE or _is_about(name, there.lines)
                yield edit if is_about else edit._replace(kind=Kind.TITLE)

    # --- short values

    def _values(self, subject: Subject, there: _There, relation: Relation) -> Iterator[Edit]:
        shown = None
        names = {titles.row_of(part) for name in subject.names for part in titles.parts(name)}
        for value in subject.values:
            if there.has(value):
                continue
            if shown is None:
                shown = _shown(subject)
            kind = Kind.GIVEN if _is_given(value, subject.page.url, *shown) else Kind.SHOWN
            if kind is Kind.SHOWN and value.words in names:
                continue
            if kind is Kind.SHOWN and relation is not Relation.ACROSS and is_view(value.words, subject.page.url, there.page.url):
                continue
            yield Edit(kind, f"{value.field}: {value.written}")

    # --- what stands around a text

    def _content(self, subject: Subject, there: _There, relation: Relation) -> Iterator[Edit]:
        if relation is Relation.ACROSS:
            return
        here = subject.page.features or PageFeatures()
        own = here.facts - there.features.facts
        if has_other_version(subject.page.url, there.page.url) and here.marks != there.features.marks:
            yield Edit(Kind.CONTENT, "")
        elif own and not own <= set(map(fast_hash, all_facts(there.lines))):
            yield Edit(Kind.CONTENT, "")


class _There:
    """An original as a subject is compared with it."""

    def __init__(self, prover: Prover, subject: Subject, original: StoredPage) -> None:
        self.page = original
        self.features = original.features or PageFeatures()
        self._prover = prover
        content = original.item_content
        self._content = content
        self.hashes = original.hashes if not subject.is_item or content is None or original.source else content.hashes
        # What the items of an open claim contain is known once it has ended: until then they may have the page's text.
        self._is_item = subject.is_item and not original.pending
        self._lines: Sequence[str] | None = None
        self._row: str | None = None

    @property
    def has_no_text(self) -> bool:
        return self._is_item and not self.page.source and not (self._content is not None and self._content.has_text)

    @property
    def lines(self) -> Sequence[str]:
        if self._lines is None:
            lookup = self._prover.lookup
            if not self._is_item:
                self._lines = lookup.text(self.page.number)
            else:
                self._lines = lookup.item_text(self.page)
        return self._lines

    def has(self, value: Value) -> bool:
        """Return whether an item of the original has *value*; true where its items are unknown."""
        from dedup_middleware.checks.item_check import hash_of

        return self._content is None or hash_of(value) in self._content.values

    def is_around(self, line: str) -> bool:
        """Return whether *line*, with its facts, stands around the original's main text."""
        is_there = any(map(str.isalpha, line)) and text_hash(line)[:STORED_TEXT_BYTES] in self.features.texts
        return is_there and self.features.facts.issuperset(map(fast_hash, facts_of(line)))

    def contains(self, words: str) -> bool:
        """Return whether the text has these *words* of a title, in their order."""
        row = row_of(words)
        if self._row is None:
            self._row = titles.row_of_all(self.lines)
        return f" {row} " in self._row

    def is_known(self, line: str) -> bool:
        """Return whether *line* is no text: words for a view, a title of the original, what stands around its text."""
        if not titles.without_view(line) or self.is_around(line):
            return True
        row = titles.row_of(line) if len(line) <= MAX_TITLE else ""
        return bool(row) and f" {row} " in titles.row_of_all([self.features.title, self.features.heading])


def _is_about(headline: str, lines: Iterable[str]) -> bool:
    """Return whether a text has most of the longer words of a *headline*, by weight."""
    words = {term for term in terms(folded(headline)) if len(term) >= _LONG_WORD or is_unspaced(term)}
    return weight("".join(words & {*terms(folded("\n".join(lines)))})) >= SHARED_TITLE * weight("".join(words))


_LONG_WORD = 4
#: Share of these that the original of another headline must have.
SHARED_TITLE = 0.4


def _joined(lines: Iterable[str]) -> str:
    return f" {' '.join(' '.join(line.split()) for line in lines)} "


def _shown(subject: Subject) -> tuple[str, str]:
    features = subject.page.features or PageFeatures()
    shown = "\n".join([features.title, features.heading, *features.lines, *subject.page.paragraphs])
    return shown, titles.row_of_all([shown])


def _is_given(value: Value, url: str, shown: str, words: str) -> bool:
    """Return whether *value* is content that its page does not show: it was given by another page, or a program."""
    if is_url(value.written):
        return False
    row = f" {value.words} " if value.words else ""
    if row and row in titles.row_of_all([url]):
        return False
    return not (row in words and all(sign in shown for sign in value.signs))
