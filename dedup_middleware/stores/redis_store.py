"""A store on a Redis server that any number of processes have open at once, on any number of machines.

What is done atomically reads what is at hand, and one script writes if all of that is still so, by the version or key
by key; if not, it is done again. Each write has a number: one whose answer was lost is not carried out twice.
"""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from dedup_middleware.errors import StoreAwayError, StoreError
from dedup_middleware.stores import redis_lease, redis_scan, redis_scripts, refusals
from dedup_middleware.stores.redis_ahead import Ahead
from dedup_middleware.stores.redis_layout import VALUE_TYPES, places
from dedup_middleware.stores.redis_memory import SCANNED, Memory
from dedup_middleware.stores.redis_others import Others
from dedup_middleware.stores.redis_run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from dedup_middleware.stores.protocol import Question
    from dedup_middleware.stores.redis_address import Address
    from dedup_middleware.stores.redis_ahead import Arriving
    from dedup_middleware.stores.redis_checks import Seen
    from dedup_middleware.stores.redis_lease import Lease
    from dedup_middleware.stores.redis_link import Link

    _T = TypeVar("_T")

# How often something is tried before others must wait for it, for how many seconds then, and how often they ask.
_TRIES, _LOCK, _ASK_AGAIN = 3, 5.0, 0.002
# Milliseconds until a disk that does not keep what it is given counts as failed.
_DISK = 10_000


class RedisStore:
    """A :class:`~dedup_middleware.stores.protocol.SharedStore` at *address*, of one that has a *lease*."""

    def __init__(self, address: Address, link: Link, lease: Lease, seen: Seen) -> None:
        """Take over *link* and *lease*; *seen* is what the server has told of itself."""
        self.uri, self.caution = address.uri, seen.caution
        self.worker = lease.worker
        self.trips = 0
        """How often the server was asked."""
        self._address = address
        self._link = link
        self._lease = lease
        self._waits_for_disk = seen.waits_for_disk
        self._memory = Memory(lease.version)
        self._ahead = Ahead(address, self._memory, self._failed)
        self._numbers = count(1)
        self._run: Run | None = None
        self._scans: WeakSet[redis_scan.Scan] = WeakSet()
        self._gone: set[bytes] = set()
        self._others = Others(self._memory)
        self._failure: StoreError | None = None
        self._is_closed = False

    @property
    def is_away(self) -> bool:
        """See RemoteStore."""
        return isinstance(self._failure, StoreAwayError)

    # --- reading

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """See Store; no round trip for what was read or written lately."""
        self._live()
        run = self._run
        if run is not None:
            if missing := run.unknown(keys, self._memory):
                run.note(self._read(missing), self._memory.version)
            return run.values(keys)
        if (recalled := self._memory.recalled(keys)) is None:
            found = self._read(keys)
            values = [found[key] for key in keys]
        else:
            values, are_guesses = recalled
            # Whoever is about to write by guesses looks again.
            self._others.doubts += are_guesses
        self._memory.given(keys, values)
        return values

    def noting(self) -> AbstractContextManager[dict[bytes, bytes | None]]:
        """See FarStore; of what is done atomically, all that was seen there."""
        return self._memory.noting(lambda: {} if self._run is None else self._run.seen)

    def rests_on(self, reads: Mapping[bytes, bytes | None]) -> bool:
        """See FarStore. No round trip."""
        self._live()
        return self._run is not None and self._run.rests_on(reads, self._memory)

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See Store; of what other workers write meanwhile, some may be seen."""
        self._live()
        pairs = redis_scan.pairs_of(self._ask, self.uri, start, stop)
        self._memory.given([SCANNED], [None])
        if self._run is not None:
            pairs = self._run.scanned(pairs, start, stop, self._version_now())
        scan = redis_scan.Scan(pairs)
        self._scans.add(scan)
        return scan

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, bytes | None]:
        version, *values = self._ask(redis_scripts.READ, redis_scripts.packed(places(keys)))
        found = dict(zip(keys, values, strict=True))
        if not {*map(type, values)} <= VALUE_TYPES:
            raise refusals.foreign(self.uri)
        self._memory.learn(version, found)
        return found

    def fetch(self, question: Question) -> None:
        """See FarStore; on a connection of its own. What it brings is taken in by whoever reads next."""
        self._usable()
        self._calling(self._ahead.fetch, question)

    def begin_fetch(self, question: Question) -> Arriving | None:
        """See SendingStore."""
        self._usable()
        return self._calling(self._ahead.begin, question)  # type: ignore[no-any-return]

    def changes_of_others(self) -> int:
        """See SharedStore; as the server had it a moment ago."""
        self._live()
        if not self._memory.is_fresh:
            self._version_now()
        return self._others.changes(self._run)

    def is_at_work(self, worker: bytes) -> bool:
        """See SharedStore. One round trip; none for this one, those who are gone, and a second time in one run."""
        self._live()
        known = set() if self._run is None else self._run.at_work
        if worker == self.worker or worker in known:
            return True
        if worker not in self._gone and self._calling(redis_lease.is_at_work, self._address, self._link, worker):
            known.add(worker)
            return True
        self._gone.add(worker)
        if self._run is not None:
            # What was read before may not be the last that it has written.
            self._run.guesses = True
        return False

    # --- writing

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = (), *, sync: bool = False) -> None:
        """See Store. One round trip, and one more with *sync*; inside :meth:`atomically`, none."""
        self._live()
        run = Run() if self._run is None else self._run
        run.write(puts, deletes, sync=sync)
        if run is not self._run:
            self._apply(run)

    def add(self, key: bytes, amounts: Sequence[tuple[int, int, int]]) -> None:
        """See FarStore. No round trip."""
        assert self._run is not None
        self._run.add(key, amounts)

    def atomically(self, work: Callable[[], _T]) -> _T:
        """See SharedStore; *work* is called again where others have written what it has read, or might have read."""
        self._live()
        if self._run is not None:
            return work()
        is_locked = False
        try:
            for tries in count(1):
                if tries > _TRIES and not is_locked:
                    self._lock()
                    is_locked = True
                run = Run(self._memory.version)
                try:
                    result = self._done(run, work)
                except Exception:
                    # What it has seen may never have been so all at once.
                    if run.failure is None and not self._apply(run.as_seen()):
                        continue
                    raise
                is_certain = not run.writes and not run.guesses
                if is_certain or self._apply(run, unlocks=is_locked):
                    is_locked &= is_certain
                    return result
        finally:
            if is_locked:
                with suppress(StoreError):
                    self._ask(redis_scripts.UNLOCK, self.worker.hex())
        raise AssertionError

    def _done(self, run: Run, work: Callable[[], _T]) -> _T:
        self._run = run
        self._others.begin()
        try:
            result = work()
        finally:
            self._run = None
        if run.failure is not None:
            # What came before it is not to be there without it.
            raise run.failure
        return result

    def _apply(self, run: Run, *, unlocks: bool = False) -> bool:
        """Write what *run* has collected, if all is as it has seen it; tell whether it was."""
        for scan in [*self._scans]:
            scan.drain()
        deadline = time.monotonic() + 4 * _LOCK
        expected = "" if run.expected is None else run.expected
        write = (redis_scripts.WRITE, self.worker.hex(), next(self._numbers), expected, int(unlocks), run.told())
        while True:
            version, state, *stale = self._ask(*write)
            if state != b"locked":
                break
            if time.monotonic() > deadline:
                raise self._failed(refusals.away(self.uri, "another worker does not let go of it"))
            time.sleep(_ASK_AGAIN)
        if state == b"gone":
            raise self._failed(refusals.lease_lost(self.uri))
        if state == b"stale":
            values = (value[1:] if value[:1] == b"+" else None for value in stale[1::2])
            keys = map([*run.seen].__getitem__, map(int, stale[::2]))
            self._memory.learn(version, dict(zip(keys, values, strict=True)))
            self._others.doubts += 1
            if not stale and run.seen:
                self._read([*run.seen])  # the version alone does not say what has changed
            return False
        if run.written or run.added:
            self._memory.note(version, run.written, run.added)
            self._others.written()
        if run.is_synced:
            self._sync()
        return True

    def _sync(self) -> None:
        if self._waits_for_disk and self._call("WAITAOF", 1, 0, _DISK, again=False)[0] < 1:
            raise self._failed(refusals.failed_on_server(self.uri, "its disk does not keep what it is given"))

    def _lock(self) -> None:
        """Let nobody else write, for some seconds at most; what is at hand is asked for anew."""
        key, deadline = self._address.base + b"lock", time.monotonic() + 4 * _LOCK
        while not self._call("SET", key, self.worker.hex(), "NX", "PX", int(_LOCK * 1000)):
            if time.monotonic() > deadline:
                raise self._failed(refusals.away(self.uri, "another worker does not let go of it"))
            time.sleep(_ASK_AGAIN)
        self._memory.forget()
        self._version_now()

    # --- the server

    def _version_now(self) -> int:
        (version,) = self._ask(redis_scripts.READ, redis_scripts.packed([]))
        self._memory.hear(version)
        return self._memory.version

    def _ask(self, script: str, *arguments: bytes | str | float) -> list[Any]:
        """Return what *script* answers: the version, as a number, and more."""
        version, *answer = self._calling(self._link.script, script, *arguments)
        if not isinstance(version, bytes) or not version.isdigit():
            raise refusals.foreign(self.uri)
        if int(version) < self._memory.version:
            raise self._failed(refusals.forgetful(self.uri))
        self._memory.heard = time.monotonic()
        return [int(version), *answer]

    def _call(self, name: str, *arguments: bytes | str | float, again: bool = True) -> Any:
        return self._calling(self._link.call, name, *arguments, again=again)

    def _calling(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        self.trips += 1
        try:
            return call(*arguments, **options)
        except StoreAwayError as error:
            raise self._failed(error) from error.__cause__

    def _failed(self, error: StoreError) -> StoreError:
        """Refuse everything from now on, as *error* says."""
        self._failure = error
        return error

    def _live(self) -> None:
        self._usable()
        self._memory.take_in()

    def _usable(self) -> None:
        if self._is_closed:
            raise refusals.closed(self.uri)
        if self._failure is not None:
            raise type(self._failure)(str(self._failure))

    def close(self) -> None:
        """See Store; this process is no worker any more."""
        if not self._is_closed:
            self._is_closed = True
            self._lease.leave(is_away=self.is_away)
            self._link.close()
            self._ahead.close()
