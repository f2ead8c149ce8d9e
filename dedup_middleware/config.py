"""DEDUP_* settings -> one frozen value.

Law of this file: nobody else reads a DEDUP_* setting, and every bad value is found here, before the crawl starts.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from scrapy.utils.project import data_path

from dedup_middleware.errors import ConfigError
from dedup_middleware.hamming import MAX_DISTANCE
from dedup_middleware.limits import Budget
from dedup_middleware.model import Action, FingerprintKind, Scope
from dedup_middleware.settings_reader import SettingsReader, as_choice, as_number
from dedup_middleware.stores import default_backend, parse_uri

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from scrapy.settings import BaseSettings

#: name -> default; the table in docs/settings.md says what each means.
DEFAULTS: Mapping[str, Any] = {
    "DEDUP_ENABLED": True,
    "DEDUP_STORE": None,
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
    "DEDUP_WAIT": 2.0,
    "DEDUP_SEAL_INTERVAL": 100,
    "DEDUP_TUNE_GC": True,
}
META_KEYS = frozenset({"action", "threshold"})
#: Below one half, two pages that share nothing with each other could both be "the" owner.
LOWEST_THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class Config:
    """What the user asked for, checked."""

    enabled: bool
    store: str
    store_is_default: bool
    log: Path | None
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
    wait: float
    seal_interval: int
    tune_gc: bool
    jobdir: Path | None

    @classmethod
    def from_settings(cls, settings: BaseSettings, spider_name: str) -> Config:
        """Read the settings of a crawl of *spider_name*.

        :class:`ConfigError` names the setting, its value and the remedy.
        """
        read = SettingsReader(settings, DEFAULTS)
        uri = read.text("DEDUP_STORE")
        config = cls(
            enabled=is_enabled(settings),
            store=uri or default_store(spider_name),
            store_is_default=not uri,
            log=_log_path(read.get("DEDUP_LOG"), spider_name),
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
            wait=read.seconds("DEDUP_WAIT"),
            seal_interval=read.whole("DEDUP_SEAL_INTERVAL", lowest=1),
            tune_gc=read.boolean("DEDUP_TUNE_GC"),
            jobdir=Path(jobdir) if (jobdir := settings.get("JOBDIR")) else None,
        )
        scheme, _ = parse_uri(config.store)
        if scheme == "memory" and config.jobdir:
            raise ConfigError(
                f"DEDUP_STORE = {uri!r} cannot go with JOBDIR = {str(config.jobdir)!r}: a resumed crawl would have "
                "forgotten its pages; use leveldb:PATH or sqlite:PATH"
            )
        if scheme != "memory" and config.log is not None:
            _check_apart(config.store, config.log)
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
                f'meta["dedup"] = {value!r} is not understood; use False, or a dict with any of {sorted(META_KEYS)}'
            )
        action, limit = value.get("action"), value.get("threshold")
        return cls(
            config.action if action is None else as_choice('meta["dedup"]["action"]', action, Action),
            config.threshold if limit is None else threshold('meta["dedup"]["threshold"]', limit),
        )


def is_enabled(settings: BaseSettings) -> bool:
    """Return DEDUP_ENABLED. A crawl without the plugin needs none of the other settings, right or wrong."""
    return SettingsReader(settings, DEFAULTS).boolean("DEDUP_ENABLED")


def data_folder(spider_name: str) -> Path:
    """Return where the default store and log of a spider are. No spider name can lead out of the data folder."""
    name = quote(spider_name, safe="") or "%"
    return Path(data_path("dedup")) / (name if name.strip(".") else name.replace(".", "%2E"))


def known_spiders() -> list[str]:
    """Return the names of the spiders that have a store or a log in the data folder."""
    folder = Path(data_path("dedup"))
    return sorted(unquote(p.name) for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []


def names_its_own(settings: BaseSettings) -> bool:
    """Tell whether a store or a log is named, so that no spider's own is needed."""
    return bool(settings.get("DEDUP_STORE") or settings.get("DEDUP_LOG"))


def default_store(spider_name: str) -> str:
    """Return the URI of the store that a spider has when DEDUP_STORE names none."""
    backend = default_backend()
    return f"{backend}:{data_folder(spider_name) / ('store' if backend == 'leveldb' else 'store.sqlite')}"


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
        raise ConfigError(f"{name} = {value!r} is out of range; use a number above {LOWEST_THRESHOLD} and up to 1")
    return number


def _check_apart(store: str, log: Path) -> None:
    """Raise ConfigError where the log would be written into the store."""
    store_path, log_path = (os.path.realpath(path) for path in (parse_uri(store)[1], log))
    if log_path in (store_path, f"{store_path}-wal", f"{store_path}-shm", f"{store_path}.lock") or log_path.startswith(
        store_path + os.sep
    ):
        raise ConfigError(f"DEDUP_LOG = {str(log)!r} is inside DEDUP_STORE = {store!r}; give it a path of its own")


def _log_path(value: object, spider_name: str) -> Path | None:
    if value is None:
        return data_folder(spider_name) / "log.jsonl"
    if isinstance(value, (str, os.PathLike)):
        if not os.fspath(value):
            return None
        try:
            if b"\0" not in os.fsencode(value):
                return Path(value)
        except UnicodeEncodeError:  # a lone surrogate
            pass
    raise ConfigError(f"DEDUP_LOG = {value!r} is no path; use the path of a file, or '' for no log")
