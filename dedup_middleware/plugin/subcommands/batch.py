"""``scrapy dedup batch``: verdicts on an archive of past crawls, and a store that knows it. No store is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.batch import command
from dedup_middleware.plugin.project import read_config
from dedup_middleware.plugin.subcommands.call import add_common_options, tell
from dedup_middleware.plugin.subcommands.command_config import settings_of

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.plugin.subcommands.call import Call


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)
    command.add_options(parser)


def run(call: Call) -> None:
    """Judge the archive, and print what came of it."""
    spider = call.opts.spider
    print(command.batch(call.opts, read_config(settings_of(call.settings, spider), spider), tell))
