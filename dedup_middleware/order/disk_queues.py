"""Keeps the queues of a JOBDIR readable: mends what a killed crawl has left, and leaves out what cannot be read."""

from __future__ import annotations

import json
import os
import struct
from collections import deque
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from queuelib.queue import FifoDiskQueue, LifoDiskQueue
from scrapy.pqueues import _path_safe

from dedup_middleware.common.plain_files import NotAFileError, open_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler

#: What the name of a queue ends in from which nothing more can be read.
UNREADABLE = ".unreadable"
#: Requests that a FifoDiskQueue gives out again after a kill, beyond those that were on their way.
GIVEN_AGAIN = 100
# Of the requests that it gives out, one in so many brings to disk how far it has come.
_SAVED = 64
# The length of an entry: before it in a FifoDiskQueue, after it in a LifoDiskQueue, which begins with their number.
_LENGTH = struct.Struct(">L")
# What a new FifoDiskQueue has as its info, under Scrapy.
_NEW = {"chunksize": 100_000, "size": 0, "tail": [0, 0, 0], "head": [0, 0]}


def slots_in(folder: str) -> Iterator[str]:
    """Yield the download slots that have queues in *folder*, but for those whose names cannot be names of folders."""
    with suppress(OSError):
        for path in Path(folder).iterdir():
            slot = path.name.rpartition("-")[0]
            if _path_safe(slot) == path.name:
                yield slot


def priorities_in(folder: str) -> Iterator[int]:
    """Yield the priorities that have a queue, of start requests or of others, in the *folder* of a slot."""
    with suppress(OSError):
        for path in Path(folder).iterdir():
            with suppress(ValueError):
                yield int(path.name.removesuffix("s"))


def keeping(kind: Any, lost: Callable[[str, int, str], None]) -> Any:
    """Return the *kind* of disk queue, kept readable; *kind* itself if its files are not queuelib's.

    *lost* gets the path of a queue of which requests may be missing, their number as far as it is known, and why.
    """
    if isinstance(kind, type) and hasattr(kind, "from_crawler"):
        for base, kept, mend in ((FifoDiskQueue, _KeptFifo, mend_fifo), (LifoDiskQueue, _KeptLifo, mend_lifo)):
            if issubclass(kind, base):
                return type(kind.__name__, (kept, kind), {"lost": staticmethod(lost), "mend": staticmethod(mend)})
    return kind


class _Kept:
    """A disk queue from which a kill takes no request that waits, and which always comes to an end."""

    lost: Callable[[str, int, str], None]
    mend: Callable[[Path], int]
    path: str
    _is_given_up = False

    @classmethod
    def from_crawler(cls, crawler: Crawler, path: str, *args: Any, **kwargs: Any) -> Any:
        try:
            if missing := cls.mend(Path(path)):
                cls.lost(path, missing, "a crawl was killed")
        except NotAFileError as error:
            _put_aside(path)
            cls.lost(path, 1, str(error.strerror))
        except OSError:  # which the queue meets as well
            pass
        return super().from_crawler(crawler, path, *args, **kwargs)  # type: ignore[misc]

    def pop(self) -> Request | None:
        """Return the next request that can be read; ``None`` if there is none."""
        while waiting := len(self):
            request: Request | None = None
            cause = "it ends before its last request"
            try:
                request = super().pop()  # type: ignore[misc]
            except Exception as error:  # noqa: BLE001 - a request is lost, and no crawl
                cause = f"{type(error).__name__}: {error}"
            if request is not None:
                return request
            # A queue that has come no further never will.
            self._is_given_up = len(self) == waiting
            self.lost(self.path, waiting if self._is_given_up else 1, cause)
        return None

    def __len__(self) -> int:
        return 0 if self._is_given_up else int(super().__len__())  # type: ignore[misc]

    def close(self) -> None:
        """Close the queue; the files of one that was given up stay, under another name."""
        is_given_up, self._is_given_up = self._is_given_up, False
        super().close()  # type: ignore[misc]
        if is_given_up:
            with suppress(OSError):
                _put_aside(self.path)


class _KeptLifo(_Kept):
    f: BinaryIO

    def push(self, request: Request) -> None:
        """Add *request*, and bring it to disk."""
        super().push(request)  # type: ignore[misc]
        with suppress(OSError):  # a full disk: the queue tries again when its buffer is full
            self.f.flush()


class _KeptFifo(_Kept):
    info: dict[str, Any]
    _places: deque[list[int]]
    """Where the requests were that were given out last."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, path: str, *args: Any, **kwargs: Any) -> Any:
        queue = super().from_crawler(crawler, path, *args, **kwargs)
        queue._places = deque(maxlen=GIVEN_AGAIN + crawler.settings.getint("CONCURRENT_REQUESTS"))  # noqa: SLF001
        return queue

    def pop(self) -> Request | None:
        """Return the next request, and bring to disk which were given out before those that may be on their way."""
        self._places.append(self.info["tail"])
        request = super().pop()
        if request is not None and self.info["tail"][1] % _SAVED == 0:
            info = {**self.info, "tail": self._places[0], "size": len(self) + len(self._places)}
            with suppress(OSError):
                _write_info(Path(self.path), info)
        return request


def mend_lifo(path: Path) -> int:
    """Make the file of a LifoDiskQueue readable; return the number of requests that may be missing. ``OSError``.

    It has the number of entries at the last orderly end, the entries, and after each its length. What was given out is
    not in it any more: all that is waits.
    """
    if not path.exists():
        return 0
    missing = 0
    with open_file(path, "r+b") as file:
        end = file.seek(0, os.SEEK_END)
        counted, number = _length_at(file, 0), _entries_before(file, end)
        if number is None:
            end, number = _pickles(file)
            missing = 1 if number else max(counted, 1)
        if number:
            file.truncate(end)
            file.seek(0)
            file.write(_LENGTH.pack(number))
    if missing and not number:
        _put_aside(str(path))
    elif not number:
        path.unlink()
    return missing


def _length_at(file: BinaryIO, place: int) -> int:
    """Return the length at *place*; 0 where there is none."""
    file.seek(max(place, 0))
    read = file.read(_LENGTH.size)
    return int(_LENGTH.unpack(read)[0]) if place >= 0 and len(read) == _LENGTH.size else 0


def _entries_before(file: BinaryIO, end: int) -> int | None:
    """Return how many entries a LifoDiskQueue has up to *end*; ``None`` if one of them is torn."""
    number = 0
    while end > _LENGTH.size:
        length = _length_at(file, end - _LENGTH.size)
        end -= _LENGTH.size + length
        if not length or end < _LENGTH.size:
            return None
        number += 1
    return number


def _pickles(file: BinaryIO) -> tuple[int, int]:
    """Return where the whole entries of a LifoDiskQueue end that come before a torn one, and their number.

    A pickle has its own end, and nothing is loaded here. The lengths behind a torn entry may be anybody's bytes.
    """
    from pickletools import genops  # noqa: PLC0415 - few crawls need it

    end, number = _LENGTH.size, 0
    while True:
        file.seek(end)
        try:
            for _ in genops(file):
                pass
        except Exception:  # noqa: BLE001 - half a pickle, or something else
            return end, number
        behind = file.tell()
        if _length_at(file, behind) != behind - end:
            return end, number
        end, number = behind + _LENGTH.size, number + 1


def mend_fifo(folder: Path) -> int:
    """Make the files of a FifoDiskQueue readable; return the number of requests that may be missing. ``OSError``.

    It has files of entries, each after its length, and an info.json with the number of those that wait, and the place
    of the next. A file stays until all of it was given out: without a place in it, all of it waits.
    """
    files = {int(file.name[1:]): file for file in folder.glob("q*") if file.name[1:].isdigit()}
    info = _info(folder)
    if not files:
        folder.joinpath("info.json").unlink(missing_ok=True)
        return int(info["size"])
    number, taken, offset = info["tail"]
    missing: int = info["size"] if number >= min(files) else 0
    if number not in files or next(islice(_ends(files[number]), taken, None), None) != offset:
        number, taken, offset = min(files), 0, 0
    waiting = -taken
    for last in sorted(each for each in files if each >= number):
        for entries, end in enumerate(_ends(files[last])):  # noqa: B007 - the last ones count
            pass
        waiting += entries
    is_torn = end < files[last].stat().st_size
    if waiting:
        if is_torn:
            os.truncate(files[last], end)
        head = [last, entries] if entries < info["chunksize"] else [last + 1, 0]
        mended = {**info, "size": waiting, "tail": [number, taken, offset], "head": head}
        if mended != info:
            _write_info(folder, mended)
    else:
        for path in (*files.values(), folder / "info.json"):
            path.unlink(missing_ok=True)
    return int(max(missing - waiting, is_torn))


def _ends(path: Path) -> Iterator[int]:
    """Yield 0, and where each entry of a file of a FifoDiskQueue ends, up to one that is torn."""
    end = 0
    with open_file(path) as file:
        size = file.seek(0, os.SEEK_END)
        while end <= size:
            yield end
            length = _length_at(file, end)
            if not length:
                return
            end += _LENGTH.size + length


def _info(folder: Path) -> dict[str, Any]:
    """Return the info.json of a FifoDiskQueue; that of a new one if it cannot be read."""
    with suppress(FileNotFoundError, ValueError, TypeError, KeyError), open_file(folder / "info.json") as file:
        info = json.load(file)
        numbers = info["chunksize"] - 1, info["size"], *info["tail"], *info["head"]
        if [len(info["tail"]), len(info["head"])] == [3, 2] and all(type(n) is int and n >= 0 for n in numbers):
            return dict(info)
    return _NEW


def _write_info(folder: Path, info: dict[str, Any]) -> None:
    draft = folder / "info.json.new"
    with open_file(draft, "w", encoding="ascii") as file:
        json.dump(info, file)
    draft.replace(folder / "info.json")


def _put_aside(path: str) -> None:
    Path(path).replace(path + UNREADABLE)
