"""Whether a Redis server keeps what it is given: looked at once, when a store is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.errors import StoreAwayError, StoreError
from dedup_middleware.stores import refusals

if TYPE_CHECKING:
    from dedup_middleware.stores.redis_address import Address
    from dedup_middleware.stores.redis_link import Link

# What can tell whether the disk has what it was given.
_TELLS = (7, 2)


class Seen(NamedTuple):
    """What a server has told of itself."""

    waits_for_disk: bool = False
    """Whether it can tell that a disk has what it was given."""
    caution: str = ""
    """What could not be seen and must be so, in one line."""


def check(address: Address, link: Link) -> Seen:
    """Raise ``StoreError`` if the server would lose what it is given; return what else it has told.

    INFO tells most of it, which managed servers allow too; CONFIG, where that is allowed, how often the disk is asked.
    """
    # Of a cluster, the node that has the store is the one to look at; a command that names a key leads there.
    link.call("EXISTS", address.base + b"version")
    info = _info(link)
    uri = address.uri
    if info.get("loading") == "1":
        raise refusals.away(uri, "its server is still loading what it holds")
    policy = info.get("maxmemory_policy", "noeviction")
    if info.get("maxmemory", "0") != "0" and policy != "noeviction":
        remedy = "set maxmemory-policy noeviction, or use a server of its own"
        raise refusals.unsafe_server(
            uri, f"throws away keys when its memory is full (maxmemory-policy {policy})", remedy
        )
    if not address.needs_log or "kvrocks_version" in info:
        return Seen()
    if info.get("aof_enabled") != "1":
        remedy = "set appendonly yes, or accept that with aof=no in DEDUP_STORE"
        raise refusals.unsafe_server(uri, "forgets what it holds when it ends (appendonly no)", remedy)
    appendfsync = _setting(link, "appendfsync")
    if appendfsync == "no":
        remedy = "set appendfsync everysec, or always"
        raise refusals.unsafe_server(uri, "leaves it to the system when its disk is written (appendfsync no)", remedy)
    waits = _version(info.get("redis_version", "")) >= _TELLS and _allows(link, "WAITAOF", 0, 0, 0)
    return Seen(waits, "" if appendfsync else refusals.unseen_setting(uri, "appendfsync", "everysec or always"))


def _info(link: Link) -> dict[str, str]:
    found = link.call("INFO")
    lines = found.decode("utf8", "replace").splitlines() if isinstance(found, bytes) else []
    return {name: value for name, _, value in (line.partition(":") for line in lines) if value}


def _setting(link: Link, name: str) -> str | None:
    """Return the setting *name* of the server; ``None`` where it is not told to us."""
    found = _asked(link, "CONFIG GET", name)
    return found[1].decode("utf8", "replace") if isinstance(found, list) and len(found) > 1 else None


def _allows(link: Link, name: str, *arguments: float) -> bool:
    """Tell whether we may give a command; a user of one store's keys may be allowed no more than those need."""
    return _asked(link, name, *arguments) is not None


def _asked(link: Link, name: str, *arguments: str | float) -> Any:
    """Return the answer to a command; ``None`` where it is refused."""
    try:
        return link.call(name, *arguments)
    except StoreAwayError:
        raise
    except StoreError:
        return None


def _version(written: str) -> tuple[int, ...]:
    parts = written.split(".")[:2]
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else ()
