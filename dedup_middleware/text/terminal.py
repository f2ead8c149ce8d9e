"""Prints tables, progress and notes at a terminal."""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from unicodedata import east_asian_width

from dedup_middleware.text.clauses import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_GAP = "  "
# Columns that are left to a shortened name, however narrow the terminal is.
_LEAST = 16
_STYLES = {"bold": 1, "red": 31, "green": 32, "yellow": 33}
# Seconds between two updates of a progress line.
_PAUSE = 0.1


def tell(line: str) -> None:
    """Print *line*, which may contain names of files with any characters, to standard error."""
    print(f"dedup: {one_line(line)}", file=sys.stderr)  # noqa: T201 - beside the output


def plural(count: int, noun: str) -> str:
    """Return *count* with *noun*, such as "1 page" or "2,000 pages"."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def columns() -> int | None:
    """Return the width of the terminal that standard output is; ``None`` where it is a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def styled(text: str, style: str) -> str:
    """Return *text* in bold or a colour where standard output is a terminal and ``NO_COLOR`` is not set."""
    is_plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if is_plain else f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def _width(text: str) -> int:
    return sum(2 if east_asian_width(character) in "FW" else 1 for character in text)


def _start(text: Iterable[str], width: int) -> str:
    widths = accumulate(map(_width, text))
    return "".join(character for character, at in zip(text, widths, strict=True) if at <= width)


def shortened(text: str, width: int | None) -> str:
    """Return *text* for *width* columns, ``None`` for any: its middle is left out if it is wider."""
    if width is None or _width(text) <= width:
        return text
    end = _start(text[::-1], (width - 1) // 2)[::-1]
    return f"{_start(text, width - 1 - _width(end))}…{end}"


def fitted(text: str, start: str = "") -> str:
    """Return *text* behind *start*, shortened to the rest of a line where standard output is a terminal."""
    width = columns()
    return start + shortened(text, None if width is None else width - len(start))


class Table(NamedTuple):
    """Rows of cells below a header."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1
    """How many columns, the first ones, contain names and are aligned to the left; numbers are to the right."""


def rendered(table: Table, width: int | None = None) -> str:
    """Return *table* as text of at most *width* columns if possible, ``None`` for any: long names are shortened."""
    lines = [table.header, *table.rows]
    widths = [max(map(_width, cells)) for cells in zip(*lines, strict=True)]
    if width is not None:
        over = sum(widths) + len(_GAP) * (len(widths) - 1) - width
        for n in range(table.names):
            cut = max(0, min(over, widths[n] - _LEAST))
            widths[n] -= cut
            over -= cut
    text = []
    for line in lines:
        cells = [shortened(cell, width) for cell, width in zip(line, widths, strict=True)]
        fill = [" " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True)]
        sides = (c + f if n < table.names else f + c for n, (c, f) in enumerate(zip(cells, fill, strict=True)))
        text.append(_GAP.join(sides).rstrip())
    return "\n".join([styled(text[0], "bold") if width is not None else text[0], *text[1:]])


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Show *what* is being done on a line of the terminal until the block ends; the yielded function counts a step.

    *total* is the number of steps, if it is known. Nothing is shown if standard error is not a terminal.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    started = shown = time.monotonic()
    count = 0

    def show(text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()

    def step() -> None:
        nonlocal shown, count
        count += 1
        now = time.monotonic()
        if now - shown >= _PAUSE:
            shown = now
            show(f"{what}: {count}{'' if total is None else f' of {total}'}, {now - started:.0f} s")

    show(f"{what} …")
    try:
        yield step
    finally:
        show("")


_T = TypeVar("_T")


def counted(things: Iterable[_T], what: str) -> Iterator[_T]:
    """Yield *things*, and show their number and *what* they are at the terminal."""
    with progress(what) as step:
        for thing in things:
            yield thing
            step()
