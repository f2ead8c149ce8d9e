"""Lines of a large log, found by what must be in them, without reading the others as JSON.

A record is one line of ASCII, written by `json.dumps`: what a field holds stands in it as that writes it. So a line
that lacks these bytes need not be looked at, and of a million lines a few are read: a second for a gigabyte.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

from dedup_middleware.errors import RecordsError
from dedup_middleware.inspection.records import MAX_LINE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

# Fits in the cache of a processor: larger blocks take half as long again.
_AT_ONCE = 1 << 18


def as_written(text: str) -> bytes:
    """Return the bytes that stand for *text* in a record."""
    return json.dumps(text)[1:-1].encode("ascii")


def blocks(file: BinaryIO, stop: int) -> Iterator[bytes]:
    """Yield what follows in *file* up to the place *stop*, in whole lines of some megabytes together.

    The last one may be torn.
    """
    rest = b""
    while chunk := file.read(min(_AT_ONCE, stop - file.tell())):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield rest + chunk[:cut]
            rest = b""
        # The end of a line that is too long is no record.
        rest = rest + chunk[cut:] if len(rest) <= MAX_LINE else b""
    if rest:
        yield rest


def parts(path: Path, count: int) -> list[tuple[int, int]]:
    """Return where *count* parts of the log at *path* begin and end, whole lines each; fewer if it is short."""
    with opened(path) as file:
        size = file.seek(0, os.SEEK_END)
        edges = {0, size}
        for n in range(1, count):
            file.seek(size * n // count)
            file.readline(MAX_LINE)
            edges.add(min(file.tell(), size))
    return [*pairwise(sorted(edges))]


def lines_with(path: Path, wanted: bytes, *, ignore_case: bool = False) -> Iterator[bytes]:
    """Yield the lines of the log at *path* that have *wanted* somewhere, in lower case if *ignore_case*, in order.

    :class:`RecordsError` if the file cannot be read.
    """
    with opened(path) as file:
        for block in blocks(file, sys.maxsize):
            searched, start = block.lower() if ignore_case else block, 0
            while (found := searched.find(wanted, start)) >= 0:
                start = block.find(b"\n", found) + 1 or len(block)
                yield block[block.rfind(b"\n", 0, found) + 1 : start]


def last_lines_with(path: Path, wanted: bytes) -> Iterator[bytes]:
    """Yield the lines that have *wanted* somewhere, the last first. It reads no more than it must."""
    with opened(path) as file:
        end, behind = file.seek(0, os.SEEK_END), b""
        while end > 0:
            start = max(0, end - _AT_ONCE)
            file.seek(start)
            block = file.read(end - start) + behind
            # Its first line may have begun before.
            whole = block.find(b"\n") + 1 if start else 0
            if start and not whole:
                end, behind = start, block if len(block) <= MAX_LINE else b""
                continue
            stop = len(block)
            while (found := block.rfind(wanted, whole, stop)) >= 0:
                begin = max(block.rfind(b"\n", 0, found) + 1, whole)
                yield block[begin : block.find(b"\n", found) + 1 or len(block)]
                stop = begin
            end, behind = start, block[:whole] if whole <= MAX_LINE else b""


def opened(path: Path) -> BinaryIO:
    """Open the log at *path*; :class:`RecordsError` where there is none, or it cannot be read."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise RecordsError(
            f"there is no log at {path}; crawl first, or name it: -s DEDUP_LOG=PATH, or --spider NAME"
        ) from None
    except OSError as error:
        raise RecordsError(f"the log {path} cannot be read ({error.strerror})") from error
    except ValueError as error:  # a NUL or a lone surrogate
        raise RecordsError(f"the log {str(path)!r} cannot be read ({error}); name another path") from error
