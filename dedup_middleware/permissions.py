"""Folders and files that are their owner's alone: 0700 and 0600.

What pages say, where they were found and how they were asked for is nobody else's business on a shared machine.
What is there already keeps the mode that its owner gave it.
"""

from __future__ import annotations

import stat
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o600
_OTHERS = 0o077


def make_folder(folder: Path) -> None:
    """Create *folder* and those above it that are missing; ``OSError`` where that cannot be done."""
    # Not mkdir(parents=True), which gives the mode to the last one only.
    for missing in reversed([f for f in (folder, *folder.parents) if not f.exists()]):
        missing.mkdir(mode=FOLDER_MODE, exist_ok=True)


def make_file(path: Path, *, like: Path | None = None) -> None:
    """Create the file *path* where there is none, with the mode of *like* if that is there.

    ``OSError`` where that cannot be done.
    """
    path.touch(FILE_MODE)
    if like is not None and like.exists():
        path.chmod(stat.S_IMODE(like.stat().st_mode))


def tighten_within(folder: Path) -> None:
    """Make what is in *folder* private, unless its owner has let others into it."""
    with suppress(OSError):
        if not stat.S_IMODE(folder.stat().st_mode) & _OTHERS:
            tighten(folder.iterdir())


def tighten(paths: Iterable[Path]) -> None:
    """Make *paths* private: folders and files. Devices, and what belongs to somebody else, stay as they are."""
    for path in paths:
        with suppress(OSError):
            if path.is_dir():
                path.chmod(FOLDER_MODE)
            elif path.is_file():
                path.chmod(FILE_MODE)
