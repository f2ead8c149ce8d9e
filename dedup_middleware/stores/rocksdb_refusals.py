"""What RocksDB raises -> what a user is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.stores import refusals

if TYPE_CHECKING:
    from dedup_middleware.errors import StoreError

# By the first words of its text, for rocksdict raises bare exceptions.
_DAMAGED = ("Corruption:", "Invalid argument:", "IO error: No such file or directory:")
# What it calls corruption too, where it meets it while it opens its tables.
_OF_THE_SYSTEM = ("Too many open files", "Permission denied", "Cannot allocate memory", "No space left on device")


def refusal_of(uri: str, action: str, error: Exception) -> StoreError | None:
    """Return what to raise for an *error* of RocksDB that came of trying to *action* (a verb) the store *uri*.

    ``None`` if it is none of RocksDB's.
    """
    if isinstance(error, UnicodeEncodeError):
        return refusals.no_path(uri, "RocksDB takes paths in UTF-8 only")
    if type(error) is not Exception:
        return None
    detail = str(error)
    is_damaged = detail.startswith(_DAMAGED) and not any(reason in detail for reason in _OF_THE_SYSTEM)
    # A table that was cut is mapped, or read, behind its end, and the system says so.
    if is_damaged or detail.endswith(".sst: Invalid argument"):
        return refusals.corrupt(uri, detail)
    # Our own lock was free, so this is a program that opened db/ by itself.
    if "/LOCK:" in detail and "lock" in detail:
        return refusals.locked(uri)
    return refusals.failed(uri, action, detail)
