"""Compares an item of a duplicate page with the kept items of the page's original.

The item is dropped only if they contain what it contains: its text, and on the original's site its short values too.
Across sites values differ as titles do, and a copy is the page that has the text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from dedup_middleware.checks.address import is_view, is_view_of, site_of
from dedup_middleware.checks.alignment import compare, containment
from dedup_middleware.checks.checklist import own_edits, own_title, replaced_words
from dedup_middleware.checks.detector import MIN_DISTINCTIVE_WEIGHT
from dedup_middleware.checks.item_values import WEB, Value, is_url, item_fields, item_values, prose_in, short_values
from dedup_middleware.checks.page_changes import UNKNOWN
from dedup_middleware.checks.pair import Pair, titled_as
from dedup_middleware.common.budget import UncheckableError
from dedup_middleware.common.urls import host_of
from dedup_middleware.common.values import is_markup
from dedup_middleware.fingerprints import fast_hash
from dedup_middleware.model import TEXT_LIMIT, Changes, ItemContent, PageFeatures, Rejection
from dedup_middleware.reasons import Reason
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import as_written, clauses, cut_to, portions, sentences, weight
from dedup_middleware.text.words import without_numbering

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from dedup_middleware.checks.detector import Detector
    from dedup_middleware.common.budget import Budget
    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.model import Fingerprint, Page, StoredPage

#: On so many pages a field has the same words before these are the site's.
SITE_PAGES = 3
# Fields that are remembered, of all sites.
MAX_FIELDS = 10_000
# What a program has made up: "N1234567890", "a1b2c3d4".
_IDENTIFIER = re.compile(r"(?=.*\d)(?=.*[a-zA-Z])[\w.~-]{8,}|[\d.]{9,}")
# Sentences that a record shows.
_MAX_SHOWN = 8
_DIGEST_BYTES = 8
# Between a field and its value, as a person reads it.
_IS = ": "


@dataclass(frozen=True, slots=True)
class ItemText:
    """What one item contains."""

    texts: Sequence[str]
    values: tuple[Value, ...]
    read: Callable[[], Fingerprint]
    """Returns the fingerprint of the texts; takes most of the time that an item takes, once."""
    raw: tuple[str, ...] = ()
    """What neither its texts nor its values have as it is written: markup, and values without words."""

    @property
    def fingerprint(self) -> Fingerprint:
        return self.read()

    @property
    def has_text(self) -> bool:
        """Whether the text is enough to be compared."""
        return self.read().weight >= MIN_DISTINCTIVE_WEIGHT


class ItemCheck:
    """Reads and compares items whose texts have *max_characters* in all at most, within the budgets of their pages."""

    def __init__(self, fingerprint: Fingerprinter, max_characters: int, fields: Iterable[str]) -> None:
        """Read the *fields* of items; all fields if empty."""
        self._fingerprint = fingerprint
        self._max_characters = max_characters
        self._fields = tuple(fields) or None
        # The words of a field that all items of a site had so far, and of how many; the latest last.
        self._of_site: dict[tuple[str, str], tuple[str, int]] = {}
        self.fields_not_found: set[str] | None = None
        """The named fields that none of the items had that were read; ``None`` before the first one."""

    def note_fields(self, item: Any) -> None:
        """Note which of the named fields *item* has."""
        if self._fields is not None:
            missing = set(self._fields).difference(item_fields(item) or ())
            self.fields_not_found = missing if self.fields_not_found is None else self.fields_not_found & missing

    def read(self, page: Page, item: Any, budget: Budget) -> ItemText:
        """Return what *item* of *page* contains, within its *budget*, by which the texts are watched.

        `UncheckableError` if it cannot be read. The text of an item of a page that was not read is most often what it
        was, and its fingerprint is made when something asks for it.
        """
        values = item_values(item, self._fields)
        self.note_fields(item)
        texts = [value for _, value in values if isinstance(value, str) and not value.startswith(WEB)]
        if sum(map(len, texts)) > self._max_characters:
            raise UncheckableError(Reason.TOO_LARGE)
        budget.check_clauses(len(values))
        budget.check_time()
        prose = without_numbering(prose_in(texts, budget))
        fingerprint = cache(partial(self._fingerprint_of, prose, page, budget))
        if page.known is None:
            fingerprint()
        short = tuple(dict.fromkeys(short_values(values, page.url, are_named=self._fields is not None)))
        budget.check_time()
        self._note(page, short)
        raw = tuple(text for text in texts if is_markup(text) or not any(map(str.isalnum, text)))
        return ItemText(budget.watched(tuple(prose)), short, fingerprint, raw)

    def _fingerprint_of(self, prose: list[str], page: Page, budget: Budget) -> Fingerprint:
        """Return the fingerprint of *prose*. The page's own lines are hashed already."""
        known = set(page.paragraphs)
        if not self._fingerprint.is_by_line or page.known is not None or not known.issubset(prose):
            return self._fingerprint(prose, budget)
        more = self._fingerprint([line for line in prose if line not in known], budget)
        return replace(more, weights={**page.fingerprint.weights, **more.weights})

    def rejection(self, page: Page, item: ItemText, original: StoredPage, detector: Detector) -> Rejection | None:
        """Return what *item* of *page* contains and the items of *original* do not, or ``None``.

        Its text is compared by the detector's threshold.
        """
        content = original.item_content
        if item.has_text and not (original.source or (content is not None and content.has_text)):
            return Rejection(Reason.ORIGINAL_ITEM_HAS_NO_TEXT)
        if item.has_text and (own := self._own_text(page, item, original, detector)) is not None:
            return Rejection(Reason.ITEM_HAS_NEW_TEXT, tuple(own[:_MAX_SHOWN]))
        if content is None:
            return None
        new = [value for value in item.values if _hash(value) not in content.values]
        if not _is_on_site(page, original):
            # Across sites values differ as titles do, but for those that were given: by another page, or a program.
            return _differing([value for value in new if self._is_given(value, page)])
        new = [value for value in new if not _is_name(value, page, original, detector)]
        if self._fields is None:
            # Words by which the URL names a view, such as "print".
            new = [value for value in new if value.signs or not is_view(value.words, page.url, original.url)]
        return _differing(new)

    def _is_given(self, value: Value, page: Page) -> bool:
        """Return whether *value* is content that *page* does not show: not its title, its text, nor a part of its URL.

        A value that all pages of a site have, such as the name of the site, tells nothing about one of them.
        """
        words, shown = f" {value.words} " if value.words else "", _shown(page)
        if is_url(value.written) or _IDENTIFIER.fullmatch(value.written):
            return False
        if words and words in titles.row_of_all([page.url]):
            return False
        if words in _words_of_shown(shown) and all(sign in shown for sign in value.signs):
            return False
        met = self._of_site.get((site_of(host_of(page.url)), value.field))
        return met is None or met[0] != value.words or met[1] < SITE_PAGES

    def _note(self, page: Page, values: Iterable[Value]) -> None:
        """Note the *values* of an item: which fields are the same on all pages of a site."""
        site = site_of(host_of(page.url))
        for value in values:
            words, count = self._of_site.pop((site, value.field), (value.words, 0))
            self._of_site[site, value.field] = (words, count + 1) if words == value.words else ("", 0)
        while len(self._of_site) > MAX_FIELDS:
            del self._of_site[next(iter(self._of_site))]

    def _own_text(self, page: Page, item: ItemText, original: StoredPage, detector: Detector) -> list[str] | None:
        """Return what the text of *item* has and that of *original*'s items has not, as written; ``None`` if nothing.

        Empty where too much differs to show it.
        """
        lookup, threshold, content = detector.index, detector.threshold, original.item_content
        hashes = original.hashes if content is None or original.source else content.hashes
        text = self._text_of_items(lookup.item_text(original), original, hashes)
        # Where a spider joins lines, sentences have other signs or words: "It lets you: - sail", "It lets you:- sail".
        joined = _joined(item.texts, " ")
        if joined in _joined(text, " ") or joined in _joined(text, ""):
            return None
        texts = item.texts
        if sum(map(len, texts)) > TEXT_LIMIT:
            # What is not stored is compared by its clauses.
            if not item.fingerprint.weights.keys() <= hashes:
                return self._not_in(item, hashes)
            texts = [*cut_to(texts, TEXT_LIMIT)]
        pair = Pair(page, original, detector.names, lambda: text, self._fingerprint.hash)
        if _is_on_site(page, original) or threshold == 1:
            edits = own_edits([each for each_text in texts for each in sentences(each_text)], pair)
            return [*dict.fromkeys(edit.sentence for edit in edits)] or None
        compared = [(text, hashes)]
        if _are_parts(page, item, original):
            # Summaries, cut elsewhere: the original's page contains what its item lacks.
            compared.append((lookup.text(original.number), original.hashes))
        replaced: Sequence[str] = ()
        for lines, known in compared:
            found = compare(texts, lines, has=partial(self._is_in, known))
            is_nearly = containment(item.fingerprint.weights, known) < threshold
            rejection = replaced_words(replace(pair, comparison=found, is_nearly=is_nearly))
            if rejection is None and found.containment >= threshold:
                return None
            replaced = () if rejection is None else rejection.difference
        return [*replaced] or self._not_in(item, hashes)

    def _text_of_items(self, text: list[str], original: StoredPage, hashes: AbstractSet[bytes]) -> list[str]:
        """Return those lines of the *text* that is stored of *original* that its items have, by their *hashes*."""
        content, missing = original.item_content, original.hashes - hashes
        if content is None or not missing or not content.is_text_of(original.hashes):
            return text
        # The store has the page's text, of which the items lack a part.
        hash_clause = self._fingerprint.hash
        return [line for line in text if missing.isdisjoint([hash_clause(clause) for clause, _ in clauses(line)])]

    def _is_in(self, hashes: AbstractSet[bytes], clause: str) -> bool:
        return self._fingerprint.hash(clause) in hashes

    def _not_in(self, item: ItemText, hashes: AbstractSet[bytes]) -> list[str]:
        found = (clause for portion in portions(item.texts) for clause, _ in clauses(portion))
        own = [clause for clause in found if self._fingerprint.hash(clause) not in hashes]
        return as_written(item.texts, own[:_MAX_SHOWN])


def _differing(values: Iterable[Value]) -> Rejection | None:
    shown = tuple(dict.fromkeys(f"{value.field}{_IS}{value.written}" for value in values))
    return Rejection(Reason.ITEM_FIELD_DIFFERS, shown) if shown else None


def _shown(page: Page) -> str:
    """Return all the text that *page* shows."""
    features = page.features or PageFeatures()
    return "\n".join([features.title, features.heading, *features.lines, *page.paragraphs])


@lru_cache(maxsize=4)
def _words_of_shown(shown: str) -> str:
    return titles.row_of_all([shown])


def content_of(items: Sequence[ItemText], known: ItemContent | None = None) -> ItemContent:
    """Return what an original's *items* contain together: what they were *known* to contain if they are the same."""
    if known is not None and _digest(items) == known.digest != b"":
        return replace(known, texts=tuple(text for item in items for text in item.texts))
    weights: dict[bytes, int] = {}
    values: set[bytes] = set()
    texts: list[str] = []
    for item in items:
        weights |= item.fingerprint.weights
        values.update(map(_hash, item.values))
        texts += item.texts
    has_text = sum(weights.values()) >= MIN_DISTINCTIVE_WEIGHT
    return ItemContent(frozenset(weights), frozenset(values), has_text, tuple(texts), _digest(items))


def _digest(items: Iterable[ItemText]) -> bytes:
    """Return 8 bytes that change with any character of the texts and values of *items*, in whatever order they come.

    Of markup, with any character of it: a picture or a struck word is in no text.
    """
    written = sorted(
        json.dumps([[*item.texts], sorted((v.field, v.written) for v in item.values), sorted(item.raw)])
        for item in items
    )
    return sha256("\n".join(written).encode()).digest()[:_DIGEST_BYTES]


def item_changes(items: Sequence[ItemText], known: ItemContent) -> Changes:
    """Return what *items* contain that is not in what they were *known* to contain; nothing if that is the same."""
    content = content_of(items, known)
    if content.digest == known.digest != b"":
        return Changes()
    new = content.values - known.values
    inserted = dict.fromkeys(
        f"{value.field}{_IS}{value.written}" for item in items for value in item.values if _hash(value) in new
    )
    is_shown = inserted and content.hashes <= known.hashes
    return Changes(inserted=(*inserted,) if is_shown else (*inserted, UNKNOWN))


def field_of(own: str) -> str:
    """Return the field that a rejection named *own*."""
    return own.partition(_IS)[0]


def _is_on_site(page: Page, original: StoredPage) -> bool:
    return site_of(host_of(page.url)) == site_of(host_of(original.url))


def _is_name(value: Value, page: Page, original: StoredPage, detector: Detector) -> bool:
    """Return whether *value* is a part of the page's title or heading that the original has too."""
    here, there = page.features, original.features
    if here is None or there is None:
        return False
    named = [part for name in (here.title, here.heading) for part in titles.parts(name)]
    named = [part for part in named if titles.row_of(part) == value.words]
    if not named or not all(sign in there.title + there.heading for sign in value.signs):
        return False
    is_headline = weight(value.words.replace(" ", "")) >= titles.TELLING_TITLE_WEIGHT

    def text() -> list[str]:
        return detector.index.text(original.number) if is_headline else []

    if is_view_of(original.url, page.url):
        page = titled_as(page, original)
    own = own_title(Pair(page, original, detector.names, text, detector.hash_clause))
    return any(part not in own or detector.names.has(host_of(page.url), part) for part in named)


def _joined(texts: Iterable[str], joint: str) -> str:
    """Return *texts* between spaces: the end of one is no part of a word, or a number, of another."""
    return f" {joint.join([' '.join(text.split()) for text in texts])} "


def _hash(value: Value) -> bytes:
    return fast_hash(f"{value.field}\n{value.words}\n{value.signs}")


def _are_parts(page: Page, item: ItemText, original: StoredPage) -> bool:
    """Return whether both items contain only a part of their pages."""
    if original.item_content is None or original.item_content.is_text_of(original.hashes):
        return False
    hashes = frozenset(item.fingerprint.weights)
    return not ItemContent(hashes, frozenset(), has_text=True).is_text_of(page.fingerprint.weights.keys())
