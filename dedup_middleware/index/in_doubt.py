"""Keeps the originals that are in doubt, and the overrides: pairs of pages that a person has marked as different."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec

from dedup_middleware.index import schema
from dedup_middleware.model import Kept, now
from dedup_middleware.stores import refusals

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from dedup_middleware.model import StoredPage
    from dedup_middleware.stores import OpenStore


class Doubt(NamedTuple):
    """Why an original is in doubt."""

    run: str
    """The crawl whose items may still be lost."""
    before: Kept | None
    """What was durable before that crawl; ``None`` if nothing was."""
    worker: bytes = b""
    """The process of that crawl, in a shared store."""
    earlier: tuple[str, ...] = ()
    """The crawls in which the original was in doubt when this one kept it again."""

    @property
    def runs(self) -> tuple[str, ...]:
        """All crawls whose items may be lost with it."""
        return (self.run, *self.earlier)


class InDoubt:
    """The originals in doubt of one open store, private or shared. It keeps nothing in memory."""

    def __init__(self, store: OpenStore) -> None:
        self._store = store
        self._reading = refusals.of_value(store.uri)
        self.worker = store.worker
        """The name of this process in a shared store; empty in a private one."""

    def of(self, number: int) -> Doubt | None:
        """Return why the original *number* is in doubt; ``None`` if it is not. One get."""
        return self._of([number])[0]

    def _of(self, numbers: Sequence[int]) -> list[Doubt | None]:
        values = self._store.get_many([schema.doubt_key(number) for number in numbers])
        with self._reading:
            return [None if value is None else schema.decode(Doubt, value) for value in values]

    def after(self, stored: StoredPage, known: StoredPage | None, doubt: Doubt | None) -> Doubt | None:
        """Return the doubt of *stored*, an original that is confirmed now; ``None`` if its delivery is durable.

        *known* is the stored page before, if that was an original whose items had all the content of these; *doubt* is
        the one in which its number was.
        """
        before = None
        if known is not None:
            before = known.kept if doubt is None else doubt.before
        if before is not None and (before.run, before.feeds) == (stored.run, stored.kept.feeds):
            return None
        earlier = [] if doubt is None else [run for run in doubt.runs if run != stored.run]
        return Doubt(stored.run, before, self.worker, tuple(earlier))

    def is_alive(self, doubt: Doubt) -> bool:
        """Return whether the process that can make the original durable is at work."""
        return not self.worker or self._store.is_at_work(doubt.worker)

    def of_run(self, run: str, numbers: Iterable[int], worker: bytes | None = None) -> dict[int, Doubt]:
        """Return the doubts of those of *numbers* that this process, or *worker*, has put in doubt in the crawl *run*.

        One round trip.
        """
        numbers = [*numbers]
        origin = (run, self.worker if worker is None else worker)
        pairs = zip(numbers, self._of(numbers), strict=True)
        return {n: doubt for n, doubt in pairs if doubt is not None and (doubt.run, doubt.worker) == origin}

    def left_behind(self) -> Iterator[tuple[int, Doubt]]:
        """Yield the originals in doubt that processes have left behind that are not at work any more. One scan.

        The last comes first: a scan for the repeats of one that has none ends at the first page of all, and LevelDB
        would pass there what was removed before it.
        """
        for key, value in reversed(list(self._store.scan(*schema.IN_DOUBT))):
            with self._reading:
                doubt = schema.decode(Doubt, value)
            if not self.worker or not self.is_alive(doubt):
                yield schema.decode_number(key[1:]), doubt

    def note_worker(self) -> None:
        """Write down that this process may leave something behind, in a shared store."""
        if self.worker:
            self._store.write([(schema.worker_key(self.worker), b"")])

    def dead_workers(self) -> list[bytes]:
        """Return the processes that :meth:`note_worker` and are not at work any more. One scan of a few keys."""
        if not self.worker:
            return []
        return [key[1:] for key, _ in self._store.scan(*schema.WORKERS) if not self._store.is_at_work(key[1:])]

    def forget_workers(self, workers: Iterable[bytes]) -> None:
        """Forget processes of which nothing is left behind any more."""
        if keys := [schema.worker_key(worker) for worker in workers]:
            self._store.write([], keys)

    def adopt(self, numbers: Iterable[int], run: str, worker: bytes) -> None:
        """Take over those of *numbers* that are in doubt as this process left them, as *worker*, in the crawl *run*."""
        ours = self.of_run(run, numbers, worker).items()
        self._store.write(
            [(schema.doubt_key(n), schema.encode(doubt._replace(worker=self.worker))) for n, doubt in ours]
        )


_Identities = Annotated[tuple[schema.Identity, ...], msgspec.Meta(min_length=1)]


class Override(NamedTuple):
    """Two pages that a person has marked as different."""

    url: str
    original_url: str
    time: str
    """When: ISO 8601, UTC, to the second."""
    identities: _Identities
    original_identities: _Identities

    @classmethod
    def of(cls, page: StoredPage, original: StoredPage) -> Override:
        """Return the override, made now, for *page* and the *original* that it was a duplicate of."""
        urls = schema.whole(page.url), schema.whole(original.url)
        return cls(*urls, now(), page.identities, original.identities)

    @property
    def key(self) -> bytes:
        """Its key in a store."""
        return schema.override_key(self.identities[0], self.original_identities[0])

    def encode(self) -> tuple[bytes, bytes]:
        """Return its pair in a store."""
        return self.key, schema.encode(self)


class Overrides:
    """The overrides in a store, as they were when it was opened."""

    def __init__(self, store: OpenStore) -> None:
        self._apart: defaultdict[bytes, set[bytes]] = defaultdict(set)
        for each in read_overrides(store):
            for identity in each.identities:
                self._apart[identity].update(each.original_identities)
            for identity in each.original_identities:
                self._apart[identity].update(each.identities)

    def mark(self, page: Collection[bytes], other: Collection[bytes]) -> bool:
        """Return whether the pages with these identities are marked as different. O(identities)."""
        return bool(self._apart) and any(not self._apart[i].isdisjoint(other) for i in page if i in self._apart)


def read_overrides(store: OpenStore) -> Iterator[Override]:
    """Yield the overrides in *store*; :class:`UnreadableError` for one that cannot be read."""
    return (schema.decode(Override, value) for _, value in store.scan(*schema.OVERRIDES))
