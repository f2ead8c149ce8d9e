"""DEDUP_* settings -> one frozen value.

Nobody else reads a DEDUP_* setting, and every bad value is found here, before the crawl starts.
"""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dedup_middleware import budget
from dedup_middleware.budget import Budget
from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints import is_published
from dedup_middleware.model import Action, Scope
from dedup_middleware.settings import kinds
from dedup_middleware.settings.kinds import as_choice, shown
from dedup_middleware.settings.places import NOWHERE, Place
from dedup_middleware.settings.table import PREFIX, REPLACED, SETTINGS, THRESHOLD, ScopeSetting
from dedup_middleware.stores import ON_DISK, can_open, default_backend, parse_uri
from dedup_middleware.urls import HostPattern, without_secrets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import timedelta


#: What the names of a store's own files have behind its path.
_BESIDE_A_STORE = ("", "-wal", "-shm", "-journal", ".lock", ".lock.holder", ".lock.workers", ".watermark")
META_KEYS = frozenset({"action", "keep", "threshold"})


class Settings(Protocol):
    """What is asked of settings: Scrapy's, or a dict."""

    def get(self, name: str, /) -> Any:
        """Return the value of *name*, ``None`` if it has none."""

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""


@dataclass(frozen=True, slots=True)
class Config:
    """What the user asked for, checked."""

    enabled: bool
    spider: str | None
    """The crawl's; ``None`` where a command is told of a store or a log and of no spider."""
    store: str
    store_is_default: bool
    store_memory: int
    log: Path | None
    log_is_default: bool
    place: Place
    """Where the store and the log are that no setting names."""
    dropped_size: int
    """Bytes that dropped items may take, beyond those whose original is not durable yet."""
    dropped_age: timedelta | None
    action: Action
    threshold: float
    priority_adjust: int
    scope: Scope
    scope_reason: str
    """Why it is that one, for the crawl's log."""
    expire_after: timedelta | None
    preferred: tuple[HostPattern | re.Pattern[str], ...]
    item_fields: tuple[str, ...]
    fingerprint: str
    extractor: str
    log_level: str
    redact_query: bool
    max_bytes: int
    max_milliseconds: int
    jobdir: Path | None

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        spider: str | None,
        *,
        project: Path | None = None,
        feeds: Iterable[str] = (),
        overwritten: Collection[str] = (),
    ) -> Config:
        """Read the settings of a crawl of *spider*; without one, a store or a log that no setting names is none.

        *project* is our folder in the project's data folder, where there is a project; *feeds* are the URIs of the
        crawl's feeds, which the log must not be, and those of *overwritten* replace what earlier crawls wrote there.
        :class:`ConfigError` names the setting, its value and the remedy.
        """
        for name in REPLACED:
            if settings.get(name) is not None:
                raise ConfigError(f"{name} is not a setting any more; {REPLACED[name]}")
        read = {setting.field: setting.read(settings.get(setting.name)) for setting in SETTINGS.values()}
        uri, log = read.pop("store"), read.pop("log")
        scope, scope_reason = _scope(read.pop("scope"), overwritten)
        place = NOWHERE if uri and log is not None else Place.of(settings, project)
        folder = None if spider is None else place.folder(spider)
        config = cls(
            spider=spider,
            store=uri or _default_store(folder, read["fingerprint"]),
            store_is_default=not uri,
            log=(folder and folder / "log.jsonl") if log is None else log or None,
            log_is_default=log is None,
            scope=scope,
            scope_reason=scope_reason,
            place=place,
            jobdir=Path(jobdir) if (jobdir := settings.get("JOBDIR")) else None,
            **read,
        )
        config.check_together(feeds)
        return config

    def check_together(self, feeds: Iterable[str]) -> None:
        """Raise ConfigError where settings that are right by themselves do not go with each other."""
        scheme, _ = parse_uri(self.store)
        if scheme == "memory" and not self.store_is_default and self.jobdir:
            raise ConfigError(
                f"DEDUP_STORE = {self.store!r} cannot go with JOBDIR = {str(self.jobdir)!r}: "
                "a resumed crawl would have forgotten its pages; use leveldb:PATH, rocksdb:PATH or sqlite:PATH"
            )
        if scheme != "memory" and self.log is not None:
            _check_apart(self.store, self.log)
        paths = (uri.removeprefix("file://") for uri in feeds)
        if self.log is not None and os.path.realpath(self.log) in map(os.path.realpath, paths):
            raise ConfigError(f"DEDUP_LOG = {str(self.log)!r} is a feed too; give it a path of its own")

    def budget(self) -> Budget:
        """Return what a page or an item may cost, from now on."""
        return Budget(elements=budget.MAX_ELEMENTS, clauses=budget.MAX_CLAUSES, milliseconds=self.max_milliseconds)


@dataclass(frozen=True, slots=True)
class PageOptions:
    """What one request's ``meta["dedup"]`` asks for, with the crawl's settings for the rest."""

    action: Action
    threshold: float
    keep: bool = False
    """Whether the page is kept, and owns its text, even if it is a duplicate."""

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
        wanted, limit = value.get("action"), value.get("threshold")
        action = config.action if wanted is None else as_choice('meta["dedup"]["action"]', wanted, Action)
        if config.action is Action.DRY_RUN and action is Action.DROP:
            action = Action.DRY_RUN  # nothing is stored by which the item could be had again
        return cls(
            action,
            config.threshold if limit is None else THRESHOLD.read('meta["dedup"]["threshold"]', limit),
            kinds.Boolean().read('meta["dedup"]["keep"]', value.get("keep", False)),
        )


def is_enabled(settings: Settings) -> bool:
    """Return DEDUP_ENABLED. A crawl without the plugin needs none of the other settings, right or wrong."""
    return bool(SETTINGS["DEDUP_ENABLED"].read(settings.get("DEDUP_ENABLED")))


def _scope(setting: ScopeSetting, overwritten: Collection[str]) -> tuple[Scope, str]:
    """Return what DEDUP_SCOPE is resolved to for a crawl with these *overwritten* feeds, and why."""
    if setting is not ScopeSetting.AUTO:
        return Scope(setting.value), "DEDUP_SCOPE"
    if not overwritten:
        return Scope.STORE, "no feed is overwritten"
    feeds = ", ".join(without_secrets(uri, redact=False) for uri in overwritten)
    return Scope.CRAWL, f"{feeds} {'is' if len(overwritten) == 1 else 'are'} overwritten"


def _default_store(folder: Path | None, fingerprint: str) -> str:
    """Return the URI of the store in a spider's *folder*; one in memory where there is no folder.

    Each published method has a store of its own, for none can read another's.
    """
    if folder is None:
        return "memory:"
    name = "store-" + re.sub(r"[^\w.+-]", "_", fingerprint) if is_published(fingerprint) else "store"
    places = _places(folder / name)
    # What an earlier crawl has made is used further, although today's default may be another one.
    made = (scheme for scheme, path in places.items() if path.exists() and can_open(scheme))
    scheme = next(made, None) or default_backend()
    return f"{scheme}:{places[scheme]}"


def _places(store: Path) -> dict[str, Path]:
    return {scheme: store if scheme == "leveldb" else store.with_name(f"{store.name}.{scheme}") for scheme in ON_DISK}


def passed_over(config: Config) -> list[str]:
    """Return the URIs of stores that are, or were, the default of *config*'s spider, where it has another one now."""
    scheme, _, path = config.store.partition(":")
    if not config.store_is_default or not path:
        return []
    places = _places(Path(path if scheme == "leveldb" else path.removesuffix(f".{scheme}")))
    return [f"{other}:{there}" for other, there in places.items() if other != scheme and there.exists()]


def unknown_settings(settings: Settings) -> list[str]:
    """Return one line for each unknown DEDUP_* setting, with the nearest known name; former names are errors."""
    lines = []
    for name in sorted(k for k in settings if k.startswith(PREFIX) and k not in SETTINGS and k not in REPLACED):
        near = difflib.get_close_matches(name, SETTINGS, n=1)
        lines.append(f"{name} is not a setting of dedup-middleware" + (f"; did you mean {near[0]}?" if near else ""))
    return lines


def _check_apart(store: str, log: Path) -> None:
    """Raise ConfigError where the log would be written into the store."""
    store_path, log_path = (os.path.realpath(path) for path in (parse_uri(store)[1], log))
    if log_path.startswith(store_path + os.sep) or log_path.removeprefix(store_path) in _BESIDE_A_STORE:
        raise ConfigError(f"DEDUP_LOG = {str(log)!r} is inside DEDUP_STORE = {store!r}; give it a path of its own")
