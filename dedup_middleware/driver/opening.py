"""Opens the store and the records of a crawl or a program; where a crawl cannot have its store, it passes through.

A bad setting, and a store that only a person can mend, end the crawl before its first request. Trouble of our own does
not: then the crawl keeps every page, drops nothing, and checks against a store in memory.
"""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dedup_middleware.checks.detector import Detector, Preferences
from dedup_middleware.common import permissions
from dedup_middleware.common.plain_files import open_file
from dedup_middleware.driver.deduplicator import Deduplication
from dedup_middleware.errors import (
    DedupError,
    EngineMissingError,
    RecordsError,
    StoreAwayError,
    StoreError,
    StoreLockedError,
    StoreVersionError,
)
from dedup_middleware.extraction import extractor
from dedup_middleware.fingerprints import fingerprinter, instance_of
from dedup_middleware.index.shared import index_of
from dedup_middleware.model import Action, Eligibility, now
from dedup_middleware.records.crawl_lines import CrawlLine
from dedup_middleware.records.file import RecordLog, pass_through_log
from dedup_middleware.stores import open_store, overlaid, refusals, store_exists
from dedup_middleware.stores.files import is_command
from dedup_middleware.version import __version__
from dedup_middleware.visits.page_reader import BodyDigests

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from dedup_middleware.extraction import Extractor
    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.index.index import Index
    from dedup_middleware.settings import Config
    from dedup_middleware.stores import OpenStore
    from dedup_middleware.visits.durability import DiskWaits, Flush
    from dedup_middleware.visits.visit import Listener

#: Seconds for which a crawl waits for a command that has its store open; for another crawl it does not wait.
PATIENCE = 10.0
#: Seconds for which it waits for a process that has not named itself yet, or has just ended.
PATIENCE_WITH_UNKNOWN = 1.0
_TRY_AGAIN = 0.05
#: Bytes of a store in memory that no setting names, some 50 000 pages. Once it is full every page is kept, unchecked: a
#: crawl that takes all memory of the machine would end worse.
MAX_MEMORY = 512 * 2**20
# Characters of the name of a crawl: ours have twelve.
_MAX_NAME = 100


@dataclass(frozen=True, slots=True)
class Resources:
    """What is open for a crawl or a program."""

    config: Config
    """In pass-through, with the store in memory, and as a dry run."""
    store: OpenStore
    index: Index
    fingerprint: Fingerprinter
    extract: Extractor
    body_digest: BodyDigests
    log: RecordLog | None
    no_records: str = ""
    """Why the crawl keeps no records, where its log cannot be opened; in one line."""
    trouble: str = ""
    """Why the crawl passes through, in one line; empty if it does not."""
    awaited: Config | None = None
    """In pass-through, the settings to open later, if the store is only away."""


def deduplication_of(  # noqa: PLR0913 - what only a crawl has, by name
    opened: Resources,
    crawl: str,
    listener: Listener,
    *,
    jobdir: str = "",
    feeds: frozenset[str] = frozenset(),
    flush: Flush | None = None,
    disks: DiskWaits | None = None,
    feeds_wanting: Callable[[Any], frozenset[str]] = lambda _: frozenset(),
    feeds_end_late: Callable[[], bool] = lambda: False,
) -> Deduplication:
    """Return the deduplication of what was *opened*, under the name *crawl*, and that of its *jobdir* if it has one.

    *feeds* are the kinds of a crawl's feeds; the rest is for :class:`Deduplication`.
    """
    config = opened.config
    detector = Detector(opened.index, opened.fingerprint.hash, config.rules, Preferences(config.preferred), feeds)
    if opened.index.beside is not None:
        detector = opened.index.beside.detector(detector)
    return Deduplication(
        config,
        run=crawl,
        detector=detector,
        fingerprint=opened.fingerprint,
        extract=opened.extract,
        log=opened.log,
        begin=CrawlLine(
            event="begin",
            time=now(),
            spider=config.spider or "",
            crawl=crawl,
            project=config.bot,
            version=__version__,
            settings=config.changed,
            scope=config.scope.value,
            has_new=config.log_has_new,
        ),
        listener=listener,
        # What is in memory needs no disk.
        flush=None if opened.trouble else flush,
        disks=disks,
        feeds_wanting=feeds_wanting,
        feeds_end_late=feeds_end_late,
        jobdir=jobdir,
    )


async def open_for_crawl(config: Config, sleep: Callable[[float], Awaitable[None]]) -> Resources:
    """Open what *config* names, or what the crawl passes through with; :class:`DedupError` ends the crawl.

    That is a bad setting, or a store of another version or with other fingerprints.
    """
    began = time.monotonic()
    if config.store_is_default and config.store == "memory:":
        names = "DEDUP_STORE and DEDUP_LOG" if config.log_is_default else "DEDUP_STORE"
        no_place = f"cannot write to {config.place.tried}: no dropped item can be stored. Set {names} to another place."
        return _pass_through(config, no_place)
    while True:
        try:
            return open_at_once(config)
        except StoreLockedError as error:
            patience = PATIENCE if is_command(error.holder) else 0 if error.holder else PATIENCE_WITH_UNKNOWN
            if time.monotonic() >= began + patience:
                log = None if config.log is None else pass_through_log(config.log)
                return _pass_through(replace(config, log=log, log_is_default=False), str(error))
        except (StoreError, RecordsError, EngineMissingError) as error:
            return _instead(config, error)
        await sleep(_TRY_AGAIN)


def _instead(config: Config, error: DedupError) -> Resources:
    """Open what a crawl has in the place of what cannot be opened because of *error*; raise that if it ends the crawl.

    A name that a person has chosen and that can never work ends it, and a default does not.
    """
    is_named = not (config.log_is_default if isinstance(error, RecordsError) else config.store_is_default)
    if isinstance(error, StoreVersionError) or (error.misnamed and is_named):
        raise error
    if isinstance(error, StoreAwayError):
        return replace(_pass_through(config, str(error)), awaited=config)
    if isinstance(error, RecordsError):
        # The store has all that a drop rests on, and the dropped items.
        with suppress(DedupError):
            return replace(open_at_once(replace(config, log=None)), no_records=str(error))
    return _pass_through(config, str(error))


def _pass_through(config: Config, trouble: str) -> Resources:
    """Open a store in memory for a crawl that drops nothing because of *trouble*."""
    action = Action.DRY_RUN if config.action is Action.DROP else config.action
    alone = replace(config, store="memory:", store_is_default=True, action=action)
    try:
        return replace(open_at_once(alone), trouble=trouble)
    except RecordsError as error:
        trouble = trouble if trouble == str(error) else f"{trouble} {error}"
        return replace(open_at_once(replace(alone, log=None)), trouble=trouble)


def open_at_once(config: Config, *, looks: bool = False, lost: Resources | None = None) -> Resources:
    """Open what *config* names; :class:`DedupError` if that cannot be done now.

    In a dry run, and for a command that only *looks*, nothing is written to the store, not even what an unclean
    shutdown has left to do: what it would keep is in memory. The crawl of *lost* goes on with its log.
    """
    # A bad name is an error before a store is created.
    scheme, extract = fingerprinter(config.fingerprint).scheme, extractor(config.extractor)
    who = "scrapy dedup doctor" if looks else "a program" if config.spider is None else f"spider {config.spider}"
    is_dry = config.action is Action.DRY_RUN
    # A dry run creates no store.
    uri = config.store if not is_dry or store_exists(config.store) else "memory:"
    room = MAX_MEMORY if config.store_is_default or uri != config.store else None
    store = open_store(uri, fingerprint_scheme=scheme, who=who, room=room)
    try:
        if (looks or is_dry) and uri != "memory:":
            store = overlaid(store, MAX_MEMORY)
        fingerprint = instance_of(config.fingerprint, store.header.key)
        with refusals.translated(store.uri, "read", refusals.of_value):
            index = index_of(store, config.fingerprint, eligibility=Eligibility(config.scope, config.expire_after))
            index.join()
            index.sweep()
        if lost is not None:
            log = lost.log
        else:
            log = None if config.log is None else RecordLog(config.log, redact=config.redact_query)
    except BaseException:
        store.close()
        raise
    return Resources(config, store, index, fingerprint, extract, BodyDigests(store.header.key, config), log)


def new_crawl() -> str:
    """Return a name for a crawl or a program."""
    return uuid.uuid4().hex[:12]


def name_of_jobdir(jobdir: Path | None) -> tuple[str, bool]:
    """Return the name of *jobdir*, and whether a crawl has used it before; an empty name without one.

    Where the JOBDIR cannot be used, each crawl has a name of its own, and keeps what the others kept.
    """
    if jobdir is None:
        return "", False
    name, path = new_crawl(), jobdir / "dedup.run"
    with suppress(OSError, UnicodeError):
        if path.exists():
            with open_file(path, "r", encoding="ascii") as file:
                if named := file.read(_MAX_NAME).strip():
                    return named, True
        permissions.make_folder(jobdir)
        permissions.make_file(path)
        with open_file(path, "w", encoding="ascii") as file:
            file.write(name)
    return name, False
