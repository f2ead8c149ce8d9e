"""Python's garbage collector, tuned while a crawl runs.

It speaks to the interpreter, knows neither pages nor Scrapy, and undoes what it did.

A crawl makes so many objects that Python looks through the youngest of them for cycles nobody holds with every second
page, and three or four times a second through all there are: a fifth of the time of a crawl. Nearly all of these are
modules, classes and functions, which are there to stay: ``gc.freeze`` takes what exists when the crawl starts out of
its sight. The youngest are looked through ten times less often, and all that are left no more often than before.
Garbage that holds a page's tree (a response and its selector hold one another) waits longer for that: 8 to 10 MB in
all, and not more as the crawl goes on (docs/measurements.md).
"""

from __future__ import annotations

import gc

#: How many times as many objects may be made before the youngest are looked through.
RARER = 10
# Python's own thresholds, up to 3.12 and in 3.13. From 3.14 on, the collector goes through older ones by increments.
_OF_PYTHON = frozenset({(700, 10, 10), (2000, 10, 10)})


class TunedCollector:
    """Spare the collector what was there before the crawl, and the youngest objects, until the crawl is over.

    Whoever has a mind of its own about the collector is left alone: it does nothing where somebody froze objects
    already, another crawl of the process or the program itself, or has switched the collector off, or where the
    interpreter cannot freeze. Thresholds other than Python's own stay as they are. What others set or freeze meanwhile
    is not undone.
    """

    def __init__(self) -> None:
        self._frozen = 0
        self._before: tuple[int, int, int] | None = None
        self._since: tuple[int, int, int] | None = None

    def begin(self) -> None:
        """Freeze all objects there are, and raise the threshold of the youngest. A few milliseconds."""
        if not hasattr(gc, "freeze") or gc.get_freeze_count() or not gc.isenabled():
            return
        # What an earlier crawl has left, pages and their trees: frozen, it would stay until this one ends.
        gc.collect(1)
        gc.freeze()
        self._frozen = gc.get_freeze_count()
        youngest, *_ = before = gc.get_threshold()
        if before in _OF_PYTHON:
            # Each generation waits for one round more of the younger than its threshold says: 10 * 2 * 6 is 11 * 11, so
            # that all are looked through as often as before.
            gc.set_threshold(youngest * RARER, 1, 5)
            self._before, self._since = before, gc.get_threshold()

    def end(self) -> None:
        """Give the collector back what `begin` took, garbage of that time included. Once; O(1).

        Where there is more by now than was frozen then, somebody else has frozen what is theirs: it stays.
        """
        if gc.get_freeze_count() <= self._frozen:
            gc.unfreeze()
        self._frozen = 0
        if self._before is not None and gc.get_threshold() == self._since:
            gc.set_threshold(*self._before)
        self._before = None
