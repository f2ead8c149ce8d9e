"""``scrapy dedup batch``: checks an archive of past crawls. The store and the records of a spider are not touched.

``spark-submit`` takes this file as a program.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from scrapy.cmdline import execute

from dedup_middleware.batch import command
from dedup_middleware.cli.commands import Subcommand
from dedup_middleware.text.terminal import tell

if TYPE_CHECKING:
    from dedup_middleware.cli.call import Call


def run(call: Call) -> None:
    """Check the archive, and print the report."""
    print(command.batch(call.opts, call.config_of(call.opts.spider), tell))


COMMANDS = {
    "batch": Subcommand(run, ("batch crawl-2024.jsonl crawl-2025.warc.gz -o checked",), command.add_options),
}

if __name__ == "__main__":
    execute(["scrapy", "dedup", "batch", "--spark=", *sys.argv[1:]])
