"""A clone of a LevelDB's files, to try things out on."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from dedup_middleware import permissions

if TYPE_CHECKING:
    from pathlib import Path


def clone(folder: Path, to: Path) -> None:
    """Link the files of *folder* into the new folder *to*."""
    permissions.make_folder(to)
    for file in folder.iterdir():
        # LevelDB's lock and diary: with the lock linked, closing the clone would unlock the database.
        if file.name.startswith("LO") or not file.is_file():
            continue
        try:
            (to / file.name).hardlink_to(file)
        except OSError:
            # Some file systems have no links.
            shutil.copyfile(file, to / file.name)
