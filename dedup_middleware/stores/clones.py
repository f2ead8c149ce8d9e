"""A clone of a LevelDB's files, to try things out on."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from dedup_middleware import permissions

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def clone(files: Iterable[Path], to: Path) -> None:
    """Link *files* into the new folder *to*.

    Those that do not count any more must not be among them: LevelDB gives their numbers to new files, and would write
    these through the link.
    """
    permissions.make_folder(to)
    for file in files:
        _link(file, to / file.name)


def _link(file: Path, to: Path) -> None:
    try:
        to.hardlink_to(file)
    except OSError:
        # Some file systems have no links.
        shutil.copyfile(file, to)
