"""Prints tables and progress at a terminal, and imports what an extra has installed."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from dedup_middleware.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

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


_T = TypeVar("_T")


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Show a bar for *what* of which there are *total*, if that is known; each call of what it yields is a step.

    The bar is gone when it is done. Nothing is shown where nobody looks, or without rich.
    """
    rich = if_installed("rich.progress") if sys.stderr.isatty() else None
    if rich is None:
        yield lambda: None
        return
    console = if_installed("rich.console").Console(stderr=True)
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
    )
    # What goes to standard output stays there: rich would write it to its own console.
    with rich.Progress(*columns, console=console, transient=True, redirect_stdout=False) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show that *what* goes on, and for how long already: for work whose steps cannot be told."""
    rich = if_installed("rich.progress") if sys.stderr.isatty() else None
    if rich is None:
        yield
        return
    console = if_installed("rich.console").Console(stderr=True)
    columns = (rich.SpinnerColumn(), rich.TextColumn("{task.description}"), rich.TimeElapsedColumn())
    with rich.Progress(*columns, console=console, transient=True, redirect_stdout=False) as bar:
        bar.add_task(what, total=None)
        yield


def counted(things: Iterable[_T], what: str) -> Iterator[_T]:
    """Yield *things*, and show how many there were, *what* they are."""
    with progress(what) as step:
        for thing in things:
            yield thing
            step()


EXTRA = 'pip install "dedup-middleware[compare]"'


def if_installed(module: str) -> Any:
    """Return the *module*; ``None`` where its package is not installed."""
    try:
        return import_module(module)
    except ImportError:
        return None


def required(module: str, why: str) -> Any:
    """Return the *module*; `ConfigError` where its package is not installed, which says *why* it must be."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(f"{why} needs {module.partition('.')[0]}, which is not installed: {EXTRA}") from error
