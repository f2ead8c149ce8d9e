"""The sentences with which a store refuses: what, where, remedy, on one line.

Texts only. Each function returns an error for the caller to raise. A store is named by its URI, so
that a remedy can name the very same one.
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

    from dedup_middleware.stores.holder import Holder

_ANOTHER_STORE = "set DEDUP_STORE to another one"
_ANOTHER_PATH = "set DEDUP_STORE to another path"


def _is_shared(uri: str) -> bool:
    """Tell whether crawls share a store at *uri* as it is; who wants it alone has to wait."""
    return not uri.startswith(("leveldb:", "rocksdb:", "sqlite:")) or "shared=1" in uri


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())


def _begin_anew(uri: str) -> str:
    return f"begin anew with `{scrapy_dedup('reset', store=uri)}`"


def foreign(uri: str) -> StoreCorruptError:
    """Refuse *uri*: it holds something without our marker."""
    return StoreCorruptError(
        _one_line(f"{uri} is not a store of dedup-middleware and was left untouched: {_ANOTHER_PATH}, or move it away")
    )


def of_another_kind(uri: str, kind: str) -> StoreCorruptError:
    """Refuse *uri*: the store there is of another *kind*, which its URI begins with."""
    scheme, _, path = uri.partition("?")[0].partition(":")
    return StoreCorruptError(
        _one_line(
            f"what is at {path} is no {scheme} store but a {kind} store, and was left untouched: "
            f"set DEDUP_STORE to {kind}:{path}, or to another path"
        )
    )


def corrupt(uri: str, detail: str) -> StoreCorruptError:
    """Refuse *uri*: it bears our marker and cannot be read."""
    return StoreCorruptError(
        _one_line(
            f"the store {uri} is damaged ({detail}) and was left as it is: "
            f"put back a copy, make a repaired one with `{scrapy_dedup('repair', store=uri)}`, {_ANOTHER_PATH}, "
            f"or {_begin_anew(uri)}"
        )
    )


def beyond_repair(uri: str, detail: str) -> StoreCorruptError:
    """Give up on a repaired copy of *uri*."""
    return StoreCorruptError(
        _one_line(
            f"the store {uri} is damaged beyond repair ({detail}) and was left as it is: put back a copy, "
            f"or {_begin_anew(uri)}"
        )
    )


def no_room(uri: str, needed: int, free: int) -> StoreError:
    """Refuse to copy *uri* where the disk has *free* bytes of the *needed* ones."""
    return StoreError(
        _one_line(
            f"the store {uri} cannot be repaired: its copy needs {needed / 2**20:.0f} MB beside it, "
            f"and {free / 2**20:.0f} MB are free: make room"
        )
    )


def absent(uri: str) -> StoreError:
    """Refuse because there is nothing at *uri*."""
    shown = without_secrets(uri, redact=False)
    return StoreError(_one_line(f"there is no store at {shown}: crawl first, or name another one in DEDUP_STORE"))


def nothing_there(uri: str) -> str:
    """Return what a command says that needs a store, and has none at the absolute *uri*."""
    if uri == "memory:":
        return "no store is named; use -s DEDUP_STORE=URI, or --spider NAME"
    return (
        f"there is no store at {without_secrets(uri, redact=False)}; crawl first, or name another: -s DEDUP_STORE=URI"
    )


def locked(uri: str, holder: Holder | None = None) -> StoreLockedError:
    """Refuse *uri*: somebody else holds it, *holder* if that is known."""
    shown, who = without_secrets(uri, redact=False), "" if holder is None else f", {holder}"
    return StoreLockedError(
        _one_line(
            f"the store {shown} is in use by another crawl or program{who}: wait until it ends"
            + ("" if _is_shared(shown) else f"; to crawl meanwhile, {_ANOTHER_PATH}, or all to sqlite:PATH?shared=1")
        ),
        holder,
    )


def partial(uri: str) -> StoreError:
    """Refuse *uri*: an import into it has not come to its end."""
    return StoreError(
        _one_line(
            f"the store {uri} was being filled by `scrapy dedup import`, which was cut off, and has nothing else: "
            f"empty it with `{scrapy_dedup('reset', store=uri)}`, and import again"
        )
    )


def other_schema(uri: str, found: int, known: int) -> StoreVersionError:
    """Refuse *uri*: a later version of this plugin wrote it, or one too early."""
    age, remedy = ("newer", "upgrade dedup-middleware") if found > known else ("older", _begin_anew(uri))
    return StoreVersionError(
        _one_line(
            f"the store {uri} has schema {found}, {age} than schema {known} of this version: "
            f"{remedy}, or {_ANOTHER_PATH}"
        )
    )


def other_scheme(uri: str, found: str, wanted: str) -> StoreVersionError:
    """Refuse *uri*: its fingerprints do not compare with ours."""
    return StoreVersionError(
        _one_line(
            f"the store {uri} holds fingerprints of scheme {found!r}, this crawl makes {wanted!r}: "
            f"{_ANOTHER_PATH}, or {_begin_anew(uri)}"
        )
    )


def failed(uri: str, action: str, detail: str) -> StoreError:
    """Refuse because the medium under *uri* failed to *action* (a verb: open, read, write)."""
    return StoreError(
        _one_line(
            f"cannot {action} the store {uri} ({detail}): check the disk's space and the folder's permissions, "
            f"or {_ANOTHER_PATH}"
        )
    )


def no_path(uri: str, detail: str) -> StoreError:
    """Refuse *uri*: no store can ever be there, whatever becomes of the disk."""
    error = StoreError(_one_line(f"no store can be at {uri} ({detail}): {_ANOTHER_PATH}"))
    error.misnamed = True
    return error


def away(uri: str, detail: str) -> StoreAwayError:
    """Refuse because the server of *uri* does not answer, or cannot serve it now."""
    return StoreAwayError(_one_line(f"the store {uri} is away ({detail}): see to its server, or {_ANOTHER_STORE}"))


def forgetful(uri: str) -> StoreAwayError:
    """Refuse because the server of *uri* has lost what was written to it."""
    return away(uri, "its server has lost what was written last: it was emptied, or did not have all on its disk")


def not_allowed(uri: str, detail: str, keys: str) -> StoreError:
    """Refuse because the server of *uri* does not let us in, or not do what we must with *keys*."""
    return StoreError(
        _one_line(
            f"the server of the store {uri} refuses us ({detail}): put the user and password it asks for, or none, "
            "into DEDUP_STORE, or the password into DEDUP_REDIS_PASSWORD, and allow that user "
            f"~{keys}* +@read +@write +@scripting +@connection +info +config|get"
        )
    )


def failed_on_server(uri: str, detail: str) -> StoreError:
    """Refuse because the server of *uri* answers with an error."""
    return StoreError(_one_line(f"the server of the store {uri} fails ({detail}): see to it, or {_ANOTHER_STORE}"))


def unseen_setting(uri: str, name: str, needed: str) -> str:
    """Return what is to be said of a setting that the server of *uri* does not show us."""
    return _one_line(
        f"the server of the store {uri} does not tell us its setting {name} (its user may not run CONFIG GET): "
        f"see to it that it is {needed}"
    )


def no_database(uri: str) -> StoreError:
    """Refuse because the server of *uri* has no database of that number."""
    error = StoreError(f"the server of the store {uri} has no database of that number: name one of its own, mostly 0")
    error.misnamed = True
    return error


def unsafe_server(uri: str, trouble: str, remedy: str) -> StoreError:
    """Refuse *uri*, whose server would lose what it is given, for a *trouble* with a *remedy*."""
    return StoreError(_one_line(f"the server of the store {uri} {trouble}: {remedy}"))


def lease_lost(uri: str) -> StoreAwayError:
    """Refuse to write to *uri*: for too long nothing was heard of this process, and others have what it had open."""
    return StoreAwayError(
        _one_line(
            f"this process stood still and has lost its lease of the store {uri}: a crawl opens that again by itself, "
            "a command is to be run again"
        )
    )


def full(uri: str, room: int) -> StoreError:
    """Refuse because the store *uri*, which is in memory, has had more than *room* bytes to hold."""
    return StoreError(f"the store {uri} has grown beyond {room / 2**20:.0f} MB: name one on a disk in DEDUP_STORE")


def not_compactable(uri: str) -> StoreError:
    """Refuse to compact *uri*, whose store cannot do that."""
    return StoreError(f"the store {uri} has no way to be compacted by us: use what its own server or package has")


def closed(uri: str) -> StoreError:
    """Refuse because the store *uri* was used after its close()."""
    return StoreError(_one_line(f"the store {uri} is closed: open it again"))


def inherited(uri: str) -> StoreError:
    """Refuse because the process has the store *uri* open by being forked from the one that opened it."""
    return StoreError(
        _one_line(
            f"the store {uri} was opened by the parent of this process, and only the parent may use it: "
            "open a store of its own after the fork, or start the process by spawn"
        )
    )


@contextmanager
def of_os(uri: str, action: str) -> Iterator[None]:
    """Turn every ``OSError`` of the block into :func:`failed`, or :func:`no_path` where no opening can ever succeed."""
    try:
        yield
    except OSError as error:
        detail = error.strerror or str(error)
        misnamed = action == "open" and error.errno in PATH_ERRORS
        raise (no_path(uri, detail) if misnamed else failed(uri, action, detail)) from error


class of_value:  # noqa: N801 - used as the functions here are
    """Turn every ``ValueError`` of this *kind* in the block, whose text says what is damaged, into :func:`corrupt`.

    A class, for it stands around whatever is read of a page: a generator takes 1.2 µs, this 0.2.
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
