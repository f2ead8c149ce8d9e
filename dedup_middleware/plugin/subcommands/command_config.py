"""Which store and which log a command means.

A spider's own settings count whether or not it is named, and what is not certain is asked for.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from typing import TYPE_CHECKING

from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.spiderloader import get_spider_loader

from dedup_middleware.errors import ConfigError, DedupError
from dedup_middleware.inspection.records import log_exists
from dedup_middleware.plugin.project import place_of, read_config
from dedup_middleware.stores import resolved_uri, store_exists

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scrapy.settings import BaseSettings
    from scrapy.spiderloader import SpiderLoaderProtocol

    from dedup_middleware.settings.config import Config

_NAMED = ("DEDUP_STORE", "DEDUP_LOG")


class NothingYetError(ConfigError):
    """No spider has crawled here."""


def config_of(settings: BaseSettings, spider: str | None, tell: Callable[[str], None]) -> Config:
    """Return the configuration of *spider*; or of the only one that has a store or a log; or what settings name.

    A store or a log that the command line names is meant, whoever's it is. :class:`ConfigError` where it remains open
    which spider is meant, and where nothing is found. *tell* takes a line on what could not be asked.
    """
    loader = _loader(settings, tell)
    if spider is not None:
        config = _config(settings, loader, spider)
        if loader is not None and spider not in loader.list() and not _has_something(config):
            raise ConfigError(f"there is no spider {spider!r} here, nor a store or a log of one")
        return config
    place = place_of(settings)
    spiders = sorted({*(loader.list() if loader else ()), *place.known_spiders()})
    configs, errors = _configs(settings, loader, spiders)
    known = _with_something(configs)
    if len({(resolved_uri(config.store), config.log) for config in known}) == 1:
        return known[0]
    named = [name for name in _NAMED if settings.get(name)]
    on_command_line = any((settings.getpriority(name) or 0) >= SETTINGS_PRIORITIES["cmdline"] for name in named)
    if known and not on_command_line:
        names = [str(config.spider) for config in known]
        example = shlex.join(["--spider", names[0]])
        raise ConfigError(f"several spiders have a store or a log: {', '.join(names)}; name one, as in {example}")
    if not known and errors:
        raise errors[0]
    if not named:
        looked = " or ".join(map(str, place.roots)) or "any folder"
        raise NothingYetError(
            f"no spider has a store in {looked}; crawl first, or use -s DEDUP_STORE=URI -s DEDUP_LOG=PATH"
        )
    return read_config(settings, None)


def _configs(
    settings: BaseSettings, loader: SpiderLoaderProtocol | None, spiders: Iterable[str]
) -> tuple[list[Config], list[ConfigError]]:
    """Return the configurations of *spiders*, and what is wrong with those that cannot be read."""
    configs, errors = [], []
    for spider in spiders:
        try:
            configs.append(_config(settings, loader, spider))
        except ConfigError as error:  # noqa: PERF203 - each for itself
            errors.append(error)
    return configs, errors


def _with_something(configs: Iterable[Config]) -> list[Config]:
    """Return the configurations of those spiders that have crawled, as far as their stores and logs tell."""
    known = [config for config in configs if _has_something(config)]
    with_log = [config for config in known if _has_log(config)]
    # The store of a spider without a log may have been filled by one that has a log.
    theirs = {resolved_uri(config.store) for config in with_log}
    return with_log + [c for c in known if not _has_log(c) and resolved_uri(c.store) not in theirs]


def _has_something(config: Config) -> bool:
    # What may not be looked at is somebody else's.
    with suppress(DedupError):
        return _has_log(config) or store_exists(config.store)
    return False


def _has_log(config: Config) -> bool:
    with suppress(DedupError):
        return config.log is not None and log_exists(config.log)
    return False


def settings_of(settings: BaseSettings, spider: str | None) -> BaseSettings:
    """Return *settings* with those of *spider* itself, where there is one; as a crawl would have them."""
    return settings if spider is None else _own_settings(settings, _loader(settings, lambda _: None), spider)


def spiders_of(settings: BaseSettings) -> list[type]:
    """Return the spiders of the project; none where they cannot be loaded."""
    loader = _loader(settings, lambda _: None)
    return [] if loader is None else [*map(loader.load, loader.list())]


def _config(settings: BaseSettings, loader: SpiderLoaderProtocol | None, spider: str) -> Config:
    return read_config(_own_settings(settings, loader, spider), spider)


def _own_settings(settings: BaseSettings, loader: SpiderLoaderProtocol | None, spider: str) -> BaseSettings:
    own = settings.copy()
    if loader is not None and spider in loader.list():
        try:
            loader.load(spider).update_settings(own)
        except Exception as error:
            raise ConfigError(f"the settings of spider {spider} cannot be read ({error!r}); mend them") from error
    return own


def _loader(settings: BaseSettings, tell: Callable[[str], None]) -> SpiderLoaderProtocol | None:
    """Return what loads the project's spiders; ``None`` where they cannot be loaded."""
    try:
        return get_spider_loader(settings)
    except Exception as error:  # noqa: BLE001 - whatever a module of the project's raises
        tell(f"cannot load the project's spiders ({error!r}); their own settings are ignored")
        return None
