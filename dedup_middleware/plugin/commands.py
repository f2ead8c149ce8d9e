"""``scrapy dedup``: read the records and the closed store of a crawl, and mend it."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.utils.conf import arglist_to_dict

from dedup_middleware.errors import DedupError
from dedup_middleware.plugin.subcommands import (
    compact,
    compare,
    corrections,
    doctor,
    explain,
    export,
    forget,
    import_,
    log,
    repair,
    reset,
    restore,
    stats,
    tune,
)
from dedup_middleware.plugin.subcommands.call import Call, tell

if TYPE_CHECKING:
    import argparse

#: In the order of the help.
SUBCOMMANDS: dict[str, Any] = {
    "log": log,
    "stats": stats,
    "explain": explain,
    "tune": tune,
    "restore": restore,
    "corrections": corrections,
    "doctor": doctor,
    "repair": repair,
    "forget": forget,
    "export": export,
    "import": import_,
    "compact": compact,
    "reset": reset,
    "compare": compare,
}


class Command(ScrapyCommand):
    """Dispatch to the subcommands; a user's mistake is one line and exit status 1."""

    requires_project = False
    requires_crawler_process = False

    def syntax(self) -> str:
        return f"<{'|'.join(SUBCOMMANDS)}> [options]"

    def short_desc(self) -> str:
        return "Show why pages were dropped as duplicates, and what the store knows"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        # Else argparse takes the --log of `reset` for an abbreviation of Scrapy's own --logfile.
        parser.allow_abbrev = False
        commands = parser.add_subparsers(dest="dedup_command", title="Commands", prog="scrapy dedup")
        for name, module in SUBCOMMANDS.items():
            module.add_options(commands.add_parser(name, help=module.HELP, description=module.HELP))

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        if opts.dedup_command is None:
            raise UsageError
        if args:
            raise UsageError(f"unrecognized arguments: {' '.join(args)}", print_help=False)
        assert self.settings is not None
        try:
            self.settings.setdict(arglist_to_dict(opts.set_here), priority="cmdline")
        except ValueError:
            raise UsageError("Invalid -s value, use -s NAME=VALUE", print_help=False) from None

    def run(self, args: list[str], opts: argparse.Namespace) -> None:  # noqa: ARG002 - Scrapy's signature
        # A title may hold what this terminal cannot show.
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        try:
            assert self.settings is not None
            self.exitcode = SUBCOMMANDS[opts.dedup_command].run(Call(self.settings, opts)) or 0
            sys.stdout.flush()
        except DedupError as error:
            tell(str(error))
            self.exitcode = 1
        except BrokenPipeError:
            # `scrapy dedup log | head`: nobody reads on. Python would complain again when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except KeyboardInterrupt:
            self.exitcode = 130
        except Exception as error:  # noqa: BLE001 - a defect of ours; where it is says more than a traceback
            place = traceback.extract_tb(error.__traceback__)[-1]
            tell(f"{error!r} at {Path(place.filename).name}:{place.lineno}; please report it")
            self.exitcode = 1
