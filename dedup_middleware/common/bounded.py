"""Reads bytes that others may have written, within limits.

Others may write to a store, an export, an archive or records. A kilobyte can unpack to gigabytes, a line may not end,
and JSON takes up to a hundred times its length in memory. Beyond a limit, :class:`UnreadableError` is raised.
"""

from __future__ import annotations

import gzip
import io
import json
import lzma
import re
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from dedup_middleware.common.plain_files import open_file
from dedup_middleware.errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Values in one piece of JSON, some 100 bytes of memory each. A stored item or a record has some hundred.
MAX_VALUES = 500_000
# A packed file may unpack to so many bytes, or to so many times its size: web pages pack to a tenth or a thirtieth.
_FREE, _MAX_RATIO = 64 * 2**20, 100
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
_UNPACKING_ERRORS = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
# A closing quote may be missing: each byte is then still looked at once.
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z)', re.DOTALL)


def unpacked(packed: bytes, most: int, dictionary: bytes = b"") -> bytes:
    """Return the bytes that zlib has *packed*, with this *dictionary* if it has one, if they are at most *most*."""
    stream = zlib.decompressobj(zdict=dictionary) if dictionary else zlib.decompressobj()
    try:
        found = stream.decompress(packed, most + 1)
    except zlib.error as error:
        raise UnreadableError(f"a packed text or item cannot be read ({error})") from error
    if len(found) > most:
        raise UnreadableError(f"it unpacks to more than {most} bytes")
    if not stream.eof:
        raise UnreadableError("a packed text or item is truncated")
    return found


def loads(data: bytes | str, *, values: int = MAX_VALUES) -> Any:
    """Return the JSON *data*, if it has at most so many *values*."""
    try:
        written = data.encode("utf8", "surrogatepass") if isinstance(data, str) else data
        is_too_large = has_more(written, values)
        found = None if is_too_large else json.loads(data)
    except RecursionError as error:
        raise UnreadableError("it is nested too deeply") from error
    except ValueError as error:
        raise UnreadableError(f"it is not JSON ({error})") from error
    if is_too_large:
        raise UnreadableError(f"it has more than {values} values")
    return found


def has_more(written: bytes, values: int) -> bool:
    """Return whether the JSON *written* may have more than so many *values*. O(bytes)."""
    # Without the texts, which contain commas too, only where it matters.
    return _signs(written) > values and _signs(_TEXT.sub(b"", written)) > values


def _signs(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def opened(path: Path) -> io.BufferedReader:
    """Open the file *path* for reading; gzip and xz are unpacked; ``OSError``.

    Reading raises :class:`UnreadableError` if it cannot be unpacked, or unpacks to over a hundred times its size.
    """
    file: io.BufferedReader = open_file(path)
    try:
        return unpacking(file)
    except BaseException:
        file.close()
        raise


def unpacking(file: Any) -> io.BufferedReader:
    """Return *file*, which can be read again from its start, or what unpacks it; as `opened` does."""
    start = file.read(len(_XZ))
    file.seek(0)
    if start.startswith(_GZIP):
        return io.BufferedReader(_Unpacking(gzip.GzipFile(fileobj=file), file), io.DEFAULT_BUFFER_SIZE * 8)
    if start.startswith(_XZ):
        return io.BufferedReader(_Unpacking(lzma.LZMAFile(file), file), io.DEFAULT_BUFFER_SIZE * 8)
    return cast("io.BufferedReader", file)


class _Unpacking(io.RawIOBase):
    def __init__(self, unpacking: gzip.GzipFile | lzma.LZMAFile, file: BinaryIO) -> None:
        self._unpacking = unpacking
        self._file = file
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            found = self._unpacking.read1(len(buffer))
        except _UNPACKING_ERRORS as error:
            raise UnreadableError(f"it cannot be unpacked from here on ({error})") from error
        self._count += len(found)
        if self._count > _FREE and self._count > _MAX_RATIO * self._file.tell():
            raise UnreadableError(
                f"it unpacks to more than {_MAX_RATIO} times its size; unpack it first to read it all"
            )
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        self._unpacking.close()
        self._file.close()
        super().close()


def lines(file: BinaryIO, longest: int) -> Iterator[bytes | None]:
    """Yield the lines of *file*, without their ends; ``None`` for one of more than *longest* bytes."""
    while line := file.readline(longest + 1):
        if len(line) <= longest or line.endswith(b"\n"):
            yield line.rstrip(b"\r\n")
            continue
        while (rest := file.readline(longest)) and not rest.endswith(b"\n"):
            pass
        yield None
