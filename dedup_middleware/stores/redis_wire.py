"""One connection to a Redis server: commands as bytes, their answers, and whether they have come; hiredis reads them.

It knows no store, sends nothing twice, and raises what sockets raise, or :class:`ServerError`.
"""

from __future__ import annotations

import socket
import ssl
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import hiredis

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dedup_middleware.stores.redis_address import Address

# Of an answer, at a time.
_BYTES = 65_536


class ServerError(Exception):
    """A server's refusal, as it says it."""

    @property
    def code(self) -> str:
        """Its first word, in capitals: what kind it is."""
        return str(self).partition(" ")[0]


class NoServerError(ConnectionError):
    """What answers is no Redis server."""

    def __str__(self) -> str:
        return f"what answers there does not speak the Redis protocol: {super().__str__()}"


class Answer:
    """What comes of one command, once it has come."""

    def __init__(self) -> None:
        self.is_over = False
        """Whether it has come, or never will."""
        self._value: Any = None

    def end(self, value: Any) -> None:
        """Take *value* for the answer; an error is raised by :meth:`value`."""
        self._value = value
        self.is_over = True

    def value(self) -> Any:
        """Return it when it is over, or raise what has come instead."""
        if isinstance(self._value, Exception):
            raise self._value
        return self._value


class Wire:
    """A connection to *host* and *port*, as the user of *address*: one thread has it at a time, any may close it."""

    def __init__(self, address: Address, host: str, port: int) -> None:
        """Connect; `OSError` where that cannot be done within the time-out, `ServerError` where we are not let in."""
        self._timeout = address.timeout
        self._reader = hiredis.Reader(protocolError=NoServerError, replyError=ServerError)
        self._due: deque[Answer] = deque()
        self._socket = _connected(address, host, port)
        self.is_open = True
        """Whether commands may be sent."""
        try:
            for command in _greetings(address):
                self.wait(self.send(packed(*command))).value()
        except BaseException:
            self.close()
            raise

    def fileno(self) -> int:
        """Return the descriptor that can be read when there is more."""
        return self._socket.fileno()

    def send(self, command: bytes) -> Answer:
        """Send a *command*; its answer is still to come. After an `OSError` nothing more can be sent."""
        if not self.is_open:
            raise ConnectionError("it is closed")
        answer = Answer()
        self._due.append(answer)
        try:
            self._socket.settimeout(self._timeout)
            self._socket.sendall(command)
        except OSError as error:
            self.fail(error)
            raise
        return answer

    def wait(self, answer: Answer) -> Answer:
        """Return *answer* when it is over; no longer than the time-out for each part of it."""
        while not answer.is_over:
            self._receive(self._timeout)
        return answer

    def receive(self) -> None:
        """Read what has come by now; whatever goes wrong, answers raise."""
        while self._due and self._receive(0):
            pass

    def _receive(self, seconds: float) -> bool:
        """Read some of what comes within *seconds*; tell whether there was any."""
        if not self.is_open:
            return False
        try:
            self._socket.settimeout(seconds)
            data = self._socket.recv(_BYTES)
            if not data:
                raise ConnectionError("its server has closed the connection")
            self._reader.feed(data)
            while self._due and (value := self._reader.gets()) is not False:
                self._end_next(value)
        except (BlockingIOError, ssl.SSLWantReadError) as error:
            if seconds:
                self.fail(error)
            return False
        except OSError as error:
            self.fail(error)
            return False
        return True

    def _end_next(self, value: Any) -> None:
        # Another thread may close it meanwhile.
        with suppress(IndexError):
            self._due.popleft().end(value)

    def fail(self, error: Exception) -> None:
        """Send nothing more; answers that are due raise *error*: one that is still to come must not be the next one's.

        Whoever listens at its descriptor finds that there is something to read. It is closed when nobody has it any
        more: an event loop cannot leave a descriptor that is closed, or another's by now.
        """
        self.is_open = False
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        while self._due:
            self._end_next(error)

    def close(self) -> None:
        """Send and receive nothing more."""
        self.fail(ConnectionError("it is closed"))

    def __del__(self) -> None:
        if hasattr(self, "_socket"):
            self._socket.close()


def packed(*command: bytes | str | float) -> bytes:
    """Return *command* as it is sent."""
    found: bytes = hiredis.pack_command(command)  # type: ignore[arg-type] # its stub wants one part
    return found


def tls_context(files: Mapping[str, str]) -> ssl.SSLContext:
    """Return what encrypts a connection, with these *files*; ``OSError`` for one that is none, or cannot be read."""
    context = ssl.create_default_context(cafile=files.get("ssl_ca_certs"))
    if certificate := files.get("ssl_certfile"):
        context.load_cert_chain(certificate, files.get("ssl_keyfile"))
    return context


def _connected(address: Address, host: str, port: int) -> socket.socket:
    connection = socket.create_connection((host, port), address.timeout)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if address.tls is None:
        return connection
    try:
        return tls_context(address.tls).wrap_socket(connection, server_hostname=host)
    except BaseException:
        connection.close()
        raise


def _greetings(address: Address) -> list[tuple[bytes | str | float, ...]]:
    """Return what a new connection is told first."""
    greetings: list[tuple[bytes | str | float, ...]] = []
    if address.password is not None:
        user = [] if address.user is None else [address.user]
        greetings.append(("AUTH", *user, address.password))
    if address.database:
        greetings.append(("SELECT", address.database))
    return greetings
