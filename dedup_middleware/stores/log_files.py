"""The logs of LevelDB and RocksDB, which have one format: whether a batch is missing between two others.

Both engines pass over a log that is gone, or zeroed in the middle where a record begins. The format:
github.com/google/leveldb, doc/log_format.md. What is rotten, checksums tell, which the engines test.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_BLOCK_BYTES = 32768
_RECORD_HEADER = struct.Struct("<IHB")  # checksum, length, kind
_BATCH_HEADER = struct.Struct("<QI")  # sequence number of the first operation, number of operations
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


def numbered_logs(folder: Path) -> dict[int, Path]:
    """Return the logs of the database in *folder* by their numbers, lower ones first."""
    logs = {int(log.stem): log for log in folder.glob("*.log") if log.stem.isdecimal()}
    return dict(sorted(logs.items()))


def first_operation(log: Path) -> int | None:
    """Return the number of the first operation in *log*; ``None`` if it has none."""
    record = next(records(log), b"")
    return _BATCH_HEADER.unpack_from(record)[0] if len(record) >= _BATCH_HEADER.size else None


def check_batches(logs: Iterable[Path], sequence: int) -> None:
    """Raise ``ValueError`` if a batch is missing between two of *logs*, or between operation *sequence* and the first.

    Reads all of them, some 64 MB: 0.1 s.
    """
    following = None
    for log in logs:
        for record in records(log):
            if len(record) < _BATCH_HEADER.size:
                raise ValueError(f"{log.name} has a record that is no batch")
            first, count = _BATCH_HEADER.unpack_from(record)
            if first > sequence + 1 if following is None else first != following:
                raise ValueError(f"batches before operation {first} are missing from {log.name}")
            following = first + count


def records(path: Path) -> Iterator[bytes]:
    """Yield the records of a log or manifest; what a process left half written at its end is none."""
    data = path.read_bytes()
    position, parts = 0, list[bytes]()
    while position + _RECORD_HEADER.size <= len(data):
        room = _BLOCK_BYTES - position % _BLOCK_BYTES
        if room < _RECORD_HEADER.size:
            position += room
            continue
        _, length, kind = _RECORD_HEADER.unpack_from(data, position)
        start = position + _RECORD_HEADER.size
        position = start + length
        if kind == 0 and length == 0:
            # A power failure may leave zeros at the end of a file, and nothing after them.
            if data.count(0, start) != len(data) - start:
                raise ValueError(f"{path.name} was overwritten with zeros")
            return
        if length > room - _RECORD_HEADER.size or (kind in (_FULL, _FIRST)) == bool(parts) or kind > _LAST:
            raise ValueError(f"{path.name} has records that do not fit together")
        if position > len(data):
            return
        parts.append(data[start:position])
        if kind in (_FULL, _LAST):
            yield b"".join(parts)
            parts.clear()
