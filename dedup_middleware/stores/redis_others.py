"""Whether others have written to a store on a server since somebody looked, so that he is to look again.

It counts, and asks nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dedup_middleware.stores.redis_memory import Memory
    from dedup_middleware.stores.redis_run import Run


class Others:
    """What one worker is told of the others, by what its *memory* has heard."""

    def __init__(self, memory: Memory) -> None:
        self.doubts = 0
        """How often somebody may have seen what is not so any more."""
        self._memory = memory
        # What was last told, and when the run began that is under way.
        self._told = self._told_before = -1
        # What was known of others when this worker wrote last, and whether that was news.
        self._last, self._is_crowded = -1, False

    def begin(self) -> None:
        """Note that a run begins."""
        self._told_before = self._told

    def written(self) -> None:
        """Note that this worker has written."""
        self._is_crowded, self._last = self._memory.others != self._last, self._memory.others

    def changes(self, run: Run | None) -> int:
        """See SharedStore.changes_of_others; for the *run* that is under way, if one is."""
        if run is not None and self._told_before == self._memory.others + self.doubts:
            if self._is_crowded:
                # They have written by now, most probably: to look again costs less than to be refused.
                self.doubts += 1
            else:
                # Whoever hears that nothing has changed need not look again; that must be so then.
                run.expected = self._memory.version
        self._told = self._memory.others + self.doubts
        return self._told
