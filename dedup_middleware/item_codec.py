"""Writes items as bytes and reads them back: JSON in which types are named, never code.

``decode(encode(item).data) == item``, of the same type, for dicts, Scrapy items, dataclasses, attrs and pydantic
models. A field with a value that cannot be read back exactly, such as a response or an open file, is left out. A class
is named, and found among those of the project when the item is read: see :class:`ProjectClasses`. If it is gone, or is
not a class of items any more, the item is read as a dict. Nothing is imported, and nothing runs ``__init__``.
"""

from __future__ import annotations

import base64
import json
import sys
from dataclasses import fields
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from dedup_middleware.bounded import MAX_VALUES, has_more, loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: Levels of an item: far more than anybody writes, far fewer than the stack has.
MAX_DEPTH = 100
#: Bytes of an item. A larger one is not stored, and so not dropped.
MAX_BYTES = 8 * 2**20
# JSON readers of other makes have 64 bits, and Python's own refuses to read thousands of digits.
_MAX_INT = 2**63


class UnkeepableError(ValueError):
    """A value of class *kind* cannot be read back as it was."""

    def __init__(self, kind: type) -> None:
        super().__init__(kind)
        self.kind = kind


class Encoded(NamedTuple):
    """An item as bytes."""

    data: bytes
    left_out: dict[str, type]
    """The fields that could not be stored, each with the class of the value."""


def encode(item: Any) -> Encoded:
    """Return *item* as bytes; :class:`UnkeepableError` if its class cannot be stored. 10 µs for a small one."""
    left_out: dict[str, type] = {}
    try:
        written = _written(item, MAX_DEPTH, left_out)
    except UnkeepableError:
        raise
    except Exception as error:  # an item's class is the project's
        raise UnkeepableError(type(item)) from error
    text = json.dumps(written, ensure_ascii=False, separators=(",", ":"))
    # Escaped, two surrogates would come back as one character.
    data = text.encode("utf8", "surrogatepass")
    if len(data) > MAX_BYTES or has_more(data, MAX_VALUES):
        raise UnkeepableError(type(item))
    return Encoded(data, left_out)


def decode(data: bytes) -> Any:
    """Return the item that :func:`encode` has written; ``ValueError`` if that has not written *data*."""
    try:
        return _read(loads(data.decode("utf8", "surrogatepass")))
    except Exception as error:
        raise ValueError(f"no item: {error!r}") from error


def name_of(kind: type) -> str:
    """Return the name under which a class is found again: ``module:qualified.name``."""
    return f"{kind.__module__}:{kind.__qualname__}"


class ProjectClasses:
    """The classes that items may be of: those that loaded modules of the project define, or have imported.

    A store may be anybody's: what it names is looked up among these, and nothing else, and no module is imported.
    """

    def __init__(self) -> None:
        self._packages: set[str] = set()
        self._found: dict[str, type] = {}

    def give(self, spiders: Iterable[type]) -> None:
        """Let the packages of these *spiders*, and of the classes that they are made of, belong to the project."""
        homes = {kind.__module__.partition(".")[0] for spider in spiders for kind in spider.__mro__}
        self._packages |= homes - {"builtins", "scrapy"}

    def named(self, name: str) -> type | None:
        """Return the class with this :func:`name_of`; ``None`` if the project has none. O(names) the first time."""
        if name not in self._found:
            outer, found = _loaded(name)
            if found is None or not self._has(outer):
                return None
            self._found[name] = found
        return self._found[name]

    def _has(self, outer: type) -> bool:
        if outer.__module__.partition(".")[0] in self._packages:
            return True
        modules = [each for name, each in [*sys.modules.items()] if name.partition(".")[0] in self._packages]
        values = [value for module in modules if isinstance(module, ModuleType) for value in vars(module).values()]
        # Imported by itself, or with its module.
        return any(
            value is outer or (isinstance(value, ModuleType) and vars(value).get(outer.__name__) is outer)
            for value in values
        )


def _loaded(name: str) -> tuple[type, type | None]:
    """Return the class with this :func:`name_of`, if its module is loaded, and before it the outermost around it."""
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    classes: list[type] = []
    for part in path.split("."):
        # Not getattr, which may run code.
        found = vars(found).get(part) if isinstance(found, (ModuleType, type)) else None
        if not isinstance(found, type):
            return type(None), None
        classes.append(found)
    return classes[0], classes[-1] if name_of(classes[-1]) == name else None


#: Those of the projects of this process.
PROJECT = ProjectClasses()


# --- writing: a value as itself where JSON has it, else an object with its tag alone; of an item, not of what is in it,
# fields may be *left_out*


def _written(value: Any, depth: int, left_out: dict[str, type] | None = None) -> Any:  # noqa: PLR0911 - one for each kind of values
    kind = type(value)
    if kind in (str, float, bool, type(None)) or (kind is int and -_MAX_INT <= value < _MAX_INT):
        return value
    if not depth:
        raise UnkeepableError(kind)
    if kind is list:
        return [_written(each, depth - 1) for each in value]
    if kind is dict:
        return _written_dict(value, depth - 1, left_out)
    if kind in _COLLECTIONS:
        return {_COLLECTIONS[kind]: [_written(each, depth - 1) for each in value]}
    if kind in _SCALARS:
        tag, write, _ = _SCALARS[kind]
        return {tag: write(value)}
    if isinstance(value, Enum):
        if PROJECT.named(name_of(kind)) is not kind:
            raise UnkeepableError(kind)
        return {"enum": [name_of(kind), _written(value.value, depth - 1)]}
    if isinstance(value, str):
        # Texts that know where they come from, such as those that lxml finds: of an item, they are texts.
        return str.__str__(value)
    return _written_item(value, kind, depth - 1, left_out)


def _written_dict(value: dict[Any, Any], depth: int, left_out: dict[str, type] | None) -> Any:
    if all(type(key) is str for key in value):
        return {"dict": _written_fields(value, depth, left_out)}
    return {"pairs": [[_written(key, depth), _written(each, depth)] for key, each in value.items()]}


def _written_fields(values: dict[str, Any], depth: int, left_out: dict[str, type] | None) -> dict[str, Any]:
    written = {}
    for name, value in values.items():
        try:
            written[name] = _written(value, depth)
        except UnkeepableError as error:  # noqa: PERF203 - raised for few items
            if left_out is None:
                raise
            left_out[name] = error.kind
    return written


def _written_item(item: Any, kind: type, depth: int, left_out: dict[str, type] | None) -> Any:
    family = _family(kind)
    if family is None or PROJECT.named(name_of(kind)) is not kind:
        raise UnkeepableError(kind)
    if family == "pydantic":
        state = dict(item.__getstate__())
        attributes = _written_attributes(state.pop("__dict__"), depth, left_out)
        parts = {part: _written(value, depth) for part, value in state.items()}
        return {family: [name_of(kind), {"__dict__": {"dict": attributes}, **parts}]}
    if family == "scrapy":
        values = item._values  # noqa: SLF001 - dict() would copy
        return {family: [name_of(kind), _written_fields(values, depth, left_out)]}
    return {family: [name_of(kind), _written_attributes(_fields_of(item, family), depth, left_out)]}


def _written_attributes(values: dict[str, Any], depth: int, left_out: dict[str, type] | None) -> dict[str, Any]:
    # An object without one of its attributes fails wherever it is shown.
    return {**_written_fields(values, depth, left_out), **dict.fromkeys(left_out or ())}


def _fields_of(item: Any, family: str) -> dict[str, Any]:
    names = [f.name for f in (fields(item) if family == "dataclass" else type(item).__attrs_attrs__)]
    return {name: getattr(item, name) for name in names if hasattr(item, name)}


@lru_cache(maxsize=1000)
def _family(kind: type) -> str | None:
    """Return what sort of items *kind* makes; ``None`` for whatever is not known to come back as it was."""
    # Where Scrapy is installed itemadapter imports it, which a program that only checks pages need not wait for.
    from itemadapter.adapter import (  # noqa: PLC0415
        AttrsAdapter,
        DataclassAdapter,
        PydanticAdapter,
        ScrapyItemAdapter,
    )

    families = {
        "scrapy": ScrapyItemAdapter,
        "dataclass": DataclassAdapter,
        "attrs": AttrsAdapter,
        "pydantic": PydanticAdapter,
    }
    return next((name for name, adapter in families.items() if adapter.is_item_class(kind)), None)


def _zone(zone: Any, moment: datetime | None) -> Any:
    if zone is None or (type(zone) is ZoneInfo and zone.key is not None):
        return None if zone is None else zone.key
    offset = zone.utcoffset(moment)
    if offset is None:
        raise UnkeepableError(type(zone))
    # Of a zone of another make, what it says of this moment.
    return [offset.total_seconds(), zone.tzname(moment)]


def _read_zone(written: Any) -> ZoneInfo | timezone | None:
    if written is None or isinstance(written, str):
        return None if written is None else ZoneInfo(written)
    seconds, name = written
    offset = timedelta(seconds=seconds)
    unnamed = timezone(offset)
    return unnamed if name in (None, unnamed.tzname(None)) else timezone(offset, name)


def _written_time(value: datetime | time) -> Any:
    moment = value if isinstance(value, datetime) else None
    return [value.replace(tzinfo=None).isoformat(), value.fold, _zone(value.tzinfo, moment)]


_COLLECTIONS: dict[type, str] = {tuple: "tuple", set: "set", frozenset: "frozenset"}
_MADE: dict[str, Callable[[Any], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset}
#: Type -> its tag, how it is written, and how it is read.
_SCALARS: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    int: ("int", hex, lambda text: int(text, 16)),
    bytes: ("bytes", lambda value: base64.b64encode(value).decode(), base64.b64decode),
    datetime: (
        "datetime",
        _written_time,
        lambda w: datetime.fromisoformat(w[0]).replace(fold=w[1], tzinfo=_read_zone(w[2])),
    ),
    time: ("time", _written_time, lambda w: time.fromisoformat(w[0]).replace(fold=w[1], tzinfo=_read_zone(w[2]))),
    date: ("date", date.isoformat, date.fromisoformat),
    timedelta: (
        "timedelta",
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda w: timedelta(w[0], w[1], w[2]),
    ),
    Decimal: ("decimal", str, Decimal),
    UUID: ("uuid", str, UUID),
    type(Path()): ("path", str, Path),
}
_READERS = {tag: read for tag, _, read in _SCALARS.values()}


# --- reading


def _read(written: Any) -> Any:  # noqa: PLR0911 - one for each tag
    if isinstance(written, list):
        return [_read(each) for each in written]
    if not isinstance(written, dict):
        return written
    ((tag, value),) = written.items()
    if tag == "dict":
        return {name: _read(each) for name, each in value.items()}
    if tag == "pairs":
        return {_read(key): _read(each) for key, each in value}
    if tag in _MADE:
        return _MADE[tag](map(_read, value))
    if tag in _READERS:
        return _READERS[tag](value)
    name, content = value
    if tag == "enum":
        return _read_enum(name, _read(content))
    values = {field: _read(each) for field, each in content.items()}
    return _read_pydantic(name, values) if tag == "pydantic" else _read_fields(tag, name, values)


def _read_enum(name: str, value: Any) -> Any:
    kind = PROJECT.named(name)
    try:
        return kind(value) if kind is not None and issubclass(kind, Enum) else value
    except ValueError:  # it has no such member any more
        return value


def _read_fields(family: str, name: str, values: dict[str, Any]) -> Any:
    kind = PROJECT.named(name)
    if kind is None or _family(kind) != family:
        return values
    item: Any = object.__new__(kind)
    if family == "scrapy":
        if not values.keys() <= item.fields.keys():
            return values
        item._values = values  # noqa: SLF001 - what its __init__ would do
    else:
        for field, value in values.items():
            object.__setattr__(item, field, value)
    return item


def _read_pydantic(name: str, state: dict[str, Any]) -> Any:
    kind = PROJECT.named(name)
    if kind is None or _family(kind) != "pydantic":
        return {**state["__dict__"], **(state.get("__pydantic_extra__") or {})}
    item: Any = object.__new__(kind)
    item.__setstate__(state)
    return item
