"""A dictionary of bounded size."""

from __future__ import annotations

from itertools import islice
from typing import TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


class Recent(dict[_K, _V]):
    """A dictionary that forgets the half that was set longest ago when it has *size* entries."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def __setitem__(self, key: _K, value: _V) -> None:
        # A key that is set again becomes the youngest.
        self.pop(key, None)
        if len(self) >= self._size:
            for old in [*islice(self, self._size // 2)]:
                del self[old]
        super().__setitem__(key, value)
