"""Jobs, each in a process of its own: its time and its memory are nobody else's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from typing import TYPE_CHECKING

from dedup_middleware.comparison.worker import Measured

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dedup_middleware.comparison.worker import Job

# More would wait for each other's memory, and be slower than they are.
_AT_ONCE = 2
_COMMAND = (sys.executable, "-m", "dedup_middleware.comparison.worker")


def measure_all(jobs: Sequence[Job], done: Callable[[], None]) -> list[Measured]:
    """Return what came of *jobs*, in their order, two at a time; call *done* after each.

    Whatever ends this call, no process is left behind.
    """
    running: set[subprocess.Popen[bytes]] = set()
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        try:
            futures = [threads.submit(_measured, job, running) for job in jobs]
            for _ in as_completed(futures):
                done()
            return [future.result() for future in futures]
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            for process in list(running):
                process.kill()


def _measured(job: Job, running: set[subprocess.Popen[bytes]]) -> Measured:
    # What this process can import, a package of methods among it, that one can.
    path = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(  # noqa: S603 - our own module
        _COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    running.add(process)
    try:
        out, err = process.communicate(json.dumps(asdict(job)).encode())
    finally:
        running.discard(process)
    if process.returncode:
        said = err.decode("utf8", "replace").strip().splitlines()
        return Measured(failed=f"its process ended with status {process.returncode}, {' '.join(said[-1:])!r}")
    return Measured(**json.loads(out))
