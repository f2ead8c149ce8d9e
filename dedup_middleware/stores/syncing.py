"""Waiting until files are on their medium, in whichever thread."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def sync_files(paths: Iterable[Path]) -> None:
    """Return when these files and folders are on their medium; ``OSError`` if it fails. What is gone need not be."""
    for path in paths:
        with suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def nothing() -> None:
    """Wait for nothing."""
