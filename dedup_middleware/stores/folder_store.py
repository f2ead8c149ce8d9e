"""What every store whose database is a folder of tables and logs does alike, whatever engine reads and writes them.

It knows batches and the watermark. How an engine is spoken to, and what it raises, the engine's own module knows.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from dedup_middleware import permissions
from dedup_middleware.errors import StoreError
from dedup_middleware.stores import refusals
from dedup_middleware.stores.layout import HEADER_KEY, ID_KEY, WATERMARK_KEY, decode_watermark, encode_watermark
from dedup_middleware.stores.log_files import numbered_logs
from dedup_middleware.stores.syncing import nothing, sync_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from dedup_middleware.stores.watermark import Watermark

#: The folders of a database, in that of its store: its own; where an engine needs a clone to try it out, that; and what
#: is being loaded into it.
DB, TRIAL, LOADING = "db", "db.trial", "db.loading"
#: Of the memory of a store, what its cache takes, and each of two write buffers.
CACHE_SHARE, BUFFER_SHARE = 0.5, 0.25
#: Bytes of memory for a database that is only looked at.
TRIAL_MEMORY = 16 * 2**20
_OWN_KEYS = (HEADER_KEY, ID_KEY, WATERMARK_KEY)


class FolderStore(ABC):
    """A :class:`~dedup_middleware.stores.protocol.Store` on the database in ``PATH/db``.

    After a failed write the store refuses everything until it is opened again: LevelDB was seen to go on, acknowledge
    100 more batches, and have none of them after reopening.
    """

    def __init__(self, uri: str, folder: Path, mark: Watermark, *, is_trial: bool) -> None:
        """Stand for the database in *folder*, which the engine opens; synced batches raise *mark*.

        One that is opened on trial is only read.
        """
        self.uri = uri
        self._folder = folder
        self._mark = mark
        self._is_trial = is_trial
        self._unsynced = False
        # The newest log that was synced: those before it were whole by then.
        self._synced_log = 0
        self._write_failed = False
        self._closed = False

    @abstractmethod
    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """See Store."""

    @abstractmethod
    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See Store."""

    @abstractmethod
    def verify(self) -> None:
        """Read everything; ``StoreCorruptError`` if a block is rotten."""

    @abstractmethod
    def compact(self) -> None:
        """See CompactableStore."""

    @abstractmethod
    def _apply(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes], *, sync: bool) -> None:
        """Write one batch; nothing of it where an iterable raises."""

    @abstractmethod
    def _release(self) -> None:
        """Close the database, whatever scans are under way."""

    @abstractmethod
    def _refusal(self, action: str, error: Exception) -> StoreError | None:
        """Return what to raise for an *error* of the engine, ``None`` if it is none of the engine's."""

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = (), *, sync: bool = False) -> None:
        """See Store; one batch of the engine. With *sync* the watermark is raised: two syncs more."""
        self.check_live()
        with self.refusing("write"):
            number, own = self._marked() if sync else (0, [])
            # What is written may be another header.
            self._apply(chain(own, puts), deletes, sync=sync)
        self._unsynced = not sync
        if sync:
            self._raise_mark(number)

    def begin_sync(self) -> Callable[[], None]:
        """See DeferringStore; the logs are synced as files, for not every engine lets others run while it waits."""
        if os.name == "nt":
            # There, nobody else may open what an engine writes.
            self.write([], sync=True)
            return nothing
        self.check_live()
        with self.refusing("write"):
            number, own = self._marked()
            self._apply(own, (), sync=False)
        self._unsynced = False
        return partial(self._wait, number)

    def _marked(self) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Return the next number of the watermark, and the pairs that a batch has which raises it."""
        header, store_id, number = (value or b"" for value in self.get_many(_OWN_KEYS))
        following = decode_watermark(number) + 1
        # In every log: one of another store is noticed, and the loss of an old table does not take the header.
        own = [(HEADER_KEY, header), (ID_KEY, store_id), (WATERMARK_KEY, encode_watermark(following))]
        return following, own

    def _wait(self, number: int) -> None:
        try:
            with refusals.of_os(self.uri, "write"):
                logs = numbered_logs(self._folder)
                # A log that is gone has become a table, which the engine has synced before it removed the log.
                sync_files([*(log for at, log in logs.items() if at >= self._synced_log), self._folder])
                self._synced_log = max([self._synced_log, *logs])
        except StoreError:
            self._write_failed = True
            raise
        self._raise_mark(number)

    def _raise_mark(self, number: int) -> None:
        try:
            with refusals.of_os(self.uri, "write"):
                self._mark.advance(number)
        except StoreError:
            self._write_failed = True
            raise

    def close(self) -> None:
        """See Store; ends scans that are under way. Syncs first what was not, so that no cut of it goes unnoticed."""
        if self._closed:
            return
        if self._unsynced and not self._write_failed:
            # The batches are written all the same; they only survive less.
            with suppress(StoreError):
                self.write([], sync=True)
        self._closed = True
        self._release()
        if not self._is_trial:
            # The engines make their files for everybody.
            permissions.tighten_within(self._folder)

    def check_live(self) -> None:
        """Raise ``StoreError`` if it must not be used any more."""
        if self._closed:
            raise refusals.closed(self.uri)
        if self._write_failed:
            raise refusals.failed(self.uri, "use", "an earlier write failed; open it again")

    def refusing(self, action: str) -> AbstractContextManager[None]:
        """Turn what the engine raises in the block, which is to *action* (a verb) the store, into ``StoreError``."""
        return _Refusing(self, action)

    def _refuse(self, action: str, error: Exception) -> None:
        refusal = self._refusal(action, error)
        if refusal is not None:
            self._write_failed |= action == "write"
            raise refusal from error


class _Refusing:
    """See `FolderStore.refusing`. A class, for it stands around each get: a generator takes 1.2 µs, this 0.3."""

    __slots__ = ("_action", "_store")

    def __init__(self, store: FolderStore, action: str) -> None:
        self._store = store
        self._action = action

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Exception):
            self._store._refuse(self._action, error)  # noqa: SLF001 - a part of it
