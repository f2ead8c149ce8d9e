"""One try to do something atomically: what it has seen, and what it is going to write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.stores.redis_layout import places
from dedup_middleware.stores.redis_memory import SCANNED
from dedup_middleware.stores.redis_scripts import packed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dedup_middleware.stores.redis_memory import Memory


class Run:
    """It asks nobody; who makes it verifies what it has seen when it is written."""

    def __init__(self, version: int | None = None) -> None:
        """Begin when the store has this *version*, as far as is known."""
        self.at = version
        """The version at which all that it has seen was so; ``None`` where there is no such version."""
        self.seen: dict[bytes, bytes | None] = {}
        self.written: dict[bytes, bytes | None] = {}
        self.added: dict[bytes, list[tuple[int, int, int]]] = {}
        """By key, what is added to numbers in its value, whatever they are."""
        self.expected: int | None = None
        """The version that the store must still have."""
        self.at_work: set[bytes] = set()
        """Workers who were, when it asked."""
        self.is_synced = False
        self.failure: BaseException | None = None
        self.writes = False
        self.guesses = False
        """Whether it has seen what may not be so any more."""

    def as_seen(self) -> Run:
        """Return one that has seen the same, and writes nothing."""
        run = Run(self.at)
        run.seen, run.expected = self.seen, self.expected
        return run

    def unknown(self, keys: Sequence[bytes], memory: Memory) -> list[bytes]:
        """Return those of *keys* that have to be asked for; of the others, what *memory* has is what is seen."""
        missing = [key for key in keys if key not in self.written and key not in self.seen]
        is_guess = not memory.is_fresh
        version: int | None = memory.version
        for part in (memory.known(), *memory.guesses()):
            found = {key: part[key] for key in missing if key in part}
            if found:
                self.note(found, version)
                self.guesses |= is_guess
                missing = [key for key in missing if key not in found]
            if not missing:
                break
            is_guess, version = True, None
        return missing

    def rests_on(self, reads: Mapping[bytes, bytes | None], memory: Memory) -> bool:
        """See FarStore."""
        if SCANNED in reads:
            return False
        parts = (self.written, self.seen, memory.known(), *memory.guesses())
        for key, value in reads.items():
            newest = next((part for part in parts if key in part), reads)
            if newest[key] != value:
                return False
        self.seen = {**reads, **self.seen}
        self.guesses, self.at = True, None
        return True

    def note(self, found: Mapping[bytes, bytes | None], version: int | None) -> None:
        """Note what was asked for, or is at hand, as it was at this *version*; ``None`` where that is unknown."""
        self.seen.update(found)
        if version != self.at:
            self.at = None

    def values(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return what *keys* have, as this run has written it, or seen it."""
        written, seen, added = self.written, self.seen, self.added
        values = [written[key] if key in written else seen[key] for key in keys]
        if added:
            return [
                grown(value, added[key]) if key in added else value for key, value in zip(keys, values, strict=True)
            ]
        return values

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes], *, sync: bool) -> None:
        """Collect a batch."""
        try:
            changes: dict[bytes, bytes | None] = {
                **dict.fromkeys(deletes),
                **{key: bytes(value) for key, value in puts},
            }
        except BaseException as error:
            self.failure = error
            raise
        self.written.update(changes)
        if self.added:
            # What is written was made of what was read, and so of what had been added.
            self.added = {key: amounts for key, amounts in self.added.items() if key not in changes}
        self.is_synced |= sync
        self.writes = True

    def add(self, key: bytes, amounts: Sequence[tuple[int, int, int]]) -> None:
        """Collect what is to be added."""
        self.writes = True
        if key in self.written:
            self.written[key] = grown(self.written[key], amounts)
        else:
            self.added.setdefault(key, []).extend(amounts)

    def told(self) -> bytes:
        """Return what `redis_scripts.WRITE` is told of it, packed."""
        # Where all of it was so at the very version that the store must still have, the version alone tells enough.
        seen = {} if self.at is not None and self.at == self.expected else self.seen
        puts = {key: value for key, value in self.written.items() if value is not None}
        deletes = [key for key in self.written if key not in puts]
        values = [*seen.values()], [*puts.values()], [*self.added.values()]
        return packed([*map(places, (seen, deletes, puts, self.added)), *values])

    def scanned(
        self, pairs: Iterator[tuple[bytes, bytes]], start: bytes, stop: bytes, version: int
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield *pairs*, read at this *version*, with what is written by now; nobody may change any of that range."""
        if self.expected is None:
            self.expected = version
        own = {key: value for key, value in self.written.items() if start <= key < stop}
        return self._merged(pairs, own)

    @staticmethod
    def _merged(pairs: Iterator[tuple[bytes, bytes]], own: dict[bytes, bytes | None]) -> Iterator[tuple[bytes, bytes]]:
        left = sorted(own)
        for key, value in pairs:
            while left and left[0] <= key:
                if (mine := own[left[0]]) is not None:
                    yield left[0], mine
                del left[0]
            if key not in own:
                yield key, value
        yield from ((key, mine) for key in left if (mine := own[key]) is not None)


def grown(value: bytes | None, amounts: Iterable[tuple[int, int, int]]) -> bytes | None:
    """Return *value* with these amounts added; see `FarStore.add`."""
    for at, size, amount in amounts:
        if value is not None and len(value) >= at + size:
            number = max(0, int.from_bytes(value[at : at + size], "big") + amount)
            value = value[:at] + number.to_bytes(size, "big") + value[at + size :]
    return value
