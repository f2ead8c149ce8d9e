"""Which owners are sealed when: those whose items are on their media.

Law of this file: it knows neither Scrapy nor files. A medium is whatever the caller waits for, such as a feed that is
only stored when it closes.

    confirmed   its items have left the pipelines and are in the feeds' buffers
    sealed      the feeds have them on their media: no crash can take them back
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dedup_middleware.index import Index


@dataclass(slots=True)
class _Group:
    """What was confirmed between two rounds, and what it still waits for."""

    numbers: list[int] = field(default_factory=list)
    visited: list[bytes] = field(default_factory=list)
    awaited: set[Hashable] = field(default_factory=set)


class Sealing:
    """The unsealed owners of one crawl, in groups."""

    def __init__(self, index: Index, interval: int) -> None:
        """Let a round be due after *interval* confirmed owners."""
        self._index = index
        self._interval = interval
        self._current = _Group()
        self._groups: list[_Group] = []

    @property
    def is_due(self) -> bool:
        """Whether a round should begin."""
        return len(self._current.numbers) + len(self._current.visited) >= self._interval

    def confirmed(self, number: int) -> None:
        """Note an owner whose items have left the pipelines."""
        self._current.numbers.append(number)

    def visited(self, identity: bytes) -> None:
        """Note a page that an unclean end left, now that it has been delivered."""
        self._current.visited.append(identity)

    def begin_round(self, awaited: set[Hashable]) -> None:
        """Seal what has been confirmed so far once all of *awaited* are stored; the other media have it already.

        :class:`StoreError` if the store fails. One synced batch.
        """
        self._current.awaited = set(awaited)
        self._groups.append(self._current)
        self._current = _Group()
        self._seal()

    def stored(self, medium: Hashable) -> None:
        """Note that *medium* is stored."""
        for group in self._groups:
            group.awaited.discard(medium)
        self._seal()

    def give_up(self) -> None:
        """Void what is not sealed: its items are not safe, and will not be any more."""
        groups, self._groups, self._current = [*self._groups, self._current], [], _Group()
        self._index.void(number for group in groups for number in group.numbers)

    def _seal(self) -> None:
        ready = [group for group in self._groups if not group.awaited]
        if ready:
            self._groups = [group for group in self._groups if group.awaited]
            numbers = [number for group in ready for number in group.numbers]
            self._index.seal(numbers, [identity for group in ready for identity in group.visited])
