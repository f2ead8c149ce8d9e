"""Reads the key of an item: the values of the fields that name a thing, by which it is judged wherever it came from."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, NamedTuple

from dedup_middleware.index import item_codec
from dedup_middleware.items.item_values import item_fields

#: Characters of a key that are shown.
MAX_SHOWN = 200
_DICT = "dict"
# How values begin in JSON that are no bare text.
_JSON = frozenset('"[{-0123456789tfnNI')


def as_shown(name: str) -> str:
    """Return the key that a person has typed as *name* as records show it: JSON without spaces between its values."""
    start = name.find("[")
    if start >= 0:
        with suppress(ValueError, RecursionError):
            return name[:start] + json.dumps(json.loads(name[start:]), separators=(",", ":"), ensure_ascii=False)
    return name


class ItemKey(NamedTuple):
    """The key of an item."""

    text: str
    """As records show it: ``17``, ``["17","acme"]``, after the class of the item if that is not dict."""
    paths: Sequence[str]
    """Its fields."""
    identity: bytes
    """16 bytes that are equal for the same values, of the same types, in one class of items and one spider."""

    def identity_with(self, *parts: bytes) -> bytes:
        """Return the identity of this key together with these *parts*."""
        return blake2b(self.identity + b"".join(parts), digest_size=len(self.identity), person=b"key of").digest()


class ItemKeys:
    """The keys of the items of one *spider*: those of another one, in a store that they share, name other things."""

    def __init__(self, spider: str, fields: Mapping[str, Sequence[str]]) -> None:
        """Read the *fields* of each class; under the empty name, those of all others."""
        self._spider = spider
        self._fields = fields
        self._kinds: dict[type, tuple[str, Sequence[str]]] = {}
        self.are_missing = bool(fields)
        """Whether keys are wanted, and no item had one."""

    def of(self, item: Any) -> ItemKey | None:
        """Return the key of *item*; ``None`` if it lacks a field of it, or that is empty or cannot be stored."""
        kind, paths = self._kinds.get(type(item)) or self._kind(type(item))
        try:
            values = [_value_at(item, path) for path in paths]
            if not values or any(map(_is_empty, values)):
                return None
            key = self.shown(_shown(kind, values), paths)
        except Exception:  # noqa: BLE001 - an item's class is the project's; RecursionError
            return None
        self.are_missing = False
        return key

    def shown(self, text: str, paths: Sequence[str] = ()) -> ItemKey:
        """Return the key that records show as *text*; its fields are these *paths*, or those of its class."""
        kind, _, rest = text.partition(" ")
        paths = paths or self._fields.get(kind if rest else _DICT) or self._fields.get("", ())
        named = json.dumps([self._spider, [*paths], text]).encode()
        return ItemKey(text, paths, blake2b(named, digest_size=16, person=b"key").digest())

    def _kind(self, kind: type) -> tuple[str, Sequence[str]]:
        """Return the name of a class, and the fields of its key: its own, or those of the class it is made of."""
        names = [_DICT if base is dict else f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__]
        fields = next((self._fields[name] for name in names if name in self._fields), self._fields.get("", ()))
        self._kinds[kind] = names[0], fields
        return self._kinds[kind]


def _value_at(item: Any, path: str) -> Any:
    """Return the value at *path* in *item*: ``sku``, ``offer.sku``, ``codes.0``; ``None`` if nothing is there."""
    fields = {str(n): each for n, each in enumerate(item)} if isinstance(item, (list, tuple)) else item_fields(item)
    if fields is None:
        return None
    if path in fields:
        return fields[path]
    name, _, rest = path.partition(".")
    return _value_at(fields[name], rest) if rest and name in fields else None


def _is_empty(value: Any) -> bool:
    """Return whether *value* names nothing: no text, NaN, or a collection of such values."""
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, Collection) and not isinstance(value, bytes):
        return all(map(_is_empty, value.values() if isinstance(value, Mapping) else value))
    return value is None or value == b"" or bool(value != value)  # noqa: PLR0124 - NaN


def _shown(kind: str, values: Sequence[Any]) -> str:
    """Return *values* of the class *kind* as a text that no others have: in JSON, but for a single word.

    A page may make them as long as it likes: beyond `MAX_SHOWN` characters, with a digest of all.
    """
    is_word = len(values) == 1 and _is_word(values[0])
    # A text can be stored.
    written = b"" if is_word and type(values[0]) is str else item_codec.encode(values)
    text = values[0] if is_word else written.decode("utf8", "replace")
    text = text if is_word or len(values) > 1 else text[1:-1]
    text = text if kind == _DICT else f"{kind} {text}"
    if len(text) <= MAX_SHOWN and "\ufffd" not in text:
        return text
    written = written or item_codec.encode(values)
    return f"{text[: MAX_SHOWN - 40]}…{blake2b(kind.encode() + written, digest_size=16).hexdigest()}"


def _is_word(value: Any) -> bool:
    """Return whether *value* is a text that JSON cannot be, nor what is behind a class, nor what was cut."""
    if not (isinstance(value, str) and value.isprintable()) or " " in value or "…" in value:
        return False
    with suppress(ValueError):
        if value[0] in _JSON:
            json.loads(value)
            return False
    return True
