"""Typed access to the settings of a project, one error text a kind.

Law of this file: it knows kinds of values, and no setting by name.
"""

from __future__ import annotations

import json
import logging
import math
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from dedup_middleware.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.settings import BaseSettings

_E = TypeVar("_E", bound=Enum)


def _json(value: str) -> object:
    try:
        return json.loads(value)
    except ValueError:
        return None


def number_of(name: str, value: object, wanted: str) -> float:
    """Return *value* as a number; *wanted* says in the error what to use."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number):
        raise ConfigError(f"{name} = {value!r} is no number; use {wanted}")
    return number


def choice_of(name: str, value: object, choices: type[_E]) -> _E:
    """Return *value* as one of *choices*."""
    try:
        return choices(value)
    except ValueError:
        allowed = ", ".join(repr(c.value) for c in choices)
        raise ConfigError(f"{name} = {value!r} is not known; use one of {allowed}") from None


class SettingsReader:
    """Every method takes the name of a setting; :class:`ConfigError` names it, its value and the remedy."""

    def __init__(self, settings: BaseSettings, defaults: Mapping[str, Any]) -> None:
        """Read *settings*; *defaults* has the value of each one that is not set."""
        self._settings = settings
        self._defaults = defaults

    def get(self, name: str) -> Any:
        """Return the value as it is."""
        return self._settings.get(name, self._defaults[name])

    def boolean(self, name: str) -> bool:
        """Return a truth value."""
        value = self.get(name)
        try:
            return self._settings.getbool(name, self._defaults[name])
        except (TypeError, ValueError):
            raise ConfigError(f"{name} = {value!r} is neither true nor false; use True or False") from None

    def text(self, name: str) -> str:
        """Return a text; empty for none."""
        value = self.get(name)
        if value is None or isinstance(value, str):
            return value or ""
        raise ConfigError(f"{name} = {value!r} is no text; use leveldb:PATH, sqlite:PATH or memory:")

    def choice(self, name: str, choices: type[_E]) -> _E:
        """Return one of *choices*."""
        return choice_of(name, self.get(name), choices)

    def whole(self, name: str, *, lowest: int, highest: float = math.inf) -> int:
        """Return a whole number from *lowest* to *highest*."""
        value = self.get(name)
        wanted = f"a whole number from {lowest} {'on' if highest == math.inf else f'to {highest}'}"
        number = number_of(name, value, wanted)
        if not lowest <= number <= highest or number != int(number):
            raise ConfigError(f"{name} = {value!r} is out of range; use {wanted}")
        return int(number)

    def seconds(self, name: str) -> float:
        """Return a number of seconds, 0 or more."""
        value = self.get(name)
        number = number_of(name, value, "a number of seconds from 0 on")
        if number < 0:
            raise ConfigError(f"{name} = {value!r} is out of range; use a number of seconds from 0 on")
        return number

    def days(self, name: str) -> timedelta | None:
        """Return a number of days, above 0; ``None`` for none."""
        value = self.get(name)
        if value is None or value == "":
            return None
        wanted = "a number of days above 0, or None"
        number = number_of(name, value, wanted)
        if not 0 < number <= timedelta.max.days:
            raise ConfigError(f"{name} = {value!r} is out of range; use {wanted}")
        return timedelta(days=number)

    def level(self, name: str) -> str:
        """Return the name of a log level."""
        value = self.get(name)
        if isinstance(value, str) and isinstance(logging.getLevelName(value.upper()), int):
            return value.upper()
        raise ConfigError(f"{name} = {value!r} is no log level; use 'DEBUG', 'INFO' or 'WARNING'")

    def names(self, name: str) -> tuple[str, ...]:
        """Return a list of names."""
        value = self.get(name)
        parts: object = value
        if isinstance(value, str):
            # On the command line: a,b or ["a", "b"].
            parts = _json(value) if value.lstrip().startswith("[") else value.split(",")
        if not isinstance(parts, (list, tuple)) or not all(isinstance(p, str) for p in parts):
            raise ConfigError(f"{name} = {value!r} is no list of field names; use for example ['title', 'text']")
        return tuple(stripped for p in parts if (stripped := p.strip()))
