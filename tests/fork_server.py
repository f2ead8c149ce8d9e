"""A process that has imported what every crawl imports, and forks for each one: most of a short crawl is imports.

Usage: python fork_server.py FD     (see `forking.py`, which holds the other end of that connection)
What it forks does as ``python SCRIPT`` or ``python -m MODULE`` would, to the end of the interpreter, which a fork of
`multiprocessing` cuts short; only the modules that were imported here are left as they are then. Nothing runs before
the fork, so that no crawl sees what another one did; only the seed of hashes is the same.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import pkgutil
import runpy
import sys
from importlib import import_module
from importlib.metadata import entry_points
from multiprocessing.connection import Connection
from pathlib import Path

from scrapy.settings import default_settings
from scrapy.utils.misc import load_object

from dedup_middleware import cli
from dedup_middleware.plugin import addon
from dedup_middleware.stores import default_backend

BASES = ("EXTENSIONS_BASE", "DOWNLOADER_MIDDLEWARES_BASE", "SPIDER_MIDDLEWARES_BASE")
COMPONENTS = (
    *(component for name in BASES for component in getattr(default_settings, name)),
    *default_settings.DOWNLOAD_HANDLERS_BASE.values(),
    default_settings.SCHEDULER,
    default_settings.STATS_CLASS,
    *(path for _, path, _ in addon.COMPONENTS),
    "dedup_middleware.cli.commands.Command",
)

MODULES = (
    *("sample_spiders", "scrapy.cmdline", f"dedup_middleware.stores.{default_backend()}", "sqlite3"),
    *("queuelib.queue", "scrapy.dupefilters", "scrapy.pqueues", "scrapy.squeues"),
)


def next_order(client: Connection) -> tuple[str, list[str], dict[str, str], int, str, str]:
    """Return an order of `forking.py` in a process of its own; the first one stays inside until *client* hangs up."""
    while True:
        try:
            order = client.recv()
        except EOFError:
            sys.exit()
        pid = os.fork()
        if pid == 0:
            client.close()
            return order
        client.send(pid)
        client.send(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def collect_once() -> None:
    """Collect garbage of this process alone: at its end, the interpreter would walk over all imports several times."""
    gc.collect()
    gc.freeze()


def leave_imports() -> None:
    """Keep the interpreter from taking apart what was imported before the fork, which takes as long as a crawl."""
    modules = [sys.modules.pop(name) for name in IMPORTED & sys.modules.keys()]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(modules))


for path in COMPONENTS:
    load_object(path)
# Each command of Scrapy looks at all commands that are installed: those of scrapy-poet import pytest.
for command in entry_points(group="scrapy.commands"):
    command.load()
for command in pkgutil.iter_modules(cli.__path__, f"{cli.__name__}."):
    import_module(command.name)
for module in MODULES:
    import_module(module)
assert "twisted.internet.reactor" not in sys.modules, "the crawl's settings choose the reactor"

IMPORTED = sys.modules.keys() - {"__main__", "builtins", "sys"}
# Collections of a child do not touch what was imported here: that would copy each of its pages of memory.
collect_once()

folder, sys.argv, environment, mask, *outputs = next_order(Connection(int(sys.argv[1])))
os.chdir(folder)
os.umask(mask)
os.environ.clear()
os.environ.update(environment)
for number, output in enumerate(outputs, 1):
    with Path(output).open("wb") as file:
        os.dup2(file.fileno(), number)
atexit.register(leave_imports)
atexit.register(collect_once)
if sys.argv[0] == "-m":
    sys.path[:1] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
