"""Opens files without waiting, and nothing but files: a named pipe waits for a program at its other end."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    #: Tells by the mode of what is open whether it is of one kind.
    Kinds = tuple[Callable[[int], bool], ...]

FILES: Kinds = (stat.S_ISREG,)
#: A terminal, ``/dev/null``.
DEVICES: Kinds = (stat.S_ISCHR,)
#: What a person names to read or write as it comes: ``/dev/stdin``, ``/dev/stdout``, a process substitution.
STREAMS: Kinds = (*DEVICES, stat.S_ISFIFO)

# Windows has no named pipes among its files.
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_MODE = 0o600


class NotAFileError(OSError):
    """Something other than a file is at the path."""

    def __init__(self, path: str | os.PathLike[str], what: str) -> None:
        # The error of the system for a pipe without a reader, and for a socket.
        super().__init__(errno.ENXIO, what, str(path))


def open_file(path: str | os.PathLike[str], mode: str = "rb", kinds: Kinds = FILES, **options: Any) -> Any:
    """Open *path* as ``open`` does, without waiting, if it is of one of these *kinds*; else :class:`NotAFileError`.

    A file that is created is private.
    """
    return open(path, mode, opener=lambda name, flags: descriptor_of(name, flags, kinds), **options)


def ends_torn(path: Path) -> bool:
    """Return whether the last line of the file *path* lacks its end, because its writer was killed; ``OSError``."""
    if not path.is_file() or not path.stat().st_size:
        return False
    with open_file(path) as file:
        file.seek(-1, os.SEEK_END)
        return bool(file.read(1) != b"\n")


def descriptor_of(path: str | os.PathLike[str], flags: int, kinds: Kinds = FILES) -> int:
    """Return a descriptor of *path*, opened without waiting; :class:`NotAFileError` if it is of none of these *kinds*.

    A named pipe that a person may name has a reader before it is written to. A folder is left to ``open``, which
    refuses it.
    """
    with suppress(FileNotFoundError):
        # What is refused is not opened: a program at the other end of a pipe would go on, and find nothing.
        _check(path, Path(path).stat(), kinds)
    try:
        descriptor = os.open(path, flags | _NO_WAIT, _MODE)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise NotAFileError(path, "no program reads it") from error
    try:
        # The name may lead to something else by now.
        _check(path, os.fstat(descriptor), kinds)
    except NotAFileError:
        os.close(descriptor)
        raise
    if _NO_WAIT:
        os.set_blocking(descriptor, True)
    return descriptor


def _check(path: str | os.PathLike[str], status: os.stat_result, kinds: Kinds) -> None:
    if not any(is_of_kind(status.st_mode) for is_of_kind in (*kinds, stat.S_ISDIR)):
        names = {stat.S_ISFIFO: "named pipe", stat.S_ISSOCK: "socket"}
        name = next((name for is_of_kind, name in names.items() if is_of_kind(status.st_mode)), "device")
        raise NotAFileError(path, f"it is a {name}, not a file")
