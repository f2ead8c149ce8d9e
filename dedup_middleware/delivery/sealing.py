"""Which owners are sealed when: those whose items are on their media. And what is certain until then.

It knows neither Scrapy nor files. A medium is whatever the caller waits for, such as a feed that is
only stored when it closes.

    confirmed   its items have left the pipelines and are in the feeds' buffers
    sealed      the feeds have them on their media, and then the store says so: no crash can take them back
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from dedup_middleware.errors import UnreadableError
from dedup_middleware.model import Scope
from dedup_middleware.stores import refusals

if TYPE_CHECKING:
    from collections.abc import Hashable
    from collections.abc import Set as AbstractSet

    from dedup_middleware.delivery.disk_waits import Wait
    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage


@dataclass(slots=True)
class _Group:
    """What was confirmed between two rounds, and what it still waits for."""

    numbers: set[int] = field(default_factory=set)
    visited: list[bytes] = field(default_factory=list)
    awaited: set[Hashable] = field(default_factory=set)


class Sealing:
    """The unsealed owners of one crawl, *run*, in groups."""

    def __init__(self, index: Index, run: str, scope: Scope, interval: int) -> None:
        """Let a round be due after *interval* confirmed owners; by *scope*, earlier crawls' deliveries count or not."""
        self.index = index
        self._journal = index.journal
        self.run = run
        self._scope = scope
        self._interval = interval
        self._current = _Group()
        self._groups: list[_Group] = []

    @property
    def is_due(self) -> bool:
        """Whether a round should begin."""
        return len(self._current.numbers) + len(self._current.visited) >= self._interval

    def is_certain(self, owner: StoredPage, feeds: AbstractSet[str]) -> bool:
        """Tell whether no crash can take back that *owner* was delivered, and that *feeds* have taken items of it."""
        certain = self._journal.certain(owner)
        if certain is None or (self._scope is Scope.CRAWL and certain.run != self.run):
            return False
        return certain.has_reached(feeds)

    def confirmed(self, number: int) -> None:
        """Note an owner whose items have left the pipelines."""
        for group in self._groups:
            # It was delivered once more, and what that gave may be on its medium later.
            group.numbers.discard(number)
        self._current.numbers.add(number)

    def visited(self, key: bytes) -> None:
        """Note a journal entry that an unclean shutdown left, now that its page has been delivered."""
        self._current.visited.append(key)

    def begin_round(self, awaited: set[Hashable]) -> Wait | None:
        """Seal what has been confirmed so far once all of *awaited* are stored; the other media have it already.

        As :meth:`seal`, which follows.
        """
        self._current.awaited = set(awaited)
        self._groups.append(self._current)
        self._current = _Group()
        return self.seal()

    def stored(self, medium: Hashable) -> None:
        """Note that *medium* is stored."""
        for group in self._groups:
            group.awaited.discard(medium)

    def give_up(self) -> None:
        """Let what is not sealed be what it was before: its items are not safe, and will not be any more."""
        groups, self._groups, self._current = [*self._groups, self._current], [], _Group()
        self.index.give_up(self._journal.unsealed_by(self.run, [n for group in groups for n in group.numbers]))

    def go_on_from(self, before: Sealing) -> None:
        """Seal what *before* was to seal, of the same crawl, and nobody has taken over from its journal."""
        self._current, self._groups = before._current, before._groups

    def seal(self) -> Wait | None:
        """Seal what waits for no medium any more: one batch. :class:`StoreError` if the store fails: then all waits on.

        Return what waits until the store's own medium has that, if there was anything to do. Nothing else need: should
        a power failure take the seal, its owners, which are on their media, are delivered twice.
        """
        ready = [group for group in self._groups if not group.awaited]
        numbers = {number for group in ready for number in group.numbers}
        visited = [key for group in ready for key in group.visited]
        self._journal.look_at_others(is_idle=False)
        wait = self.index.atomically(partial(self._write, numbers, visited))
        if wait is not None:
            self._journal.note_sealed(self.run, numbers, visited)
        self._groups = [group for group in self._groups if group.awaited]
        return wait

    def _write(self, numbers: set[int], visited: list[bytes]) -> Wait | None:
        """Seal *numbers*, and clear what was dropped for them and *visited*."""
        deletes = self._journal.sealing_deletes(self.run, numbers, visited)
        return self.index.store.write_through(deletes) if deletes else None


def recover(index: Index) -> None:
    """Let what an unclean shutdown left unsealed be rolled back, in all that is read from now on.

    What was dropped for it is in the journal's `recovered` then. The first crawl of a process to open a store does: 3
    µs an owner. In the store they are rolled back when they are met, and a few with each page that is confirmed. Until
    then they are unsealed there, and another unclean end leaves them as this one did.
    """
    with refusals.of_value(index.store.uri, UnreadableError):
        index.journal.recover(index.store)
