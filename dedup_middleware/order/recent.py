"""A dictionary of bounded size."""

from __future__ import annotations

from itertools import islice
from typing import TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


class Recent(dict[_K, _V]):
    """A dictionary that forgets the half that was added longest ago when it has *size* entries."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def __setitem__(self, key: _K, value: _V) -> None:
        if len(self) >= self._size and key not in self:
            for old in [*islice(self, self._size // 2 or 1)]:
                del self[old]
        super().__setitem__(key, value)
