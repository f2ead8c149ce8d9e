"""The sentences with which a store refuses: what, where, remedy, on one line.

Law of this file: texts only. Each function returns an error for the caller to raise.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from dedup_middleware.errors import StoreCorruptError, StoreError, StoreLockedError, StoreVersionError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ANOTHER_PATH = "set DEDUP_STORE to another path"


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())


def foreign(path: Path) -> StoreCorruptError:
    """Refuse *path*: it holds something without our marker."""
    return StoreCorruptError(
        _one_line(f"{path} is not a store of dedup-middleware and was left untouched: {_ANOTHER_PATH}, or move it away")
    )


def corrupt(path: Path, detail: str) -> StoreCorruptError:
    """Refuse *path*: it bears our marker and cannot be read."""
    return StoreCorruptError(
        _one_line(
            f"the store {path} is damaged ({detail}) and was left as it is: "
            f"put back a copy, make a repaired one with `scrapy dedup repair`, {_ANOTHER_PATH}, "
            "or begin anew with `scrapy dedup reset`"
        )
    )


def beyond_repair(path: Path, detail: str) -> StoreCorruptError:
    """Give up on a repaired copy of *path*."""
    return StoreCorruptError(
        _one_line(
            f"the store {path} is damaged beyond repair ({detail}) and was left as it is: put back a copy, "
            "or begin anew with `scrapy dedup reset`"
        )
    )


def no_room(path: Path, needed: int, free: int) -> StoreError:
    """Refuse to copy *path* where the disk has *free* bytes of the *needed* ones."""
    return StoreError(
        _one_line(
            f"the store {path} cannot be repaired: its copy needs {needed / 2**20:.0f} MB beside it, "
            f"and {free / 2**20:.0f} MB are free: make room"
        )
    )


def absent(path: Path) -> StoreError:
    """Refuse because there is nothing at *path*."""
    return StoreError(_one_line(f"there is no store at {path}: crawl first, or name another one in DEDUP_STORE"))


def locked(path: Path) -> StoreLockedError:
    """Refuse *path*: somebody else holds it."""
    return StoreLockedError(
        _one_line(f"the store {path} is in use by another crawl or program: wait until it ends, or {_ANOTHER_PATH}")
    )


def other_schema(path: Path, found: int, known: int) -> StoreVersionError:
    """Refuse *path*: a later or an earlier version of this plugin wrote it."""
    age, remedy = ("newer", "upgrade dedup-middleware") if found > known else ("older", "use the version that made it")
    return StoreVersionError(
        _one_line(
            f"the store {path} has schema {found}, {age} than schema {known} of this version: "
            f"{remedy}, or {_ANOTHER_PATH}"
        )
    )


def other_scheme(path: Path, found: str, wanted: str) -> StoreVersionError:
    """Refuse *path*: its fingerprints do not compare with ours."""
    return StoreVersionError(
        _one_line(
            f"the store {path} holds fingerprints of scheme {found!r}, this crawl makes {wanted!r}: "
            f"{_ANOTHER_PATH}, or begin anew with `scrapy dedup reset`"
        )
    )


def failed(path: Path, action: str, detail: str) -> StoreError:
    """Refuse because the medium under *path* failed to *action* (a verb: open, read, write)."""
    return StoreError(
        _one_line(
            f"cannot {action} the store {path} ({detail}): check the disk's space and the folder's permissions, "
            f"or {_ANOTHER_PATH}"
        )
    )


def closed(uri: str) -> StoreError:
    """Refuse because the store *uri* was used after its close()."""
    return StoreError(_one_line(f"the store {uri} is closed: open it again with open_store()"))


def inherited(uri: str) -> StoreError:
    """Refuse because the process has the store *uri* open by being forked from the one that opened it."""
    return StoreError(
        _one_line(
            f"the store {uri} was opened by the parent of this process, and only the parent may use it: "
            "open a store of its own after the fork, or start the process by spawn"
        )
    )


@contextmanager
def of_os(path: Path, action: str) -> Iterator[None]:
    """Turn every ``OSError`` of the block into :func:`failed`."""
    try:
        yield
    except OSError as error:
        raise failed(path, action, error.strerror or str(error)) from error


@contextmanager
def of_value(path: Path) -> Iterator[None]:
    """Turn every ``ValueError`` of the block, whose text says what is damaged, into :func:`corrupt`."""
    try:
        yield
    except ValueError as error:
        raise corrupt(path, str(error)) from error
