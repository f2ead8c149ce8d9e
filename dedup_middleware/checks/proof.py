"""Decides whether a subject is proved a copy of an original: compares them once, and reads the table."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, chain
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.checks.edits import Context, Original, compare
from dedup_middleware.checks.lists import is_free_line
from dedup_middleware.checks.naming import is_host, name_of, row_of, title_edits
from dedup_middleware.checks.subject import Subject, has_other_template, is_same_page, relation_of
from dedup_middleware.checks.table import COPY, Edit, Kind, Relation, rejection_of
from dedup_middleware.common.urls import host_of
from dedup_middleware.extraction.features import MAX_TITLE, all_facts, facts_of, is_passing, text_hash
from dedup_middleware.fingerprints import fast_hash
from dedup_middleware.index import shown
from dedup_middleware.items.item_values import is_url, whole_of
from dedup_middleware.items.reading import ANY_CLASS, HAS_TEXT, IS, hash_of
from dedup_middleware.model import STORED_TEXT_BYTES, TEXT_LIMIT, PageFeatures, Rejection, is_cut
from dedup_middleware.reasons import Reason
from dedup_middleware.text import titles
from dedup_middleware.text.addresses import has_other_version, is_view
from dedup_middleware.text.clauses import ENDS, SHORT, clauses, folded, weight
from dedup_middleware.text.words import (
    are_letters,
    is_unspaced,
    numbers_in,
    terms,
    tokens,
    without_credits,
    without_links,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from dedup_middleware.checks.table import CopyRules
    from dedup_middleware.index.lookup import Lookup
    from dedup_middleware.items.item_values import Value
    from dedup_middleware.model import StoredPage

#: A text lighter than this, in letters (200 Han characters), may be a wall that all URLs of a site show.
LITTLE_TEXT_WEIGHT = 600
#: Share of the longer words of another headline, by weight, that the original's text must have.
SHARED_TITLE = 0.4
# Digits of a number that is hardly found in a text by chance.
_LONG_NUMBER = 3
# Characters of a word that tells what a text is about.
_LONG_WORD = 4


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
    rules: CopyRules
    least: float = 0.0
    """Of texts with less in common, 0 to 1, only the first edit that decides is named, and the score is a bound."""
    read: dict[tuple[str, bool], Any] = field(default_factory=dict)
    """The sentences of the subject that were read, for its next original."""

    def check(self, subject: Subject, original: StoredPage, score: float, counted: AbstractSet[bytes]) -> Proof:
        """Return whether *subject* is a copy of *original*.

        *score* is the share of its clauses that the original has, and *counted* are those that count: boilerplate does
        not. Two reads at most; O(words that differ, squared) where the texts differ.
        """
        relation, there = relation_of(subject.page, original), _There(self.lookup, subject, original)
        if there.has_no_text:
            return Proof(score, Rejection(Reason.ORIGINAL_ITEM_HAS_NO_TEXT))
        if subject.page.fingerprint.is_whole and not subject.is_item:
            return self._little(subject, there)
        if relation is Relation.SAME_SITE:
            return self._equal(subject, there, score)
        return self._compared(subject, there, relation, score, counted)

    def _compared(
        self, subject: Subject, there: _There, relation: Relation, score: float, counted: AbstractSet[bytes]
    ) -> Proof:
        """Return whether what differs is allowed by the table."""
        allowed = self.rules.allowed(relation)
        around = self._content if relation is Relation.SAME_ADDRESS else self._untold
        parts = [self._names(subject, there, relation), self._values(subject, there, relation)]
        if relation is Relation.SAME_ADDRESS or not subject.is_item:
            parts.append(around(subject, there))
        edits = [*_named(chain.from_iterable(parts), allowed, are_all=score >= self.least)]
        rejection = rejection_of(edits, allowed)
        if rejection is not None or there.has_text_of(subject):
            return Proof(score if rejection else 1.0, rejection, tuple(edits))
        if self.rules.threshold == 1:
            is_all = subject.weights.keys() <= there.hashes
            return Proof(score, None if is_all else Rejection(Reason.BELOW_THRESHOLD), tuple(edits))
        lines, other = ([*without_links(without_credits(each))] for each in (subject.lines, there.lines))
        if not subject.is_item:
            lines = [line for line in lines if not there.is_known(line)]
        known = Original(other, (there.features.title, there.features.heading))
        context = self._context(subject, there.page, relation, counted)
        found = compare(lines, known, context)
        edits += found.edits
        rejection = rejection_of(found.edits, allowed)
        if relation is Relation.SAME_ADDRESS and rejection is not None:
            return Proof(score, rejection, tuple(edits))
        if found.score < self.rules.threshold:
            rejection = Rejection(Reason.BELOW_THRESHOLD)
        elif relation is Relation.SAME_ADDRESS and not there.has_letters_of(subject) and is_cut(there.lines):
            # The text goes on beyond what is stored.
            rejection = Rejection(Reason.EXTRA_TEXT)
        return Proof(found.score, rejection, tuple(edits))

    def _context(
        self, subject: Subject, original: StoredPage, relation: Relation, counted: AbstractSet[bytes]
    ) -> Context:
        """Return what the store has beside the two texts."""
        is_same_address = relation is Relation.SAME_ADDRESS

        def counts(sentence: str) -> bool:
            hashes = [self.hash_clause(clause) for clause, weight in clauses(sentence) if weight]
            return not hashes or not counted.isdisjoint(hashes)

        return Context(
            # At the same address a name and a slip are as good as any other word.
            known=(lambda: None) if is_same_address else partial(self.lookup.known_words.beside, original.number),
            counts=None if subject.is_item or subject.weights.keys() <= counted else counts,
            is_sites=partial(shown.has_line, self.lookup.shown_on(subject.page.url)),
            is_originals=partial(shown.has_line, self.lookup.shown_on(original.url)),
            has_frame=not subject.is_item,
            is_view=not subject.is_item and is_same_address and has_other_template(subject.page, original),
            allowed=COPY[relation] if is_same_address else None,
            read=self.read,
            now=time(),
            least=0.0 if is_same_address else self.least,
        )

    # --- little text

    def _little(self, subject: Subject, there: _There) -> Proof:
        """Return whether a page with little text, which is one clause with all that it shows, is the same page."""
        if not subject.weights.keys() <= there.hashes or not is_same_page(subject.page, there.page):
            return Proof(0.0, Rejection(Reason.BELOW_THRESHOLD))
        edits = (*self._values(subject, there, Relation.SAME_ADDRESS),)
        return Proof(1.0, rejection_of(edits, self.rules.allowed(Relation.SAME_ADDRESS)), edits)

    # --- another address of one site

    def _equal(self, subject: Subject, there: _There, score: float) -> Proof:
        """Return whether everything is equal as it is written, and nothing beside it is the page's own.

        What stands around the text is its own if the original has not shown it, nor several pages of the site.
        """
        parts = (
            self._own_text(subject, there),
            self._names(subject, there, Relation.SAME_SITE),
            (Edit(Kind.VALUE, written) for _, written in there.missing(subject)),
            self._own_content(subject, there),
        )
        allowed = self.rules.allowed(Relation.SAME_SITE)
        edits = [*_named(chain.from_iterable(parts), allowed, are_all=score >= self.least)]
        rejection = rejection_of(edits, allowed)
        if rejection is None and not subject.is_item and subject.page.fingerprint.weight < LITTLE_TEXT_WEIGHT:
            # Where the site has shown several texts, it is no wall, and what is in its frame is known.
            has_texts = shown.is_frame(self.lookup.shown_on(subject.page.url), shown.PAGES)
            rejection = None if has_texts else Rejection(Reason.DIFFERENT_URL_SHORT_TEXT)
        return Proof(score if rejection else 1.0, rejection, tuple(edits))

    def _own_text(self, subject: Subject, there: _There) -> Iterator[Edit]:
        """Yield the lines of the text that are not in the original; an empty edit if the text is another one.

        Beside the text of an item, its page may show lines of the frame.
        """
        page, text = subject.page, self.lookup.text(there.page.number)
        known = {*text, *there.lines}
        own = [line for line in subject.lines if line not in known]
        if subject.is_item:
            # Its lines may break elsewhere.
            told = _Told(there.lines)
            is_equal = told.has(subject.lines)
            own = [] if is_equal else [line for line in own if not told.has([line])]
            known.update(line for each in subject.lines for line in each.split("\n"))
            site = self.lookup.shown_on(page.url)
            own += [
                line
                for line in page.paragraphs
                if line not in known and not is_free_line(line) and not shown.is_frame_line(site, line)
            ]
        else:
            is_equal = there.has_text_of(subject)
        yield from (Edit(Kind.ADDED, line, "", line) for line in own)
        if not is_equal and not own:
            yield Edit(Kind.ADDED, "")

    def _own_content(self, subject: Subject, there: _There) -> Iterator[Edit]:
        """Yield what the page shows around its text that neither the original nor several pages of its site show."""
        here, other = subject.page.features or PageFeatures(), there.features
        site = self.lookup.shown_on(subject.page.url)
        known = {*map(text_hash, there.lines), *map(text_hash, subject.page.paragraphs)}
        texts = {h for h in here.texts - known if h[:STORED_TEXT_BYTES] not in other.texts}
        facts = here.facts - other.facts
        # A word that is struck out in one of the two pages, a raised digit.
        own = {h for h in texts | facts | (here.marks ^ other.marks) if not shown.is_frame(site, h)}
        if own and own <= facts:
            own = own.difference(map(fast_hash, all_facts(there.lines)))
        if own:
            line = next(
                (
                    each
                    for each in here.lines
                    if text_hash(each) in own or not own.isdisjoint(map(fast_hash, facts_of(each)))
                ),
                "",
            )
            yield Edit(Kind.CONTENT, line, "", line)

    # --- what a subject is called

    def _names(self, subject: Subject, there: _There, relation: Relation) -> Iterator[Edit]:
        """Yield how the titles of *subject* differ from those of its original."""
        here, other = subject.page.features or PageFeatures(), there.features
        names: list[Sequence[str]] = [subject.names, (other.title, other.heading)]
        if relation is Relation.SAME_ADDRESS:
            # Versions of a document have their numbers in their titles.
            names = [[*map(titles.without_versions, each)] for each in names]
        if _has_same_headline(*names):
            return
        urls = subject.page.url, there.page.url
        site = _Site([*map(self.lookup.shown_on, urls)], {*map(titles.row_of, here.site_names)}, relation)
        # By what a name is without the site's words: as it is written.
        ours, theirs = (
            {bare: name for name in each if (bare := site.bare(name, host_of(url)))}
            for each, url in zip(names, urls, strict=True)
        )
        if _has_same_headline(ours, theirs):
            return
        for name in ours:
            row = row_of(name)
            is_around = not any(map(str.isdecimal, name)) and (there.is_around(name) or there.has_line(row))
            if is_around or (titles.is_headline(row) and there.contains(name)):
                continue
            for edit in title_edits(name, theirs):
                if edit.there or not there.tells(edit.here):
                    is_about = edit.kind is not Kind.HEADLINE or _is_about(name, there.lines)
                    kind = edit.kind if is_about else Kind.TITLE
                    # A title as a whole is shown with the words that are the site's.
                    own, other_name = (edit.here, edit.there) if edit.line else (ours[name], theirs[edit.there])
                    yield Edit(kind, own, other_name, edit.line)

    # --- short values

    def _values(self, subject: Subject, there: _There, relation: Relation) -> Iterator[Edit]:
        """Yield the short values of *subject* that the original's items have not."""
        own = there.missing(subject)
        if not own:
            return
        texts = _shown(subject)
        for value, written in own:
            is_no_edit = value is not None and (
                # Headlines are compared as such, see `_names`.
                value.is_headline
                or (
                    not _is_given(value, subject.page.url, *texts)
                    and (
                        is_view(value.words, subject.page.url, there.page.url)
                        if relation is Relation.SAME_ADDRESS
                        else self._is_known(subject, there, value)
                    )
                )
            )
            if not is_no_edit:
                yield Edit(Kind.VALUE, written)

    def _is_known(self, subject: Subject, there: _There, value: Value) -> bool:
        """Return whether the original shows *value*, or it is of the publication: a link, a date, a section's name.

        What stands in a field in which the original has another value is neither, but for the name of the site: "Part
        time" is no section, for "Full time".
        """
        if is_url(value.written) or (is_passing(value.written) and not value.is_to_come):
            return True
        features, url = subject.page.features or PageFeatures(), subject.page.url
        site = self.lookup.shown_on(url)
        is_frame = shown.is_frame_line(site, value.written) or shown.is_frame(site, text_hash(value.written))
        is_sites = is_frame and are_letters("".join(value.written.split()))
        if not (is_sites or there.shows(value)):
            return False
        names = map(titles.row_of, features.site_names)
        is_name = value.words in names or is_host(value.written, host_of(url)) or shown.is_name(site, value.written)
        return is_name or not there.gives(value.field)

    # --- what stands around a text

    @staticmethod
    def _untold(subject: Subject, there: _There) -> Iterator[Edit]:
        """Yield what a page shows around its text, if that is a notice or comments, which prove nothing of the rest."""
        here = subject.page.features or PageFeatures()
        if here.is_boilerplate:
            known = {*map(text_hash, there.lines), *map(text_hash, subject.lines)}
            own = {h for h in here.texts - known if h[:STORED_TEXT_BYTES] not in there.features.texts}
            if own:
                line = next((each for each in here.lines if text_hash(each) in own), "")
                yield Edit(Kind.CONTENT, line, "", line)

    @staticmethod
    def _content(subject: Subject, there: _There) -> Iterator[Edit]:
        """Yield whether a view shows facts of its own around its text, or a version other pictures."""
        here = subject.page.features or PageFeatures()
        own = here.facts - there.features.facts
        is_other = has_other_version(subject.page.url, there.page.url) and here.marks != there.features.marks
        if is_other or (own and not own <= {*map(fast_hash, all_facts(there.lines))}):
            yield Edit(Kind.CONTENT, "")


class _There:
    """An original as a subject is compared with it."""

    def __init__(self, lookup: Lookup, subject: Subject, original: StoredPage) -> None:
        self.page = original
        self.features = original.features or PageFeatures()
        self._lookup = lookup
        self._content = original.item_content
        is_page = not subject.is_item or self._content is None or bool(original.source)
        self.hashes = original.hashes if is_page or self._content is None else self._content.hashes
        # What the items of an open claim contain is known once it has ended: until then they may have the page's text.
        self._is_item = subject.is_item and not original.pending
        self._lines: Sequence[str] | None = None
        self._row = ""

    @property
    def has_no_text(self) -> bool:
        """Whether its items, to which an item is compared, have no text."""
        has_text = bool(self.page.source) or (self._content is not None and self._content.has_text)
        return self._is_item and not has_text

    @property
    def lines(self) -> Sequence[str]:
        """The text that the subject is compared with: of its items, or of the page. One read."""
        if self._lines is None:
            is_item = self._is_item
            self._lines = self._lookup.items_of(self.page)[0] if is_item else self._lookup.text(self.page.number)
        return self._lines

    def has_text_of(self, subject: Subject) -> bool:
        """Return whether the text of *subject* is equal as it is written; beyond what is stored, in its letters."""
        end = TEXT_LIMIT if self.has_letters_of(subject) else None
        return "\n".join(subject.lines)[:end] == "\n".join(self.lines)[:end]

    def has_letters_of(self, subject: Subject) -> bool:
        """Return whether the whole text, beyond what is stored of it too, has the letters of the original's."""
        if subject.is_item:
            return is_cut(self.lines) and subject.weights.keys() == self.hashes
        digest = subject.page.fingerprint.exact_digest
        return digest != b"" and digest == self.page.exact_digest

    def missing(self, subject: Subject) -> list[tuple[Value | None, str]]:
        """Return what the item of *subject* has and that of the original's items has not that is most like it.

        Each with how it is shown; ``None`` for what is no short value. Nothing where the original's items are unknown.
        """
        item, known = subject.item, self._content
        # A page may have thousands of rows, and so may its copy.
        if item is None or known is None or item.hashes() in known.items:
            return []
        items: Iterable[AbstractSet[bytes]] = known.items
        if subject.is_item:
            # Of several texts, one that differs may be that of any.
            texts = [each for each in items if HAS_TEXT in each]
            items = [each for each in texts if item.text_hash in each] or (texts if len(texts) == 1 else ())
        own: dict[bytes, tuple[Value | None, str]] = {
            hash_of(value): (value, f"{value.field}{IS}{value.written}") for value in item.values
        }
        if item.kind:
            own[item.class_hash] = None, f"class{IS}{item.kind}"
        shared = ((own.keys() & each, each) for each in items)
        # Sorted, for the order of a set is another one in each process.
        best = max(shared, key=lambda found: (len(found[0]), sorted(found[0])), default=None)
        if best is None:
            return [(None, f"text{IS}{subject.lines[0] if subject.lines else ''}")]
        missing = [shown for hash_, shown in own.items() if hash_ not in best[0]]
        if ANY_CLASS in best[1]:
            missing = [shown for shown in missing if shown[0] is not None]
        # A text that stands in another field: "before" and "after".
        elsewhere = known.values if item.fields else frozenset()
        return missing + [(None, f) for f, both, alone in item.fields if both not in elsewhere and alone in elsewhere]

    def gives(self, field: str) -> bool:
        """Return whether the items of the original have a value in *field*. Two reads."""
        return any(line.startswith(f"{field}{IS}") for line in self._lookup.items_of(self.page)[1])

    def contains(self, words: str) -> bool:
        """Return whether the text has these *words* of a title, in their order."""
        self._row = self._row or titles.row_of_all(self.lines)
        return f" {row_of(words)} " in self._row

    def has_line(self, row: str) -> bool:
        """Return whether a line of the text by itself has these words, a heading in it for one."""
        return any(len(line) <= SHORT and row_of(line) == row for line in self.lines)

    def tells(self, words: str) -> bool:
        """Return whether the text has these *words* of a title, or their numbers, if these are long ones."""
        numbers = numbers_in(row_of(words).split())
        is_long = bool(numbers) and all(len(number) >= _LONG_NUMBER for number in numbers)
        return self.contains(words) or (is_long and all(map(self.contains, numbers)))

    def shows(self, value: Value) -> bool:
        """Return whether the original has *value* anywhere, for one in another field."""
        texts = [self.features.title, self.features.heading, *self.lines]
        is_shown = f" {value.words} " in titles.row_of_all(texts) and _stands_in(
            value.whole, whole_of("\n".join(texts))
        )
        return is_shown or self.is_around(value.written)

    def is_around(self, line: str) -> bool:
        """Return whether *line*, with its facts, stands around the original's main text."""
        is_there = any(map(str.isalpha, line)) and text_hash(line)[:STORED_TEXT_BYTES] in self.features.texts
        return is_there and self.features.facts.issuperset(map(fast_hash, facts_of(line)))

    def is_known(self, line: str) -> bool:
        """Return whether *line* is no text: words for a view, a title of the original, what stands around its text."""
        is_view_word = not titles.without_view(line) and any(map(str.isalnum, line))
        # "3/5", "page 2".
        is_view_word = is_view_word and all(map(self.contains, numbers_in(tokens(folded(line)))))
        if is_view_word or self.is_around(line):
            return True
        row = titles.row_of(line) if len(line) <= MAX_TITLE else ""
        return bool(row) and f" {row} " in titles.row_of_all([self.features.title, self.features.heading])


class _Site(NamedTuple):
    """What the titles of two pages may have of their sites."""

    shown: Sequence[Mapping[bytes, bytes]]
    called: AbstractSet[str]
    """The rows of what the subject's page says that its site is called."""
    relation: Relation

    def bare(self, name: str, host: str) -> str:
        """Return *name* without the parts and words that are the site's of a *host*."""
        if self.relation is Relation.SAME_SITE:
            # The parts of sections, too: at another address only these may differ.
            own = [p for p in titles.parts(name) if not any(shown.is_frame_part(site, p) for site in self.shown)]
            name = " - ".join(own) or name
        return name_of(name, self._is_part, self._is_word, host)

    def _is_part(self, part: str) -> bool:
        return titles.row_of(part) in self.called or any(shown.is_name(site, part) for site in self.shown)

    def _is_word(self, word: str) -> bool:
        return any(shown.has_word(site, word) for site in self.shown)


def _named(edits: Iterable[Edit], allowed: AbstractSet[Kind], *, are_all: bool) -> Iterator[Edit]:
    """Yield the *edits*: all, or up to the first one that a copy may not have, which decides."""
    for edit in edits:
        yield edit
        if not are_all and edit.kind not in allowed:
            return


def _has_same_headline(names: Iterable[str], others: Iterable[str]) -> bool:
    return any(map(titles.is_headline, {*map(row_of, names)} & {*map(row_of, others)}))


def _is_about(headline: str, lines: Iterable[str]) -> bool:
    """Return whether a text has most of the longer words of a *headline*, by weight."""
    words = {term for term in terms(folded(headline)) if len(term) >= _LONG_WORD or is_unspaced(term)}
    return weight("".join(words & {*terms(folded("\n".join(lines)))})) >= SHARED_TITLE * weight("".join(words))


class _Told:
    """A text in which others are looked for, wherever its lines break."""

    def __init__(self, lines: Iterable[str]) -> None:
        told = [f" {' '.join(line.split())}" for line in lines]
        self._text = f"{''.join(told)} "
        self._edges = {0, *accumulate(map(len, told))}

    def has(self, lines: Iterable[str]) -> bool:
        """Return whether the text has these *lines* in a row, each of them whole: no half of a sentence."""
        wanted = f" {' '.join(' '.join(line.split()) for line in lines)} "
        start = self._text.find(wanted)
        return start >= 0 and self._is_edge(start) and self._is_edge(start + len(wanted) - 1)

    def _is_edge(self, place: int) -> bool:
        before = self._text[max(0, place - _MARKS) : place].rstrip("”’」』\"')）")
        return place in self._edges or before[-1:] in ENDS


# Characters before a place that may be the mark of a sentence, and quotes and brackets behind that.
_MARKS = 4


def _shown(subject: Subject) -> tuple[str, str]:
    """Return what the page of *subject* shows, and the words of that."""
    features = subject.page.features or PageFeatures()
    text = "\n".join([features.title, features.heading, *features.lines, *subject.page.paragraphs])
    return text, titles.row_of_all([text])


# What makes another value of one right beside it: "-5", "1/2", "2.5", "50%".
_BEFORE, _AFTER = r"(?<![-+/^~<>])(?<!\d[.,:])", r"(?![-/^%°>]|[.,:]\d)"


def _stands_in(whole: str, text: str) -> bool:
    """Return whether a value stands in *text* by itself, and is no part of another one."""
    return re.search(f"{_BEFORE}{re.escape(whole)}{_AFTER}", text) is not None


def _is_given(value: Value, url: str, text: str, words: str) -> bool:
    """Return whether *value* is content that its page does not show: it was given by another page, or a program."""
    if is_url(value.written):
        return False
    row = f" {value.words} " if value.words else ""
    if row and row in titles.row_of_all([url]):
        return False
    return not (row in words and all(sign in text for sign in value.signs))
