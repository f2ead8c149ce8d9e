"""Finds the settings, the store and the records of a subcommand, and prints what it finds."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.spiderloader import get_spider_loader

from dedup_middleware.errors import ConfigError, DedupError, NothingFoundError
from dedup_middleware.items.keys import as_shown
from dedup_middleware.plugin.feeds import place_of, read_config
from dedup_middleware.records.file import RecordFilter, Records, crawl_named, host_named, log_of, recorded_url
from dedup_middleware.stores import store_exists
from dedup_middleware.text.clauses import one_line
from dedup_middleware.text.terminal import tell

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

    from scrapy.settings import BaseSettings
    from scrapy.spiderloader import SpiderLoaderProtocol

    from dedup_middleware.records.counts import Counts
    from dedup_middleware.settings import Config


class NothingYetError(ConfigError):
    """No spider has crawled here."""


class Call:
    """A call of a subcommand: its options and its settings."""

    def __init__(self, settings: BaseSettings, opts: argparse.Namespace) -> None:
        self.settings = settings
        self.opts = opts

    def show(self, found: Any, text: Callable[[Any], str]) -> None:
        """Print what was *found*: with ``--json`` as it is, else as *text* writes it."""
        print(json.dumps(found) if self.opts.json else text(found))

    def show_each(self, found: Iterable[Any], text: Callable[[Any], str], line: Callable[[Any], str]) -> int:
        """Print what is *found*, with ``--json`` as *line* writes it, else as *text* does, and return its number."""
        shown = 0
        for each in found:
            print((line if self.opts.json else text)(each))
            shown += 1
        return shown

    @cached_property
    def wanted(self) -> RecordFilter:
        """What the options of the call choose, of the records or of the dropped items."""
        given = {name: value for name, value in vars(self.opts).items() if name in RecordFilter.__slots__}
        urls = {name: recorded_url(given[name], self.config) for name in ("url", "original") if given.get(name)}
        key = given.get("key") and as_shown(given["key"])
        return RecordFilter(**given | urls | {"host": host_named(given.get("host")), "key": key})

    @property
    def log(self) -> Path:
        """The path of the records; :class:`RecordsError` without records."""
        return log_of(self.config)

    @cached_property
    def records(self) -> Records:
        """The records that are `wanted`."""
        return Records(self.log, replace(self.wanted, crawl=crawl_named(self.log, self.wanted.crawl)))

    @cached_property
    def config(self) -> Config:
        """The configuration of the named spider, of the only spider that has crawled, or of the settings.

        :class:`ConfigError` if several spiders have crawled, or none.
        """
        if self.opts.spider is not None:
            return self._of_named(self.opts.spider)
        place, configs, errors = place_of(self.settings), [], []
        for spider in sorted({*self._spiders, *place.known_spiders()}):
            try:
                configs.append(self.config_of(spider))
            except ConfigError as error:  # noqa: PERF203 - each by itself
                errors.append(error)
        known = _in_use(configs)
        if len({(config.store, config.log) for config in known}) == 1:
            return known[0]
        named = [name for name in ("DEDUP_STORE", "DEDUP_LOG") if self.settings.get(name)]
        priorities = [self.settings.getpriority(name) or 0 for name in named]
        if known and max(priorities, default=0) < SETTINGS_PRIORITIES["cmdline"]:
            names = [str(config.spider) for config in known]
            example = shlex.join(["--spider", names[0]])
            what = f"Several spiders have a store or records: {', '.join(names)}"
            raise ConfigError(what, f"Name one, as in {example}.")
        if errors and not known:
            raise errors[0]
        if not named:
            remedy = "Run a crawl first, or use -s DEDUP_STORE=URI -s DEDUP_LOG=PATH."
            raise NothingYetError(f"No spider has a store in {place.tried}", remedy)
        return read_config(self.settings, None)

    def _of_named(self, spider: str) -> Config:
        config = self.config_of(spider)
        if self._loader is not None and spider not in self._spiders and not _in_use([config]):
            raise ConfigError(
                f"No spider {spider!r}, and no store or records of one", "`scrapy list` prints the spiders."
            )
        return config

    def config_of(self, spider: str | None) -> Config:
        """Return the configuration of *spider*, as a crawl would have it."""
        return read_config(self.settings_of(spider), spider)

    def settings_of(self, spider: str | None) -> BaseSettings:
        """Return the settings with those of *spider* itself, where it exists."""
        if spider is None or spider not in self._spiders or self._loader is None:
            return self.settings
        own = self.settings.copy()
        try:
            self._loader.load(spider).update_settings(own)
        except Exception as error:
            raise ConfigError(f"The settings of spider {spider} cannot be read ({error!r})", "Correct them.") from error
        return own

    def spider_classes(self) -> list[type]:
        """Return the spiders of the project; none where they cannot be loaded."""
        return [] if self._loader is None else [*map(self._loader.load, self._spiders)]

    @cached_property
    def _spiders(self) -> list[str]:
        return [] if self._loader is None else [*self._loader.list()]

    @cached_property
    def _loader(self) -> SpiderLoaderProtocol | None:
        try:
            return get_spider_loader(self.settings)
        except Exception as error:  # noqa: BLE001 - a module of the project can raise anything
            tell(f"Cannot load the project's spiders ({error!r}). Their own settings are ignored.")
            return None

    def check_crawl(self, counts: Counts) -> None:
        """Raise :class:`NothingFoundError` if a crawl is wanted, and none of its records is in *counts*."""
        if self.records.wanted.crawl and not counts.numbers:
            raise NothingFoundError(f"No record of the crawl {self.records.wanted.crawl} in {self.log}.")


def _in_use(configs: list[Config]) -> list[Config]:
    """Return those of *configs* that have records, or a store that no spider with records may have filled."""
    with_log = [config for config in configs if _has(Path.exists, config.log)]
    filled = {config.store for config in with_log}
    return with_log + [config for config in configs if config.store not in filled and _has(store_exists, config.store)]


def _has(exists: Callable[[Any], bool], place: Path | str | None) -> bool:
    with suppress(DedupError, OSError):  # one that may not be read belongs to another user
        return place is not None and exists(place)
    return False


def confirm(what: str) -> None:
    """Return if a person at the terminal confirms *what*; else raise `DedupError`."""
    if not sys.stdin.isatty():
        raise DedupError(f"{what} Not a terminal, cannot ask for confirmation", "run it again with --yes")
    print(f"{one_line(what)} Continue? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise DedupError("Nothing was deleted.")
