"""Makes the errors of stores: what happened, where, and the remedy, on one line.

A store is named by its URI, so that the remedy can be copied.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from dedup_middleware.common.urls import without_secrets
from dedup_middleware.errors import (
    PATH_ERRORS,
    DedupError,
    StoreAwayError,
    StoreCorruptError,
    StoreError,
    StoreLockedError,
    UnreadableError,
)
from dedup_middleware.stores.engines import ENGINES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

ANOTHER = "set DEDUP_STORE to another store"


def named(uri: str) -> str:
    """Return *uri* as errors name a store: without user and password."""
    return without_secrets(uri, redact=False)


def reset(uri: str) -> str:
    """Return the command that removes the store at *uri*, in backquotes."""
    return f"`{scrapy_dedup('store', 'reset', store=uri)}`"


def absent(uri: str) -> StoreError:
    """Return the error for a command that needs a store and finds none at *uri*."""
    if uri == "memory:":
        none = "no store is named, or one in memory, which ends with its crawl"
        return StoreError(none, "use -s DEDUP_STORE=URI, or --spider NAME")
    return StoreError(f"no store found at {named(uri)}", "crawl first, or use -s DEDUP_STORE=URI")


def foreign(uri: str) -> StoreCorruptError:
    """Return the error for something at *uri* that does not have our marker."""
    return StoreCorruptError(
        f"{named(uri)} is not a store of dedup-middleware and was left untouched", f"{ANOTHER}, or move it away"
    )


def corrupt(uri: str, detail: str) -> StoreCorruptError:
    """Return the error for a store that has our marker and cannot be read."""
    return StoreCorruptError(
        f"the store {named(uri)} is damaged ({detail})",
        f"restore a backup, {ANOTHER}, or remove it by {reset(uri)} "
        "(and fill the new one with `scrapy dedup store import`, if there is an export)",
    )


def locked(uri: str, holder: str = "") -> StoreLockedError:
    """Return the error for a store that another process, *holder* if it is known, has open."""
    shown, who = named(uri), f", {holder}" if holder else ""
    is_shared = shown.partition(":")[0] not in ENGINES or "shared=1" in shown
    instead = "" if is_shared else f". To crawl meanwhile, {ANOTHER}, or all crawls to sqlite:PATH?shared=1"
    return StoreLockedError(
        f"the store {shown} is in use by another crawl or program{who}", f"wait until it ends{instead}", holder
    )


def closed(uri: str) -> StoreError:
    """Return the error for a store that is used after its ``close()``."""
    return StoreError(f"the store {named(uri)} is closed", "open it again")


def away(uri: str, detail: str) -> StoreAwayError:
    """Return the error for a server that does not answer, or cannot serve now."""
    return StoreAwayError(f"cannot reach the store {named(uri)} ({detail})", f"check its server, or {ANOTHER}")


def failed(uri: str, action: str, detail: str) -> StoreError:
    """Return the error for a disk that failed to *action* (a verb: open, read, write) the store."""
    return StoreError(
        f"cannot {action} the store {named(uri)} ({detail})",
        f"check the disk's space and the folder's permissions, or {ANOTHER}",
    )


def no_path(uri: str, detail: str) -> StoreError:
    """Return the error for a path that can never be a store, regardless of the state of the disk."""
    return StoreError(f"no store can be at {named(uri)} ({detail})", ANOTHER, misnamed=True)


def of_system(uri: str, action: str, error: Exception) -> StoreError | None:
    """Return the error for a system call that failed to *action* (a verb: open, read, write) the store.

    ``None`` if *error* is not of the system.
    """
    if not isinstance(error, OSError):
        return None
    detail = error.strerror or str(error)
    is_path = action == "open" and error.errno in PATH_ERRORS
    return no_path(uri, detail) if is_path else failed(uri, action, detail)


def of_value(uri: str, action: str, error: Exception) -> StoreError | None:  # noqa: ARG001 - see `Store.refusal`
    """Return the error for a value of the store that cannot be read; ``None`` if *error* is another one."""
    return corrupt(uri, str(error)) if isinstance(error, UnreadableError) else None


class translated:  # noqa: N801 - a context, as those of contextlib; as a generator it would take a microsecond more
    """Turns errors of its block that are not ours into what *refusal* returns, unless that is ``None``."""

    def __init__(
        self, uri: str, action: str, refusal: Callable[[str, str, Exception], StoreError | None] = of_system
    ) -> None:
        self._what = uri, action
        self._refusal = refusal

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, DedupError):
            ours = self._refusal(*self._what, error)
            if ours is not None:
                raise ours from error


def scrapy_dedup(
    *words: str,
    spider: str | None = None,
    store: str | None = None,
    log: Path | None = None,
    key: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Return the command ``scrapy dedup WORDS`` for a shell, on this *store* (a URI) and *log* or the *spider*'s.

    *key*, if there is one, is the DEDUP_KEY that their items have.
    """
    parts = [*words]
    if spider is not None:
        parts += ["--spider", spider]
    if store is not None:
        # Without a password: others read what is printed.
        parts += ["-s", f"DEDUP_STORE={named(store)}"]
    if log is not None:
        parts += ["-s", f"DEDUP_LOG={log}"]
    if key:
        names = key[""] if key.keys() == {""} else key
        parts += ["-s", f"DEDUP_KEY={json.dumps(names, ensure_ascii=False)}"]
    return shlex.join(["scrapy", "dedup", *parts])
