"""``scrapy dedup batch``: checks an archive of past crawls. The store and the log of a spider are not touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.batch import command
from dedup_middleware.cli.call import add_common_options, settings_of, tell
from dedup_middleware.plugin.project import read_config

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.cli.call import Call

EXAMPLES = ("batch crawl-2024.jsonl crawl-2025.warc.gz -o checked",)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    add_common_options(parser)
    command.add_options(parser)


def run(call: Call) -> None:
    """Check the archive, and print the report."""
    spider = call.opts.spider
    print(command.batch(call.opts, read_config(settings_of(call.settings, spider), spider), tell))
