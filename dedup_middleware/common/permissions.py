"""Creates files and folders that only their owner can read, 0600 and 0700, and replaces no file that is not ours.

Pages, URLs and requests are private on a shared machine. What exists keeps its mode.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from dedup_middleware.common.plain_files import STREAMS, descriptor_of
from dedup_middleware.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOLDER_MODE = 0o700
FILE_MODE = 0o600
_OTHERS = 0o077
#: Bytes of a file that show what it is.
START = 4096


class NotOursError(OSError):
    """Another program has made what is at a path."""

    def __init__(self, path: Path) -> None:
        super().__init__("it contains something else; move that away")
        self.strerror = str(self.args[0])
        self.filename = str(path)


def make_folder(folder: Path) -> None:
    """Create *folder* and the missing folders above it; ``OSError``."""
    # Not mkdir(parents=True), which gives the mode to the last one only.
    for missing in reversed([f for f in (folder, *folder.parents) if not f.exists()]):
        missing.mkdir(mode=FOLDER_MODE, exist_ok=True)


def make_file(path: Path) -> None:
    """Create the file *path* unless it exists; ``OSError``."""
    path.touch(FILE_MODE)


@contextmanager
def replaced(path: Path, is_ours: Callable[[bytes], bool], *, is_named: bool = False) -> Iterator[BinaryIO]:
    """Yield a file to write, which takes the place of *path* when the block has ended without an error; ``OSError``.

    A file at *path* is replaced if it is empty, or if *is_ours* for its first bytes, unpacked; its mode stays. Else
    :class:`NotOursError`. A device, or a pipe that has a reader, is written to if a person has named *path*.
    """
    # Not of the real path: that of a pipe at /dev/stdout names nothing.
    if is_named and path.exists() and not path.is_file():
        with os.fdopen(descriptor_of(path, os.O_WRONLY, STREAMS), "wb") as file:
            yield file
        return
    path = Path(os.path.realpath(path))
    status = path.stat() if os.path.lexists(path) else None
    if status is not None and not is_made_by_us(path, is_ours):
        raise NotOursError(path)
    # An unpredictable name, with O_EXCL, O_NOFOLLOW and 0600.
    descriptor, name = tempfile.mkstemp(prefix=".dedup-", suffix=".tmp", dir=path.parent)
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if status is not None and hasattr(os, "fchmod"):
                # Not by its name, which may be a link by now.
                os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
            yield file
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


@contextmanager
def whole_file(path: Path, is_ours: Callable[[bytes], bool]) -> Iterator[BinaryIO]:
    """Yield a file that takes the place of *path*, as `replaced` does; `ConfigError`."""
    if str(path) == "-":
        raise ConfigError("- is not a file here", "Name a file, or /dev/stdout for standard output.")
    try:
        with replaced(path, is_ours, is_named=True) as file:
            yield file
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        detail = getattr(error, "strerror", None) or error
        raise ConfigError(f"{path} cannot be written ({detail})", "Name another file.") from error


def is_made_by_us(path: Path, is_ours: Callable[[bytes], bool]) -> bool:
    """Return whether *path* is a regular file that is empty, or *is_ours* for its first bytes, unpacked."""
    if not stat.S_ISREG(path.lstat().st_mode):
        return False
    from dedup_middleware.common.bounded import opened  # noqa: PLC0415 - rarely needed

    try:
        with opened(path) as file:
            start = file.read(START)
    except ValueError:
        return False
    return not start or is_ours(start)


def tighten_within(folder: Path) -> None:
    """Make the folders and files in *folder* private, unless its owner has let others in; others' files stay."""
    with suppress(OSError):
        is_open = stat.S_IMODE(folder.stat().st_mode) & _OTHERS
        for path in () if is_open else folder.iterdir():
            with suppress(OSError):
                if path.is_dir():
                    path.chmod(FOLDER_MODE)
                elif path.is_file():
                    path.chmod(FILE_MODE)
