"""What a crawl or a program opens: the store and the log that were asked for, or what a crawl makes do with.

A person's mistake, and a store that only a person can check, end the crawl before it begins. Trouble
of our own never does: then the crawl observes. It keeps every page, drops nothing, and checks in a memory of its
own.
"""

from __future__ import annotations

import sys
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from dedup_middleware import permissions
from dedup_middleware.checks.detector import Detector, Preferences
from dedup_middleware.deduplicator import Deduplication
from dedup_middleware.durability import recover
from dedup_middleware.errors import (
    DedupError,
    RecordsError,
    StoreAwayError,
    StoreError,
    StoreLockedError,
    StoreVersionError,
    UnreadableError,
)
from dedup_middleware.extraction import extractor
from dedup_middleware.fingerprints import Learner, fingerprinter, instance_of, published_method
from dedup_middleware.index.opening import index_of
from dedup_middleware.model import Action, Eligibility
from dedup_middleware.reading import BodyDigests
from dedup_middleware.records.records import RecordLog, observer_log
from dedup_middleware.stores import open_store, refusals, store_exists
from dedup_middleware.stores.files import Holder
from dedup_middleware.stores.memory import overlaid

if TYPE_CHECKING:
    from pathlib import Path

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dedup_middleware.durability import DiskWaits, Flush
    from dedup_middleware.extraction import Extractor
    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.index.index import Index
    from dedup_middleware.settings import Config
    from dedup_middleware.stores import OpenStore
    from dedup_middleware.visit import Listener

    Sleep = Callable[[float], Awaitable[None]]

#: Seconds for which a crawl waits for a command that has its store open: a crawl is long, a command is not.
PATIENCE = 10.0
#: And for somebody who has not said yet who it is, or is just gone.
PATIENCE_WITH_UNKNOWN = 1.0
_ASK_AGAIN = 0.05
#: Bytes of a store in memory that nobody asked for: some 50 000 pages. Then every page is kept, unchecked; a crawl
#: that eats the machine's memory would end worse.
MAX_MEMORY = 512 * 2**20


@dataclass(frozen=True, slots=True)
class Resources:
    """What a session works with."""

    config: Config
    """An observer's names its own store and log."""
    store: OpenStore
    index: Index
    fingerprint: Fingerprinter
    extract: Extractor
    body_digest: BodyDigests
    log: RecordLog | None
    learner: Learner | None = None
    """The published method that decides, where one does."""
    trouble: str = ""
    """Why the crawl observes, in one line; empty if it does not."""
    awaited: Config | None = None
    """What an observer is to open once that can be done: its store is only away."""


def deduplication_of(  # noqa: PLR0913 - what only a crawl has, by name
    opened: Resources,
    run: str,
    listener: Listener,
    *,
    feeds: frozenset[str] = frozenset(),
    flush: Flush | None = None,
    disks: DiskWaits | None = None,
    feeds_wanting: Callable[[Any], frozenset[str]] = lambda _: frozenset(),
    continues: bool = False,
    stores_items: bool = False,
) -> Deduplication:
    """Return the deduplication of what was *opened*, under the name *run*.

    *feeds* are the kinds of a crawl's feeds; one that *stores_items* can release what it drops; the rest is for
    :class:`Deduplication`. One that observes drops nothing, and nothing in its memory needs to be on a disk.
    """
    config, observes = opened.config, bool(opened.trouble)
    preferences = Preferences(config.preferred)
    detector = Detector(opened.index, opened.fingerprint.hash, config.threshold, preferences, feeds=feeds)
    if opened.learner is not None:
        detector = by_published_method(detector, opened.learner)
    return Deduplication(
        spider=config.spider or "",
        run=run,
        detector=detector,
        fingerprint=opened.fingerprint,
        extract=opened.extract,
        learner=opened.learner,
        log=opened.log,
        listener=listener,
        flush=None if observes else flush,
        disks=disks,
        feeds_wanting=feeds_wanting,
        max_characters=config.max_bytes,
        item_fields=config.item_fields,
        observes=observes,
        continues=continues,
        dropped_size=config.dropped_size if stores_items else None,
        dropped_age=config.dropped_age,
    )


async def open_for_crawl(config: Config, sleep: Sleep) -> Resources:
    """Open what *config* names. :class:`DedupError` for what ends the crawl.

    A bad setting; a store of another version, or made with other fingerprints.
    """
    try:
        return await _when_free(config, sleep)
    except StoreLockedError as error:
        log = None if config.log is None else observer_log(config.log)
        return _observing(replace(config, log=log, log_is_default=False), str(error))
    except StoreAwayError as error:
        return _observing(config, str(error), awaits=True)
    except StoreVersionError:
        raise
    except (StoreError, RecordsError) as error:
        unnamed = config.store_is_default and config.log_is_default and not _is_there(config)
        if error.misnamed and not unnamed:
            raise
        # Where a later process goes on with the crawl, memory would not do: what is dropped must be written down.
        if unnamed and config.jobdir is None:
            return open_at_once(replace(config, store="memory:", log=None))
        return _observing(config, str(error))


async def _when_free(config: Config, sleep: Sleep) -> Resources:
    """Return what is open once no command has the store open any more."""
    began = time.monotonic()
    while True:
        try:
            return open_at_once(config, dry=config.action is Action.DRY_RUN)
        except StoreLockedError as error:
            patience = PATIENCE_WITH_UNKNOWN if error.holder is None else PATIENCE if error.holder.brief else 0
            if time.monotonic() >= began + patience:
                raise
        await sleep(_ASK_AGAIN)


def _is_there(config: Config) -> bool:
    with suppress(DedupError):
        return store_exists(config.store)
    return True


def _observing(config: Config, trouble: str, *, awaits: bool = False) -> Resources:
    """Open a store in memory for a crawl that drops nothing; it *awaits* the one that it is to have, or does not."""
    alone = replace(config, store="memory:", store_is_default=True)
    try:
        return replace(open_at_once(alone), trouble=trouble, awaited=config if awaits else None)
    except RecordsError as error:
        trouble = trouble if trouble == str(error) else f"{trouble}; and {error}"
        return replace(open_at_once(replace(alone, log=None)), trouble=trouble)


def open_to_look(config: Config) -> Resources:
    """Open what *config* names, to check pages that are not kept; :class:`DedupError` if that cannot be done now.

    Nothing is written to the store, whatever its schema is and whatever an unclean shutdown has left in it.
    """
    if not store_exists(config.store):
        raise refusals.absent(config.store)
    return open_at_once(config, looks=True)


def open_at_once(config: Config, *, looks: bool = False, dry: bool = False) -> Resources:
    """Open what *config* names; :class:`DedupError` if that cannot be done now. See :func:`open_to_look`.

    In a *dry* run the log alone is written to; what the store would keep is in memory.
    """
    opened = _open_store(config, looks=looks, dry=dry)
    try:
        return replace(opened, log=RecordLog(config.log, redact=config.redact_query) if config.log else None)
    except BaseException:
        opened.store.close()
        raise


def open_again(lost: Resources) -> Resources:
    """Open the store of *lost*, which was away, and leave the log as it is.

    It may block for as long as a server takes to answer. Errors as of :func:`open_at_once`.
    """
    config = lost.awaited or lost.config
    opened = _open_store(config, lost=lost, dry=config.action is Action.DRY_RUN)
    return replace(opened, log=lost.log)


def _open_store(config: Config, *, looks: bool = False, dry: bool = False, lost: Resources | None = None) -> Resources:
    method, extract = fingerprinter(config.fingerprint), extractor(config.extractor)
    published = published_method(config.fingerprint)
    who = "scrapy dedup doctor" if looks else "a program" if config.spider is None else f"spider {config.spider}"
    # A dry run creates no store.
    uri = config.store if not dry or store_exists(config.store) else "memory:"
    store = open_store(
        uri,
        fingerprint_scheme=method.scheme,
        holder=Holder.this_process(who, brief=looks),
        room=MAX_MEMORY if config.store_is_default or uri != config.store else sys.maxsize,
    )
    try:
        if (looks or dry) and uri == config.store:
            store = overlaid(store, MAX_MEMORY)
        fingerprint = instance_of(config.fingerprint, store.header.key)
        body_digest = BodyDigests(store.header.key, config)
        index = index_of(
            store,
            method=published,
            eligibility=Eligibility(config.scope, config.expire_after),
        )
        with refusals.of_value(store.uri, UnreadableError):
            learner = None if index.prints is None else Learner(index.prints.method, index.prints.learned())
        _recover(index, is_new=lost is None)
    except BaseException:
        store.close()
        raise
    return Resources(config, store, index, fingerprint, extract, body_digest, log=None, learner=learner)


# The stores that this process has recovered. Another crawl of the process may be at work in them already.
_recovered: WeakSet[object] = WeakSet()


def _recover(index: Index, *, is_new: bool) -> None:
    """Roll back what a crash has left in doubt, once a process: what this one puts in doubt is not left behind.

    Nor is it where the store *is* not *new*, but was away: the crawl goes on with what it had in doubt.
    """
    opened = index.store.in_process
    if opened not in _recovered:
        _recovered.add(opened)
        index.in_doubt.note_worker()
        if is_new:
            recover(index)


def by_published_method(detector: Detector, learner: Learner) -> Detector:
    """Return *detector* as one that checks by the method of *learner*."""
    from dedup_middleware.published import PublishedDetector  # noqa: PLC0415 - few crawls have another method

    return PublishedDetector(**{f.name: getattr(detector, f.name) for f in fields(detector)}, learner=learner)


# Characters of a name: ours have twelve.
_MAX_NAME = 100


def run_id(jobdir: Path | None) -> str:
    """Return a name for this crawl, the same for all that share *jobdir*.

    Where the JOBDIR cannot be used, which is Scrapy's to say, they are not, and each keeps what the other did.
    """
    run = uuid.uuid4().hex[:12]
    if jobdir is not None:
        path = jobdir / "dedup.run"
        with suppress(OSError, UnicodeError):
            if path.exists():
                with path.open(encoding="ascii") as file:
                    if said := file.read(_MAX_NAME).strip():
                        return said
            permissions.make_folder(jobdir)
            permissions.make_file(path)
            path.write_text(run, encoding="ascii")
    return run
