"""Python's garbage collector, relieved while a crawl runs.

Law of this file: it speaks to the interpreter, knows neither pages nor Scrapy, and undoes what it did.

A crawl makes so many objects that three or four times a second Python looks through all there are for cycles nobody
holds: a sixth of the time of a crawl, and nearly all of it spent on modules, classes and functions, which are there to
stay. ``gc.freeze`` takes what exists when the crawl starts out of its sight. What the crawl makes is collected as ever.
"""

from __future__ import annotations

import gc


class StartFreeze:
    """Keep what was there before the crawl out of the collector's sight until the crawl is over.

    Does nothing where somebody froze objects already, another crawl of the process or the program itself: then it is
    theirs to undo. Nor where the interpreter cannot freeze.
    """

    def __init__(self) -> None:
        self._is_ours = False

    def begin(self) -> None:
        """Freeze all objects there are. O(1)."""
        if hasattr(gc, "freeze") and not gc.get_freeze_count():
            gc.freeze()
            self._is_ours = True

    def end(self) -> None:
        """Give the collector back what `begin` took, garbage of that time included. Once; O(1)."""
        if self._is_ours:
            gc.unfreeze()
            self._is_ours = False
