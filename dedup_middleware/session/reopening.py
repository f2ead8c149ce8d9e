"""A store that is away, opened again: in a thread of its own, for a server that does not answer makes a caller wait.

It knows no event loop; a door asks from time to time whether it is open by now.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from dedup_middleware.errors import (
    StoreAwayError,
    StoreCorruptError,
    StoreError,
    StoreLockedError,
    StoreVersionError,
)
from dedup_middleware.session.opening import open_again

if TYPE_CHECKING:
    from dedup_middleware.session.opening import Resources

#: Seconds between two attempts.
PAUSE = 2.0
# Crawlers of one process that share the store share what is in memory of it, too: whoever comes next finds it whole.
_turn = threading.Lock()


class Reopening:
    """The attempts to open what a crawl has lost, until one succeeds, or shows that none can."""

    def __init__(self, lost: Resources) -> None:
        """Begin; the store of *lost* is closed, unless it is an observer's own."""
        self.trouble = ""
        """Why the last attempt failed, where it was not for a store that is away or in use."""
        self._lost = lost
        self._opened: Resources | None = None
        self._error: Exception | None = None
        self._ended = threading.Event()
        # What is opened is either taken or closed.
        self._guard = threading.Lock()
        # A daemon: the process need not wait for a server that does not answer.
        threading.Thread(target=self._run, name="dedup-reopening", daemon=True).start()

    def opened(self) -> Resources | None:
        """Return what is open by now, to its owner; ``None`` while nothing is.

        Raises what has ended the attempts: a ``StoreError`` where only a person can mend the store.
        """
        with self._guard:
            if self._error is not None:
                raise self._error
            opened, self._opened = self._opened, None
            return opened

    def end(self) -> None:
        """Make no further attempt, and close what is open."""
        with self._guard:
            self._ended.set()
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.store.close()

    def _run(self) -> None:
        try:
            if self._lost.awaited is None:
                with suppress(StoreError):
                    self._lost.store.close()
            while not self._ended.wait(PAUSE):
                opened = self._attempt()
                if opened is not None:
                    self._hand_over(opened)
                    return
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever asks is to hear of it
            self._error = error

    def _attempt(self) -> Resources | None:
        try:
            with _turn:
                return open_again(self._lost)
        except (StoreCorruptError, StoreVersionError):
            raise
        except StoreError as error:
            is_away = isinstance(error, (StoreAwayError, StoreLockedError))
            self.trouble = "" if is_away else str(error)
            return None

    def _hand_over(self, opened: Resources) -> None:
        with self._guard:
            if not self._ended.is_set():
                self._opened = opened
                return
        opened.store.close()
