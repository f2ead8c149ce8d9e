"""Reads what the items of pages contain: texts, short values, and what their page is called."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from dedup_middleware.common.budget import UncheckableError
from dedup_middleware.common.values import is_markup
from dedup_middleware.extraction.features import MAX_TITLE, is_age
from dedup_middleware.fingerprints import fast_hash
from dedup_middleware.items.item_values import (
    Value,
    innermost,
    is_incidental,
    is_long,
    is_url,
    item_fields,
    item_values,
    lists_of_paragraphs,
    prose_in,
    short_values,
)
from dedup_middleware.model import ItemContent, PageFeatures
from dedup_middleware.reasons import Reason
from dedup_middleware.text import titles
from dedup_middleware.text.addresses import is_same_address
from dedup_middleware.text.clauses import MIN_TEXT_WEIGHT, one_line
from dedup_middleware.text.words import without_numbering

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from dedup_middleware.common.budget import Budget
    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.model import Fingerprint, Page

_DIGEST_BYTES = 8
# Characters of short values that the store has of an item with a key.
_MAX_SHOWN = 2_000
#: Between a field and its value, as a person reads it.
IS = ": "


@dataclass(frozen=True, slots=True)
class ItemText:
    """What one item contains."""

    texts: Sequence[str]
    values: tuple[Value, ...]
    read: Callable[[], Fingerprint]
    """Returns the fingerprint of the texts; takes most of the time that an item takes, once."""
    names: tuple[str, ...] = ()
    """Its short texts by which its page calls itself, as written: a title, a headline."""
    raw: tuple[str, ...] = ()
    """What neither its texts nor its values have as it is written: markup, and values without words."""

    @property
    def fingerprint(self) -> Fingerprint:
        return self.read()

    @property
    def has_text(self) -> bool:
        """Whether the text is enough to be compared."""
        return self.read().weight >= MIN_TEXT_WEIGHT


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
        short = tuple(dict.fromkeys(short_values(values, lists, page.url, are_named=self._fields is not None)))
        budget.check_time()
        raw = tuple(text for text in texts if is_markup(text) or not any(map(str.isalnum, text)))
        return ItemText(budget.watched(tuple(prose)), short, fingerprint, _names(texts, page), raw)

    def exact(self, item: Any, url: str, key: Sequence[str]) -> tuple[bytes, ItemContent]:
        """Return 8 bytes that change with any character of what *item* of the page at *url* contains, and its content.

        What comes from the fetch does not count, nor do the fields of its *key*. The digest of the content is its short
        values, a line each. `UncheckableError` as for :meth:`read`.
        """
        now, left = time.time(), self._max_characters
        written, shown, texts = list[tuple[str, str]](), list[str](), list[str]()
        for field, value in item_values(item, self._fields):
            if field in key:
                continue
            try:
                text = value if isinstance(value, str) else str(value)
            except ValueError as error:  # more digits than Python writes
                raise UncheckableError(Reason.UNREADABLE_ITEM) from error
            if (left := left - len(text)) < 0:
                raise UncheckableError(Reason.TOO_LARGE)
            is_link = is_url(text)
            if is_long(text) and not is_link:
                text = "\n".join(line for line in text.split("\n") if not is_age(line))
                texts.append(text)
            elif self._fields is None and (
                is_incidental(innermost(field), text, url, now) or (is_link and is_same_address(text, url))
            ):
                continue
            else:
                shown.append(f"{field}{IS}{' '.join(text.split())}")
            written.append((field, text))
        self.note_fields(item)
        digest = sha256(json.dumps(sorted(written)).encode()).digest()[:_DIGEST_BYTES]
        packed = "\n".join(shown)[:_MAX_SHOWN].encode("utf8", "surrogatepass")
        return digest, ItemContent(frozenset(), frozenset(), bool(texts), tuple(texts), digest=packed)

    def _fingerprint_of(self, prose: list[str], page: Page, budget: Budget) -> Fingerprint:
        """Return the fingerprint of *prose*. The page's own lines are hashed already."""
        known = set(page.paragraphs)
        if not self._fingerprint.is_by_line or page.known is not None or not known.issubset(prose):
            return self._fingerprint(prose, budget)
        more = self._fingerprint([line for line in prose if line not in known], budget)
        return replace(more, weights={**page.fingerprint.weights, **more.weights})


def content_of(items: Sequence[ItemText], known: ItemContent | None = None) -> ItemContent:
    """Return what an original's *items* contain together: what they were *known* to contain if they are the same."""
    if known is not None and _digest(items) == known.digest != b"":
        return replace(known, texts=tuple(text for item in items for text in item.texts), shown=written_values(items))
    weights: dict[bytes, int] = {}
    values: set[bytes] = set()
    texts: list[str] = []
    for item in items:
        weights |= item.fingerprint.weights
        values.update(map(hash_of, item.values))
        texts += item.texts
    has_text = sum(weights.values()) >= MIN_TEXT_WEIGHT
    return ItemContent(
        frozenset(weights), frozenset(values), has_text, tuple(texts), written_values(items), _digest(items)
    )


def written_values(items: Iterable[ItemText], known: AbstractSet[bytes] = frozenset()) -> tuple[str, ...]:
    """Return the values of *items* that are not *known*, each with its field, as a person reads it."""
    own = (value for item in items for value in item.values if hash_of(value) not in known)
    return tuple(dict.fromkeys(f"{value.field}{IS}{one_line(value.written)}" for value in own))


def _digest(items: Iterable[ItemText]) -> bytes:
    """Return 8 bytes that change with any character of the texts and values of *items*, in whatever order they come.

    Of markup, with any character of it: a picture or a struck word is in no text. Lines that are an age do not count.
    """
    written = sorted(
        json.dumps(
            [
                [line for line in item.texts if not is_age(line)],
                sorted((v.field, v.written) for v in item.values),
                sorted(item.raw),
            ]
        )
        for item in items
    )
    return sha256("\n".join(written).encode()).digest()[:_DIGEST_BYTES]


def field_of(own: str) -> str:
    """Return the field that a rejection named *own*."""
    return own.partition(IS)[0]


def hash_of(value: Value) -> bytes:
    """Return what the store has of *value*."""
    return fast_hash(f"{value.field}\n{value.words}\n{value.signs}")


def _names(texts: Iterable[str], page: Page) -> tuple[str, ...]:
    """Return those short *texts* of an item by which *page* calls itself."""
    features = page.features or PageFeatures()
    rows = [f" {row} " for row in map(titles.row_of, (features.title, features.heading)) if row]
    found = [" ".join(text.split()) for text in texts if len(text) <= MAX_TITLE and not is_markup(text)]
    named = ((text, f" {titles.row_of(text)} ") for text in dict.fromkeys(found))
    return tuple(text for text, row in named if row.strip() and any(row in there or there in row for there in rows))
