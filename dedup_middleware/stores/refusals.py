"""Returns the errors of stores, for the caller to raise: what happened, where, and the remedy, on one line.

A store is named by its URI, so that a remedy can name the very same one.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from dedup_middleware.commandlines import scrapy_dedup
from dedup_middleware.errors import (
    PATH_ERRORS,
    StoreAwayError,
    StoreCorruptError,
    StoreError,
    StoreLockedError,
    StoreVersionError,
)
from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dedup_middleware.stores.files import Holder

_ANOTHER_STORE = "set DEDUP_STORE to another one"
_ANOTHER_PATH = "set DEDUP_STORE to another path"


def reset(uri: str) -> str:
    """Return the command that removes the store at *uri*, in backquotes."""
    return f"`{scrapy_dedup('store', 'reset', store=uri)}`"


# --- what is there


def foreign(uri: str) -> StoreCorruptError:
    """Report that *uri* holds something without our marker."""
    return StoreCorruptError(
        f"{uri} is not a store of dedup-middleware and was left untouched: {_ANOTHER_PATH}, or move it away"
    )


def of_another_kind(uri: str, kind: str) -> StoreCorruptError:
    """Report that *uri* holds a store of another *kind*, the scheme of its URI."""
    scheme, _, path = uri.partition("?")[0].partition(":")
    return StoreCorruptError(
        f"what is at {path} is no {scheme} store but a {kind} store, and was left untouched: "
        f"set DEDUP_STORE to {kind}:{path}, or to another path"
    )


def corrupt(uri: str, detail: str) -> StoreCorruptError:
    """Report that *uri* has our marker and cannot be read."""
    return StoreCorruptError(
        f"the store {uri} is damaged ({detail}): put back a copy, {_ANOTHER_PATH}, or begin a new one with "
        f"{reset(uri)} (and fill it with `scrapy dedup store import`, if there is an export)"
    )


def other_schema(uri: str, found: int, known: int) -> StoreVersionError:
    """Report that *uri* was written by another version of this package."""
    age, remedy = ("newer", "upgrade dedup-middleware") if found > known else ("older", f"remove it by {reset(uri)}")
    return StoreVersionError(
        f"the store {uri} has schema {found}, {age} than schema {known} of this version: {remedy}, or {_ANOTHER_PATH}"
    )


def other_scheme(uri: str, found: str, wanted: str) -> StoreVersionError:
    """Report that *uri* has fingerprints that do not compare with ours."""
    return StoreVersionError(
        f"the store {uri} holds fingerprints of scheme {found!r}, this crawl makes {wanted!r}: "
        f"{_ANOTHER_PATH}, or remove it by {reset(uri)}"
    )


def absent(uri: str) -> StoreError:
    """Report that no store is at *uri*."""
    shown = without_secrets(uri, redact=False)
    return StoreError(f"there is no store at {shown}: crawl first, or name another one in DEDUP_STORE")


def nothing_there(uri: str) -> str:
    """Return the message of a command that needs a store, and finds none at the absolute *uri*."""
    if uri == "memory:":
        return "no store is named; use -s DEDUP_STORE=URI, or --spider NAME"
    shown = without_secrets(uri, redact=False)
    return f"there is no store at {shown}; crawl first, or name another: -s DEDUP_STORE=URI"


# --- who uses it


def locked(uri: str, holder: Holder | None = None) -> StoreLockedError:
    """Report that another process, *holder* if that is known, has *uri* open."""
    shown, who = without_secrets(uri, redact=False), "" if holder is None else f", {holder}"
    is_shared = not shown.startswith(("leveldb:", "rocksdb:", "sqlite:")) or "shared=1" in shown
    instead = "" if is_shared else f"; to crawl meanwhile, {_ANOTHER_PATH}, or all to sqlite:PATH?shared=1"
    return StoreLockedError(
        f"the store {shown} is in use by another crawl or program{who}: wait until it ends{instead}", holder
    )


def closed(uri: str) -> StoreError:
    """Report that *uri* was used after its close()."""
    return StoreError(f"the store {uri} is closed: open it again")


# --- what fails


def failed(uri: str, action: str, detail: str) -> StoreError:
    """Report that the medium of *uri* failed to *action* (a verb: open, read, write)."""
    return StoreError(
        f"cannot {action} the store {uri} ({detail}): check the disk's space and the folder's permissions, "
        f"or {_ANOTHER_PATH}"
    )


def no_path(uri: str, detail: str) -> StoreError:
    """Report that no store can ever be at *uri*, regardless of the state of the disk."""
    error = StoreError(f"no store can be at {uri} ({detail}): {_ANOTHER_PATH}")
    error.misnamed = True
    return error


def of_system(uri: str, action: str, error: OSError) -> StoreError:
    """Report that the system refused to *action* (a verb: open, read, write) *uri*."""
    detail = error.strerror or str(error)
    is_path = action == "open" and error.errno in PATH_ERRORS
    return no_path(uri, detail) if is_path else failed(uri, action, detail)


# --- servers


def away(uri: str, detail: str) -> StoreAwayError:
    """Report that the server of *uri* does not answer, or cannot serve it now."""
    return StoreAwayError(f"the store {uri} is away ({detail}): see to its server, or {_ANOTHER_STORE}")


def not_allowed(uri: str, detail: str) -> StoreError:
    """Report that the server of *uri* refuses this user, or something that it does."""
    return StoreError(
        f"the server of the store {uri} refuses us ({detail}): put the user and password it asks for, or none, "
        "into DEDUP_STORE, or the password into DEDUP_REDIS_PASSWORD, and allow that user "
        "~{dedup:* +@read +@write +@scripting +@connection +info"
    )


# --- errors of others -> ours


@contextmanager
def of_os(uri: str, action: str) -> Iterator[None]:
    """Turn every ``OSError`` of the block into :func:`of_system`."""
    try:
        yield
    except OSError as error:
        raise of_system(uri, action, error) from error


class of_value:  # noqa: N801 - used as the functions here are
    """Turn every ``ValueError`` of this *kind* in the block, whose text is the damage, into :func:`corrupt`.

    A class, because it is entered for every value that is read: a generator takes 1.2 µs, this 0.2.
    """

    __slots__ = ("_kind", "_uri")

    def __init__(self, uri: str, kind: type[ValueError] = ValueError) -> None:
        self._uri = uri
        self._kind = kind

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, self._kind):
            raise corrupt(self._uri, str(error)) from error
