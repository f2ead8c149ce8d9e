"""A setting's value -> a value of the kind that it should have.

It knows kinds of values and no setting; one error text a kind.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import reprlib
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints import is_published
from dedup_middleware.urls import HostPattern, as_in_urls

if TYPE_CHECKING:
    from dedup_middleware.registry import Registry

_E = TypeVar("_E", bound=Enum)


# What a request's meta holds may be of any type and any size.
_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = _SHOWN.maxlong = 500
_SHOWN.maxlist = _SHOWN.maxtuple = _SHOWN.maxset = _SHOWN.maxfrozenset = _SHOWN.maxdict = 20
_MAX_SHOWN = 500
# As Scrapy reads them.
_TRUE, _FALSE = ("True", "true"), ("False", "false")
# A host name or an IPv6 address in brackets, perhaps with a port.
_PLAIN_HOST = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\])(?::([0-9]{1,5}))?")
_PREFERRED_REMEDY = "use for example ['example.org', '/story/']"


class Kind(Protocol):
    """A kind of values."""

    @property
    def values(self) -> str:
        """What is allowed, as the table of the settings says it."""

    def read(self, name: str, value: object) -> Any:
        """Return what *value* of the setting *name* means; :class:`ConfigError` names it, and the remedy."""


def shown(value: object) -> str:
    """Return *value* as an error says it: its ``repr``, on one line and cut, whatever it is."""
    try:
        text = _SHOWN.repr(value)
    except ValueError:  # an integer of more digits than Python writes
        text = f"<{type(value).__name__}>"
    text = text if text.isprintable() else ascii(text)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


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


class Boolean:
    """True or false."""

    values = "boolean"

    def read(self, name: str, value: object) -> bool:
        try:
            return bool(int(value))  # type: ignore[call-overload]
        except (TypeError, ValueError, OverflowError):
            if value in _TRUE or value in _FALSE:
                return value in _TRUE
            raise ConfigError(f"{name} = {shown(value)} is neither true nor false; use True or False") from None


@dataclass(frozen=True, slots=True)
class Choice:
    """One of an enum's values."""

    choices: type[Enum]

    @property
    def values(self) -> str:
        return ", ".join(f'`"{choice.value}"`' for choice in self.choices)

    def read(self, name: str, value: object) -> Enum:
        return as_choice(name, value, self.choices)


@dataclass(frozen=True, slots=True)
class Name:
    """One of a registry's names."""

    registry: Registry

    @property
    def values(self) -> str:
        return ", ".join(f'`"{name}"`' for name in self.registry.ours)

    def read(self, name: str, value: object) -> str:
        if isinstance(value, str) and value in self.registry:
            return value
        allowed = ", ".join(map(repr, self.registry.names()))
        raise ConfigError(f"{name} = {shown(value)} is not known; use one of {allowed}")


@dataclass(frozen=True, slots=True)
class FingerprintName(Name):
    """One of our fingerprints, or a published method, with options or without."""

    @property
    def values(self) -> str:
        return f"{Name(self.registry).values}, or a [published method](methods.md)"

    def read(self, name: str, value: object) -> str:
        if isinstance(value, str) and is_published(value):
            return value
        try:
            return Name(self.registry).read(name, value)
        except ConfigError as error:
            raise ConfigError(f"{error}, or a published method (docs/methods.md)") from error


class Level:
    """The name of a log level."""

    values = "name of a log level"

    def read(self, name: str, value: object) -> str:
        if isinstance(value, str) and isinstance(logging.getLevelName(value.upper()), int):
            return value.upper()
        raise ConfigError(f"{name} = {shown(value)} is no log level; use 'DEBUG', 'INFO' or 'WARNING'")


@dataclass(frozen=True, slots=True)
class Names:
    """A list of names."""

    example: str
    values: str = "list of names, or names with commas"

    def read(self, name: str, value: object) -> tuple[str, ...]:
        parts: object = value
        if isinstance(value, str):
            # On the command line: a,b or ["a", "b"].
            parts = _json(value) if value.lstrip().startswith("[") else value.split(",")
        if not isinstance(parts, (list, tuple)) or not all(isinstance(p, str) for p in parts):
            raise ConfigError(f"{name} = {shown(value)} is no list of names; use for example ['{self.example}']")
        return tuple(stripped for p in parts if (stripped := p.strip()))


class Preferred:
    """A list of hosts and regular expressions."""

    values = "list of hosts or regular expressions, or one of them"

    def read(self, name: str, value: object) -> tuple[HostPattern | re.Pattern[str], ...]:
        parts: object = value
        if isinstance(value, str):
            # On the command line: a,b or ["a", "b"]. A regular expression may contain commas and brackets.
            listed = value.split(",")
            are_hosts = all(_PLAIN_HOST.fullmatch(part.strip()) for part in listed)
            parts = _json(value) or (listed if are_hosts else [value])
        if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
            raise ConfigError(f"{name} = {shown(value)} is not a list of texts; {_PREFERRED_REMEDY}")
        return tuple(self._read(name, value, part) for part in parts if part.strip())

    def _read(self, name: str, value: object, part: str) -> HostPattern | re.Pattern[str]:
        plain = _PLAIN_HOST.fullmatch(part.strip())
        try:
            if plain is None:
                return re.compile(part)
        except (re.error, OverflowError, RecursionError) as error:
            raise ConfigError(
                f"{name} = {shown(value)} contains {shown(part)}, which is not a valid regular expression "
                f"({shown(str(error))}); {_PREFERRED_REMEDY}"
            ) from error
        if host := as_in_urls(plain[1]):
            return HostPattern(host, int(plain[2]) if plain[2] else None)
        raise ConfigError(
            f"{name} = {shown(value)} contains {shown(part)}, which is not a valid host; {_PREFERRED_REMEDY}"
        )


class StoreUri:
    """The URI of a store; ``None`` where none is named. Which ones there are, `stores` knows."""

    values = "`leveldb:PATH`, `rocksdb:PATH`, `sqlite:PATH`, `sqlite:PATH?shared=1`, `redis://HOST`, `memory:`"

    def read(self, name: str, value: object) -> str | None:
        if value is None or isinstance(value, str):
            return value or None
        raise ConfigError(f"{name} = {shown(value)} is no text; use leveldb:PATH, rocksdb:PATH, sqlite:PATH or memory:")


class LogPath:
    """The path of a file; an empty one for none, ``None`` where nothing is said."""

    values = 'path, or `""`'

    def read(self, name: str, value: object) -> Path | str | None:
        if value is None:
            return None
        if isinstance(value, (str, os.PathLike)):
            if not os.fspath(value):
                return ""
            try:
                if b"\0" not in os.fsencode(value):
                    return Path(value)
            except UnicodeEncodeError:  # a lone surrogate
                pass
        raise ConfigError(f"{name} = {shown(value)} is no path; use the path of a file, or '' for no log")


def _json(value: str) -> object:
    try:
        return json.loads(value)
    except ValueError:
        return None
