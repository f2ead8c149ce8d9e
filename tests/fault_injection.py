"""An extension for a stranger's project: something happens the Nth time that certain calls are made.

``FAULTS = {"at": ["module:Class.method", …], "nth": 1, "moment": "before" | "after", "kind": "exit" | "fail"}``.
``exit`` ends the process as a crash would, with no clean-up; ``fail`` raises what a store raises when its medium fails,
``full`` what a full disk raises, ``bug`` an unexpected exception. With ``every`` instead of ``nth``, it happens each
time.
"""

from __future__ import annotations

import errno
import functools
import importlib
import itertools
import os
from dataclasses import replace

from dedup_middleware.stores import refusals

#: What a process that was ended so returns.
EXIT_STATUS = 77

#: Where the state of a page changes hands.
EDGES = {
    "claim": "index.index:Index.claim",
    "confirm": "index.index:Index.commit",
    "flush": "plugin.feeds:_flushed",
    "sync": "plugin.feeds:_wait_for",
    "checkpoint": "visits.durability:Durability._settle",
    "store": "stores.opened:OpenStore.sync",
    "drop": "index.index:Index.remember_duplicate",
}
#: Those of a checkpoint.
ROUND = ("flush", "sync", "checkpoint", "store")
STORE_CALLS = [f"stores.opened:OpenStore.{name}" for name in ("get_many", "scan", "write")]


def faults(*places, **when):
    """Return the settings with which a call of *places* in the package goes wrong: the first one ends the process."""
    at = [f"dedup_middleware.{place}" for place in places]
    return {"EXTENSIONS": {"fault_injection.FaultInjection": 0}, "FAULTS": {"at": at, "nth": 1, "kind": "exit", **when}}


class FaultInjection:
    """The extension."""

    @classmethod
    def from_crawler(cls, crawler):
        wanted = crawler.settings["FAULTS"]
        calls = itertools.count(1)

        def happen():
            if wanted.get("every") or next(calls) == wanted["nth"]:
                if wanted["kind"] == "exit":
                    os._exit(EXIT_STATUS)
                if wanted["kind"] == "bug":
                    raise ZeroDivisionError
                if wanted["kind"] == "full":
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                raise refusals.failed("leveldb:store", "use", "a fault")

        for place in wanted["at"]:
            module_name, _, path = place.partition(":")
            *originals, name = path.split(".")
            original = functools.reduce(getattr, originals, importlib.import_module(module_name))
            setattr(original, name, _wrapped(getattr(original, name), happen, wanted.get("moment", "before")))
        return cls()


def _wrapped(function, happen, moment):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if moment == "before":
            happen()
        result = function(*args, **kwargs)
        if moment == "after":
            happen()
        return result

    return wrapper


class DropsOnClaims:
    """The control of a campaign: drops rest on claims that are open, and a crash takes what they rest on."""

    @classmethod
    def from_crawler(cls, _):
        from dedup_middleware.driver.deduplicator import Deduplication  # noqa: PLC0415 - only where a crawl wants it

        def write_drop(self, visit, _, item, data):
            match = visit.verdict.match
            stored = replace(match.original, number=abs(match.original.number), is_claimed=False)
            return self.drops.write(visit, visit.page, replace(match, original=stored), item, data, frozenset())

        Deduplication._compare = lambda self, visit, item, **_: self.check_item(visit, item)
        Deduplication._write_drop = write_drop
        return cls()
