"""A number outside the database that grows: how many synced batches there have been.

A database whose log was cut opens without a word, as it does when a process died while it wrote. So each synced batch
carries the next number, and once it is on the medium, a small file beside the database says so. A database that knows
a lower number has lost batches that were safe; a higher one is what a crash between the two leaves, and whole.
It knows the file and one pair of a store, and nothing of databases.
"""

from __future__ import annotations

import os
import secrets
import threading
import zlib
from typing import TYPE_CHECKING

from dedup_middleware import permissions
from dedup_middleware.stores import refusals
from dedup_middleware.stores.layout import ID_BYTES, ID_KEY, WATERMARK_KEY, decode_watermark, encode_watermark

if TYPE_CHECKING:
    from pathlib import Path

    from dedup_middleware.stores.protocol import Store

DRAFT_SUFFIX = ".tmp"


class Watermark:
    """The file *path* of the store that has the id *store_id*, 16 bytes."""

    def __init__(self, path: Path, store_id: bytes) -> None:
        self.path = path
        self.store_id = store_id
        self._draft_suffix = DRAFT_SUFFIX
        # Two may be waited for at once, and the later one be the first to be on its disk.
        self._turn = threading.Lock()
        self._reached = -1

    def be_one_of_many(self, worker: bytes) -> None:
        """Let other processes advance it too."""
        self._draft_suffix = f".{worker.hex()}{DRAFT_SUFFIX}"

    @classmethod
    def create(cls, path: Path) -> Watermark:
        """Return that of a store to be created, with an id of its own; writes nothing."""
        return cls(path, secrets.token_bytes(ID_BYTES))

    @classmethod
    def load(cls, path: Path) -> tuple[Watermark, int]:
        """Return that of the file *path*, and its number; ``ValueError`` if it is missing or not what was written."""
        try:
            with path.open("rb") as file:
                line = file.read(1024)
        except (FileNotFoundError, IsADirectoryError):
            raise ValueError(f"its {path.name} is missing") from None
        try:
            store_id, number, _ = line.decode("ascii").split(" ")
            mark = cls(path, bytes.fromhex(store_id))
            if line == mark._line(int(number)):
                return mark, int(number)
        except ValueError:
            pass
        raise ValueError(f"its {path.name} cannot be read")

    def advance(self, number: int) -> None:
        """Put *number* on the medium; the file has the old number or the new one at any time. Two syncs at most.

        Where several processes do, it may have a lower number than the highest, and none that was never reached. One
        that is lower than this process has put there changes nothing. From any thread.
        """
        with self._turn:
            if number > self._reached:
                self._write(number)
                self._reached = number

    def _write(self, number: int) -> None:
        draft = self.path.with_name(self.path.name + self._draft_suffix)
        permissions.make_file(draft, like=self.path)
        with draft.open("wb") as file:
            file.write(self._line(number))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)

    def pairs(self) -> list[tuple[bytes, bytes]]:
        """Return the pairs that bind a new database to this file."""
        return [(ID_KEY, self.store_id), (WATERMARK_KEY, encode_watermark(0))]

    def check(self, store: Store) -> None:
        """Refuse *store* if it is not the one of this file, or has lost synced batches."""
        try:
            # Before the database, which another process may be writing to.
            mark, reached = Watermark.load(self.path)
            found, number = store.get_many([ID_KEY, WATERMARK_KEY])
            held = decode_watermark(number or b"")
        except ValueError as error:
            raise refusals.corrupt(store.uri, str(error)) from None
        if found != self.store_id:
            raise refusals.corrupt(store.uri, "its database is that of another store")
        if mark.store_id != self.store_id:
            raise refusals.corrupt(store.uri, f"its {self.path.name} is that of another store")
        if held < reached:
            raise refusals.corrupt(store.uri, f"its newest {reached - held} synced batches are missing")

    def _line(self, number: int) -> bytes:
        line = f"{self.store_id.hex()} {number} ".encode("ascii")
        return line + b"%08x\n" % zlib.crc32(line)
