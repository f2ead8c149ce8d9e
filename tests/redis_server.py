"""A Redis server of a test's own, on loopback: Debian's redis-server or valkey-server, where there is one."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest
from local_site import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self


class RedisServer:
    """A server that keeps what it holds in *folder*; it may be killed and begun again."""

    def __init__(self, folder: Path, **options: str) -> None:
        self._command = next((found for name in ("redis-server", "valkey-server") if (found := shutil.which(name))), "")
        if not self._command:
            pytest.skip("neither redis-server nor valkey-server is installed")
        self._folder = folder
        self._options = {"appendonly": "yes", "save": "", **options}
        self._port_option = "tls-port" if "tls-cert-file" in options else "port"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def begin(self) -> None:
        """Start the server, and return once it answers."""
        self._folder.mkdir(exist_ok=True)
        given = {"bind": "127.0.0.1", self._port_option: str(self.port), "dir": str(self._folder), **self._options}
        # A value may be several words.
        arguments = [part for name, value in given.items() for part in (f"--{name}", *value.split(" "))]
        self._process = subprocess.Popen([self._command, *arguments], stdout=subprocess.DEVNULL)
        wait_until(self._answers)

    def freeze(self) -> None:
        """Let the server say nothing any more."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        """Kill the server, as a power failure would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                if self._port_option == "tls-port":
                    return True
                connection.sendall(b"PING\r\n")
                return connection.recv(100).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False
