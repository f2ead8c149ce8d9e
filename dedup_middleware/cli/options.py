"""Defines subcommands of ``scrapy dedup`` and their options as data, and the options that several share."""

from __future__ import annotations

import argparse
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dedup_middleware.cli.call import Call


#: An option or an argument: what ``add_argument`` gets of it.
Option = tuple[tuple[str, ...], dict[str, Any]]


def option(*names: str, **how: Any) -> Option:
    """Return an option, as ``add_argument`` takes it."""
    return names, how


class Subcommand(NamedTuple):
    """A command of ``scrapy dedup``, as ``COMMAND`` or ``COMMANDS`` of its module has it."""

    run: Callable[[Call], int | None]
    """Prints to standard output and returns the exit status, ``None`` for 0."""
    examples: Sequence[str]
    """Command lines without ``scrapy dedup``."""
    options: Sequence[Option | list[Option]] = ()
    """In the order of the help; of a list, one at most may be given."""
    is_of_spider: bool = True
    """Whether it takes the options ``--spider`` and ``--json``."""


def share(text: str) -> float:
    """Return the number from 0 to 1 that *text* is."""
    with suppress(ValueError):
        if 0 <= (value := float(text)) <= 1:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")


def crawl_option(what: str = "records") -> Option:
    """Return the option that chooses a crawl, by its name or as the latest one."""
    return option("--crawl", metavar="CRAWL", help=f"only {what} of this crawl; last: the latest crawl")


def url_argument(name: str = "url", **how: Any) -> Option:
    """Return the argument that names a page, or several."""
    return option(name, **{"metavar": "URL", "help": "page URL, exactly as it was crawled", **how})


#: Stands for the URL of an item that ``start()`` has given.
NO_PAGE = "(no page: start())"
#: The help of an argument that names a page, or an item.
OF_PAGE_OR_KEY = "page URL, exactly as it was crawled, or the key of an item"
HOST = option("--host", metavar="HOST", help="only pages of this host and its subdomains")
ORIGINAL = option("--original", metavar="URL", help="only duplicates of this page")
MIN_SCORE = option("--min-score", metavar="X", type=share, default=0.0, help="minimum score, 0 to 1 (default: 0)")
BELOW = option("--below", metavar="SCORE", type=share, default=math.inf, help="only scores below SCORE, 0 to 1")
#: Choose among dropped items.
OF_ITEMS = (HOST, ORIGINAL, crawl_option("items"), BELOW)
YES = option("--yes", action="store_true", help="do not ask for confirmation")
#: Of all commands.
OF_SPIDER = (
    option("--json", action="store_true", help="output JSON Lines"),
    option("--spider", metavar="NAME", help="use the store, the records and the settings of this spider"),
)
SET = option("-s", "--set", metavar="NAME=VALUE", action="append", default=[], help="override a setting (repeatable)")
