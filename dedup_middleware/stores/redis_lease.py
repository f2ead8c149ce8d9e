"""That a worker is at work: a key in the server that expires unless its process renews it, from a thread of its own.

The clock that decides is the server's; of a process of this machine, its end is known at once. A worker that was
stopped for longer than its lease finds it gone, and is none any more: its writes are refused, for others may have
taken over what it had open.
"""

from __future__ import annotations

import os
import secrets
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dedup_middleware.errors import StoreError
from dedup_middleware.stores import redis_scripts, refusals
from dedup_middleware.stores.redis_link import Link

if TYPE_CHECKING:
    from dedup_middleware.stores.redis_address import Address

WORKER_BYTES = 8
#: Seconds.
LEASE = 30.0
# The workers that this process is.
_held: set[bytes] = set()


class Lease:
    """The lease of one worker, from here to :meth:`leave`."""

    def __init__(self, address: Address, link: Link) -> None:
        """Become a worker, by *link*."""
        self.worker = secrets.token_bytes(WORKER_BYTES)
        self._key = key_of(address, self.worker)
        self._link = link
        # Of its own: the crawl may be waiting for an answer on the other one, or be in a long computation.
        self._renewing = Link(address)
        self._over = threading.Event()
        (version,) = link.script(redis_scripts.JOIN, self.worker.hex(), _milliseconds(), _process(os.getpid()))
        if not version.isdigit():
            raise refusals.foreign(address.uri)
        self.version = int(version)
        """Of the store, when the worker joined."""
        _held.add(self.worker)
        self._thread = threading.Thread(target=self._renew, name="dedup: lease", daemon=True)
        self._thread.start()

    def leave(self, *, is_away: bool) -> None:
        """Be no worker any more; where the server *is away*, it is not told, and the lease runs out."""
        self._over.set()
        _held.discard(self.worker)
        if not is_away:
            with suppress(StoreError):
                self._link.script(redis_scripts.LEAVE, self.worker.hex())
        self._renewing.close()

    def _renew(self) -> None:
        # A third: one renewal may be lost, and the next too late.
        while not self._over.wait(LEASE / 3):
            # A server that is away may be back before the lease has run out. One that has run out stays so.
            with suppress(StoreError):
                if not self._renewing.call("PEXPIRE", self._key, _milliseconds()):
                    return


def is_at_work(address: Address, link: Link, worker: bytes) -> bool:
    """Tell whether *worker* has its lease; one of this machine whose process has ended loses it. One round trip."""
    key = key_of(address, worker)
    process = link.call("HGET", key, "process")
    if process is None:
        return False
    place, _, pid = process.rpartition(b" ")[0].rpartition(b" ")
    if not place or not pid.isdigit() or place != _place():
        return True
    # One of this very process may have lost its store, and be another worker by now.
    if worker in _held if int(pid) == os.getpid() else process == _process(int(pid)):
        return True
    link.call("DEL", key)
    return False


def key_of(address: Address, worker: bytes) -> bytes:
    """Return the key that is there while *worker* is at work."""
    return address.base + b"lease:" + worker.hex().encode("ascii")


def _milliseconds() -> int:
    return int(LEASE * 1000)


def _process(pid: int) -> bytes:
    """Return what names the process *pid* of this machine, and no other one ever; empty where that cannot be told."""
    try:
        # Behind the name, which may have anything in it.
        state, *more = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return b""
    # Z is one that has ended, and whose parent has not looked at it yet; the nineteenth more is when it began.
    return b"%b %d %b" % (place, pid, more[18]) if state != b"Z" and (place := _place()) else b""


@cache
def _place() -> bytes:
    """Return what names this start of this machine, and the container where its processes have their numbers."""
    try:
        boot, numbers = Path("/proc/sys/kernel/random/boot_id").read_bytes(), Path("/proc/self/ns/pid").readlink()
    except OSError:
        return b""
    return boot.strip() + bytes(numbers)
