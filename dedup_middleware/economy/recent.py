"""A dictionary of bounded size."""

from __future__ import annotations

from typing import Generic, TypeVar, overload

_K = TypeVar("_K")
_V = TypeVar("_V")


class Recent(Generic[_K, _V]):
    """A bounded dictionary: of many entries the older half is forgotten. O(1)."""

    def __init__(self, size: int) -> None:
        self._half = size // 2
        self._new: dict[_K, _V] = {}
        self._old: dict[_K, _V] = {}

    @overload
    def get(self, key: _K) -> _V | None: ...
    @overload
    def get(self, key: _K, default: _V) -> _V: ...
    def get(self, key: _K, default: _V | None = None) -> _V | None:
        """Return the value of *key*; *default* if it is not there."""
        return self._new[key] if key in self._new else self._old.get(key, default)

    def __setitem__(self, key: _K, value: _V) -> None:
        self._new[key] = value
        if len(self._new) >= self._half:
            self._old, self._new = self._new, {}
