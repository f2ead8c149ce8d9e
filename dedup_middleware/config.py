"""DEDUP_* settings -> one frozen value.

Law of this file: nobody else reads a DEDUP_* setting, and every bad value is found here, before the crawl starts.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dedup_middleware.errors import ConfigError
from dedup_middleware.hamming import MAX_DISTANCE
from dedup_middleware.limits import Budget
from dedup_middleware.model import Action, FingerprintKind, Scope, StoreBusy
from dedup_middleware.places import NOWHERE, Place
from dedup_middleware.settings_reader import SettingsReader, as_choice, as_number, shown
from dedup_middleware.stores import default_backend, parse_uri

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from scrapy.settings import BaseSettings

#: name -> default; the table in docs/settings.md says what each means.
DEFAULTS: Mapping[str, Any] = {
    "DEDUP_ENABLED": True,
    "DEDUP_STORE": None,
    "DEDUP_STORE_BUSY": "observe",
    "DEDUP_LOG": None,
    "DEDUP_ACTION": "drop",
    "DEDUP_THRESHOLD": 0.8,
    "DEDUP_OUTLINK_PENALTY": 1000,
    "DEDUP_SCOPE": "store",
    "DEDUP_LEASE": None,
    "DEDUP_PREFERRED_HOSTS": [],
    "DEDUP_ITEM_FIELDS": [],
    "DEDUP_FINGERPRINT": "clauses",
    "DEDUP_SIMHASH_DISTANCE": 10,
    "DEDUP_COMMON_CLAUSE": 3,
    "DEDUP_LOG_LEVEL": "INFO",
    "DEDUP_REDACT_QUERY": False,
    "DEDUP_MAX_BYTES": 10_000_000,
    "DEDUP_MAX_NODES": 100_000,
    "DEDUP_MAX_CLAUSES": 20_000,
    "DEDUP_MAX_MILLISECONDS": 1000,
    "DEDUP_TEXT_LIMIT": 20_000,
    "DEDUP_TAKE_BACK": True,
    "DEDUP_WAIT": 2.0,
    "DEDUP_SEAL_INTERVAL": 100,
    "DEDUP_TUNE_GC": True,
}
#: What the names of a store's own files have behind its path.
_BESIDE_A_STORE = ("", "-wal", "-shm", "-journal", ".lock", ".lock.holder", ".watermark")
META_KEYS = frozenset({"action", "threshold"})
#: Below one half, two pages that share nothing with each other could both be "the" owner.
LOWEST_THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class Config:
    """What the user asked for, checked."""

    enabled: bool
    spider: str | None
    """The crawl's; ``None`` where a command is told of a store or a log and of no spider."""
    store: str
    store_is_default: bool
    store_busy: StoreBusy
    log: Path | None
    log_is_default: bool
    place: Place
    """Where the store and the log are that no setting names."""
    action: Action
    threshold: float
    outlink_penalty: int
    scope: Scope
    lease: timedelta | None
    preferred_hosts: tuple[str, ...]
    item_fields: tuple[str, ...]
    fingerprint: FingerprintKind
    simhash_distance: int
    common_clause: int
    log_level: str
    redact_query: bool
    max_bytes: int
    max_nodes: int
    max_clauses: int
    max_milliseconds: int
    text_limit: int
    take_back: bool
    wait: float
    seal_interval: int
    tune_gc: bool
    jobdir: Path | None

    @classmethod
    def from_settings(cls, settings: BaseSettings, spider: str | None) -> Config:
        """Read the settings of a crawl of *spider*; without one, a store or a log that no setting names is none.

        :class:`ConfigError` names the setting, its value and the remedy.
        """
        read = SettingsReader(settings, DEFAULTS)
        uri, log = read.text("DEDUP_STORE"), read.get("DEDUP_LOG")
        place = NOWHERE if uri and log is not None else Place.of(settings)
        folder = None if spider is None else place.folder(spider)
        config = cls(
            enabled=is_enabled(settings),
            spider=spider,
            store=uri or _default_store(folder),
            store_is_default=not uri,
            store_busy=read.choice("DEDUP_STORE_BUSY", StoreBusy),
            log=_log_path(log, folder),
            log_is_default=log is None,
            place=place,
            action=read.choice("DEDUP_ACTION", Action),
            threshold=threshold("DEDUP_THRESHOLD", read.get("DEDUP_THRESHOLD")),
            outlink_penalty=read.whole("DEDUP_OUTLINK_PENALTY", lowest=0),
            scope=read.choice("DEDUP_SCOPE", Scope),
            lease=read.days("DEDUP_LEASE"),
            preferred_hosts=read.hosts("DEDUP_PREFERRED_HOSTS"),
            item_fields=read.names("DEDUP_ITEM_FIELDS", example="text"),
            fingerprint=read.choice("DEDUP_FINGERPRINT", FingerprintKind),
            simhash_distance=read.whole("DEDUP_SIMHASH_DISTANCE", lowest=0, highest=MAX_DISTANCE),
            common_clause=read.whole("DEDUP_COMMON_CLAUSE", lowest=1),
            log_level=read.level("DEDUP_LOG_LEVEL"),
            redact_query=read.boolean("DEDUP_REDACT_QUERY"),
            max_bytes=read.whole("DEDUP_MAX_BYTES", lowest=1),
            max_nodes=read.whole("DEDUP_MAX_NODES", lowest=1),
            max_clauses=read.whole("DEDUP_MAX_CLAUSES", lowest=1),
            max_milliseconds=read.whole("DEDUP_MAX_MILLISECONDS", lowest=1),
            text_limit=read.whole("DEDUP_TEXT_LIMIT", lowest=0),
            take_back=read.boolean("DEDUP_TAKE_BACK"),
            wait=read.seconds("DEDUP_WAIT"),
            seal_interval=read.whole("DEDUP_SEAL_INTERVAL", lowest=1),
            tune_gc=read.boolean("DEDUP_TUNE_GC"),
            jobdir=Path(jobdir) if (jobdir := settings.get("JOBDIR")) else None,
        )
        _check_together(config, settings)
        return config

    def budget(self) -> Budget:
        """Return what a page or an item may cost, from now on."""
        return Budget(elements=self.max_nodes, clauses=self.max_clauses, milliseconds=self.max_milliseconds)

    @property
    def simhash_reach(self) -> int | None:
        """Within how many bits a paragraph is near; ``None`` where pages have no SimHashes."""
        return self.simhash_distance if self.fingerprint is FingerprintKind.CLAUSES_AND_SIMHASH else None


@dataclass(frozen=True, slots=True)
class PageOptions:
    """What one request's ``meta["dedup"]`` asks for, with the crawl's settings for the rest."""

    action: Action
    threshold: float

    @classmethod
    def from_meta(cls, value: object, config: Config) -> PageOptions:
        """Read ``meta["dedup"]``; ``None`` and ``True`` mean the crawl's settings, the unknown is a ConfigError."""
        if value is None or value is True:
            return cls(config.action, config.threshold)
        if not isinstance(value, dict) or not META_KEYS.issuperset(value):
            raise ConfigError(
                f'meta["dedup"] = {shown(value)} is not understood; '
                f"use False, or a dict with any of {sorted(META_KEYS)}"
            )
        action, limit = value.get("action"), value.get("threshold")
        return cls(
            config.action if action is None else as_choice('meta["dedup"]["action"]', action, Action),
            config.threshold if limit is None else threshold('meta["dedup"]["threshold"]', limit),
        )


def is_enabled(settings: BaseSettings) -> bool:
    """Return DEDUP_ENABLED. A crawl without the plugin needs none of the other settings, right or wrong."""
    return SettingsReader(settings, DEFAULTS).boolean("DEDUP_ENABLED")


def _default_store(folder: Path | None) -> str:
    """Return the URI of the store in a spider's *folder*; one in memory where there is no folder."""
    if folder is None:
        return "memory:"
    backend = default_backend()
    return f"{backend}:{folder / ('store' if backend == 'leveldb' else 'store.sqlite')}"


def unknown_settings(settings: BaseSettings) -> list[str]:
    """Return one line for each DEDUP_* setting that does not exist, with the nearest name that does."""
    lines = []
    for name in sorted(k for k in settings if k.startswith("DEDUP_") and k not in DEFAULTS):
        near = difflib.get_close_matches(name, DEFAULTS, n=1)
        lines.append(f"{name} is no setting of dedup-middleware" + (f"; did you mean {near[0]}?" if near else ""))
    return lines


def threshold(name: str, value: object) -> float:
    """Return *value* as a threshold: a number above 0.5 and up to 1."""
    number = as_number(name, value, f"a number above {LOWEST_THRESHOLD} and up to 1, such as 0.8")
    if not LOWEST_THRESHOLD < number <= 1:
        raise ConfigError(f"{name} = {shown(value)} is out of range; use a number above {LOWEST_THRESHOLD} and up to 1")
    return number


def _check_together(config: Config, settings: BaseSettings) -> None:
    """Raise ConfigError where settings that are right by themselves do not go with each other."""
    scheme, _ = parse_uri(config.store)
    if scheme == "memory" and not config.store_is_default and config.jobdir:
        raise ConfigError(
            f"DEDUP_STORE = {config.store!r} cannot go with JOBDIR = {str(config.jobdir)!r}: "
            "a resumed crawl would have forgotten its pages; use leveldb:PATH or sqlite:PATH"
        )
    if scheme != "memory" and config.log is not None:
        _check_apart(config.store, config.log)
    feeds = (str(uri).removeprefix("file://") for uri in settings.getdict("FEEDS"))
    if config.log is not None and os.path.realpath(config.log) in map(os.path.realpath, feeds):
        raise ConfigError(f"DEDUP_LOG = {str(config.log)!r} is a feed too; give it a path of its own")


def _check_apart(store: str, log: Path) -> None:
    """Raise ConfigError where the log would be written into the store."""
    store_path, log_path = (os.path.realpath(path) for path in (parse_uri(store)[1], log))
    if log_path.startswith(store_path + os.sep) or log_path.removeprefix(store_path) in _BESIDE_A_STORE:
        raise ConfigError(f"DEDUP_LOG = {str(log)!r} is inside DEDUP_STORE = {store!r}; give it a path of its own")


def _log_path(value: object, folder: Path | None) -> Path | None:
    if value is None:
        return folder and folder / "log.jsonl"
    if isinstance(value, (str, os.PathLike)):
        if not os.fspath(value):
            return None
        try:
            if b"\0" not in os.fsencode(value):
                return Path(value)
        except UnicodeEncodeError:  # a lone surrogate
            pass
    raise ConfigError(f"DEDUP_LOG = {shown(value)} is no path; use the path of a file, or '' for no log")
