"""Writes originals once their items are on disk: a checkpoint syncs the feeds, and then the store gets the pages.

A page whose items have left the pipelines waits here, with its claim open. A checkpoint takes all that wait, one
checkpoint at a time: after so many pages, and when a duplicate waits for one of them. A crash before leaves nothing in
the store that had to be undone.

A feed that is on disk only when it ends, as on S3, would keep its pages here to the end of the crawl. Their items are
stored with them instead, until the feed has ended; if it never does, the next crawl releases them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from dedup_middleware.visits.states import Claim

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from dedup_middleware.stores import OpenStore
    from dedup_middleware.visits.visit import Visit

    Wait = Callable[[], None]
    """Returns once a disk has something; raises a ``DedupError`` where it fails. In any thread, once."""
    Flush = Callable[[], tuple[set[Hashable], Wait]]
    """Flushes the feeds; returns those that are on disk only later, and what waits until the others are."""


class DiskWaits(Protocol):
    """Where a crawl waits for disks: in threads, because its event loop must go on."""

    def begin(self, wait: Wait, then: Callable[[Wait], None]) -> None:
        """Call *wait* in a thread, and then *then* in this one with a function that raises what *wait* raised."""

    def finish(self) -> None:
        """Return when each *then* has been called."""


@dataclass(slots=True, eq=False)
class _Round:
    """What one checkpoint makes durable."""

    visits: list[Visit] = field(default_factory=list)
    numbers: set[int] = field(default_factory=set)
    """Of their claims, or of the originals that are kept again, perhaps by several visits."""
    deletes: list[bytes] = field(default_factory=list)
    """Keys of stored items that leave the store once they are in the feeds: released ones, and those of kept pages."""
    closing: set[Hashable] = field(default_factory=set)
    """The feeds that are on disk only when they have ended."""
    is_synced: bool = False
    """Whether all other feeds are on disk."""


class Durability:
    """The pages of one crawl whose items have left the pipelines, until these are durable."""

    interval = 100
    """Pages between two checkpoints. A crash keeps twice what has left the pipelines since the last one."""

    def __init__(
        self,
        store: OpenStore,
        *,
        flush: Flush | None,
        disks: DiskWaits | None,
        write: Callable[[Visit, bool], list[bytes]],
        fail: Callable[[Exception], None],
    ) -> None:
        """Without *flush*, what has left the pipelines is durable; without *disks*, this waits for them itself.

        *write* writes a page as an original; if the flag is set, its items with it, whose keys it returns. *fail* gets
        the trouble with a disk or the store, or a plugin bug.
        """
        self._store = store
        self._flush = flush
        self._disks = disks
        self._write = write
        self._report = fail
        self._current = _Round()
        self._rounds: list[_Round] = []
        self._wanted: set[int] = set()
        self._is_under_way = False
        self._is_syncing = False
        self._has_failed = False

    def delivered(self, visit: Visit) -> None:
        """Take the page of *visit*, whose items have left the pipelines."""
        assert visit.claim.stored is not None
        self._current.visits.append(visit)
        self._current.numbers.add(visit.claim.stored.number)
        self._begin_if_due()

    def delete_when_durable(self, keys: Iterable[bytes]) -> None:
        """Delete these *keys*, of a released item, once what has left the pipelines by now is durable."""
        self._current.deletes += keys
        self._begin_if_due()

    def want(self, claim: int) -> None:
        """Make the page with this *claim* durable as soon as its items have left the pipelines: a duplicate waits."""
        self._wanted.add(claim)
        self._begin_if_due()

    def fail(self) -> None:
        """Make nothing durable any more: the feeds may not have what they took."""
        self._has_failed = True

    def end(self) -> None:
        """Make durable what can be, now that the feeds have ended. Return when no disk is waited for."""
        self._wait_for_all()
        if not self._has_failed:
            # Each of these feeds was waited for when it ended.
            self._current.is_synced = True
            self._rounds.append(self._current)
            self._current = _Round()
            self._settle()
            self._wait_for_all()

    def resume_from(self, before: Durability) -> list[bytes]:
        """Take over from *before*, of the same crawl; return the keys of the items that are stored until feeds end."""
        self._current, self._rounds = before._current, before._rounds
        return [key for round_ in self._rounds for key in round_.deletes]

    def wait_for_disk(self, wait: Wait, feed: Hashable) -> None:
        """Begin to *wait*; after it, *feed*, one that `Flush` returned, is on disk."""
        self._begin_wait(wait, partial(self._feed_ended, feed))

    # --- inside

    def _begin_if_due(self) -> None:
        if self._has_failed or self._is_under_way:
            return  # on a slow disk, what comes meanwhile is for the next checkpoint
        current = self._current
        is_due = len(current.visits) >= (1 if self._flush is None else self.interval)
        # The duplicates of other processes cannot say that they wait, and the pages of released items may be fetched.
        is_wanted = current.deletes or (self._store.worker and current.visits)
        if is_due or is_wanted or not self._wanted.isdisjoint(current.numbers):
            try:
                self._checkpoint()
            except Exception as error:  # noqa: BLE001 - also a plugin bug, or the claims would stay open
                self._report(error)

    def _checkpoint(self) -> None:
        round_, self._current = self._current, _Round()
        self._rounds.append(round_)
        self._wanted -= round_.numbers
        if self._flush is None:
            round_.is_synced = True
            self._settle()
            return
        round_.closing, wait = self._flush()
        self._is_under_way = True
        self._begin_wait(wait, partial(self._feeds_synced, round_))

    def _feeds_synced(self, round_: _Round) -> None:
        self._is_under_way = False
        round_.is_synced = True
        self._settle()

    def _feed_ended(self, feed: Hashable) -> None:
        for round_ in self._rounds:
            round_.closing.discard(feed)
        self._settle()

    def _settle(self) -> None:
        """Write what is durable by now.

        Nothing needs to wait for the sync of the store after it: should a power failure take the batches, it also takes
        all later ones, and with them every drop that rests on these pages.
        """
        if self._has_failed:
            return
        has_written = False
        for round_ in [round_ for round_ in self._rounds if round_.is_synced]:
            for visit in [*round_.visits]:
                claim = visit.claim
                if claim.state is Claim.DELIVERED:
                    # Only if all its items can be stored until these feeds have ended.
                    if round_.closing and (len(claim.kept) != claim.yielded or None in claim.kept):
                        continue
                    round_.deletes += self._write(visit, bool(round_.closing))
                    has_written = True
                round_.visits.remove(visit)
            if not round_.closing:
                if round_.deletes:
                    self._store.write([], round_.deletes)
                    has_written = True
                self._rounds.remove(round_)
        if has_written and self._flush is not None and not self._is_syncing:
            self._is_syncing = True
            self._begin_wait(self._store.sync, self._store_synced)

    def _store_synced(self) -> None:
        self._is_syncing = False

    def _begin_wait(self, wait: Wait, then: Callable[[], None]) -> None:
        if self._disks is None:
            self._waited(then, wait)
        else:
            self._disks.begin(wait, partial(self._waited, then))

    def _waited(self, then: Callable[[], None], outcome: Wait) -> None:
        try:
            outcome()
            then()
        except Exception as error:  # noqa: BLE001 - as in `_begin_if_due`
            self._report(error)
        self._begin_if_due()

    def _wait_for_all(self) -> None:
        if self._disks is not None:
            self._disks.finish()
