"""Tables for a terminal, and for whatever reads the output of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.inspection.extras import if_installed

if TYPE_CHECKING:
    from collections.abc import Sequence

_GAP = "  "


class Table(NamedTuple):
    """What is to be shown."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1
    """So many columns, the first ones, hold names and are aligned to the left; numbers stand right."""


def rendered(table: Table, *, terminal: bool) -> str:
    """Return *table* as text: for a *terminal* in the way of rich, where that is installed; else in plain columns."""
    rich = if_installed("rich.table") if terminal else None
    return _plain(table) if rich is None else _rich(table)


def _plain(table: Table) -> str:
    lines = [table.header, *table.rows]
    widths = [max(len(line[n]) for line in lines) for n in range(len(table.header))]
    aligned = (
        _GAP.join(
            cell.ljust(width) if n < table.names else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )
    return "\n".join(line.rstrip() for line in aligned)


def _rich(table: Table) -> str:
    box, made = if_installed("rich.box"), if_installed("rich.table")
    text, console = if_installed("rich.text").Text, if_installed("rich.console").Console()
    shown = made.Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for n, name in enumerate(table.header):
        shown.add_column(text(name), justify="left" if n < table.names else "right", overflow="fold")
    for row in table.rows:
        # As they are: a name may hold what rich takes for markup.
        shown.add_row(*map(text, row))
    with console.capture() as capture:
        console.print(shown)
    said: str = capture.get()
    return said.strip("\n")
