"""What can still be read of a damaged LevelDB store.

It reads the store and writes to a scratch folder only.
"""

from __future__ import annotations

import os
import shutil
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import plyvel

from dedup_middleware import permissions
from dedup_middleware.stores import leveldb, refusals
from dedup_middleware.stores.folder import content_files as files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["files", "salvaged"]

# More than a new database has files.
_BEYOND = 100


@contextmanager
def salvaged(path: Path, scratch: Path) -> Iterator[Callable[[bytes, bytes], Iterator[tuple[bytes, bytes]]]]:
    """Copy the database to the new folder *scratch*, repair the copy, and hand out a scan of what it then holds.

    A scan, and no gets: LevelDB's repair puts all tables on one level, where a get takes the table with the highest
    number for the newest, which after compactions it need not be. A scan goes by the age of each pair.
    """
    permissions.make_folder(scratch)
    uri = f"{leveldb.SCHEME}:{path}"
    for file in files(path):
        shutil.copyfile(file, scratch / file.name)
    try:
        _make_tables_of_logs(scratch)
        # paranoid_checks: without it, rotten blocks of tables would be taken over.
        plyvel.repair_db(os.fsencode(scratch), paranoid_checks=True)
        db = plyvel.DB(os.fsencode(scratch), create_if_missing=False, paranoid_checks=True)
    except plyvel.Error as error:
        raise refusals.beyond_repair(uri, str(error)) from error
    with closing(db):

        def scan(start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
            try:
                with db.iterator(start=start, stop=stop, verify_checksums=True, fill_cache=False) as pairs:
                    yield from pairs
            except plyvel.Error as error:
                raise refusals.beyond_repair(uri, str(error)) from error

        yield scan


def _make_tables_of_logs(scratch: Path) -> None:
    """Put tables in the place of the logs in *scratch*, with all of their records that are sound.

    LevelDB's repair does not look at the checksums of logs (db/repair.cc), and would take over what is in them; its
    recovery does, and passes over what is rotten. So a new database finds them beside it and recovers them.
    """
    recovered = scratch / "logs"
    permissions.make_folder(recovered)
    plyvel.DB(os.fsencode(recovered), create_if_missing=True).close()
    numbers = [int(file.stem) for file in scratch.iterdir() if file.stem.isdecimal()]
    for log in (file for file in scratch.glob("*.log") if file.stem.isdecimal()):
        # Logs with a lower number than its own it would remove.
        log.rename(recovered / f"{int(log.stem) + _BEYOND:06}.log")
    plyvel.DB(os.fsencode(recovered), paranoid_checks=False).close()
    for table in recovered.glob("*.ldb"):
        table.rename(scratch / f"{int(table.stem) + max(numbers, default=0) + _BEYOND:06}.ldb")
    shutil.rmtree(recovered)
