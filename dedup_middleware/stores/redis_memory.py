"""What is at hand of a store on a server: what was read lately, and what this process has written since.

What it knows is so at one version of the store, all of it. When others have made a later one, it becomes mere guesses:
mostly right, for whoever can verify them. It knows keys and values, and asks nobody.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

#: Seconds for which what was heard of the server counts as what is so: what others write is noticed so much later by
#: who only reads. Whoever writes by what he has read notices it in any case.
FRESH = 0.1
#: Among what was noted: that something was scanned, which keys cannot tell to be as it was. No key is empty.
SCANNED = b""
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
        self.heard = 0.0
        """When the server was last heard of."""
        self._noted: dict[bytes, bytes | None] | None = None
        self._known: dict[bytes, bytes | None] = {}
        # Guesses: of the half FRESH that runs, of the one before it, and of before that.
        self._recent: dict[bytes, bytes | None] = {}
        self._earlier: dict[bytes, bytes | None] = {}
        self._old: dict[bytes, bytes | None] = {}
        self._turned = 0.0
        self._brought: deque[tuple[int, Mapping[bytes, bytes | None], float]] = deque()
        # The last own writes, with the versions that they made, and what was added to: what was read before one, and is
        # heard of after it.
        self._written: deque[tuple[int, Mapping[bytes, bytes | None], frozenset[bytes]]] = deque(maxlen=_WRITES)

    @property
    def others(self) -> int:
        """Another number whenever another worker has written."""
        return self.version - self.own

    @property
    def is_fresh(self) -> bool:
        """Whether the server was heard of just now."""
        return time.monotonic() - self.heard < FRESH

    def known(self) -> Mapping[bytes, bytes | None]:
        """Return what is so at :attr:`version`."""
        return self._known

    def guesses(self) -> tuple[Mapping[bytes, bytes | None], ...]:
        """Return what was so at some version before, the newest first."""
        return self._recent, self._earlier, self._old

    def recalled(self, keys: Sequence[bytes]) -> tuple[list[bytes | None], bool] | None:
        """Return what *keys* had just now, and whether some of that is a guess; ``None`` if some are not at hand."""
        self._turn()
        known, recent, earlier = self._known if self.is_fresh else {}, self._recent, self._earlier
        with suppress(KeyError):
            return [*map(known.__getitem__, keys)], False
        values, guesses = [], 0
        for key in keys:
            if key in known:
                values.append(known[key])
                continue
            guesses += 1
            if key in recent:
                values.append(recent[key])
            elif key in earlier:
                values.append(earlier[key])
            else:
                return None
        return values, guesses > 0

    @contextmanager
    def noting(self, seen: Callable[[], Mapping[bytes, bytes | None]]) -> Iterator[dict[bytes, bytes | None]]:
        """See FarStore; and of what is *seen* in the end."""
        noted: dict[bytes, bytes | None] = {}
        before, self._noted = self._noted, noted
        try:
            yield noted
        finally:
            noted.update(seen())
            self._noted = before

    def given(self, keys: Iterable[bytes], values: Iterable[bytes | None]) -> None:
        """Note that somebody was given these *values*, if he is :meth:`noting`."""
        if self._noted is not None:
            self._noted.update(zip(keys, values, strict=True))

    def bring(self, version: int, found: Mapping[bytes, bytes | None]) -> None:
        """Have :meth:`take_in` learn what was read just now; from any thread."""
        self._brought.append((version, found, time.monotonic()))

    def take_in(self) -> None:
        """Learn what was brought."""
        while self._brought:
            version, found, heard = self._brought.popleft()
            self.learn(version, found)
            self.heard = max(self.heard, heard)

    def hear(self, version: int) -> None:
        """Note that the store has this *version* now, and that not all of it is our own doing."""
        if version > self.version:
            self.version = version
            self._doubt()

    def learn(self, version: int, found: Mapping[bytes, bytes | None]) -> None:
        """Note what was read when the store had this *version*; it may have been some time ago."""
        self.hear(version)
        since = [(changes, added_to) for number, changes, added_to in self._written if number > version]
        for changes, added_to in since:
            found = {key: changes.get(key, value) for key, value in found.items() if key not in added_to}
        if len(self._known) > _REMEMBERED:
            self._doubt()
        # Between the version that they are of and the newest, others must not have come.
        (self._known if version + len(since) == self.version else self._recent).update(found)

    def note(self, version: int, changes: Mapping[bytes, bytes | None], added: Iterable[bytes] = ()) -> None:
        """Note that this process has made this *version* by *changes*, not told what *added* keys have now."""
        self.hear(version - 1)
        self.version = version
        self.own += 1
        added_to = frozenset(added)
        self._written.append((version, changes, added_to))
        self._known.update(changes)
        for key in added_to:
            for part in (self._known, self._recent, self._earlier, self._old):
                part.pop(key, None)

    def forget(self) -> None:
        """Know nothing any more, and guess nothing."""
        self._known, self._recent, self._earlier, self._old = {}, {}, {}, {}

    def _doubt(self) -> None:
        self._turn()
        (self._recent if self.is_fresh else self._old).update(self._known)
        self._known = {}

    def _turn(self) -> None:
        """Tell recent guesses from those of before."""
        age = time.monotonic() - self._turned
        if age < FRESH / 2:
            return
        self._turned += age
        if len(self._old) > _REMEMBERED:
            self._old = {}
        self._old.update(self._earlier)
        self._earlier, self._recent = self._recent, {}
        if age > FRESH:
            self._old.update(self._earlier)
            self._earlier = {}
