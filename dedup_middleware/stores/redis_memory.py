"""What is at hand of a store on a server: what was read lately, and what this process has written since.

As the store was at one version, all of it; a later version of others makes mere guesses of it, for whoever can verify
them. It knows keys and values, and asks nobody.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# What forty pages have asked for.
_REMEMBERED = 4_096
_WRITES = 64


class Memory:
    """Keys and values, ``None`` for those that are absent."""

    def __init__(self, version: int) -> None:
        self.version = version
        """Of the store, the newest that was heard of."""
        self.own = 0
        """How many of these this process has made."""
        self._known: dict[bytes, bytes | None] = {}
        self._guesses: dict[bytes, bytes | None] = {}
        # The last own writes, with the versions that they made: what was read before one, and is heard of after it.
        self._written: deque[tuple[int, Mapping[bytes, bytes | None]]] = deque(maxlen=_WRITES)

    @property
    def others(self) -> int:
        """Another number whenever another worker has written."""
        return self.version - self.own

    def known(self) -> Mapping[bytes, bytes | None]:
        """Return what is so at :attr:`version`."""
        return self._known

    def guessed(self) -> Mapping[bytes, bytes | None]:
        """Return what was so at some version before; of these keys, others may be known better."""
        return self._guesses

    def hear(self, version: int) -> None:
        """Note that the store has this *version* now, and that not all of it is our own doing."""
        if version > self.version:
            self.version = version
            self._guesses, self._known = self._known, {}

    def learn(self, version: int, found: Mapping[bytes, bytes | None]) -> None:
        """Note what was read when the store had this *version*; it may have been some time ago."""
        self.hear(version)
        since = [changes for number, changes in self._written if number > version]
        for changes in since:
            found = {key: changes.get(key, value) for key, value in found.items()}
        if len(self._known) > _REMEMBERED:
            self._guesses, self._known = self._known, {}
        # Between the version that they are of and the newest, others must not have come.
        (self._known if version + len(since) == self.version else self._guesses).update(found)

    def note(self, version: int, changes: Mapping[bytes, bytes | None]) -> None:
        """Note that this process has made this *version* by *changes*."""
        self.hear(version - 1)
        self.version = version
        self.own += 1
        self._written.append((version, changes))
        self._known.update(changes)

    def forget(self) -> None:
        """Know nothing any more, and guess nothing."""
        self._known, self._guesses = {}, {}
