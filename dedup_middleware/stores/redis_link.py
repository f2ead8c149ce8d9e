"""A way to a Redis server: calls of scripts, sent anew where a connection is lost; every failure a StoreError.

What is sent anew must do no harm when it is done twice. It knows no store.
"""

from __future__ import annotations

import hashlib
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dedup_middleware.stores import refusals
from dedup_middleware.stores.redis_wire import ServerError, Wire, packed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dedup_middleware.errors import StoreError
    from dedup_middleware.stores.redis_address import Address
    from dedup_middleware.stores.redis_wire import Answer

# Later, or elsewhere, they may be answered. MOVED is dealt with before.
_AWAY = {"LOADING", "READONLY", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "ASK"}
_FULL = "ERR max number of clients"
_NOT_ALLOWED = {"NOAUTH", "WRONGPASS", "NOPERM"}
# From node to node, while a cluster moves its slots.
_MOVES = 3


class Link:
    """One connection at a time, opened with the first call; one thread at a time has it."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._place = address.host, address.port
        self._guard = threading.Lock()
        self._wire: Wire | None = None

    def script(self, text: str, *arguments: bytes | str | float) -> Any:
        """Return what the script *text* does; see `redis_scripts`. It is sent anew once if the connection is lost."""
        with self._guard, self._refusing():
            return self._script(text, arguments)

    def call(self, name: str, *arguments: bytes | str | float, again: bool = True) -> Any:
        """Return the answer to a command; not sent *again*, it may have been carried out where this raises."""
        with self._guard, self._refusing():
            return self._followed(packed(*name.split(" "), *arguments), again=again)

    def open_for(self, text: str, *arguments: bytes | str | float) -> None:
        """Have a connection open to a server that knows the script *text*: if none is, it is carried out once."""
        with self._guard, self._refusing():
            if self._wire is None or not self._wire.is_open:
                self._script(text, arguments)

    def begin_script(self, text: str, *arguments: bytes | str | float) -> tuple[Wire, Answer] | None:
        """Send what :meth:`script` does, and return what is to come of it; ``None`` where it can't be sent at once.

        Until all such answers are over, the link must be used for nothing else.
        """
        if not self._guard.acquire(blocking=False):
            return None
        try:
            wire = self._wire
            if wire is None or not wire.is_open:
                return None
            return wire, wire.send(self._evaluated("EVALSHA", _sha(text), arguments))
        except OSError:
            return None
        finally:
            self._guard.release()

    def close(self) -> None:
        """Close the connection; a later call opens another one."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def _script(self, text: str, arguments: tuple[bytes | str | float, ...]) -> Any:
        try:
            return self._followed(self._evaluated("EVALSHA", _sha(text), arguments))
        except ServerError as error:
            if error.code != "NOSCRIPT":
                raise
        return self._followed(self._evaluated("EVAL", text, arguments))

    def _evaluated(self, name: str, script: str, arguments: tuple[bytes | str | float, ...]) -> bytes:
        base = self._address.base
        return packed(name, script, 1, base + b"version", base, *arguments)

    def _followed(self, command: bytes, *, again: bool = True) -> Any:
        """Return the answer of the node of a cluster that has the store, wherever that is by now."""
        for _ in range(_MOVES):
            try:
                return self._sent(command, again=again)
            except ServerError as error:  # noqa: PERF203 - once in a long time
                host, _, port = str(error).rpartition(" ")[2].rpartition(":")
                if error.code != "MOVED" or not port.isdecimal():
                    raise
                self.close()
                self._place = host or self._address.host, int(port)
        raise ServerError("CLUSTERDOWN its cluster sends us from node to node")

    def _sent(self, command: bytes, *, again: bool) -> Any:
        wire = self._wire
        if wire is not None and wire.is_open:
            try:
                return self._asked(wire, command)
            except TimeoutError:
                raise
            except OSError:
                if not again:
                    raise
        wire = self._wire = Wire(self._address, *self._place)
        return self._asked(wire, command)

    @staticmethod
    def _asked(wire: Wire, command: bytes) -> Any:
        try:
            return wire.wait(wire.send(command)).value()
        except ServerError:
            raise
        except BaseException as error:
            wire.fail(ConnectionError(str(error)))
            raise

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except (ServerError, OSError) as error:
            raise self._refusal(error) from error

    def _refusal(self, error: ServerError | OSError) -> StoreError:
        uri, detail = self._address.uri, (str(error) or type(error).__name__).rstrip(". ")
        if isinstance(error, OSError) or error.code in _AWAY or detail.startswith(_FULL):
            return refusals.away(uri, detail)
        if error.code in _NOT_ALLOWED or "AUTH" in detail:
            return refusals.not_allowed(uri, detail, self._address.base.decode("ascii"))
        if "DB index" in detail:
            return refusals.no_database(uri)
        if "WRONGTYPE" in detail:
            return refusals.foreign(uri)
        return refusals.failed_on_server(uri, detail)


def _sha(text: str) -> str:
    found = _SHAS.get(text)
    if found is None:
        # The server's own name of it, no secret.
        found = _SHAS[text] = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    return found


_SHAS: dict[str, str] = {}
