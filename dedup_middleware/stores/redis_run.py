"""One try to do something atomically: what it has seen, and what it is going to write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.stores.redis_layout import located, places
from dedup_middleware.stores.redis_scripts import packed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dedup_middleware.stores.redis_memory import Memory


class Run:
    """It asks nobody; who makes it verifies what it has seen when it is written."""

    def __init__(self) -> None:
        self.seen: dict[bytes, bytes | None] = {}
        self.written: dict[bytes, bytes | None] = {}
        self.expected: int | None = None
        """The version that the store must still have."""
        self.is_synced = False
        self.failure: BaseException | None = None
        self.writes = False
        self.guesses = False
        """Whether it has seen what may not be so any more."""

    def as_seen(self) -> Run:
        """Return one that has seen the same, and writes nothing."""
        run = Run()
        run.seen, run.expected = self.seen, self.expected
        return run

    def unknown(self, keys: Sequence[bytes], memory: Memory, *, is_fresh: bool) -> list[bytes]:
        """Return those of *keys* that have to be asked for; of the others, what *memory* has is what is seen.

        What it knows is so where that *is_fresh*, and all else a guess.
        """
        missing, known, guessed = [], memory.known(), memory.guessed()
        for key in keys:
            if key in self.written or key in self.seen:
                continue
            if key in known:
                self.seen[key] = known[key]
                self.guesses |= not is_fresh
            elif key in guessed:
                self.seen[key] = guessed[key]
                self.guesses = True
            else:
                missing.append(key)
        return missing

    def note(self, found: Mapping[bytes, bytes | None]) -> None:
        """Note what was asked for."""
        self.seen.update(found)

    def values(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return what *keys* have, as this run has written it, or seen it."""
        written, seen = self.written, self.seen
        return [written[key] if key in written else seen[key] for key in keys]

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
        self.is_synced |= sync
        self.writes = True

    def told(self) -> bytes:
        """Return what `redis_scripts.WRITE` is told of it, packed."""
        deletes = [key for key, value in self.written.items() if value is None]
        puts = [part for key, value in self.written.items() if value is not None for part in (*located(key), value)]
        return packed(([*places(self.seen)], [*self.seen.values()], [*places(deletes)], puts))

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
