"""Reads items of any type as texts and short values.

Itemadapter reads all items that are not dicts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, time
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from dedup_middleware.budget import UnjudgeableError
from dedup_middleware.extraction import parse, texts_of
from dedup_middleware.reasons import Reason
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import weight

if TYPE_CHECKING:
    from dedup_middleware.budget import Budget

TAG_FIELD = "dedup"
#: Less than this, in letters, is a value rather than a text.
MAX_VALUE_WEIGHT = 150
# A text is markup if a tag stands in so many first characters.
_START = 200
_MARKUP = re.compile(r"<[a-zA-Z][^<>]*>")
# Beside words and punctuation; a hyphen only where it joins no words: "-5", "A-".
_PERHAPS_SIGN = re.compile(r"[^\w\s.,;:!?'\"()/-]|(?<!\w)-(?=\w)|(?<=\w)-(?!\w)")
_SIGNS = frozenset("#%&*@-")
_SIGN_CATEGORIES = ("Sm", "Sc", "So")
# Of cb_kwargs and meta: more is a text or a data set, not what a list page gives with a link.
_MAX_CARRIED = 1_000
# Scrapy's own middlewares write these into meta.
_OF_SCRAPY = ("depth", "download_", "redirect_", "retry_", "max_retry_", "priority_adjust")

Plain: TypeAlias = "str | int | float | Decimal"


class Value(NamedTuple):
    """A short value of an item: a name, a price, a label; a title is one for each of its parts."""

    field: str
    words: str
    """Folded, separated by spaces."""
    signs: str
    """What is written beside the words and is not punctuation: ``✓``, ``€``, ``++``."""

    @property
    def has_number(self) -> bool:
        """Whether a digit is among its words."""
        return any(character.isdigit() for character in self.words)


def item_texts(item: Any, fields: Iterable[str] | None = None) -> list[str]:
    """Return the texts in *item*, nested ones too; of *fields* only, where they are named. URLs are left out.

    `UnjudgeableError` if it cannot be read: an item's class is the project's, and what it looks up may be gone.
    """
    return [value for _, value in item_values(item, fields) if isinstance(value, str)]


def item_values(item: Any, fields: Iterable[str] | None = None) -> list[tuple[str, Plain]]:
    """Return the texts and numbers in *item*, each with its field, as :func:`item_texts` does."""
    try:
        adapter = _fields_of(item)
        if adapter is None:
            return []
        names = adapter.keys() if fields is None else (f for f in fields if f in adapter)
        values = [each for name in names if name != TAG_FIELD for each in _values(item, name, adapter[name])]
    except Exception as error:
        raise UnjudgeableError(Reason.UNREADABLE) from error
    return [(name, v) for name, v in values if not (isinstance(v, str) and v.startswith(("http://", "https://")))]


def short_values(values: Iterable[tuple[str, Plain]]) -> Iterator[Value]:
    """Yield what is short in *values*, by its words and signs; `UnjudgeableError` for a number that has no text."""
    for field, value in values:
        try:
            name = str(field)
            if isinstance(value, str):
                texts = [] if _is_prose(value) else [*titles.parts(value)] or [value]
            elif isinstance(value, (bool, int)):
                texts = [str(value)]
            else:
                # A page writes a price with two decimals. As a Decimal, 1E+999999999 would have a gigabyte of digits.
                texts = [str(value), f"{float(value):.2f}"]
        except ValueError as error:  # more digits than Python writes
            raise UnjudgeableError(Reason.UNREADABLE) from error
        for text in texts:
            found = Value(name, titles.row_of(text), _signs_of(text))
            if found.words or found.signs:
                yield found


def carried(cb_kwargs: Mapping[str, Any], meta: Mapping[str, Any]) -> frozenset[str]:
    """Return the words of the short values with numbers that a request carried in its *cb_kwargs* and *meta*."""
    given = {name: value for name, value in meta.items() if not str(name).startswith(_OF_SCRAPY)}
    values = [*item_values(dict(cb_kwargs)), *item_values(given)][:_MAX_CARRIED]
    return frozenset(value.words for value in short_values(values) if value.has_number)


def prose_in(texts: Iterable[str], budget: Budget) -> list[str]:
    """Return the paragraphs in *texts* of an item: of markup its main text; of short values only if nothing is long.

    `UnjudgeableError` once the *budget* is spent.
    """
    prose: list[str] = []
    short: list[str] = []
    for text in texts:
        if _is_markup(text):
            found = texts_of(parse(text), budget)
            prose += found.paragraphs or found.others
        elif _is_prose(text):
            prose += text.split("\n")
        else:
            short.append(text)
    return prose or short


def _signs_of(text: str) -> str:
    found = _PERHAPS_SIGN.findall(text)
    return "".join(c for c in found if c in _SIGNS or unicodedata.category(c) in _SIGN_CATEGORIES)


def _is_markup(text: str) -> bool:
    return _MARKUP.search(text[:_START]) is not None


def _is_prose(text: str) -> bool:
    return len(text) >= MAX_VALUE_WEIGHT or weight(text) >= MAX_VALUE_WEIGHT or _is_markup(text)


def _values(item: Any, name: str, value: Any) -> Iterator[tuple[str, Plain]]:
    """Yield the texts and numbers in a *value* of *item*, each with the innermost *name* that it stands under.

    Each object's are yielded once, for objects may refer to one another.
    Without recursion, for they may nest deeper than the stack. What is neither, such as a response, is left out.
    """
    # The objects themselves are kept too: a new one may have the id of one that is gone.
    seen = {id(item): item}
    waiting = [(name, value)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, (str, int, float, Decimal)):
            yield name, value
            continue
        if isinstance(value, (date, time)):
            yield name, str(value)
            continue
        if value is None or id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, Enum):
            waiting.append((name, value.value))
        elif isinstance(value, (set, frozenset)):
            # A set of texts has another order in each process.
            waiting.extend((name, each) for each in sorted(value, key=repr, reverse=True))
        elif isinstance(value, (list, tuple)):
            waiting.extend((name, each) for each in reversed(value))
        elif (fields := value if isinstance(value, Mapping) else _fields_of(value)) is not None:
            waiting.extend(reversed([*fields.items()]))


def is_item(item: Any) -> bool:
    """Return whether *item* has fields."""
    return _fields_of(item) is not None


def _fields_of(item: Any) -> Mapping[str, Any] | None:
    """Return the fields of *item*; ``None`` if it is not an item."""
    if type(item) is dict:
        return item
    # Where Scrapy is installed itemadapter imports it, which a program that has dicts and pages need not wait for.
    from itemadapter import ItemAdapter  # noqa: PLC0415

    return ItemAdapter(item) if ItemAdapter.is_item(item) else None
