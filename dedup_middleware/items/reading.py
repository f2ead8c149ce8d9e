"""Reads what the items of pages contain: texts, short values, and what their page is called."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from dedup_middleware.common.budget import UncheckableError
from dedup_middleware.common.values import is_markup
from dedup_middleware.extraction.features import MAX_TITLE, is_age
from dedup_middleware.fingerprints import FAST_HASH_BYTES, fast_hash
from dedup_middleware.items.item_values import (
    Value,
    given_by,
    is_long,
    is_url,
    item_fields,
    item_values,
    list_of,
    lists_of_paragraphs,
    prose_in,
    short_values,
)
from dedup_middleware.model import ItemContent, PageFeatures
from dedup_middleware.reasons import Reason
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import MIN_TEXT_WEIGHT, one_line
from dedup_middleware.text.words import without_numbering

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from dedup_middleware.common.budget import Budget
    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.items.item_values import Given
    from dedup_middleware.model import Fingerprint, Page

_DIGEST_BYTES = 8
# Characters of short values that the store has of an item with a key.
_MAX_SHOWN = 2_000
#: Between a field and its value, as a person reads it.
IS = ": "


#: What the store has of each item that has text, beside a hash of that.
HAS_TEXT = fast_hash("\0text")
#: What it has of items whose class is not known, those of an archive.
ANY_CLASS = fast_hash("\0class")


@dataclass(frozen=True, slots=True)
class ItemText:
    """What one item contains."""

    texts: Sequence[str]
    values: tuple[Value, ...]
    read: Callable[[], Fingerprint]
    """Returns the fingerprint of the texts; takes most of the time that an item takes, once."""
    names: tuple[str, ...] = ()
    """Its short texts by which its page calls itself, as written: a title, a headline."""
    digest: bytes = b""
    """8 bytes that change with any character of what it contains, without what comes from the fetch."""
    kind: str = ""
    """The name of its class; empty where that does not count."""
    fields: tuple[tuple[str, bytes, bytes], ...] = ()
    """Of each of its texts if they are several: the field, and the hashes of both together and of the text alone."""

    @property
    def fingerprint(self) -> Fingerprint:
        return self.read()

    @property
    def has_text(self) -> bool:
        """Whether the text is enough to be compared."""
        return self.read().weight >= MIN_TEXT_WEIGHT

    @property
    def text_hash(self) -> bytes:
        """The hash of its texts, by letters and digits."""
        found = self.read()
        return (found.exact_digest or found.digest)[:FAST_HASH_BYTES]

    @property
    def class_hash(self) -> bytes:
        """The hash of its class, which no value has."""
        return fast_hash(f"\0class{self.kind}")

    def hashes(self) -> frozenset[bytes]:
        """Return what the store has of it: hashes of its class, its values, and its text."""
        found = {self.class_hash, *map(hash_of, self.values), *(h for _, *both in self.fields for h in both)}
        return frozenset(found | {HAS_TEXT, self.text_hash} if self.has_text else found)


class ItemCheck:
    """Reads and compares items whose texts have *max_characters* in all at most, within the budgets of their pages."""

    def __init__(self, fingerprint: Fingerprinter, max_characters: int, fields: Iterable[str]) -> None:
        """Read the *fields* of items; all fields if empty."""
        self._fingerprint = fingerprint
        self._max_characters = max_characters
        self._fields = tuple(fields) or None
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
        texts = [value for _, value in values if isinstance(value, str) and not is_url(value)]
        if sum(map(len, texts)) > self._max_characters:
            raise UncheckableError(Reason.TOO_LARGE)
        budget.check_clauses(len(values))
        budget.check_time()
        lists = lists_of_paragraphs(values)
        prose = without_numbering(prose_in(values, lists, budget))
        fingerprint = cache(partial(self._fingerprint_of, prose, page, budget))
        if page.known is None:
            fingerprint()
        names, are_named = _names(texts, page), self._fields is not None
        headlines = {text for text, is_headline in names.items() if is_headline}
        given = [*given_by(values, page.url, are_named=are_named)]
        short = tuple(dict.fromkeys(short_values(given, lists, headlines)))
        budget.check_time()
        content = [*_content(given)]
        long = [(field, text) for field, text, is_text in content if is_text and list_of(field) not in lists]
        fields = [(f, fast_hash(f"{f}\n{text}"), fast_hash(f"\n{text}")) for f, text in long] if len(long) > 1 else ()
        # Where fields are named, these are all that counts.
        kind = "" if are_named else f"{type(item).__module__}.{type(item).__qualname__}"
        return ItemText(
            budget.watched(tuple(prose)), short, fingerprint, (*names,), _digest(content), kind, tuple(fields)
        )

    def exact(self, item: Any, url: str, key: Sequence[str]) -> tuple[bytes, ItemContent]:
        """Return 8 bytes that change with any character of what *item* of the page at *url* contains, and its content.

        What comes from the fetch does not count, nor do the fields of its *key*. The digest of the content is its short
        values, a line each. `UncheckableError` as for :meth:`read`.
        """
        values = [each for each in item_values(item, self._fields) if each[0] not in key]
        content = [*_content(given_by(values, url, are_named=self._fields is not None))]
        if sum(len(text) for _, text, _ in content) > self._max_characters:
            raise UncheckableError(Reason.TOO_LARGE)
        self.note_fields(item)
        texts = tuple(text for _, text, is_text in content if is_text)
        shown = [f"{field}{IS}{' '.join(text.split())}" for field, text, is_text in content if not is_text]
        packed = "\n".join(shown)[:_MAX_SHOWN].encode("utf8", "surrogatepass")
        return _digest(content), ItemContent(frozenset(), frozenset(), bool(texts), texts, digest=packed)

    def _fingerprint_of(self, prose: list[str], page: Page, budget: Budget) -> Fingerprint:
        """Return the fingerprint of *prose*. The page's own lines are hashed already."""
        known = set(page.paragraphs)
        if not self._fingerprint.is_by_line or page.known is not None or not known.issubset(prose):
            return self._fingerprint(prose, budget)
        more = self._fingerprint([line for line in prose if line not in known], budget)
        return replace(more, weights={**page.fingerprint.weights, **more.weights})


def _content(given: Iterable[Given]) -> Iterator[tuple[str, str, bool]]:
    """Yield what an item has *given* that is content: the field, the value, and whether it is a text.

    Lines of a text that are an age do not count.
    """
    for field, _, (text, *_), counts in given:
        if is_long(text) and not is_url(text):
            yield field, "\n".join(line for line in text.split("\n") if not is_age(line)), True
        elif counts:
            yield field, text, False


def _digest(content: Iterable[object]) -> bytes:
    return sha256(json.dumps(sorted(content)).encode()).digest()[:_DIGEST_BYTES]


def content_of(items: Sequence[ItemText], known: ItemContent | None = None) -> ItemContent:
    """Return what an original's *items* contain together: what they were *known* to contain if they are the same."""
    digest = _digest(item.digest.hex() for item in items)
    if known is not None and digest == known.digest:
        return replace(known, texts=tuple(text for item in items for text in item.texts), shown=written_values(items))
    weights: dict[bytes, int] = {}
    texts: list[str] = []
    for item in items:
        weights |= item.fingerprint.weights
        texts += item.texts
    has_text = sum(weights.values()) >= MIN_TEXT_WEIGHT
    found = frozenset(item.hashes() for item in items)
    return ItemContent(frozenset(weights), found, has_text, tuple(texts), written_values(items), digest)


def written_values(items: Iterable[ItemText], known: AbstractSet[bytes] = frozenset()) -> tuple[str, ...]:
    """Return the values of *items* that are not *known*, each with its field, as a person reads it."""
    own = (value for item in items for value in item.values if hash_of(value) not in known)
    return tuple(dict.fromkeys(f"{value.field}{IS}{one_line(value.written)}" for value in own))


def field_of(own: str) -> str:
    """Return the field that a rejection named *own*."""
    return own.partition(IS)[0]


def hash_of(value: Value) -> bytes:
    """Return what the store has of *value*."""
    return fast_hash(f"{value.field}\n{value.whole}")


def _names(texts: Iterable[str], page: Page) -> dict[str, bool]:
    """Return those short *texts* of an item by which *page* calls itself, each with whether that is all it is called.

    Else it is a part of a title that is too short for a headline: "Leeds", of "Flat | Leeds".
    """
    features = page.features or PageFeatures()
    rows = [f" {row} " for row in map(titles.row_of, (features.title, features.heading)) if row]
    found = [" ".join(text.split()) for text in texts if len(text) <= MAX_TITLE and not is_markup(text)]
    named = ((text, f" {titles.row_of(text)} ") for text in dict.fromkeys(found))
    return {
        text: any(there in row for there in rows)
        or any(map(titles.is_headline, map(titles.row_of, titles.parts(text))))
        for text, row in named
        if row.strip() and any(row in there or there in row for there in rows)
    }
