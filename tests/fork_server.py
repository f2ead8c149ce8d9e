"""A process that has imported what every crawl imports, and forks for each one: most of a short crawl is imports.

Usage: python fork_server.py FD     (see `forking.py`, which holds the other end of that connection)
What it forks does as ``python COMMAND`` would, to the end of the interpreter, which a fork of `multiprocessing` cuts
short. Nothing runs before the fork, so that no crawl sees what another one did; only the seed of hashes is the same.
"""

from __future__ import annotations

import os
import runpy
import sys
from importlib import import_module
from multiprocessing.connection import Connection

from scrapy.settings import default_settings
from scrapy.utils.misc import load_object

BASES = ("EXTENSIONS_BASE", "DOWNLOADER_MIDDLEWARES_BASE", "SPIDER_MIDDLEWARES_BASE")


def next_command(client: Connection) -> tuple[str, list[str]]:
    """Return folder and command, in a process of their own; the first one stays inside until *client* hangs up."""
    while True:
        try:
            command = client.recv()
        except EOFError:
            sys.exit()
        pid = os.fork()
        if pid == 0:
            client.close()
            return command
        client.send(pid)
        client.send(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


import_module("sample_spiders")
components = [component for name in BASES for component in getattr(default_settings, name)]
for path in (*components, "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler", "dedup_middleware.Addon"):
    load_object(path)
assert "twisted.internet.reactor" not in sys.modules, "the crawl's settings choose the reactor"

folder, sys.argv = next_command(Connection(int(sys.argv[1])))
os.chdir(folder)
with open("stderr.txt", "wb") as stderr:  # noqa: PTH123 - in the folder that was just entered
    os.dup2(stderr.fileno(), 2)
runpy.run_path(sys.argv[0], run_name="__main__")
