"""Processes such as `subprocess.Popen` starts, forked from one that has imported Scrapy already (`fork_server.py`).

A crawl of a few pages is mostly imports, and so is a command; the suite has hundreds of both. A fork server looks
after one process at a time; where several run at once, there are as many fork servers.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from multiprocessing import Pipe
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

NURSERY = Path(__file__).with_name("fork_server.py")


class ForkServers:
    """ForkServers that wait for something to do, and the processes behind them; one is started when none waits."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._waiting: list[Connection] = []
        self._started: list[subprocess.Popen[bytes]] = []
        self._outputs = TemporaryDirectory()
        self._numbers = itertools.count()

    def start(self, folder: Path, command: list[str], environment: dict[str, str]) -> Forked:
        """Start a process that does in *folder* what *command* does: a Python, and its script or ``-m`` and a module.

        What the interpreter reads from its environment, such as ``PYTHONWARNINGS``, is that of the fork server.
        """
        fork_server = self._waiting.pop() if self._waiting else self._new()
        outputs = Path(self._outputs.name, str(next(self._numbers)))
        return Forked(fork_server, self._waiting, folder, command[1:], environment, outputs)

    def _new(self) -> Connection:
        ours, theirs = Pipe()
        with theirs:
            # Ctrl-C is for the suite, which then ends what it started.
            fork_server = subprocess.Popen(
                [sys.executable, str(NURSERY), str(theirs.fileno())],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._started.append(fork_server)
        return ours

    def close(self) -> None:
        """End the fork_servers; none may be at work."""
        for fork_server in self._waiting:
            fork_server.close()
        for process in self._started:
            process.wait(60)
        self._outputs.cleanup()


class Forked:
    """The part of `subprocess.Popen` that a crawl or a command needs; *outputs* names the files of what it prints."""

    returncode: int | None = None

    def __init__(  # noqa: PLR0913, PLR0917 - the server, and what it is to start
        self,
        server: Connection,
        waiting: list[Connection],
        folder: Path,
        arguments: list[str],
        environment: dict[str, str],
        outputs: Path,
    ) -> None:
        self._server, self._waiting = server, waiting
        self._outputs = [outputs.with_suffix(suffix) for suffix in (".out", ".err")]
        os.umask(mask := os.umask(0))
        server.send((str(folder), arguments, environment, mask, *map(str, self._outputs)))
        self.pid: int = server.recv()

    def poll(self) -> int | None:
        """Return the exit status, or None while the process runs."""
        return self._status(0)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the end and return what the process wrote to stdout and stderr."""
        if self._status(timeout) is None:
            raise subprocess.TimeoutExpired("a forked process", timeout or 0)
        out, err = (output.read_text(encoding="utf8") for output in self._outputs)
        return out, err

    def send_signal(self, number: int) -> None:
        """Do nothing where the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _status(self, timeout: float | None) -> int | None:
        if self.returncode is None and self._server.poll(timeout):
            self.returncode = self._server.recv()
            self._waiting.append(self._server)
        return self.returncode
