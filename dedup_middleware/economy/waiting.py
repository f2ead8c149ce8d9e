"""Keeps the requests that are held back in a file, so that they cost 8 bytes each in memory and outlive a crawl."""

from __future__ import annotations

import tempfile
from array import array
from collections import defaultdict
from typing import IO, TYPE_CHECKING

from dedup_middleware import permissions
from dedup_middleware.economy.rules import Hold

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: What waits since an earlier run of a crawl that is resumed. It is judged again, with what is known by then.
EARLIER = Hold("earlier_run")
#: The name of the file, beside the log, with what the last crawl that ended by itself has left out.
LEFT_OUT = "left-out.jsonl"
_WAITS, _GONE = b"w", b"-"
_LENGTH_BYTES = 4


def is_list(start: bytes) -> bool:
    """Return whether a file that begins so is a list of what was left out."""
    return start.startswith(b'{"left_out": ')


class WaitingRoom:
    """Packed requests by the reason that they wait for: a mark, the length and the bytes of each, one after the other.

    A request that is taken has its mark overwritten; so the file can be read again after a crash, in which a request
    that was taken shortly before may be there a second time, and none is lost.
    """

    def __init__(self, path: Path | None) -> None:
        """Open the file at *path*, with what an earlier run has left there; without a path, a temporary file."""
        self._places: defaultdict[Hold, array[int]] = defaultdict(lambda: array("Q"))
        self._file: IO[bytes]
        if path is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
            return
        permissions.make_folder(path.parent)
        permissions.make_file(path)
        self._file = path.open("r+b")
        for place, mark in self._records():
            if mark == _WAITS:
                self._places[EARLIER].append(place)

    def _records(self) -> Iterator[tuple[int, bytes]]:
        place = self._file.seek(0)
        while len(head := self._file.read(1 + _LENGTH_BYTES)) == 1 + _LENGTH_BYTES:
            length = int.from_bytes(head[1:], "big")
            if len(self._file.read(length)) < length:
                break
            yield place, head[:1]
            place += len(head) + length
        # What a crash has cut off.
        self._file.truncate(place)

    def put(self, hold: Hold, packed: bytes) -> None:
        """Keep a *packed* request that waits for *hold*. ``OSError`` if the disk is full: nothing is kept then."""
        place = self._file.seek(0, 2)
        try:
            self._file.write(_WAITS + len(packed).to_bytes(_LENGTH_BYTES, "big") + packed)
            self._file.flush()
        except OSError:
            self._file.truncate(place)
            raise
        self._places[hold].append(place)

    def take(self, hold: Hold, count: int) -> Iterator[bytes]:
        """Yield *count* of the requests that wait for *hold*, from all over the crawl, and keep them no longer."""
        places = self._places.pop(hold, array("Q"))
        chosen = (
            {round(i * len(places) / count) for i in range(count)} if count < len(places) else {*range(len(places))}
        )
        rest = array("Q", (place for i, place in enumerate(places) if i not in chosen))
        if rest:
            self._places[hold] = rest
        for i in sorted(chosen):
            if i < len(places):
                yield self._read(places[i])
                self._file.seek(places[i])
                self._file.write(_GONE)
        self._file.flush()

    def all(self, hold: Hold) -> Iterator[bytes]:
        """Yield the requests that wait for *hold*."""
        return map(self._read, self._places.get(hold, ()))

    def _read(self, place: int) -> bytes:
        self._file.seek(place + 1)
        return self._file.read(int.from_bytes(self._file.read(_LENGTH_BYTES), "big"))

    def counts(self) -> dict[Hold, int]:
        """Return how many requests wait, by what they wait for."""
        return {hold: len(places) for hold, places in self._places.items() if places}

    def __len__(self) -> int:
        """Return how many requests wait."""
        return sum(map(len, self._places.values()))

    def close(self) -> None:
        """Close the file."""
        self._file.close()
