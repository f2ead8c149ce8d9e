"""Defines the types of the values in an item: how each is stored, read back from a store, and read as text.

Items, members of an Enum and mappings beside dicts have no row: they are taken apart. A value of any other type is
neither read nor stored, so that its item is kept.
"""

from __future__ import annotations

import base64
import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from lxml.html.defs import tags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Levels of an item: far more than projects use, far fewer than the stack has. One that contains itself has no end.
MAX_LEVELS = 100
# A text is markup if a tag stands in so many first characters.
_START = 200
_TAG = re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)(?:[\s/][^<>]*)?>")
_TICK = timedelta.resolution


class ValueType(NamedTuple):
    """How the values of one type are stored and read.

    *tag* names the type in a store, unless JSON has it. *write* returns what is stored, of a collection a list;
    ``ValueError`` if that would be less than the value. *read* returns the value again. *text* returns the text or
    number that a value is, ``None`` for nothing; of a collection, an iterator of the values in it, each with its place.
    """

    tag: str
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    text: Callable[[Any], Any]


def is_markup(text: str) -> bool:
    """Return whether *text* has elements of HTML: ``List<String>`` has none."""
    return any(name.lower() in tags for name in _TAG.findall(text[:_START]))


def _itself(value: Any) -> Any:
    return value


def _text_of(value: bytes) -> str:
    """Return *value* as text; of what is no text, its length and a digest."""
    text = value.decode("utf8", "replace")
    is_text = is_markup(text) or "\ufffd" not in text
    return text if is_text else f"{len(value)} bytes {sha256(value).hexdigest()}"


def _in_order(value: Any) -> Iterator[tuple[Any, Any]]:
    """Return the values in a set: texts have another order in each process, and no places."""
    return ((None, each) for each in sorted(value, key=repr))


def _written_time(value: datetime) -> list[str]:
    if value.fold or (value.tzinfo is not None and value.utcoffset() is None):
        raise ValueError(value)
    if isinstance(value.tzinfo, ZoneInfo) and value.tzinfo.key:
        return [value.replace(tzinfo=None).isoformat(), value.tzinfo.key]
    # Of a time zone of another make, its offset at this moment.
    return [value.isoformat()]


def _read_time(written: list[str]) -> datetime:
    value = datetime.fromisoformat(written[0])
    return value.replace(tzinfo=ZoneInfo(written[1])) if written[1:] else value


def _written_hour(value: time) -> str:
    if value.tzinfo is not None or value.fold:
        raise ValueError(value)
    return value.isoformat()


#: The types of values. Values of their subclasses are read alike; only those of the types themselves are stored.
VALUES: dict[type, ValueType] = {
    **dict.fromkeys((str, bool, float, type(None)), ValueType("", _itself, _itself, _itself)),
    # Those that JSON readers do not have; in decimal digits, Python reads no more than some thousand.
    int: ValueType("int", hex, lambda written: int(written, 16), _itself),
    list: ValueType("", list, list, enumerate),
    tuple: ValueType("tuple", list, tuple, enumerate),
    set: ValueType("set", list, set, _in_order),
    frozenset: ValueType("frozenset", list, frozenset, _in_order),
    dict: ValueType("dict", lambda value: [*map(list, value.items())], dict, lambda value: iter(value.items())),
    bytes: ValueType("bytes", lambda value: base64.b64encode(value).decode(), base64.b64decode, _text_of),
    datetime: ValueType("datetime", _written_time, _read_time, str),
    date: ValueType("date", date.isoformat, date.fromisoformat, str),
    time: ValueType("time", _written_hour, time.fromisoformat, str),
    timedelta: ValueType("timedelta", lambda value: value // _TICK, lambda ticks: ticks * _TICK, str),
    Decimal: ValueType("decimal", str, Decimal, _itself),
    UUID: ValueType("uuid", str, UUID, str),
}
