"""Keeps the requests that are held back in a file, so that they cost 8 bytes each in memory and outlive a crawl."""

from __future__ import annotations

import errno
import os
import tempfile
from array import array
from base64 import b64decode, b64encode
from collections import defaultdict
from contextlib import suppress
from io import FileIO
from typing import TYPE_CHECKING
from zlib import crc32

from dedup_middleware import permissions
from dedup_middleware.economy.rules import Hold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

#: What waits since an earlier run of a crawl that is resumed. It is judged again, with what is known by then.
EARLIER = Hold("earlier_run")
#: The name of the file, beside the log, with what the last crawl that ended by itself has left out.
LEFT_OUT = "left-out.jsonl"
_HEADER = b"dedup-middleware: requests that wait\n"
_WAITS, _GONE = b"w", b"-"
#: Bytes before a request in its line: the mark, and the checksum in hexadecimal digits.
_START = 9
_BLOCK = 4096


def is_list(start: bytes) -> bool:
    """Return whether a file that begins so is a list of what was left out."""
    return start.startswith(b'{"left_out": ')


class WaitingRoom:
    """Packed requests by the reason that they wait for, a line each: a mark, a checksum, and the request in Base64.

    A request that is taken has its mark overwritten; so the file can be read again after a crash, in which a request
    that was taken shortly before may be there a second time, and none is lost. A damaged line costs its own request.
    """

    def __init__(self, path: Path | None) -> None:
        """Open the file at *path*, with what an earlier run has left there; without a path, a temporary file.

        ``OSError``; a file that we have not made is :class:`~dedup_middleware.permissions.NotOursError`.
        """
        self.damaged = 0
        """Requests that waited, and cannot be read any more."""
        self._places: defaultdict[Hold, array[int]] = defaultdict(lambda: array("Q"))
        # Unbuffered: what a full disk refuses must not be written again later.
        if path is None:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed by `close`
            return
        permissions.make_folder(path.parent)
        if not path.exists():
            permissions.make_file(path)
        if not permissions.is_made_by_us(path, lambda start: start.startswith(_HEADER)):
            raise permissions.NotOursError(path)
        self._file = FileIO(path, "r+")
        with path.open("rb") as lines:
            end = self._find_waiting(lines)
        # What a crash has cut off.
        self._file.truncate(end)
        if not end:
            self._append(_HEADER)

    def _find_waiting(self, lines: Iterable[bytes]) -> int:
        """Note which of *lines* wait; return where the last whole line ends."""
        place = 0
        for line in lines:
            if not line.endswith(b"\n"):
                break
            if place and not line.startswith(_GONE):
                if _unpacked(line) is None:
                    self.damaged += 1
                else:
                    self._places[EARLIER].append(place)
            place += len(line)
        return place

    def _append(self, line: bytes) -> int:
        """Write *line* at the end, and return where it begins; ``OSError`` if it is not whole: then none of it is."""
        place = self._file.seek(0, 2)
        try:
            if self._file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # noqa: TRY301 - like what `write` raises
        except OSError:
            self._file.truncate(place)
            raise
        return place

    def put(self, hold: Hold, packed: bytes) -> None:
        """Keep a *packed* request that waits for *hold*. ``OSError`` if the disk is full: nothing is kept then."""
        self._places[hold].append(self._append(b"%s%08x%s\n" % (_WAITS, crc32(packed), b64encode(packed))))

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
            if i < len(places) and (packed := self._read(places[i])) is not None:
                yield packed
                # Where it cannot be marked, another run fetches it a second time.
                with suppress(OSError):
                    self._file.seek(places[i])
                    self._file.write(_GONE)

    def all(self, hold: Hold) -> Iterator[bytes]:
        """Yield the requests that wait for *hold*."""
        return (packed for place in self._places.get(hold, ()) if (packed := self._read(place)) is not None)

    def _read(self, place: int) -> bytes | None:
        """Return the request at *place*; ``None`` if it is damaged."""
        line = b""
        with suppress(OSError):
            self._file.seek(place)
            while b"\n" not in line and (more := self._file.read(_BLOCK)):
                line += more
        packed = _unpacked(line.partition(b"\n")[0])
        self.damaged += packed is None
        return packed

    def counts(self) -> dict[Hold, int]:
        """Return how many requests wait, by what they wait for."""
        return {hold: len(places) for hold, places in self._places.items() if places}

    def __len__(self) -> int:
        """Return how many requests wait."""
        return sum(map(len, self._places.values()))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _unpacked(line: bytes) -> bytes | None:
    """Return the request that waits in *line*; ``None`` if it is damaged."""
    try:
        packed = b64decode(line[_START:].strip(), validate=True)
        return packed if line[:1] == _WAITS and int(line[1:_START], 16) == crc32(packed) else None
    except ValueError:
        return None
