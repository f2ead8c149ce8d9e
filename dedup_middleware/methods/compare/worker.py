"""The process in which one method is measured: a job on its standard input, what came of it on its standard output."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from dedup_middleware.errors import ConfigError, DedupError
from dedup_middleware.methods.compare.corpus import prepared_pages
from dedup_middleware.methods.compare.trial import (
    LENGTHS,
    MissingPackageError,
    alone,
    milliseconds,
    missing,
    pages_to_learn,
    ready,
    size_of,
    texts_of_length,
    witnessed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Job:
    """What to measure."""

    choice: str
    """The method, with its options."""
    pages: str
    """Path of what `prepare` has written."""
    pure: bool
    """Whether the method decides by itself, without the product's witnesses."""
    fit: float
    """The share of the pages, the first ones, that a method learns from."""
    curve: bool = False
    """Whether to measure its time by length of text, and nothing else."""


@dataclass(slots=True)
class Measured:
    """What came of a job, or why nothing did."""

    originals: list[int] = field(default_factory=list)
    """For each page, the number of the page for which it was dropped; its own if it was kept."""
    ms_per_page: float = 0.0
    bytes_per_page: float = 0.0
    peak_mb: float | None = None
    """Megabytes beyond those of a process that has only read the pages; ``None`` where the system does not tell."""
    curve: list[float] = field(default_factory=list)
    """Milliseconds for a fingerprint of a text, by its length."""
    missing: str = ""
    """Which package the method needs."""
    refused: str = ""
    """A user's mistake."""
    failed: str = ""
    """A defect, and where."""


def measure(job: Job) -> Measured:
    """Do the *job*. Whatever a method raises is told, not raised."""
    try:
        return _curve(job) if job.curve else _trial(job)
    except MissingPackageError as error:
        return Measured(missing=str(error))
    except ImportError as error:
        return Measured(missing=missing(error))
    except DedupError as error:
        needs_a_package = isinstance(error.__cause__, ImportError)
        return Measured(missing=str(error)) if needs_a_package else Measured(refused=str(error))
    except Exception as error:  # noqa: BLE001 - the other methods can be compared all the same
        place = traceback.extract_tb(error.__traceback__)[-1]
        return Measured(failed=f"{error!r} at {Path(place.filename).name}:{place.lineno}")


def _trial(job: Job) -> Measured:
    pages = list(prepared_pages(Path(job.pages)))
    before = peak()
    made = ready(job.choice, pages, job.fit)
    if job.pure:
        outcome = alone(made, [page.text for page in pages])
    else:
        outcome = witnessed(pages, job.choice, pages_to_learn(pages, job.fit) if made.learns else ())
    after = peak()
    return Measured(
        outcome.originals,
        ms_per_page=round(outcome.seconds * 1000 / len(pages), 3),
        bytes_per_page=round(sum(size_of(made, page.text) for page in pages) / len(pages), 1),
        peak_mb=None if before is None or after is None else round((after - before) / _MEGABYTE, 1),
    )


def _curve(job: Job) -> Measured:
    pages = list(prepared_pages(Path(job.pages)))
    made = ready(job.choice, pages, job.fit)
    try:
        texts = [texts_of_length([page.text for page in pages], length) for length in LENGTHS]
    except ValueError as error:
        raise ConfigError(f"{error}; there is nothing to cut texts from") from error
    return Measured(curve=[round(milliseconds(made, chosen), 3) for chosen in texts])


def main() -> None:
    """Do the job on standard input."""
    # Whatever else is printed, by a library perhaps, is no answer.
    answer = os.dup(1)
    os.dup2(2, 1)
    measured = measure(Job(**json.load(sys.stdin)))
    with os.fdopen(answer, "w", encoding="ascii") as file:
        json.dump(asdict(measured), file)


_STATUS = Path("/proc/self/status")


def peak() -> int | None:
    """Return the most bytes of RAM that this process has had so far; ``None`` where the system does not tell.

    On Linux `getrusage` would tell what the parent had, if that was more: the mark survives ``exec``.
    """
    if _STATUS.exists() and (found := re.search(r"VmHWM:\s*(\d+) kB", _STATUS.read_text(encoding="ascii"))):
        return int(found[1]) * 1024
    try:
        resource = import_module("resource")
    except ImportError:  # Windows
        return None
    most: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


# More would wait for each other's memory, and be slower than they are.
_AT_ONCE = 2
_COMMAND = (sys.executable, "-m", "dedup_middleware.methods.compare.worker")


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


if __name__ == "__main__":
    main()
