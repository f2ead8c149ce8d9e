"""The journal of a store that several processes share: what others have not sealed is not certain either.

Each unsealed owner and each journalled page names its worker. A drop may rest on an owner that another worker delivers:
whoever dropped the page looks from time to time whether that one is sealed by now, or lost. What a worker leaves that
is not at work any more, whoever opens the store or is idle takes over; of several, one.
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from weakref import proxy

from dedup_middleware.index import codec, journal_codec, page_codec, shared_codec
from dedup_middleware.index.journal import Journal, JournalEntry, Unsealed, decode_unsealed
from dedup_middleware.index.journal_codec import Rest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from dedup_middleware.stores.medium import Medium
    from dedup_middleware.stores.protocol import SharedStore, Store

    _T = TypeVar("_T")

# Deliveries of others that are looked at in a round, and when there is nothing else to do: 20 µs each.
_LOOKED_AT, _LOOKED_AT_IDLE = 100, 1_000


# Owners that are taken back, and entries that are taken over, in one batch.
_TAKEN_BACK_AT_ONCE, _TAKEN_AT_ONCE = 500, 100


class _Fate(Enum):
    """What became of the delivery that a drop rests on."""

    OPEN = "open"
    SEALED = "sealed"
    LOST = "lost"


class _Became(NamedTuple):
    """What became of a delivery."""

    fate: _Fate
    unsealed: Unsealed | None = None
    """How a worker has left its owner who is gone."""
    left: Mapping[bytes, JournalEntry] = MappingProxyType({})
    """By key, what was dropped for it, where that is lost, and nobody else sees to it."""


class SharedJournal(Journal):
    """The part that this process has in the journal of *medium*, which is a `SharedStore`; see `Journal`."""

    def __init__(self, medium: Medium, shared: SharedStore) -> None:
        super().__init__()
        # The medium's own: it is known by the medium for as long as that is there.
        self._medium: Medium = proxy(medium)
        self._shared = shared
        # Entries whose drop rests on nothing any more that is not sealed.
        self._settled: set[bytes] = set()

    @property
    def worker(self) -> bytes:
        """What this process is called among those that share the store."""
        return self._shared.worker

    def go_on_from(self, before: Journal) -> None:
        """See Journal. It makes the owners this worker's; what was dropped for them is taken over as any other's."""
        if isinstance(before, SharedJournal):
            owners = iter(list(before.owners.items()))
            while some := dict(islice(owners, _TAKEN_BACK_AT_ONCE)):
                self.owners |= self._atomically(partial(self._take_back, some, before.worker))

    def _take_back(self, owners: dict[int, Unsealed], worker: bytes) -> dict[int, Unsealed]:
        """Make those of *owners* ours that are unsealed as *worker* has left them; return them."""
        values = zip(owners, self._get([*map(codec.unsealed_key, owners)]), strict=True)
        found = {number: decode_unsealed(value) for number, value in values if value is not None}
        ours = {n: owners[n] for n, unsealed in found.items() if unsealed == owners[n]._replace(worker=worker)}
        self._write([self.unsealed_pair(number, unsealed) for number, unsealed in ours.items()])
        return ours

    # --- what others have left

    def recover(self, store: Store) -> None:
        """Read what workers have left that are not at work any more. Once; 10 µs an owner or page in the journal."""
        if not self._recovered:
            self._recovered = True
            store.write([(shared_codec.worker_key(self._shared.worker), b"")])
            self._take_over(store)

    def recover_again(self, store: Store) -> None:
        """Read what those have left who have ended since. A scan of the workers, where none has."""
        if any(not self._shared.is_at_work(key[1:]) for key, _ in store.scan(*shared_codec.WORKERS)):
            self._take_over(store)

    def _take_over(self, store: Store) -> None:
        gone = self._gone(store)
        for key, value in store.scan(*codec.UNSEALED):
            unsealed = decode_unsealed(value)
            if unsealed.worker in gone:
                self.unsettled[codec.decode_number(key[1:])] = unsealed.before
        left_by = {*gone, None}
        left = [key[1:] for key, value in store.scan(*codec.JOURNAL) if _worker_of_entry(value) in left_by]
        news = (key for key in left if key not in self.recovered and key not in self._rests)
        while some := [*islice(news, _TAKEN_AT_ONCE)]:
            for key, entry, rest, became in self._atomically(partial(self._taken, some)):
                if became.fate is _Fate.LOST:
                    # Whoever requests it makes it his own: it may be of a spider that this process does not have.
                    self.recovered[key] = entry
                    self._note_unsettled(rest, became)
                else:
                    self._rest_on(key, *rest)
        store.write([], map(shared_codec.worker_key, gone))

    def _gone(self, store: Store) -> set[bytes]:
        """Return the workers who have left something, and are gone: what is read from now on, they have left so."""
        named = {key[1:] for key, _ in store.scan(*shared_codec.WORKERS)}
        named |= {decode_unsealed(value).worker for _, value in store.scan(*codec.UNSEALED)}
        named |= {_worker_of_entry(value) or b"" for _, value in store.scan(*codec.JOURNAL)} - {b""}
        return {worker for worker in named if not self._shared.is_at_work(worker)}

    def _taken(self, keys: Sequence[bytes]) -> list[tuple[bytes, JournalEntry, tuple[int, str], _Became]]:
        """Take over those of these entries that are left; return what each rests on, and what became of that."""
        values = zip(keys, self._get([*map(codec.journal_key, keys)]), strict=True)
        rests = {key: (value, journal_codec.rest_of_entry(value)) for key, value in values if value is not None}
        self._at_hand(rest.owner for _, rest in rests.values() if rest is not None)
        taken = []
        for key, (value, rest) in rests.items():
            if rest is not None and self._shared.is_at_work(rest.worker):
                continue
            entry, became = JournalEntry(*journal_codec.decode_entry(value)), _Became(_Fate.LOST)
            if rest is not None and rest.run:
                became = self._became(rest.owner, rest.run)
            if became.fate is _Fate.SEALED:
                self._write([], [codec.journal_key(key)])
                continue
            delivery = (0, "") if rest is None else (rest.owner, rest.run)
            if became.fate is _Fate.OPEN:
                self._write([self._pair(key, entry, *delivery)])
            taken.append((key, entry, delivery, became))
        return taken

    def hand_out(self, spider: str, run: str, met: Collection[bytes]) -> Iterator[tuple[bytes, JournalEntry]]:
        """See Journal; each entry to one worker."""
        for key, entry in super().hand_out(spider, run, met):
            if self._atomically(partial(self._is_made_ours, key, entry)):
                yield key, entry
            else:
                self.forget([key])

    def _is_made_ours(self, key: bytes, entry: JournalEntry) -> bool:
        (value,) = self._get([codec.journal_key(key)])
        if value is None or self._is_anothers(value):
            return False
        self._write([self._pair(key, entry, 0, "")])
        return True

    def _is_anothers(self, value: bytes) -> bool:
        rest = journal_codec.rest_of_entry(value)
        return rest is not None and rest.worker != self._shared.worker and self._shared.is_at_work(rest.worker)

    # --- owners

    def unsealed_of(self, number: int) -> Unsealed | None:
        """See Journal; as the store has it. One get."""
        (value,) = self._get([codec.unsealed_key(number)])
        return None if value is None else decode_unsealed(value)

    def unsealed_pair(self, number: int, unsealed: Unsealed) -> tuple[bytes, bytes]:
        """See Journal; it names this worker."""
        certain = page_codec.encode_certain(unsealed.before)
        return codec.unsealed_key(number), journal_codec.encode_unsealed(self._shared.worker, unsealed.run, certain)

    def may_settle(self, number: int) -> bool:
        """Tell whether the owner *number* is still unsealed, and no other worker's who is at work."""
        unsealed = self.unsealed_of(number)
        return unsealed is not None and (
            unsealed.worker == self._shared.worker or not self._shared.is_at_work(unsealed.worker)
        )

    def sealing_deletes(self, run: str, numbers: Collection[int], visited: Iterable[bytes]) -> list[bytes]:
        """See Journal; and those of entries whose owners other workers have sealed. What is another's now stays."""
        deletes = super().sealing_deletes(run, numbers, visited)
        return self._not_anothers([*deletes, *map(codec.journal_key, self._settled)])

    def note_sealed(self, run: str, numbers: Iterable[int], visited: Iterable[bytes]) -> None:
        """See Journal."""
        super().note_sealed(run, numbers, visited)
        self._settled.clear()

    def _not_anothers(self, keys: Sequence[bytes]) -> list[bytes]:
        return [key for key, value in zip(keys, self._get(keys), strict=True) if value and not self._is_of(key, value)]

    def _is_of(self, key: bytes, value: bytes) -> bool:
        """Tell whether another worker who is at work has written the *value* of *key* in the place of ours."""
        if key[:1] == codec.JOURNAL[0]:
            return self._is_anothers(value)
        worker = decode_unsealed(value).worker
        return worker != self._shared.worker and self._shared.is_at_work(worker)

    # --- dropped pages

    def entry_pair(self, entry: JournalEntry, owner: int | None = None) -> tuple[bytes, bytes]:
        """See Journal; it says what the drop rests on, and that this worker sees to it."""
        unsealed = None if owner is None else self.unsealed_of(owner)
        return self._pair(entry.key, entry, owner or 0, "" if unsealed is None else unsealed.run)

    def _pair(self, key: bytes, entry: JournalEntry, owner: int, run: str) -> tuple[bytes, bytes]:
        rest = Rest(self._shared.worker, owner, run)
        value = journal_codec.encode_entry(entry.identity, entry.spider, entry.request, entry.crawl, rest)
        return codec.journal_key(key), value

    def look_at_others(self, *, is_idle: bool) -> None:
        """See Journal: what they have delivered is forgotten, what is lost is requested again."""
        theirs = (rest for rest in self._dropped if rest[1] and rest[0] not in self.owners)
        rests = [*islice(theirs, _LOOKED_AT_IDLE if is_idle else _LOOKED_AT)]
        if not rests:
            return
        # Noted when it is certain: what is read in one go may be read anew.
        for rest, became in zip(rests, self._atomically(partial(self._became_of, rests)), strict=True):
            self._note(rest, became)
        for key in self._settled & self._rests.keys():
            del self._rests[key]

    def _note(self, rest: tuple[int, str], became: _Became) -> None:
        keys = self._dropped.pop(rest, set())
        if became.fate is _Fate.OPEN:
            # Behind the others, which are looked at next time.
            self._dropped[rest] = keys
        elif became.fate is _Fate.LOST:
            for key in keys:
                for other in self._rests.pop(key, ()):
                    self._dropped[other].discard(key)
            self.recovered.update(became.left)
            self._note_unsettled(rest, became)
        else:
            for key in keys:
                self._rests[key].discard(rest)
            self._settled |= {key for key in keys if not self._rests[key]}

    def _note_unsettled(self, rest: tuple[int, str], became: _Became) -> None:
        if became.unsealed is not None:
            self.unsettled[rest[0]] = became.unsealed.before

    def _became_of(self, rests: Sequence[tuple[int, str]]) -> list[_Became]:
        """Return what became of each of these deliveries, and note nothing."""
        found = []
        self._at_hand(number for number, _ in rests)
        for rest in rests:
            became = self._became(*rest)
            keys = [*self._dropped[rest]] if became.fate is _Fate.LOST else []
            values = zip(keys, self._get([*map(codec.journal_key, keys)]), strict=True)
            left = {key: value for key, value in values if value is not None and not self._is_anothers(value)}
            entries = {key: JournalEntry(*journal_codec.decode_entry(value)) for key, value in left.items()}
            found.append(became._replace(left=entries))
        return found

    def _at_hand(self, numbers: Iterable[int]) -> None:
        """Read at once, for the store may be far away, what `_became` looks at."""
        self._get([key(number) for number in numbers for key in (codec.unsealed_key, codec.page_key)])

    def _became(self, number: int, run: str) -> _Became:
        """Return what became of what the crawl *run* delivered of the owner *number*. Two gets."""
        unsealed, (value,) = self.unsealed_of(number), self._get([codec.page_key(number)])
        if unsealed is not None:
            is_open = self._shared.is_at_work(unsealed.worker)
            return _Became(_Fate.OPEN) if is_open else _Became(_Fate.LOST, unsealed)
        page = None if value is None else page_codec.decode_page(number, value)
        is_delivered = page is not None and page.owner is None and page.run == run
        return _Became(_Fate.SEALED if is_delivered else _Fate.LOST)

    def _rest_on(self, key: bytes, number: int, run: str) -> None:
        self._dropped[number, run].add(key)
        self._rests.setdefault(key, set()).add((number, run))

    # --- the store

    def _get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        with self._medium.guard:
            return self._medium.get_many(keys)

    def _write(self, puts: Sequence[tuple[bytes, bytes]], deletes: Sequence[bytes] = ()) -> None:
        with self._medium.guard:
            self._medium.write([*puts], [*deletes], sync=False)

    def _atomically(self, work: Callable[[], _T]) -> _T:
        with self._medium.guard:
            return self._medium.atomically(work)


def _worker_of_entry(value: bytes) -> bytes | None:
    """Return who sees to the entry with this *value*; ``None`` where it was left before the store was shared."""
    rest = journal_codec.rest_of_entry(value)
    return None if rest is None else rest.worker
