"""Makes originals durable: a checkpoint flushes and syncs the feeds, and then clears the doubt in the store.

    confirmed   the items have left the pipelines and are in the feeds' buffers; the store has the original in doubt
    durable     the feeds have the items on disk, and the doubt is cleared: no crash can undo it

An original that never gets there is rolled back, and the items that were dropped in favour of it are released: by the
next opener of the store after a crash, at the end of the crawl after a failure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from dedup_middleware.errors import TROUBLE
from dedup_middleware.index import schema
from dedup_middleware.model import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable
    from collections.abc import Set as AbstractSet

    from dedup_middleware.errors import DedupError, UnreadableError
    from dedup_middleware.index.in_doubt import Doubt
    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage

    Wait = Callable[[], None]
    """Returns once a disk has something; raises a ``DedupError`` where it fails. In any thread, once."""
    Flush = Callable[[], tuple[set[Hashable], Wait]]
    """Flushes the feeds; returns those that are on disk only later, and what waits until the others are."""

# Originals that are rolled back by one transaction. Its scans pass all that it has written, so more would be slower.
_ROLLED_BACK_AT_ONCE = 30


class DiskWaits(Protocol):
    """Where a crawl waits for disks: in threads, because its event loop must go on."""

    def begin(self, wait: Wait, then: Callable[[Wait], None]) -> None:
        """Call *wait* in a thread, and then *then* in this one with a function that raises what *wait* raised."""

    def finish(self) -> None:
        """Return when each *then* has been called."""


@dataclass(slots=True)
class _Round:
    """What is confirmed between two checkpoints."""

    numbers: set[int] = field(default_factory=set)
    """The originals."""
    deletes: list[bytes] = field(default_factory=list)
    """Keys of dropped items that were released."""
    awaited: set[Hashable] = field(default_factory=set)
    """The feeds, and the disks, that it still waits for."""


class Durability:
    """The originals of one crawl, *run*, until they are durable."""

    interval = 100
    """Confirmed originals between two checkpoints. Each checkpoint waits for the disks of the feeds and of the store; a
    crash keeps twice what was confirmed since the last one."""

    def __init__(
        self,
        index: Index,
        run: str,
        *,
        flush: Flush | None,
        disks: DiskWaits | None,
        fail: Callable[[DedupError | UnreadableError], None],
    ) -> None:
        """Without *flush*, a confirmed original is durable; without *disks*, this waits for them itself.

        *fail* gets the trouble with a disk or the store.
        """
        self._index = index
        self._run = run
        self._flush = flush
        self._disks = disks
        self._report = fail
        self._current = _Round()
        self._rounds: list[_Round] = []
        self._waits = 0
        self._has_failed = False
        self.at_once = flush is None
        """Whether a confirmed original is durable: the crawl has no feeds."""

    def relies_on(self, original: StoredPage, feeds: AbstractSet[str]) -> str | None:
        """Return the crawl that must still make the items of *original* durable in *feeds*.

        Empty if they are durable; ``None`` if that cannot be relied on. One get.
        """
        doubt = self._index.in_doubt.of(original.number)
        durable = original.kept if doubt is None else doubt.before
        counts = self._index.eligibility.scope is Scope.STORE or (durable is not None and durable.run == self._run)
        if durable is not None and counts and durable.has_reached(feeds):
            return ""
        if doubt is None or (doubt.worker != self._index.in_doubt.worker and not self._index.in_doubt.is_alive(doubt)):
            return None
        return doubt.run

    def confirmed(self, number: int | None, deletes: Iterable[bytes] = ()) -> None:
        """Note that the items of the original *number*, if any, have left the pipelines.

        Once they are durable, the keys *deletes* of released items are deleted.
        """
        if number is not None:
            for earlier in self._rounds:
                # It was kept again, and these items may be on disk later.
                earlier.numbers.discard(number)
            self._current.numbers.add(number)
        self._current.deletes += deletes
        is_due = len(self._current.numbers) + len(self._current.deletes) >= self.interval
        # On a slow disk one checkpoint runs at a time: what is confirmed meanwhile is for the next.
        if is_due and not self._waits and not self._has_failed:
            try:
                self._checkpoint()
            except TROUBLE as error:
                self._report(error)

    def fail(self) -> None:
        """Make nothing durable any more: the feeds may not have what they took."""
        self._has_failed = True

    def end(self, *, store_failed: bool) -> None:
        """Make durable what can be; after a failure, roll back what is not. Return when no disk is waited for."""
        self._wait_for_all()
        rounds, self._current = [*self._rounds, self._current], _Round()
        if not self._has_failed:
            self._rounds = rounds
            self._write_durable()
            self._wait_for_all()
        elif not store_failed:
            self._rounds = []
            numbers = sorted(number for round_ in rounds for number in round_.numbers)
            roll_back(self._index, self._index.in_doubt.of_run(self._run, numbers).items())

    def resume_from(self, before: Durability) -> None:
        """Take over from *before*, of the same crawl, what no other process has rolled back meanwhile."""
        self._current, self._rounds = before._current, before._rounds
        numbers = [number for round_ in [*self._rounds, self._current] for number in round_.numbers]
        worker = before._index.in_doubt.worker
        if numbers and worker != self._index.in_doubt.worker:
            self._index.atomically(partial(self._index.in_doubt.adopt, numbers, self._run, worker))

    # --- inside

    def _checkpoint(self) -> None:
        round_, self._current = self._current, _Round()
        self._rounds.append(round_)
        if self._flush is None:
            self._write_durable()
            return
        closing, wait = self._flush()
        disks = object()
        round_.awaited = {*closing, disks}
        self.wait_for_disk(wait, disks)

    def _write_durable(self) -> None:
        """Clear the doubt about all rounds that wait for nothing any more: one batch, and a sync of the store.

        Nothing needs to wait for the sync: should a power failure take the batch, its originals are kept twice.
        """
        ready = [round_ for round_ in self._rounds if not round_.awaited]
        numbers = sorted(number for round_ in ready for number in round_.numbers)
        deletes = [key for round_ in ready for key in round_.deletes]

        def work() -> bool:
            keys = [*map(schema.doubt_key, self._index.in_doubt.of_run(self._run, numbers)), *deletes]
            if keys:
                self._index.store.write([], keys)
            return bool(keys)

        has_written = self._index.atomically(work)
        self._rounds = [round_ for round_ in self._rounds if round_.awaited]
        if has_written:
            self.wait_for_disk(self._index.store.sync)

    def wait_for_disk(self, wait: Wait, awaited: Hashable = None) -> None:
        """Begin to *wait*; after it, *awaited*, a feed that `Flush` returned or a group of others, is on disk."""
        self._waits += 1
        if self._disks is None:
            self._has_waited(awaited, wait)
        else:
            self._disks.begin(wait, partial(self._has_waited, awaited))

    def _wait_for_all(self) -> None:
        if self._disks is not None:
            self._disks.finish()

    def _has_waited(self, awaited: Hashable, outcome: Wait) -> None:
        self._waits -= 1
        try:
            outcome()
            if awaited is None:
                return
            for round_ in self._rounds:
                round_.awaited.discard(awaited)
            if not self._has_failed:
                self._write_durable()
        except TROUBLE as error:
            self._report(error)


def roll_back(index: Index, doubts: Iterable[tuple[int, Doubt]]) -> int:
    """Let originals in doubt be what they were before, and release what was dropped in favour of them.

    Return how many items are to be released. An original is left alone if its doubt was cleared, or replaced by that of
    another process, since it was read.
    """
    found = list(doubts)
    # A transaction fails where others write meanwhile, and is repeated: in a shared store it is short.
    size = _ROLLED_BACK_AT_ONCE if not index.store.worker else 1
    steps = [found[start : start + size] for start in range(0, len(found), size)]
    return sum(index.atomically(partial(_roll_back, index, step)) for step in steps)


def _roll_back(index: Index, doubts: Iterable[tuple[int, Doubt]]) -> int:
    released = 0
    for number, doubt in doubts:
        if index.in_doubt.of(number) == doubt:
            index.roll_back(number, doubt)
            items = index.dropped.get(key for run in doubt.runs for key in index.dropped.lost_with(number, run))
            index.store.write(index.dropped.to_release(items), [schema.doubt_key(number)])
            released += len(items)
    return released


def recover(index: Index) -> int:
    """Roll back the originals that processes have left in doubt that are gone; return how many items to release.

    The first opener of a private store calls it; in a shared store, a process that opens it or is idle.
    """
    dead = index.in_doubt.dead_workers()
    if index.store.worker and not dead:
        return 0
    released = roll_back(index, index.in_doubt.left_behind())
    index.void_dead_claims()
    index.in_doubt.forget_workers(dead)
    return released
