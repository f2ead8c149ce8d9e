"""A setting -> a value of the kind that it should have.

Law of this file: it knows kinds of values and no setting; one error text a kind.
"""

from __future__ import annotations

import json
import logging
import math
import reprlib
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dedup_middleware.addresses import as_in_urls
from dedup_middleware.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

_E = TypeVar("_E", bound=Enum)


# What a request's meta holds may be of any type and any size.
_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = _SHOWN.maxlong = 500
_SHOWN.maxlist = _SHOWN.maxtuple = _SHOWN.maxset = _SHOWN.maxfrozenset = _SHOWN.maxdict = 20
_MOST_SHOWN = 500


class _Settings(Protocol):
    """What is asked of Scrapy's settings."""

    def get(self, name: str, default: Any) -> Any: ...
    def getbool(self, name: str, default: Any) -> bool: ...


def shown(value: object) -> str:
    """Return *value* as an error says it: its ``repr``, on one line and cut, whatever it is."""
    try:
        text = _SHOWN.repr(value)
    except ValueError:  # an integer of more digits than Python writes
        text = f"<{type(value).__name__}>"
    text = text if text.isprintable() else ascii(text)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"


def as_number(name: str, value: object, wanted: str) -> float:
    """Return *value* as a finite number; the ConfigError says what is *wanted*."""
    try:
        read = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        read = math.nan
    if isinstance(value, bool) or not math.isfinite(read):
        raise ConfigError(f"{name} = {shown(value)} is no number; use {wanted}")
    return read


def as_choice(name: str, value: object, choices: type[_E]) -> _E:
    """Return the one of *choices* that *value* is or names, or raise ConfigError."""
    try:
        return choices(value)
    except ValueError:
        allowed = ", ".join(repr(c.value) for c in choices)
        raise ConfigError(f"{name} = {shown(value)} is not known; use one of {allowed}") from None


class SettingsReader:
    """Typed access to the settings, one error text a kind."""

    def __init__(self, settings: _Settings, defaults: Mapping[str, Any]) -> None:
        """Read *settings*; *defaults* stand for what they lack, and for ``None``."""
        self._settings = settings
        self._defaults = defaults

    def get(self, name: str) -> Any:
        return self._settings.get(name, self._defaults[name])

    def boolean(self, name: str) -> bool:
        value = self.get(name)
        try:
            return self._settings.getbool(name, self._defaults[name])
        except (TypeError, ValueError, OverflowError):
            raise ConfigError(f"{name} = {shown(value)} is neither true nor false; use True or False") from None

    def text(self, name: str) -> str:
        value = self.get(name)
        if value is None or isinstance(value, str):
            return value or ""
        raise ConfigError(f"{name} = {shown(value)} is no text; use leveldb:PATH, sqlite:PATH or memory:")

    def choice(self, name: str, choices: type[_E]) -> _E:
        return as_choice(name, self.get(name), choices)

    def whole(self, name: str, *, lowest: int, highest: float = math.inf) -> int:
        value = self.get(name)
        wanted = f"a whole number from {lowest} {'on' if highest == math.inf else f'to {highest}'}"
        read = as_number(name, value, wanted)
        if not lowest <= read <= highest or read != int(read):
            raise ConfigError(f"{name} = {shown(value)} is out of range; use {wanted}")
        return int(read)

    def seconds(self, name: str) -> float:
        value = self.get(name)
        read = as_number(name, value, "a number of seconds from 0 on")
        if read < 0:
            raise ConfigError(f"{name} = {shown(value)} is out of range; use a number of seconds from 0 on")
        return read

    def days(self, name: str) -> timedelta | None:
        value = self.get(name)
        if value in (None, "", "None"):  # the command line has texts only
            return None
        wanted = "a number of days above 0, or None"
        number = as_number(name, value, wanted)
        if not 0 < number <= timedelta.max.days:
            raise ConfigError(f"{name} = {shown(value)} is out of range; use {wanted}")
        return timedelta(days=number)

    def level(self, name: str) -> str:
        value = self.get(name)
        if isinstance(value, str) and isinstance(logging.getLevelName(value.upper()), int):
            return value.upper()
        raise ConfigError(f"{name} = {shown(value)} is no log level; use 'DEBUG', 'INFO' or 'WARNING'")

    def names(self, name: str, *, example: str) -> tuple[str, ...]:
        value = self.get(name)
        parts: object = value
        if isinstance(value, str):
            # On the command line: a,b or ["a", "b"].
            parts = _json(value) if value.lstrip().startswith("[") else value.split(",")
        if not isinstance(parts, (list, tuple)) or not all(isinstance(p, str) for p in parts):
            raise ConfigError(f"{name} = {shown(value)} is no list of names; use for example ['{example}']")
        return tuple(stripped for p in parts if (stripped := p.strip()))

    def hosts(self, name: str) -> tuple[str, ...]:
        hosts = {host: as_in_urls(host) for host in self.names(name, example="example.org")}
        for host, read in hosts.items():
            if not read:
                # It would match nothing, and nobody would notice.
                raise ConfigError(
                    f"{name} = {shown(self.get(name))} has {host!r}, which is no host; "
                    "use for example ['example.org'], without scheme, port, path or '*'"
                )
        return tuple(hosts.values())


def _json(value: str) -> object:
    try:
        return json.loads(value)
    except ValueError:
        return None
