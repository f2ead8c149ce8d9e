"""Limits how long an answer of a Redis server may be: redis-py takes one of any length into memory.

The scripts of `redis_layout` answer with less, but what answers need not be a Redis server, nor have run them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redis.connection import DefaultParser
from redis.exceptions import InvalidResponse

if TYPE_CHECKING:
    from collections.abc import Callable

#: Bytes of an answer. Those of our scripts have at most half as many.
MAX_ANSWER = 128 * 2**20


class BoundedParser(DefaultParser):  # type: ignore[misc, valid-type] # it is one of two
    """Reads answers of at most `MAX_ANSWER` bytes; :class:`InvalidResponse` for a longer one."""

    _bounded: _BoundedSocket | None = None

    def on_connect(self, connection: Any, **kwargs: Any) -> None:
        """Read from the socket of *connection* from now on."""
        super().on_connect(connection, **kwargs)
        if hasattr(self, "_sock"):  # with hiredis
            self._sock: Any = _BoundedSocket(self._sock)
            self._bounded = self._sock

    def read_response(self, *args: Any, **kwargs: Any) -> Any:
        """Return the next answer."""
        if self._bounded is not None:
            self._bounded.left = MAX_ANSWER
        return super().read_response(*args, **kwargs)


class _BoundedSocket:
    """A socket that fails after *left* bytes have been received."""

    def __init__(self, socket: Any) -> None:
        self.left = MAX_ANSWER
        self._socket = socket
        self._receive: Callable[..., int] = socket.recv_into

    def recv_into(self, *args: Any) -> int:
        """Receive, see `socket.recv_into`."""
        count = self._receive(*args)
        self.left -= count
        if self.left < 0:
            raise InvalidResponse(f"an answer has more than {MAX_ANSWER} bytes")
        return count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)
