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
        self._connect(address.host, address.port)

    def script(self, text: str, *arguments: bytes | str | float) -> Any:
        """Return what the script *text* does; see `redis_scripts`. It is sent anew once if the connection is lost."""
        rest = (1, self._address.base + b"version", self._address.base, *arguments)
        try:
            return self._answer(_packed("EVALSHA", _sha(text), *rest))
        except failures.NoScriptError:
            return self._answer(_packed("EVAL", text, *rest))

    def call(self, name: str, *arguments: bytes | str | float, again: bool = True) -> Any:
        """Return the answer to a command; not sent *again*, it may have been carried out where this raises."""
        return self._answer(_packed(*name.split(" "), *arguments), name, again=again)

    def _answer(self, packed: bytes, name: str = "", *, again: bool = True) -> Any:
        """Return the answer to what is *packed*, as redis-py reads those to *name*."""
        with self._guard:
            try:
                return self._followed(packed, name, again=again)
            except failures.NoScriptError:
                raise
            except (failures.RedisError, OSError) as error:
                raise self._refusal(error) from error

    def close(self) -> None:
        """Close the connection; a later call opens another one."""
        self._connection.disconnect()

    def _followed(self, packed: bytes, name: str, *, again: bool) -> Any:
        """Return the answer of the node of a cluster that has the store, wherever that is by now."""
        for _ in range(_MOVES):
            try:
                return self._sent(packed, name, again=again)
            except failures.MovedError as error:  # noqa: PERF203 - once in a long time
                self._connection.disconnect()
                self._connect(error.host or self._address.host, error.port)
        raise failures.ClusterDownError("its cluster sends us from node to node")

    def _sent(self, packed: bytes, name: str, *, again: bool) -> Any:
        try:
            return self._asked(packed, name)
        except (failures.AuthenticationError, failures.BusyLoadingError, failures.TimeoutError):
            raise
        except (failures.ConnectionError, OSError):
            if not again:
                raise
        return self._asked(packed, name)

    def _asked(self, packed: bytes, name: str) -> Any:
        # `Redis.execute_command` does this too, and as much again around it, for clients that many threads share.
        try:
            self._connection.send_packed_command([packed])
            return self._client.parse_response(self._connection, name)  # type: ignore[no-untyped-call]
        except failures.ResponseError:
            raise
        except BaseException:
            # An answer that is still to come must not be taken for that of the next command.
            self._connection.disconnect()
            raise

    def _refusal(self, error: Exception) -> StoreError:
        uri, detail = self._address.uri, str(error).rstrip(". ")
        if isinstance(error, _NOT_ALLOWED):
            return refusals.not_allowed(uri, detail)
        if isinstance(error, _AWAY):
            return refusals.away(uri, detail)
        if "WRONGTYPE" in detail:
            return refusals.foreign(uri)
        return refusals.failed_on_server(uri, detail)

    def _connect(self, host: str, port: int) -> None:
        """Speak to another server from now on; the connection is opened when it is needed."""
        address = self._address
        self._client = Redis(
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
            **(address.tls or {}),
        )
        self._connection: Any = self._client.connection_pool.make_connection()


def _packed(*command: bytes | str | float) -> bytes:
    """Return *command* as it is sent."""
    parts = [part if type(part) is bytes else str(part).encode() for part in command]
    return b"".join([b"*%d\r\n" % len(parts), *(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)])


def _sha(text: str) -> str:
    found = _SHAS.get(text)
    if found is None:
        # The server's own name of it, no secret.
        found = _SHAS[text] = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    return found


_SHAS: dict[str, str] = {}
