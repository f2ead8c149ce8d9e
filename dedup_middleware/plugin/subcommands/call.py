"""What a subcommand is given."""

from __future__ import annotations

import argparse
import sys
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from dedup_middleware import permissions
from dedup_middleware.errors import ConfigError, DedupError
from dedup_middleware.plugin.subcommands.command_config import config_of
from dedup_middleware.stores import resolved_uri, store_exists
from dedup_middleware.stores.refusals import nothing_there
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import as_in_urls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from scrapy.settings import BaseSettings

    from dedup_middleware.settings.config import Config


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
