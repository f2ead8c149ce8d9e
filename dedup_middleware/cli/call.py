"""Gives a subcommand its settings, its store and log, and its ways to print and to ask."""

from __future__ import annotations

import argparse
import shlex
import sys
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.spiderloader import get_spider_loader

from dedup_middleware import permissions
from dedup_middleware.errors import ConfigError, DedupError
from dedup_middleware.plugin.project import place_of, read_config
from dedup_middleware.records.records import log_exists
from dedup_middleware.stores import resolved_uri, store_exists
from dedup_middleware.stores.refusals import nothing_there
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import as_in_urls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from scrapy.settings import BaseSettings
    from scrapy.spiderloader import SpiderLoaderProtocol

    from dedup_middleware.settings import Config


class Call:
    """One call of a subcommand."""

    def __init__(self, settings: BaseSettings, opts: argparse.Namespace) -> None:
        self.settings = settings
        self.opts = opts

    @cached_property
    def config(self) -> Config:
        """Whose store and log are meant; :class:`ConfigError` where that remains open."""
        return config_of(self.settings, self.opts.spider, tell)


def existing_store(config: Config) -> str:
    """Return the URI of the store that *config* names; :class:`ConfigError` if there is none."""
    uri = resolved_uri(config.store)
    if not store_exists(uri):
        raise ConfigError(nothing_there(uri))
    return uri


def host_named(host: str | None) -> str | None:
    """Return the *host* that a person has named, as URLs have it; :class:`ConfigError` if it is none."""
    read = None if host is None else as_in_urls(host)
    if read == "":
        raise ConfigError(f"--host {host} is not a host name; use for example --host example.org")
    return read


@contextmanager
def whole_file(path: Path, is_ours: Callable[[bytes], bool]) -> Iterator[BinaryIO]:
    """Yield a file that takes the place of *path*, as :func:`permissions.replaced` does; :class:`ConfigError`."""
    try:
        with permissions.replaced(path, is_ours) as file:
            yield file
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        detail = getattr(error, "strerror", None) or error
        raise ConfigError(f"{path} cannot be written ({detail}); name another file") from error


def tell(line: str) -> None:
    """Print *line* for the user, beside the output. It may have names of files, which have any characters."""
    print(f"dedup: {one_line(line)}", file=sys.stderr)


def ask(what: str) -> None:
    """Return if a person at the terminal agrees with *what*; else raise `DedupError`."""
    if not sys.stdin.isatty():
        raise DedupError(f"{what} Not a terminal, cannot ask for confirmation: run it again with --yes")
    print(f"{one_line(what)} Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise DedupError("nothing was removed")


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every subcommand that has to do with a store or a log."""
    parser.add_argument("--json", action="store_true", help="output JSON Lines")
    parser.add_argument(
        "--spider", metavar="NAME", help="spider whose store, log and settings to use; needed if several have one"
    )
    # Another name than that of Scrapy's own -s, or argparse would forget the settings before the subcommand.
    parser.add_argument(
        "-s",
        "--set",
        dest="set_here",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="override a setting; may be repeated",
    )


def add_page_filter(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose among dropped pages."""
    parser.add_argument("--host", metavar="H", help="only pages of this host and its subdomains")
    parser.add_argument("--original", metavar="URL", help="only duplicates of this page")


def add_item_filter(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose among dropped items."""
    add_page_filter(parser)
    parser.add_argument("--run", metavar="R", help="only items dropped by this crawl; `last`: the latest")
    parser.add_argument("--below", metavar="SCORE", type=share, help="only scores below SCORE, 0 to 1")


def share(text: str) -> float:
    """Return the number from 0 to 1 that *text* is."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        _refuse(f"{text!r} is no number from 0 to 1")
    return value


def _refuse(message: str) -> NoReturn:
    raise argparse.ArgumentTypeError(message)


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
