"""What can still be read of a damaged LevelDB store.

Law of this file: it reads the store and writes to a scratch folder only.
"""

from __future__ import annotations

import os
import shutil
import struct
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

import plyvel

from dedup_middleware import permissions
from dedup_middleware.stores import leveldb, leveldb_files, refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_BLOCK_BYTES = 32768
_RECORD_HEADER = struct.Struct("<IHB")  # checksum, length, kind
_NO_KIND = 255


def files(path: Path) -> list[Path]:
    """Return the files that hold the store's content."""
    with suppress(FileNotFoundError):
        return [file for file in (path / leveldb.DB).iterdir() if file.is_file() and not file.name.startswith("LO")]
    return []


@contextmanager
def salvaged(path: Path, scratch: Path) -> Iterator[Callable[[bytes, bytes], Iterator[tuple[bytes, bytes]]]]:
    """Copy the database to the new folder *scratch*, repair the copy, and hand out a scan of what it then holds.

    A scan, and no gets: LevelDB's repair puts all tables on one level, where a get takes the table with the highest
    number for the newest, which after compactions it need not be. A scan goes by the age of each pair.
    """
    permissions.make_folder(scratch)
    sizes = leveldb_files.table_sizes(path / leveldb.DB)
    for file in files(path):
        # A table of another size is another store's, or has lost the index at its end.
        if sizes.get(file.name, size := file.stat().st_size) == size:
            shutil.copyfile(file, scratch / file.name)
    for log in scratch.glob("*.log"):
        _spoil_rotten_records(log)
    try:
        # paranoid_checks: without it, rotten blocks of tables would be taken over.
        plyvel.repair_db(os.fsencode(scratch), paranoid_checks=True)
        db = plyvel.DB(os.fsencode(scratch), create_if_missing=False, paranoid_checks=True)
    except plyvel.Error as error:
        raise refusals.beyond_repair(f"{leveldb.SCHEME}:{path}", str(error)) from error
    with closing(db):

        def scan(start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
            try:
                with db.iterator(start=start, stop=stop, verify_checksums=True, fill_cache=False) as pairs:
                    yield from pairs
            except plyvel.Error as error:
                raise refusals.beyond_repair(f"{leveldb.SCHEME}:{path}", str(error)) from error

        yield scan


def _spoil_rotten_records(log: Path) -> None:
    """Give every record of *log* whose checksum is wrong a kind that does not exist.

    LevelDB's repair does not look at the checksums of logs (db/repair.cc), and would take over what is in them.
    """
    data = bytearray(log.read_bytes())
    for block in range(0, len(data), _BLOCK_BYTES):
        position, end = block, min(block + _BLOCK_BYTES, len(data))
        while position + _RECORD_HEADER.size <= end:
            checksum, length, kind = _RECORD_HEADER.unpack_from(data, position)
            following = position + _RECORD_HEADER.size + length
            if following > end or kind == length == 0:
                break
            if _checksum(data[position + _RECORD_HEADER.size - 1 : following]) != checksum:
                data[position + _RECORD_HEADER.size - 1] = _NO_KIND
            position = following
    log.write_bytes(data)


def _table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


_CRC32C = _table()


def _checksum(data: bytearray) -> int:
    """Return the masked CRC-32C of *data* (doc/log_format.md). 5 MB/s, and a log has 32 MB at most as a rule."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC32C[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
