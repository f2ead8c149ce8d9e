"""A connection to a Redis server: calls of scripts, sent anew where a connection is lost; every failure a StoreError.

What is sent anew must do no harm when it is done twice. It knows no store.
"""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING, Any

from redis import Redis
from redis import exceptions as failures
from redis.backoff import NoBackoff
from redis.retry import Retry

from dedup_middleware.stores import refusals

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.errors import StoreError
    from dedup_middleware.stores.redis_address import Address

# Later, or elsewhere, they may be answered. MOVED is dealt with before.
_AWAY = (
    failures.BusyLoadingError,
    failures.ReadOnlyError,
    failures.ClusterDownError,
    failures.MasterDownError,
    failures.TryAgainError,
    failures.AskError,
    failures.ConnectionError,
    failures.TimeoutError,
    OSError,
)
_NOT_ALLOWED = (failures.AuthenticationError, failures.AuthenticationWrongNumberOfArgsError, failures.NoPermissionError)
# From node to node, while a cluster moves its slots.
_MOVES = 3


class Link:
    """One connection, opened with the first call; one thread at a time has it."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._guard = threading.Lock()
        self._client = self._connected(address.host, address.port)

    def script(self, text: str, *arguments: bytes | str | float) -> Any:
        """Return what the script *text* does; see `redis_scripts`. It is sent anew once if the connection is lost."""
        key = self._address.base + b"version"
        command = ("EVALSHA", _sha(text), 1, key, self._address.base, *arguments)
        try:
            return self.call(*command)
        except failures.NoScriptError:
            return self.call("EVAL", text, *command[2:])

    def call(self, *command: bytes | str | float, again: bool = True) -> Any:
        """Return the answer to *command*; not sent *again*, it may have been carried out where this raises."""
        with self._guard:
            try:
                return self._followed(command, again=again)
            except failures.NoScriptError:
                raise
            except (failures.RedisError, OSError) as error:
                raise self._refusal(error) from error

    def close(self) -> None:
        """Close the connection; a later call opens another one."""
        self._client.close()

    def _followed(self, command: tuple[bytes | str | float, ...], *, again: bool) -> Any:
        """Return the answer of the node of a cluster that has the store, wherever that is by now."""
        for _ in range(_MOVES):
            try:
                return self._sent(command, again=again)
            except failures.MovedError as error:  # noqa: PERF203 - once in a long time
                self._client.close()
                self._client = self._connected(error.host or self._address.host, error.port)
        raise failures.ClusterDownError("its cluster sends us from node to node")

    def _sent(self, command: tuple[bytes | str | float, ...], *, again: bool) -> Any:
        send: Callable[..., Any] = self._client.execute_command
        try:
            return send(*command)
        except (failures.AuthenticationError, failures.BusyLoadingError, failures.TimeoutError):
            raise
        except (failures.ConnectionError, OSError):
            if not again:
                raise
        return send(*command)

    def _refusal(self, error: Exception) -> StoreError:
        uri, detail = self._address.uri, str(error).rstrip(". ")
        if isinstance(error, _NOT_ALLOWED):
            return refusals.not_allowed(uri, detail)
        if isinstance(error, _AWAY):
            return refusals.away(uri, detail)
        if "WRONGTYPE" in detail:
            return refusals.foreign(uri)
        return refusals.failed_on_server(uri, detail)

    def _connected(self, host: str, port: int) -> Redis:
        address = self._address
        return Redis(
            host=host,
            port=port,
            db=address.database,
            username=address.user,
            password=address.password,
            socket_timeout=address.timeout,
            socket_connect_timeout=address.timeout,
            retry=Retry(NoBackoff(), 0),
            ssl=address.tls is not None,
            protocol=2,
            single_connection_client=False,
            max_connections=1,
            **(address.tls or {}),
        )


def _sha(text: str) -> str:
    found = _SHAS.get(text)
    if found is None:
        # The server's own name of it, no secret.
        found = _SHAS[text] = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    return found


_SHAS: dict[str, str] = {}
