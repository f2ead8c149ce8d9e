"""Stores that several processes share, opened several times within one."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from typing import TYPE_CHECKING

from dedup_middleware import stores
from dedup_middleware.stores import OpenStore

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from redis_server import RedisServer

KINDS = ("sqlite", "redis")


def shared_uri(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """Return the URI of a new store of this *kind*; one on a server is removed with that."""
    if kind == "sqlite":
        return f"sqlite:{folder / 'store'}?shared=1"
    server: RedisServer = request.getfixturevalue("redis_server")
    return f"{server.url}?store=test-{secrets.token_hex(8)}"


def beside(uri: str, scheme: str) -> OpenStore:
    """Open the store at *uri*, for fingerprints of *scheme*, as another process would."""
    place = stores._place(uri)
    with ExitStack() as undo:
        store = stores._opened(uri, place, "a test", None, undo)
        shared, created = stores._with_header(store, scheme, undo)
    return OpenStore(shared, created=created, leave=shared.close)


def die(store: OpenStore) -> None:
    """End the worker that has *store* open as if it was killed: of what it has open, nothing is closed."""
    engine = store.in_process.store
    if store.uri.startswith("sqlite:"):
        engine._workers.leave()  # type: ignore[attr-defined]
    else:
        engine._client.delete(engine._lease(engine.worker))  # type: ignore[attr-defined]
