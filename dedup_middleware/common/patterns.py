"""Compiles regular expressions when they are first used: large classes of characters take milliseconds each."""

from __future__ import annotations

import re
from typing import Any, cast


class _Compiled:
    """Has the methods of a regular expression as attributes of its own, which cost what those of `re` cost."""

    def __init__(self, expression: str, flags: int) -> None:
        self.pattern, self.flags = expression, flags


class _Pattern(_Compiled):
    """Stands for a regular expression until one of its methods is asked for."""

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self.pattern, self.flags)
        vars(self).update((each, getattr(compiled, each)) for each in _METHODS)
        # A class with `__getattr__` would look for each attribute in a slower way.
        self.__class__ = _Compiled  # type: ignore[assignment]
        return getattr(self, name)


_METHODS = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn")


def pattern(expression: str, flags: int = 0) -> re.Pattern[str]:
    """Return a regular expression that is compiled when one of its methods is called; it is for methods only.

    >>> pattern("[a-z]+").findall("ab 1 c")
    ['ab', 'c']
    """
    return cast("re.Pattern[str]", _Pattern(expression, flags))
