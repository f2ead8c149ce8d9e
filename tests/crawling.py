"""Run a stranger's project against a test site and read what its user would see."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forking import Forked, ForkServers
from local_site import PATIENCE

from dedup_middleware.records.file import Record, Records
from dedup_middleware.stores import default_backend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self

HERE = Path(__file__).parent

#: Which reactor the crawls of the suite run on: asyncio (Scrapy's default), default (Twisted's own) or reactorless.
REACTOR = os.environ.get("CRAWL_REACTOR", "asyncio")
STORE = os.environ.get("CRAWL_STORE") or default_backend()

#: Ask for the next page when the one before has been parsed and its links wait in the queue: the order is certain.
IN_ORDER = {"CONCURRENT_REQUESTS": 1, "SCRAPER_SLOT_MAX_ACTIVE_SIZE": 1}

FEED = {"FEEDS": {"feed.jsonl": {"format": "jsonlines"}}}
#: What a crawl leaves for the tests.
RESULTS = ("items.jsonl", "dropped.jsonl", "stats.jsonl", "log.txt", "records.jsonl")


@dataclass
class Outcome:
    """What came of a crawl."""

    folder: Path
    exit_status: int
    stderr: str

    @property
    def here(self) -> tuple[str, ...]:
        """The options with which a command reads the store and the log of the crawl."""
        return "-s", f"DEDUP_STORE={store_uri(self.folder)}", "-s", f"DEDUP_LOG={self.folder / 'records.jsonl'}"

    def lines(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / name
        return [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()] if path.exists() else []

    @property
    def items(self) -> list[dict[str, Any]]:
        """Items that left the user's pipelines."""
        return self.lines("items.jsonl")

    @property
    def dropped(self) -> list[dict[str, Any]]:
        """Items of the ``item_dropped`` signal, with the exception as ``why`` and ``type``."""
        return self.lines("dropped.jsonl")

    @property
    def kept(self) -> list[str]:
        """URLs of the items that left the user's pipelines, in order."""
        return [item["url"] for item in self.items]

    @property
    def stats(self) -> dict[str, Any]:
        """Stats of the last crawl; of several in one process, those of the last one named."""
        return self.lines("stats.jsonl")[-1]

    @property
    def log(self) -> str:
        return (self.folder / "log.txt").read_text(encoding="utf8")

    @property
    def records(self) -> list[dict[str, Any]]:
        """All fields of the records, but for those of new pages."""
        path = self.folder / "records.jsonl"
        every = Records(path) if path.exists() else []
        return [record.as_dict() for record in every if (record.verdict, record.outcome) != ("new", "kept")]

    @property
    def all_records(self) -> list[Record]:
        """All records, those of new pages too."""
        return [*Records(self.folder / "records.jsonl")]

    def record(self, url: str) -> dict[str, Any]:
        """Return the one record of *url*; that a page is unchecked does not count where its items are checked."""
        records = [r for r in self.records if r["url"] == url]
        (found,) = [r for r in records if len(records) == 1 or r["verdict"] != "unchecked"]
        return found

    @property
    def verdicts(self) -> dict[str, tuple[str, str]]:
        """URL -> verdict and outcome, of the last record of each."""
        return {r["url"]: (r["verdict"], r["outcome"]) for r in self.records}

    @property
    def drop_lines(self) -> list[str]:
        return [line for line in self.log.splitlines() if "Dropped:" in line]

    @property
    def problems(self) -> list[str]:
        """Warnings and errors in the log, but for Scrapy's notice of its reactorless mode."""
        bad = ("] WARNING", "] ERROR", "] CRITICAL")
        expected = "DownloadHandler is experimental"
        lines = [line for line in self.log.splitlines() if any(level in line for level in bad)]
        return [line for line in lines if expected not in line]


def store_uri(folder: Path) -> str:
    """Return where crawls in *folder* keep their store: of the kind that ``CRAWL_STORE`` names, or the default."""
    return f"{STORE}:{folder / 'store'}"


def write_job(  # noqa: PLR0913 - what a job says, by name
    folder: Path,
    spider: str,
    *,
    settings: dict[str, Any] | None = None,
    plugin: bool = True,
    reactor: str | None = None,
    runs: list[dict[str, Any]] | None = None,
    afresh: bool = False,
    env: dict[str, str] | None = None,
    **args: Any,
) -> list[str]:
    """Write the job of a crawl into *folder* and return the command that carries it out.

    *env* is added to its environment. *afresh* removes what earlier crawls in the folder gave, but not their store,
    cache or JOBDIR.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if afresh:
        for name in RESULTS:
            (folder / name).unlink(missing_ok=True)
    base: dict[str, Any] = {}
    if plugin:
        base = {
            "ADDONS": {"dedup_middleware.Addon": 500},
            "DEDUP_STORE": store_uri(folder),
            "DEDUP_LOG": str(folder / "records.jsonl"),
        }
    path = folder / "job.json"
    path.write_text(
        json.dumps(
            {
                "out": str(folder),
                "settings": base | (settings or {}),
                "reactor": reactor or REACTOR,
                "env": env or {},
                "runs": runs or [{"spider": spider, "args": args}],
            }
        ),
        encoding="utf8",
    )
    return [sys.executable, str(HERE / "sample_project.py"), str(path)]


def run_job(folder: Path, command: list[str]) -> Outcome:
    """Carry out a job and return what came of it."""
    with Running(folder, command) as running:
        return running.wait()


def stepped(folder: Path, steps: list[dict[str, Any]], **settings: Any) -> Outcome:
    """Crawl *steps* into a feed, without what earlier crawls in the folder gave; the crawl has no problem."""
    command = write_job(folder, "sample_spiders.Steps", steps=steps, settings=FEED | settings, afresh=True)
    outcome = run_job(folder, command)
    assert (outcome.problems, outcome.exit_status) == ([], 0)
    return outcome


def run_scrapy(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``scrapy ARGUMENTS`` in the project whose job is in *folder*: same settings, same store, same log."""
    wanted = json.loads((folder / "job.json").read_text(encoding="utf8"))["settings"]
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = project\n", encoding="utf8")
    lines = [f"{name} = {value!r}\n" for name, value in wanted.items()]
    (folder / "project.py").write_text("".join(lines), encoding="utf8")
    return scrapy(*arguments, folder=folder, env=environment())


def scrapy(*arguments: str, folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run ``scrapy ARGUMENTS`` in *folder* with this environment, and nothing at its stdin."""
    return run(folder, [sys.executable, "-m", "scrapy", *arguments], env)


def run(folder: Path, command: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run *command*, a Python and its arguments, in *folder* to its end."""
    process = start(folder, command, env)
    try:
        said = process.communicate(timeout=PATIENCE)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return subprocess.CompletedProcess(command, process.returncode or 0, *said)


def environment() -> dict[str, str]:
    """Return the environment of a stranger's process: it finds these files and the package."""
    # No test may write to the data of its user: a file is in the way.
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, (HERE, HERE / "benchmarks", HERE.parent))),
        "XDG_DATA_HOME": "/dev/null/data",
    }


_fork_servers: ForkServers | None = None


@contextmanager
def forked_crawls() -> Iterator[None]:
    """Fork crawls and commands from processes that have imported Scrapy; where nothing forks, do nothing.

    Not for what measures crawls: imports that are done already cost nothing.
    """
    global _fork_servers  # noqa: PLW0603 - one switch for all crawls
    if not hasattr(os, "fork"):
        yield
        return
    with closing(ForkServers(environment())) as _fork_servers:
        yield
    _fork_servers = None


@contextmanager
def heeding_ctrl_c() -> Iterator[None]:
    """Let what is started meanwhile end by Ctrl-C, though a script began the suite with ``&``: then it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def start(folder: Path, command: list[str], env: dict[str, str]) -> subprocess.Popen[str] | Forked:
    """Start *command*, a Python and its arguments, in *folder*; what it prints is kept until it has ended."""
    with heeding_ctrl_c():
        if _fork_servers is not None:
            return _fork_servers.start(folder, command, env)
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=folder, env=env, **pipes, text=True)


class Running:
    """A crawl under way; use it as a context manager, so that no process outlives its test."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self.folder = folder
        self._process = start(folder, command, environment())

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def interrupt(self) -> None:
        """Do what Ctrl-C does, once."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> Outcome:
        """End it as a crash would, and return what came of it."""
        self._process.kill()
        return self.wait()

    def wait(self, timeout: float = PATIENCE) -> Outcome:
        """Return what came of it, once it has ended."""
        _, stderr = self._process.communicate(timeout=timeout)
        return Outcome(self.folder, self._process.returncode, stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
