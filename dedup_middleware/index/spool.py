"""Files of exported pages, read to their end and checked before anything is written, and kept for another order.

They may be compressed, cut off, or no such files at all; what cannot be read is counted and left out.
"""

from __future__ import annotations

import gzip
import json
import lzma
import tempfile
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.index import codec
from dedup_middleware.index.exchange import FORMAT, Exported, Origin, override_of, template_of
from dedup_middleware.index.overrides import Override

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from typing_extensions import Self

#: Bytes of a line; a page of `DEDUP_MAX_BYTES`, all of it kept, takes fewer.
MAX_LINE = 128 * 2**20
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
_NAMED = 20


class Entry(NamedTuple):
    """A page in the spool; sorted, owners come first, and the oldest of them before the others."""

    is_duplicate: bool
    time: str
    number: int
    origin: int
    """The place of its store in `Spool.origins`."""
    offset: int
    owner: int | None


class Spool:
    """The pages of some files, on disk, in a temporary file that nobody else can read; 250 bytes each in memory."""

    def __init__(self) -> None:
        self.origins: list[Origin] = []
        self.entries: list[Entry] = []
        self.templates: set[bytes] = set()
        self.overrides: list[Override] = []
        self.refused: list[str] = []
        """The first lines that cannot be read: where they are and why."""
        self.refusals = 0
        """How many there are."""
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the spool is left

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, path: Path) -> None:
        """Read the file *path*: 0.2 ms a page. :class:`ConfigError` where it cannot be read, or is no export."""
        try:
            with path.open("rb") as file:
                self._read_lines(path, _lines(file))
        except OSError as error:
            raise ConfigError(f"{path} cannot be read ({error.strerror or error}); name another file") from error

    def pages(self, entries: Iterable[Entry]) -> Iterator[tuple[Entry, Exported]]:
        """Yield the pages of *entries*, in their order."""
        for entry in entries:
            self._file.seek(entry.offset)
            said = json.loads(self._file.readline())
            yield entry, Exported.read(said, self.origins[entry.origin].header.hash_bytes)

    @property
    def pairs(self) -> Iterator[tuple[bytes, bytes]]:
        """What a store is to have beside the pages."""
        yield from ((codec.template_key(template), b"") for template in self.templates)
        yield from map(Override.encode, self.overrides)

    def refuse(self, where: str, why: str) -> None:
        """Note that something is left out, *where* and *why*."""
        self.refusals += 1
        if len(self.refused) < _NAMED:
            self.refused.append(f"{where}: {why}")

    def _read_lines(self, path: Path, lines: Iterator[bytes]) -> None:
        origin = -1
        numbers: set[int] = set()
        try:
            for count, line in enumerate(lines, 1):
                said = _object(line)
                if said is not None and said.get("format") == FORMAT:
                    self._add_origin(path, said)
                    origin, numbers = len(self.origins) - 1, set()
                elif origin < 0:
                    raise ConfigError(f"{path} is no export of a store: make one with `scrapy dedup export -o FILE`")
                else:
                    self._add(f"{path}, line {count}", line, said, origin, numbers)
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            self.refuse(str(path), f"what follows cannot be decompressed ({error})")
        if origin < 0:
            raise ConfigError(f"{path} is no export of a store: make one with `scrapy dedup export -o FILE`")

    def _add_origin(self, path: Path, said: dict[str, Any]) -> None:
        try:
            self.origins.append(Origin.read(said))
        except UnreadableError as error:
            raise ConfigError(f"{path} cannot be imported: {error}") from error

    def _add(self, where: str, line: bytes, said: dict[str, Any] | None, origin: int, numbers: set[int]) -> None:
        try:
            if said is None:
                raise UnreadableError("the line cannot be read, or is cut off")
            if "template" in said:
                self.templates.add(template_of(said["template"]))
                return
            if "override" in said:
                self.overrides.append(override_of(said["override"]))
                return
            page = Exported.read(said, self.origins[origin].header.hash_bytes).page
            if page.number in numbers:
                raise UnreadableError("another page has its number")
        except ValueError as error:
            self.refuse(where, str(error))
            return
        numbers.add(page.number)
        offset = self._file.seek(0, 2)
        self._file.write(line + b"\n")
        self.entries.append(Entry(page.owner is not None, page.time, page.number, origin, offset, page.owner))


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of *file*, unpacked, without their ends; an empty one in the place of one that is too long."""
    start = file.read(len(_XZ))
    file.seek(0)
    unpacked: Any = file
    if start.startswith(_GZIP):
        unpacked = gzip.open(file)  # noqa: SIM115 - closed with the file
    elif start.startswith(_XZ):
        unpacked = lzma.open(file)  # noqa: SIM115 - the same
    while line := unpacked.readline(MAX_LINE):
        if len(line) < MAX_LINE or line.endswith(b"\n"):
            yield line.rstrip(b"\r\n")
            continue
        while (rest := unpacked.readline(MAX_LINE)) and not rest.endswith(b"\n"):
            pass
        yield b""


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None
