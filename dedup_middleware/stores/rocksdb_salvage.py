"""What can still be read of a damaged RocksDB store.

It reads the store and writes to a scratch folder only.
"""

from __future__ import annotations

import shutil
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from rocksdict import AccessType, Rdict

from dedup_middleware import permissions
from dedup_middleware.stores import refusals, rocksdb, rocksdb_options
from dedup_middleware.stores.folder import content_files as files
from dedup_middleware.stores.folder_store import TRIAL_MEMORY
from dedup_middleware.stores.rocksdb_refusals import refusal_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["files", "salvaged"]

# So many bytes of a key are looked at as a number: all of a page's number, enough of a hash to tell it from others.
_STEERING_BYTES = 9


@contextmanager
def salvaged(path: Path, scratch: Path) -> Iterator[Callable[[bytes, bytes], Iterator[tuple[bytes, bytes]]]]:
    """Copy the database to the new folder *scratch*, repair the copy, and hand out a scan of what it then holds.

    RocksDB's repair makes tables of the records of logs that are sound, and a manifest of the tables that it can open.
    """
    permissions.make_folder(scratch)
    uri = f"{rocksdb.SCHEME}:{path}"
    for file in files(path):
        shutil.copyfile(file, scratch / file.name)
    try:
        Rdict.repair(str(scratch), rocksdb_options.options(TRIAL_MEMORY, create=False))
        db = rocksdb_options.opened(
            scratch, rocksdb_options.options(TRIAL_MEMORY, create=False), AccessType.read_write()
        )
    except Exception as error:
        if refusal_of(uri, "repair", error) is None:
            raise
        raise refusals.beyond_repair(uri, str(error)) from error
    with closing(db):
        yield lambda start, stop: _readable(db, uri, start, stop)


def _readable(db: Rdict, uri: str, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the pairs of a range; of a block that is rotten none, and what lies behind it all the same."""
    at: bytes | None = start
    while at is not None:
        last = at
        try:
            place = rocksdb.iterator(db, at)
            while pair := rocksdb.pair_at(place, stop):
                last = pair[0]
                yield pair
        except Exception as error:
            if refusal_of(uri, "repair", error) is None:
                raise
            at = _behind(db, last, stop)
        else:
            return


def _behind(db: Rdict, key: bytes, stop: bytes) -> bytes | None:
    """Return about the first key, behind the rotten block after *key*, that can be read on from; some 100 seeks."""
    low = int.from_bytes(key[:_STEERING_BYTES].ljust(_STEERING_BYTES, b"\0"), "big")
    end = int.from_bytes(stop[:_STEERING_BYTES].ljust(_STEERING_BYTES, b"\0"), "big")
    step = 1
    while not _can_read(db, low + step):
        step *= 2
        if low + step > end:
            return None
    # Between the last place that could not be read and the first that could.
    bad, good = low + step // 2, low + step
    while good - bad > 1:
        middle = (bad + good) // 2
        bad, good = (bad, middle) if _can_read(db, middle) else (middle, good)
    return good.to_bytes(_STEERING_BYTES, "big")


def _can_read(db: Rdict, number: int) -> bool:
    try:
        rocksdb.iterator(db, number.to_bytes(_STEERING_BYTES, "big")).status()
    except Exception as error:
        if type(error) is not Exception:
            raise
        return False
    return True
