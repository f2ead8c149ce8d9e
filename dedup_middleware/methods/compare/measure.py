"""Measures one method on a corpus, in a process of its own, so that time and memory are those of this method alone.

The process gets a `Run` as JSON on its standard input, and prints a `Measurement` as JSON on its standard output.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import traceback
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from dedup_middleware.errors import ConfigError, DedupError
from dedup_middleware.fingerprints import ClauseFingerprinter
from dedup_middleware.index.candidates import containment
from dedup_middleware.methods.compare.corpus import prepared_pages
from dedup_middleware.methods.method import METHODS, Method, Text, WeightedSet, method, packed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dedup_middleware.methods.compare.corpus import PreparedPage
    from dedup_middleware.methods.method import Signature

#: Our own fingerprint, by its name among the values of ``DEDUP_FINGERPRINT``.
CLAUSES = "clauses"
# Of CPU time a page, so that a slow machine or method changes no verdict.
_AN_HOUR = 3_600_000
# A method may load something with its first text, which is not part of the time of that text.
_ANY_TEXT = (
    "The harbour council has decided to rebuild the old grain store, because winter storms had loosened its stones.",
    "港务委员会决定重新修建旧粮仓的屋顶，因为冬季风暴动摇了地基，而省里仍在权衡补贴方案。",
)
# More processes would wait for each other's memory, and measure longer times.
_AT_ONCE = 2
_COMMAND = (sys.executable, "-m", "dedup_middleware.methods.compare.measure")
_STATUS = Path("/proc/self/status")
_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Run:
    """The measurement of one method."""

    choice: str
    """The method, with its options."""
    pages: str
    """Path of what `prepare` has written."""
    pure: bool
    """Whether the method decides without the product's checks."""
    fit: float
    """The share of the pages, the first ones, that a method learns from."""


@dataclass(slots=True)
class Measurement:
    """The results of a run, or the error that ended it."""

    originals: list[int] = field(default_factory=list)
    """For each page, the number of the page for which it was dropped; its own number if it was kept."""
    ms_per_page: float = 0.0
    bytes_per_page: float = 0.0
    peak_mb: float | None = None
    """Megabytes beyond those of a process that has only read the pages; ``None`` if the system does not report them."""
    error: str = ""


class Clauses(Method):
    """Our own fingerprint without checks: the share of a page's clauses that another page contains."""

    threshold = 0.8

    def __init__(self) -> None:
        self._fingerprint = ClauseFingerprinter(b"scrapy dedup compare")

    def fingerprint(self, text: Text) -> WeightedSet | None:
        """Return the clauses of *text*, weighted by their letters; ``None`` if it has none."""
        weights = self._fingerprint(text.paragraphs).weights
        return WeightedSet(weights) if weights else None

    def similarity(self, new: WeightedSet, old: WeightedSet) -> float:
        """Return the share of *new* that *old* contains."""
        return containment(cast("Mapping[bytes, int]", new.weights), old.weights.keys())


def method_of(choice: str) -> Method:
    """Return the method of a *choice*, a published one or ours.

    `ConfigError` for a wrong choice. If a package is missing, an `ImportError`, or a `ConfigError` caused by one.
    """
    name, _, options = choice.partition(":")
    if name != CLAUSES:
        return method(choice)
    if options:
        raise ConfigError(f"{CLAUSES} has no options here", f"leave out {options!r}")
    return Clauses()


def all_choices() -> list[str]:
    """Return all methods with their default options, ours first."""
    return [CLAUSES, *METHODS.names()]


# --- decisions


def without_checks(method: Method, texts: Sequence[Text]) -> list[int]:
    """Return the `Measurement.originals` of *texts* as the method decides alone.

    A text that is alike to texts that were kept before is dropped for the first of them. A text without paragraphs is
    kept.
    """
    index: defaultdict[bytes, list[int]] = defaultdict(list)
    kept: dict[int, Signature] = {}
    originals = []
    for number, text in enumerate(texts):
        original = number
        new = method.fingerprint(text) if text.paragraphs else None
        if new is not None:
            keys = list(dict.fromkeys(method.keys(new)))
            found = sorted({other for key in keys if key in index for other in index[key]})
            original = next((other for other in found if method.is_alike(new, kept[other])), number)
            if original == number:
                kept[number] = new
                for key in keys:
                    index[key].append(number)
        originals.append(original)
    return originals


def with_checks(pages: Sequence[PreparedPage], choice: str, learned: Sequence[PreparedPage]) -> tuple[list[int], float]:
    """Return the `Measurement.originals` of *pages* as a `Deduplicator` with this fingerprint decides, and the seconds.

    The method learns from the pages *learned* first.
    """
    from dedup_middleware import Deduplicator  # noqa: PLC0415 - not needed to measure without checks

    originals: list[int] = []
    numbers: dict[str, int] = {}
    with Deduplicator("memory:", fingerprint=choice, max_milliseconds=_AN_HOUR) as dedup:
        dedup.learn([{"url": page.text.url, "html": page.html} for page in learned])
        began = time.process_time()
        for number, page in enumerate(pages):
            checked = dedup.add(page.text.url, page.html)
            original = checked.original_url if checked.is_duplicate else None
            originals.append(number if original is None else numbers[original])
            numbers[checked.url] = number
        seconds = time.process_time() - began
    return originals, seconds


# --- one run


def measure(run: Run) -> Measurement:
    """Return the results of *run*. An error is returned, not raised: the other methods are measured all the same."""
    try:
        return _measure(run)
    except (DedupError, ImportError) as error:
        return Measurement(error=str(error))
    except Exception as error:  # noqa: BLE001 - a method of another package may raise anything
        place = traceback.extract_tb(error.__traceback__)[-1]
        return Measurement(error=f"{error!r} at {Path(place.filename).name}:{place.lineno}")


def _measure(run: Run) -> Measurement:
    pages = list(prepared_pages(Path(run.pages)))
    texts = [page.text for page in pages]
    before = _peak()
    method = method_of(run.choice)
    with_text = [page for page in pages if page.text.paragraphs]
    learned = with_text[: max(1, round(run.fit * len(with_text)))] if method.learns else []
    if learned:
        method.fit([page.text for page in learned])
    method.fingerprint(texts[0]._replace(paragraphs=_ANY_TEXT, title=_ANY_TEXT[0]))
    if run.pure:
        began = time.process_time()
        originals = without_checks(method, texts)
        seconds = time.process_time() - began
    else:
        originals, seconds = with_checks(pages, run.choice, learned)
    after = _peak()
    return Measurement(
        originals,
        ms_per_page=round(seconds * 1000 / len(pages), 3),
        bytes_per_page=round(sum(_size(method, text) for text in texts) / len(pages), 1),
        peak_mb=None if before is None or after is None else round((after - before) / _MEGABYTE, 1),
    )


def _size(method: Method, text: Text) -> int:
    """Return how many bytes a store keeps of *text* for the method: its fingerprint, packed, and its keys."""
    new = method.fingerprint(text) if text.paragraphs else None
    return 0 if new is None else len(packed(new)) + sum(map(len, dict.fromkeys(method.keys(new))))


def _peak() -> int | None:
    """Return the most bytes of RAM that this process has had so far; ``None`` if the system does not report them.

    On Linux `getrusage` reports those of the parent if they were more: the mark survives ``exec``.
    """
    if _STATUS.exists() and (found := re.search(r"VmHWM:\s*(\d+) kB", _STATUS.read_text(encoding="ascii"))):
        return int(found[1]) * 1024
    try:
        resource = import_module("resource")
    except ImportError:  # Windows
        return None
    most: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


# --- processes


def measure_all(runs: Sequence[Run], done: Callable[[], None]) -> list[Measurement]:
    """Return the measurements of *runs*, in their order, each in a process, two at a time; call *done* after each.

    If this call is interrupted, its processes are killed.
    """
    running: set[subprocess.Popen[bytes]] = set()
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        try:
            futures = [threads.submit(_in_process, run, running) for run in runs]
            for _ in as_completed(futures):
                done()
            return [future.result() for future in futures]
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            for process in list(running):
                process.kill()


def _in_process(run: Run, running: set[subprocess.Popen[bytes]]) -> Measurement:
    process = subprocess.Popen(  # noqa: S603 - our own module
        _COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # The process can import what this one can, also packages with methods.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    running.add(process)
    try:
        out, err = process.communicate(json.dumps(asdict(run)).encode())
    finally:
        running.discard(process)
    if process.returncode:
        last = err.decode("utf8", "replace").strip().splitlines()[-1:]
        return Measurement(error=f"its process ended with status {process.returncode}, {' '.join(last)!r}")
    return Measurement(**json.loads(out))


def main() -> None:
    """Print the measurement of the run on standard input."""
    # What a library prints must not mix with the measurement.
    answer = os.dup(1)
    os.dup2(2, 1)
    measured = measure(Run(**json.load(sys.stdin)))
    with os.fdopen(answer, "w", encoding="ascii") as file:
        json.dump(asdict(measured), file)


if __name__ == "__main__":
    main()
