"""A store of another package whose server may be out of eligibility: ``away:PATH``, shared by workers.

The server is this module, and what it knows is in the file PATH. It is away while the file PATH.away is there, and for
calls of a number in `away_calls`. While PATH.slow is there, it does not answer an opener; while PATH.refuses is,
it refuses every opener, and loses all data. A worker who finds it away is at work for as long as `lease` says.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dedup_middleware.errors import StoreAwayError, StoreError
from dedup_middleware.plugin import threads
from dedup_middleware.stores.base import Store

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

threads.PAUSE = 0.05
#: Numbers of calls, from 1 on, at which it is away.
away_calls: Collection[int] = ()
#: Whether what it was asked to write then is written all the same.
applies = False
#: Whether a worker who has lost it is at work for the others all the same.
lease = bool(os.environ.get("AWAY_LEASE"))

calls = 0
_pairs: dict[str, dict[bytes, bytes]] = {}
_writes: Counter[str] = Counter()
_at_work: set[bytes] = set()


def begin(*, away: Collection[int] = (), with_lease: bool = False, though_away: bool = False) -> None:
    """Be a new server that knows nothing."""
    global away_calls, lease, applies, calls
    away_calls, lease, applies, calls = away, with_lease, though_away, 0
    _pairs.clear()
    end_leases()


def end_leases() -> None:
    """End the leases of all workers."""
    _at_work.clear()


class AwayStore(Store):
    """See Store; it need not refuse by itself what comes after a StoreAwayError."""

    def __init__(self, path: str) -> None:
        self.uri = f"away:{path}"
        self.path = path = os.path.normpath(path)
        self._own_writes = 0
        if path not in _pairs:
            read = json.loads(Path(path).read_text(encoding="ascii")) if Path(path).exists() else {}
            _pairs[path] = {bytes.fromhex(key): bytes.fromhex(value) for key, value in read.items()}

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        self._call()
        return [self._known.get(key) for key in keys]

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        self._call()
        return iter([(key, self._known[key]) for key in sorted(self._known) if start <= key < stop])

    def write(self, puts: list[tuple[bytes, bytes]], deletes: list[bytes], *, sync: bool = False) -> None:
        if not applies:
            self._call()
        for key in deletes:
            self._known.pop(key, None)
        self._known.update(puts)
        _writes[self.path] += 1
        self._own_writes += 1
        if applies:
            self._call()
        if sync:
            self.keep()

    def close(self) -> None:
        with suppress(StoreAwayError):
            self._call()
            self.keep()

    def keep(self) -> None:
        """Write down what is known, for the next process."""
        draft = Path(f"{self.path}.tmp")
        draft.write_text(json.dumps({key.hex(): value.hex() for key, value in self._known.items()}), encoding="ascii")
        draft.replace(self.path)

    @property
    def _known(self) -> dict[bytes, bytes]:
        return _pairs[self.path]

    def _call(self) -> None:
        global calls  # noqa: PLW0603 - one server
        calls += 1
        if calls in away_calls or Path(f"{self.path}.away").exists():
            self._lost()
            self.keep()
            raise StoreAwayError(f"the server of {self.uri} cannot be reached: start it")

    def _lost(self) -> None:
        """Be gone, to the server."""


class SharedAwayStore(AwayStore):
    """One that several processes may have open."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.worker = os.urandom(8)
        _at_work.add(self.worker)

    def changes_of_others(self) -> int:
        self._call()
        return _writes[self.path] - self._own_writes

    def is_at_work(self, worker: bytes) -> bool:
        self._call()
        return worker in _at_work

    def close(self) -> None:
        super().close()
        if not lease:
            _at_work.discard(self.worker)

    def _lost(self) -> None:
        self.rollback()
        if not lease:
            _at_work.discard(self.worker)


def _answer_slowly(path: str) -> None:
    while Path(f"{path}.slow").exists():
        Path(f"{path}.asked").touch()
        time.sleep(0.01)


def open_store(uri: str) -> Store:
    path = uri.partition(":")[2]
    _answer_slowly(path)
    if Path(f"{path}.refuses").exists():
        _pairs[path] = {}
        raise StoreError(f"the server of away:{path} evicts keys: set noeviction")
    if Path(f"{path}.foreign").exists():
        _pairs[path] = {b"what": b"is this?"}
    store = AwayStore(path.removeprefix("alone/")) if path.startswith("alone/") else SharedAwayStore(path)
    store._call()
    return store


def store_exists(uri: str) -> bool:
    return Path(uri.partition(":")[2]).exists()


def remove_store(uri: str) -> bool:
    raise StoreError(f"{uri} is not to be removed")
