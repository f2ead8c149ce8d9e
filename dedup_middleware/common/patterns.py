"""Compiles regular expressions when they are first used: large classes of characters take milliseconds each."""

from __future__ import annotations

import re
from typing import Any, cast


class _Pattern:
    """Stands for a regular expression. Its methods become attributes of its own, which cost what `re`'s cost."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, found)
        return found


def pattern(expression: str, flags: int = 0) -> re.Pattern[str]:
    """Return a regular expression that is compiled when one of its methods is called; it is for methods only.

    >>> pattern("[a-z]+").findall("ab 1 c")
    ['ab', 'c']
    """
    return cast("re.Pattern[str]", _Pattern(expression, flags))
