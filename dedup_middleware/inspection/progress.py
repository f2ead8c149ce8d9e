"""How far a command has come, on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from dedup_middleware.inspection.extras import if_installed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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
