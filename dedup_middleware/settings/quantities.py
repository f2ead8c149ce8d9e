"""A setting's value -> a quantity: a number, a share, a time, a size; see `kinds`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from dedup_middleware.errors import ConfigError
from dedup_middleware.settings.kinds import as_number, shown

_SIZE = re.compile(r"([0-9.]+) ?(KB|MB|GB)", re.IGNORECASE)
_UNITS = {"KB": 1000, "MB": 1000**2, "GB": 1000**3}
# What SQLite can count.
_MAX_SIZE = 2**47


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number."""

    lowest: int | None = None

    @property
    def values(self) -> str:
        return "whole number" + ("" if self.lowest is None else f" from {self.lowest}")

    def read(self, name: str, value: object) -> int:
        wanted = "a whole number" + ("" if self.lowest is None else f" from {self.lowest} on")
        read = as_number(name, value, wanted)
        if read != int(read) or (self.lowest is not None and read < self.lowest):
            raise ConfigError(f"{name} = {shown(value)} is out of range; use {wanted}")
        return int(read)


@dataclass(frozen=True, slots=True)
class Share:
    """A number above *above* and up to 1."""

    above: float

    @property
    def values(self) -> str:
        return f"above {self.above}, up to 1"

    def read(self, name: str, value: object) -> float:
        number = as_number(name, value, f"a number above {self.above} and up to 1, such as 0.8")
        if not self.above < number <= 1:
            raise ConfigError(f"{name} = {shown(value)} is out of range; use a number above {self.above} and up to 1")
        return number


class Days:
    """A number of days, or none."""

    values = "number of days above 0, or `None`"

    def read(self, name: str, value: object) -> timedelta | None:
        if value in (None, "", "None"):  # the command line has texts only
            return None
        wanted = "a number of days above 0, or None"
        number = as_number(name, value, wanted)
        if not 0 < number <= timedelta.max.days:
            raise ConfigError(f"{name} = {shown(value)} is out of range; use {wanted}")
        return timedelta(days=number)


@dataclass(frozen=True, slots=True)
class Size:
    """A number of bytes, or none."""

    lowest: int
    may_be_none: bool = True

    @property
    def values(self) -> str:
        none = "`0`, or " * self.may_be_none
        return f'{none}a size from `"{self.lowest // 1000}KB"`, in KB, MB or GB'

    def read(self, name: str, value: object) -> int:
        none = "0 for none, or " * self.may_be_none
        wanted = f"{none}a size from '{self.lowest // 1000}KB' on, such as '200MB'"
        number, unit = value, 1
        if isinstance(value, str) and (written := _SIZE.fullmatch(value.strip())):
            number, unit = written[1], _UNITS[written[2].upper()]
        try:
            size = as_number(name, number, wanted) * unit
        except ConfigError:
            raise ConfigError(f"{name} = {shown(value)} is no size; use {wanted}") from None
        if (size or not self.may_be_none) and not self.lowest <= size < _MAX_SIZE:
            raise ConfigError(f"{name} = {shown(value)} is out of range; use {wanted}")
        return int(size)
