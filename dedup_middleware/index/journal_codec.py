"""Journalled pages and unsealed owners <-> values of a store; under which keys, `codec` says.

Pure functions over bytes; whoever changes a format raises ``layout.SCHEMA_VERSION``. What decodes
raises :class:`UnreadableError`.
"""

from __future__ import annotations

from typing import NamedTuple

from dedup_middleware.errors import UnreadableError

# Behind a journalled page's identity and crawl, what its drop rests on; before what is certain of an owner, its worker.
_REST = "\x01"
_WORKER = b"w"


class Rest(NamedTuple):
    """What the drop of a page rests on, and who has dropped it, in a store that workers share."""

    worker: bytes
    """Who has dropped it, and sees to it."""
    owner: int
    """The number of the page that it repeats."""
    run: str
    """The crawl that delivers that one; "" where nobody does."""


def encode_entry(identity: bytes, spider: str, request: bytes, crawl: str = "", rest: Rest | None = None) -> bytes:
    """Return a journalled page as bytes."""
    head = identity.hex() + (crawl and f" {crawl}")
    if rest is not None:
        head += f"{_REST}{rest.worker.hex()} {rest.owner} {rest.run}"
    return b"\0".join((head.encode("ascii"), spider.encode("utf8", "surrogatepass"), request))


def decode_entry(value: bytes) -> tuple[bytes, str, bytes, str]:
    """Return identity, spider, request and crawl of a journalled page."""
    try:
        head, spider, request = value.split(b"\0", 2)
        identity, _, crawl = head.decode("ascii").partition(_REST)[0].partition(" ")
        return bytes.fromhex(identity), spider.decode("utf8", "surrogatepass"), request, crawl
    except ValueError as error:
        raise UnreadableError(f"a journalled page cannot be read: {error}") from error


def rest_of_entry(value: bytes) -> Rest | None:
    """Return what the drop of a journalled page rests on; ``None`` where nobody has said."""
    rest = value.partition(b"\0")[0].decode("ascii", "replace").partition(_REST)[2]
    try:
        worker, owner, run = rest.split(" ", 2)
        return Rest(bytes.fromhex(worker), int(owner), run)
    except ValueError:
        return None


def encode_unsealed(worker: bytes, run: str, certain: bytes) -> bytes:
    """Return what says of an owner that *worker* delivers it in the crawl *run*, and what is *certain* of it."""
    return b"\0".join((_WORKER + worker.hex().encode(), run.encode("utf8", "surrogatepass"), certain))


def decode_unsealed(value: bytes) -> tuple[bytes, str, bytes]:
    """Return what :func:`encode_unsealed` made *value* of; with no worker and no crawl, where nobody has said."""
    if not value.startswith(_WORKER):
        return b"", "", value
    try:
        worker, run, certain = value[len(_WORKER) :].split(b"\0", 2)
        return bytes.fromhex(worker.decode("ascii")), run.decode("utf8", "surrogatepass"), certain
    except ValueError as error:
        raise UnreadableError(f"an owner that is not sealed cannot be read: {error}") from error
