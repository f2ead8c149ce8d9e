"""Takes an address apart: its shape, and the variables that were taken out of it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

#: Characters of an address, and variables in it, beyond which it is not taken apart.
MAX_LENGTH, MAX_VARIABLES = 1000, 24

# Digits; a hexadecimal or mixed identifier; a slug of three words or more, which may end in a number.
_IDENTIFIER = re.compile(r"(?=[^\W_]*[0-9])(?:[0-9a-fA-F]{8,}|(?=[^\W_]*[a-zA-Z])[^\W_]{10,})")
_SLUG = re.compile(r"(?:[^\W_]|%[0-9A-Fa-f]{2})+(?:[-_+.~](?:[^\W_]|%[0-9A-Fa-f]{2})+){2,}")
_DIGITS = re.compile(r"[0-9]+")
_LONG_SEGMENT = 30
_VARIABLE = "*"


class UrlShape(NamedTuple):
    """An http address without its fragment."""

    host: str
    """With its port, if it has one."""
    segments: tuple[str, ...]
    """Of the path, with ``*`` where a variable was taken out."""
    shape: str
    """Host and path, with these."""
    names: str
    """Of its parameters, as a query has them, sorted; empty if it has none."""
    variables: dict[str, str]
    """Name -> value: those of the path by place (``1``, ``2``), those after ``;`` and in the query by name."""

    @property
    def form(self) -> str:
        """The shape, with the names of the parameters."""
        return self.shape + self.names


# The links of a page, which are looked at in turn.
@lru_cache(maxsize=128)
def address_of(url: str) -> UrlShape | None:
    """Return the address of *url*; ``None`` if it is not http, or too long to be taken apart.

    >>> address_of("http://shop.example/p/12.html?sid=9").form
    'shop.example/p/*.html?sid'
    """
    if len(url) > MAX_LENGTH or not url.startswith(("http://", "https://")):
        return None
    before, _, query = url.partition("#")[0].partition("?")
    netloc, _, path = before.partition("://")[2].partition("/")
    values: list[str] = []
    parameters: dict[str, str] = {}
    segments = []
    for segment in path.split("/"):
        name, *after = segment.split(";")
        segments.append(_taken_out(name, values))
        for parameter in after:
            _add(parameters, ";", parameter)
    for parameter in query.split("&"):
        _add(parameters, "", parameter)
    if len(values) + len(parameters) > MAX_VARIABLES:
        return None
    host = netloc.rpartition("@")[2].lower()
    variables = {str(place): value for place, value in enumerate(values, 1)} | parameters
    names = f"?{'&'.join(sorted(parameters))}" if parameters else ""
    return UrlShape(host, tuple(segments), "/".join((host, *segments)), names, variables)


def _taken_out(segment: str, values: list[str]) -> str:
    """Return *segment* with ``*`` for each variable, and add what was there to *values*."""
    if segment.isalpha() and len(segment) <= _LONG_SEGMENT:
        return segment
    stem, dot, suffix = segment.rpartition(".")
    if not dot or len(suffix) > 5 or not suffix.isalpha():  # noqa: PLR2004 - .xhtml
        stem, dot, suffix = segment, "", ""
    if len(stem) > _LONG_SEGMENT or _IDENTIFIER.fullmatch(stem) or _SLUG.fullmatch(stem):
        values.append(stem)
        return _VARIABLE + dot + suffix
    values.extend(_DIGITS.findall(stem))
    return _DIGITS.sub(_VARIABLE, stem) + dot + suffix


def _add(parameters: dict[str, str], mark: str, parameter: str) -> None:
    name, _, value = parameter.partition("=")
    if name or value:
        before = parameters.get(mark + name)
        parameters[mark + name] = value if before is None else f"{before},{value}"
