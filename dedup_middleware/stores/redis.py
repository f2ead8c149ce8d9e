"""Stores on Redis servers, and on those that speak its protocol: which there are, opened and removed.

A store is one namespace of a server, with all its keys in one slot of a cluster; see `redis_layout`.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from dedup_middleware.errors import ConfigError
from dedup_middleware.stores import redis_checks, redis_lease, refusals
from dedup_middleware.stores.layout import HEADER_KEY
from dedup_middleware.stores.redis_address import Address, address
from dedup_middleware.stores.redis_layout import places
from dedup_middleware.stores.redis_lease import Lease
from dedup_middleware.stores.redis_link import Link
from dedup_middleware.stores.redis_store import RedisStore
from dedup_middleware.stores.redis_wire import tls_context

if TYPE_CHECKING:
    from collections.abc import Iterator

_REMOVED_AT_ONCE = 1_000


class RedisBackend:
    """A :class:`~dedup_middleware.stores.external.StoreBackend` for URIs of one *scheme*."""

    def __init__(self, scheme: str) -> None:
        self._scheme = scheme

    def _address(self, path: str) -> Address:
        """Return where *path* is; :class:`ConfigError` if that cannot be, or names a file that cannot be used."""
        where = address(self._scheme, path)
        if not where.tls:
            return where
        try:
            tls_context(where.tls)
        except OSError as error:
            named = ", ".join(f"{option}={file}" for option, file in where.tls.items())
            why = error.strerror or error
            raise ConfigError(
                f"DEDUP_STORE={where.uri!r}: of {named}, one cannot be read, or is not what it should be ({why}); "
                "name files in PEM format that this user may read"
            ) from error
        return where

    def open(self, path: str) -> RedisStore:
        """Become a worker of the store at *path*, whether anything is there or not."""
        where = self._address(path)
        with ExitStack() as undo:
            link = Link(where)
            undo.callback(link.close)
            seen = redis_checks.check(where, link)
            store = RedisStore(where, link, Lease(where, link), seen)
            undo.pop_all()
        return store

    def exists(self, path: str) -> bool:
        """Tell whether there is one; ``StoreError`` if the server would not keep it. A connection, and a few trips."""
        where = self._address(path)
        with _linked(where) as link:
            redis_checks.check(where, link)
            return _is_there(where, link)

    def remove(self, path: str) -> bool:
        """Remove it, and whatever has its name; ``StoreLockedError`` if a worker has it open."""
        where = self._address(path)
        with _linked(where) as link:
            is_there = _is_there(where, link)
            workers = link.call("SMEMBERS", where.base + b"workers")
            if any(redis_lease.is_at_work(where, link, bytes.fromhex(name.decode("ascii"))) for name in workers):
                raise refusals.locked(where.uri)
            cursor = b""
            while cursor != b"0":
                cursor, keys = link.call("SCAN", cursor or b"0", "MATCH", where.base + b"*", "COUNT", _REMOVED_AT_ONCE)
                if keys:
                    link.call("UNLINK", *keys)
        return is_there


def _is_there(where: Address, link: Link) -> bool:
    bucket, field = places([HEADER_KEY])
    return bool(link.call("HEXISTS", where.base + bucket, field))


@contextmanager
def _linked(where: Address) -> Iterator[Link]:
    link = Link(where)
    try:
        yield link
    finally:
        link.close()


PLAIN, ENCRYPTED = RedisBackend("redis"), RedisBackend("rediss")
