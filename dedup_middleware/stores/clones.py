"""A clone of a LevelDB's files, to try things out on."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from dedup_middleware import permissions

if TYPE_CHECKING:
    from pathlib import Path


def clone(folder: Path, to: Path) -> int:
    """Link the files of *folder* into the new folder *to*; return the size of the tables in bytes."""
    permissions.make_folder(to)
    size = 0
    for file in folder.iterdir():
        # LevelDB's lock and diary: with the lock linked, closing the clone would unlock the database.
        if file.name.startswith("LO") or not file.is_file():
            continue
        try:
            (to / file.name).hardlink_to(file)
        except OSError:
            # Some file systems have no links.
            shutil.copyfile(file, to / file.name)
        if file.suffix in {".ldb", ".sst"}:
            size += file.stat().st_size
    return size
