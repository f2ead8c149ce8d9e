"""What LevelDB raises -> what a user is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plyvel

from dedup_middleware.stores import refusals
from dedup_middleware.stores.folder_store import DB, TRIAL

if TYPE_CHECKING:
    from dedup_middleware.errors import StoreError


def refusal_of(uri: str, action: str, error: plyvel.Error) -> StoreError:
    """Return what to raise for an *error* of LevelDB that came of trying to *action* (a verb) the store *uri*."""
    detail = error.args[0].decode(errors="replace") if error.args else type(error).__name__
    detail = detail.replace(f"/{TRIAL}/", f"/{DB}/")
    # A table that was cut is read from before its beginning, and the system says so.
    if isinstance(error, plyvel.CorruptionError) or detail.endswith(
        (".ldb: Invalid argument", ".sst: Invalid argument")
    ):
        return refusals.corrupt(uri, detail)
    # Our own lock was free, so this is a program that opened db/ by itself.
    if detail.startswith("IO error: lock "):
        return refusals.locked(uri)
    return refusals.failed(uri, action, detail)
