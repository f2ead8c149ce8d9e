"""Stores that several processes share, opened several times within one."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from dedup_middleware.stores import OpenStore, disk, external, parse_uri, sqlite_shared
from dedup_middleware.stores.holder import Holder
from dedup_middleware.stores.redis_store import RedisStore
from dedup_middleware.stores.sqlite_shared import SharedSQLiteStore

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from redis_server import RedisServer

KINDS = ("sqlite", "redis")
#: The classes of such stores, and what tells that one is within its ``atomically``.
CLASSES = {SharedSQLiteStore: "_depth", RedisStore: "_run"}


def shared_uri(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """Return the URI of a new store of this *kind*; one on a server is removed with that."""
    if kind == "sqlite":
        return f"sqlite:{folder / 'store'}?shared=1"
    server: RedisServer = request.getfixturevalue("redis_server")
    return f"{server.url}?store=test-{secrets.token_hex(8)}"


def beside(uri: str, scheme: str) -> OpenStore:
    """Open the store at *uri*, for fingerprints of *scheme*, as another process would."""
    kind, path = parse_uri(uri)
    if kind == "sqlite":
        opening = disk.Opening(scheme, Holder.this_process("a test"), disk.MEMORY)
        medium, created = disk._open_medium(sqlite_shared, disk.resolved(path), opening)
    else:
        from dedup_middleware.stores import redis  # noqa: PLC0415 - where redis-py is

        medium, created = external.open_medium(redis.PLAIN, uri, path, scheme, ours=True)
    return OpenStore(medium, created=created, leave=medium.close)


def die(store: OpenStore) -> None:
    """Let the worker who has *store* open end as one that is killed: of what it has open, nothing is closed."""
    shared = store.shared
    if isinstance(shared, RedisStore):
        shared._lease.leave(is_away=False)
    else:
        shared._workers.leave()  # type: ignore[union-attr]
