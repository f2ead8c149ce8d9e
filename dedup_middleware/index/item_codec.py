"""Writes items as bytes and reads them back: JSON in which types are named, never code.

``decode(encode(item)) == item``, of the same type, for dicts, Scrapy items, dataclasses, attrs and pydantic models with
values of the types in `VALUES`. An item with any other value, such as a response or an open file, cannot be stored. A
class is named, and found among those of the project when the item is read: see :class:`ProjectClasses`. If it is gone,
or is not a class of items any more, the item is read as a dict. Nothing is imported, and no ``__init__`` runs.
"""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from enum import Enum
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dedup_middleware.common.bounded import MAX_VALUES, has_more, loads
from dedup_middleware.common.values import MAX_LEVELS, VALUES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

#: Bytes of an item. A larger one is not stored, and so not dropped.
MAX_BYTES = 8 * 2**20
# Other JSON readers have 64 bits.
_MAX_INT = 2**63
_TYPES = {each.tag: each for each in VALUES.values() if each.tag}


class NotStorableError(ValueError):
    """A value of class *kind* cannot be read back as it was."""

    def __init__(self, kind: type) -> None:
        super().__init__(kind)
        self.kind = kind


def encode(item: Any) -> bytes:
    """Return *item* as bytes; :class:`NotStorableError` if it could not be read back as it is."""
    try:
        written = _written(item, 2 * MAX_LEVELS)
    except NotStorableError:
        raise
    except Exception as error:  # an item's class is the project's
        raise NotStorableError(type(item)) from error
    # Escaped, two surrogates would come back as one character.
    data = json.dumps(written, ensure_ascii=False, separators=(",", ":")).encode("utf8", "surrogatepass")
    if len(data) > MAX_BYTES or has_more(data, MAX_VALUES):
        raise NotStorableError(type(item))
    return data


def decode(data: bytes) -> Any:
    """Return the item that :func:`encode` has written; ``ValueError`` if that has not written *data*."""
    try:
        return _read(loads(data.decode("utf8", "surrogatepass")))
    except Exception as error:
        raise ValueError(f"not an item: {error!r}") from error


def values(data: bytes, named: Collection[str] = ()) -> list[tuple[str, Any, bool]]:
    """Return the plain values in what :func:`encode` has written, each with the innermost field that it stands under.

    Types, classes and lengths are values too, without a field: items are equal if all of these are, in order. With each
    is whether any of the *named* fields contains it.
    """
    found: list[tuple[str, Any, bool]] = []
    waiting: list[tuple[str, Any, bool]] = [("", loads(data.decode("utf8", "surrogatepass")), False)]
    while waiting:
        name, written, is_named = waiting.pop()
        if isinstance(written, list):
            found.append(("", f"[{len(written)}", is_named))
            waiting += [(name, each, is_named) for each in reversed(written)]
        elif isinstance(written, dict):
            ((tag, value),) = written.items()
            found.append(("", tag, is_named))
            if tag == "dict":
                found.append(("", f"[{len(value)}", is_named))
                for key, each in reversed(value):
                    field = key if isinstance(key, str) else json.dumps(key)
                    waiting += [(field, each, is_named or field in named), ("", key, is_named)]
            elif tag in _TYPES:
                waiting += [(name, value, is_named)]
            else:
                waiting += [(name, value[1], is_named), ("", value[0], is_named)]
        else:
            found.append((name, written, is_named))
    return found


def name_of(kind: type) -> str:
    """Return the name under which a class is found again: ``module:qualified.name``."""
    return f"{kind.__module__}:{kind.__qualname__}"


class ProjectClasses:
    """The classes that items may be of: those that loaded modules of the project define, or have imported.

    A store may have been written by others: what it names is looked up among these only, and no module is imported.
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
        if (found := self._found.get(name) or self._loaded(name)) is not None:
            self._found[name] = found
        return found

    def _loaded(self, name: str) -> type | None:
        module, _, path = name.partition(":")
        found: Any = sys.modules.get(module)
        classes: list[type] = []
        for part in path.split("."):
            # Not getattr, which may run code.
            found = vars(found).get(part) if isinstance(found, (ModuleType, type)) else None
            if not isinstance(found, type):
                return None
            classes.append(found)
        return classes[-1] if name_of(classes[-1]) == name and self._has(classes[0]) else None

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


#: Those of the projects of this process.
PROJECT = ProjectClasses()


# --- writing: a value as itself where JSON has it, else an object with its tag alone


def _written(value: Any, levels: int) -> Any:
    kind = type(value)
    if kind in (str, float, bool, type(None)) or (kind is int and -_MAX_INT <= value < _MAX_INT):
        return value
    if not levels:
        raise NotStorableError(kind)
    if (known := VALUES.get(kind)) is not None:
        try:
            written = known.write(value)
        except ValueError as error:
            raise NotStorableError(kind) from error
        if isinstance(written, list):
            written = [_written(each, levels - 1) for each in written]
            if kind in (set, frozenset):
                # Texts have another order in each process.
                written.sort(key=json.dumps)
        return {known.tag: written} if known.tag else written
    if isinstance(value, str) and not isinstance(value, Enum):
        # A text that refers to its document, as those that lxml finds: of an item, it is a text.
        return str.__str__(value)
    tag, content = _taken_apart(value, kind)
    if PROJECT.named(name_of(kind)) is not kind:
        raise NotStorableError(kind)
    return {tag: [name_of(kind), _written(content, levels - 1)]}


def _taken_apart(value: Any, kind: type) -> tuple[str, Any]:
    """Return what makes *value*, an item or a member of an Enum, and the tag of its *kind*."""
    if isinstance(value, Enum):
        return "enum", value.value
    family = _family(kind)
    if family is None:
        raise NotStorableError(kind)
    if family == "pydantic":
        return family, dict(value.__getstate__())
    if family == "scrapy":
        return family, value._values  # noqa: SLF001 - dict() would copy
    names = [f.name for f in (fields(value) if family == "dataclass" else kind.__attrs_attrs__)]  # type: ignore[attr-defined]
    return family, {name: getattr(value, name) for name in names if hasattr(value, name)}


@lru_cache(maxsize=1000)
def _family(kind: type) -> str | None:
    """Return the family of item classes that *kind* is in; ``None`` if it is in no family that can be stored."""
    # Where Scrapy is installed itemadapter imports it, which a program that only checks pages need not wait for.
    from itemadapter import adapter  # noqa: PLC0415

    families = {
        "scrapy": adapter.ScrapyItemAdapter,
        "dataclass": adapter.DataclassAdapter,
        "attrs": adapter.AttrsAdapter,
        "pydantic": adapter.PydanticAdapter,
    }
    return next((name for name, adapter_class in families.items() if adapter_class.is_item_class(kind)), None)


# --- reading


def _read(written: Any) -> Any:
    if isinstance(written, list):
        return [_read(each) for each in written]
    if not isinstance(written, dict):
        return written
    ((tag, value),) = written.items()
    if tag in _TYPES:
        return _TYPES[tag].read(_read(value))
    name, content = value
    return _put_together(tag, PROJECT.named(name), _read(content))


def _put_together(tag: str, kind: Any, content: Any) -> Any:
    """Return what :func:`_taken_apart` has taken apart; of a *kind* that the project does not have, a dict or value."""
    if tag == "enum":
        try:
            return kind(content) if kind is not None and issubclass(kind, Enum) else content
        except ValueError:  # it has no such member any more
            return content
    is_gone = kind is None or _family(kind) != tag
    if tag == "pydantic" and is_gone:
        return {**content["__dict__"], **(content.get("__pydantic_extra__") or {})}
    if is_gone or (tag == "scrapy" and not content.keys() <= kind.fields.keys()):
        return dict(content)
    item: Any = object.__new__(kind)
    if tag == "pydantic":
        item.__setstate__(content)
    elif tag == "scrapy":
        item._values = content  # noqa: SLF001 - what its __init__ would do
    else:
        for name, value in content.items():
            object.__setattr__(item, name, value)
    return item
