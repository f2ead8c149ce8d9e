"""Items of any type, as texts.

Itemadapter is the only way to an item that is no dict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from dedup_middleware.budget import UnjudgeableError
from dedup_middleware.extraction import parse, texts_of
from dedup_middleware.reasons import Reason
from dedup_middleware.text.clauses import weight

if TYPE_CHECKING:
    from dedup_middleware.budget import Budget

TAG_FIELD = "dedup"
#: Less than this, in letters, is a value rather than a text.
MAX_VALUE_WEIGHT = 150
# Where a text that is markup shows it.
_START = 200
_MARKUP = re.compile(r"<[a-zA-Z][^<>]*>")


Value: TypeAlias = "str | int | float | Decimal"


def item_texts(item: Any, fields: Iterable[str] | None = None) -> list[str]:
    """Return the texts in *item*, nested ones too; of *fields* only, where they are named. Addresses are no text.

    `UnjudgeableError` if it cannot be read: an item's class is the project's, and what it looks up may be gone.
    """
    return [value for _, value in item_values(item, fields) if isinstance(value, str)]


def item_values(item: Any, fields: Iterable[str] | None = None) -> list[tuple[str, Value]]:
    """Return the texts and numbers in *item*, each with its field, as :func:`item_texts` does."""
    try:
        adapter = _fields_of(item)
        if adapter is None:
            return []
        names = adapter.keys() if fields is None else (f for f in fields if f in adapter)
        values = [(name, v) for name in names if name != TAG_FIELD for v in _values(item, [adapter[name]])]
    except Exception as error:
        raise UnjudgeableError(Reason.UNREADABLE) from error
    return [(name, v) for name, v in values if not (isinstance(v, str) and v.startswith(("http://", "https://")))]


def prose_in(texts: Iterable[str], budget: Budget) -> tuple[list[str], list[str]]:
    """Return what *texts* of an item tell, as paragraphs, and those that are short: names, prices, labels.

    Of markup it is the main text; where nothing is long, all of it tells. `UnjudgeableError` once the *budget* is
    spent.
    """
    prose: list[str] = []
    short: list[str] = []
    for text in texts:
        if _MARKUP.search(text[:_START]):
            prose += _paragraphs(text, budget)
        elif len(text) >= MAX_VALUE_WEIGHT or weight(text) >= MAX_VALUE_WEIGHT:
            prose += text.split("\n")
        else:
            short.append(text)
    return prose or short, short


def _paragraphs(markup: str, budget: Budget) -> list[str]:
    found = texts_of(parse(markup), budget)
    return found.paragraphs or found.others


def _values(item: Any, values: list[Any]) -> Iterator[Value]:
    """Yield the texts and numbers in *values* of *item*, each thing's once, for things may refer to one another.

    Without recursion, for they may nest deeper than the stack.
    """
    # The things themselves are kept too: a new one may have the id of one that is gone.
    seen = {id(item): item}
    waiting = values[::-1]
    while waiting:
        value = waiting.pop()
        if isinstance(value, (str, int, float, Decimal)):
            if not isinstance(value, bool):
                yield value
            continue
        if value is None or id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, (list, tuple)):
            waiting.extend(reversed(value))
        elif (adapter := _fields_of(value)) is not None:
            waiting.extend(reversed([*adapter.values()]))
        elif isinstance(value, Mapping):
            waiting.extend(reversed([*value.values()]))


def is_item(item: Any) -> bool:
    """Tell whether *item* has fields: whether anything can be heard of it."""
    return _fields_of(item) is not None


def _fields_of(item: Any) -> Mapping[str, Any] | None:
    """Return *item*, whatever it is, by its fields; ``None`` if it is no item."""
    if type(item) is dict:
        return item
    # Where Scrapy is installed itemadapter imports it, which a program that has dicts and pages need not wait for.
    from itemadapter import ItemAdapter  # noqa: PLC0415

    return ItemAdapter(item) if ItemAdapter.is_item(item) else None
