"""``simhash:distance=0..16:2`` -> the choices that differ in one option alone."""

from __future__ import annotations

import re
from decimal import Decimal

from dedup_middleware.errors import ConfigError

_SWEEP = re.compile(
    r"(?P<choice>[^:]+:(?:.*,)?\s*(?P<option>[^=,:]+?)\s*=)\s*"
    r"(?P<first>-?[0-9.]*?[0-9])\.\.(?P<last>-?[0-9.]*?[0-9])(?::(?P<step>[0-9.]*?[0-9]))?"
)
# Each is a process.
_MAX_VALUES = 200


class Sweep:
    """The values of one option, from the first to the last."""

    def __init__(self, text: str) -> None:
        """Read *text*, ``METHOD:OPTION=A..B`` or ``METHOD:OPTION=A..B:STEP``; `ConfigError` if it is none.

        Without a step it is one unit of the finest digit given: 1 in 0..16, 0.1 in 0.5..0.9.
        """
        found = _SWEEP.fullmatch(text.strip())
        numbers = [] if found is None else [_number(found[name]) for name in ("first", "last", "step")]
        if found is None or None in numbers[:2] or (found["step"] and numbers[2] is None):
            raise ConfigError(f"{text!r} is no sweep; write METHOD:OPTION=A..B or METHOD:OPTION=A..B:STEP")
        first, last = (number for number in numbers[:2] if number is not None)
        step = numbers[2] or Decimal(1).scaleb(min(0, *(_exponent(number) for number in (first, last))))
        if last < first or numbers[2] == 0:
            raise ConfigError(f"{text!r} goes nowhere; write the smaller value first, and a step above 0")
        count = int((last - first) / step) + 1
        if count > _MAX_VALUES:
            raise ConfigError(f"{text!r} has {count} values, more than {_MAX_VALUES}; take larger steps")
        self.method: str = found["choice"].partition(":")[0]
        self.option: str = found["option"]
        self.values = [str(first + n * step) for n in range(count)]
        self.choices = [found["choice"] + value for value in self.values]


def _number(text: str | None) -> Decimal | None:
    return Decimal(text) if text and re.fullmatch(r"-?([0-9]+(\.[0-9]+)?|\.[0-9]+)", text) else None


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent
