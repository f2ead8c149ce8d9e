"""``scrapy dedup``: dispatches to the subcommands, and turns errors into one line and an exit status."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.utils.conf import arglist_to_dict

from dedup_middleware.errors import CallError, DedupError, NothingFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

#: The exit status where nothing is what was asked for, as of grep; 1 is trouble, 2 a wrong call.
NOTHING_FOUND = 3
_STATUSES = {NothingFoundError: NOTHING_FOUND, CallError: 2}
#: In the order of the help, with what each does. Each is a module of `cli`.
SUBCOMMANDS = {
    "log": "show what was dropped, with evidence",
    "stats": "sum up the log",
    "explain": "show what is stored of a page, or why it was dropped",
    "report": "write an HTML page that shows what was dropped",
    "tune": "show borderline pairs, and suggest a threshold from your answers",
    "dropped": "list the dropped items, or export them to a file",
    "allow": "mark dropped pages as no duplicates, and release their items",
    "doctor": "check the settings and the store, or how a page is checked",
    "store": "show, move, shrink or delete the store",
    "batch": "find the duplicates in an archive, and make a store of it",
    "compare": "measure published methods on your own pages",
}


def module_of(name: str) -> ModuleType:
    """Return the module of the subcommand *name*, such as ``log`` or ``store.info``."""
    # Scrapy loads this module whatever its user wants, and there is much behind a subcommand.
    return import_module("dedup_middleware.cli." + name.replace(".", "_"))


class _LateOptions(argparse.ArgumentParser):
    """A parser that learns the options of its subcommand, and examples, when it is first needed."""

    name: str | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self.name is not None:
            module = module_of(self.name)
            module.add_options(self)
            self.formatter_class = argparse.RawDescriptionHelpFormatter
            self.epilog = "\n  ".join(["examples:", *(f"scrapy dedup {example}" for example in module.EXAMPLES)])
            self.name = None
        return super().parse_known_args(args, namespace)


def add_commands(parsers: Any, commands: Mapping[str, str], prefix: str = "") -> None:
    """Add *commands*, by name and with what they do, to *parsers*; *prefix* is that of their modules."""
    for name, text in commands.items():
        parsers.add_parser(name, help=text, description=text).name = prefix + name


class Command(ScrapyCommand):
    """Dispatch to the subcommands; a user's mistake is one line and exit status 1."""

    requires_project = False
    requires_crawler_process = False

    def syntax(self) -> str:
        return "<command> [options]"

    def short_desc(self) -> str:
        return "Inspect and manage near-duplicate detection"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        # Else argparse takes the --log of `store reset` for an abbreviation of Scrapy's own --logfile.
        parser.allow_abbrev = False
        # Scrapy's own parser knows what -:json is.
        late: Any = type("SubcommandParser", (_LateOptions, type(parser)), {})
        commands = parser.add_subparsers(
            dest="dedup_command", metavar="COMMAND", title="Commands", prog="scrapy dedup", parser_class=late
        )
        add_commands(commands, SUBCOMMANDS)

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
        from dedup_middleware.cli.call import Call, tell  # noqa: PLC0415 - as in `module_of`

        # A title may hold what this terminal cannot show.
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        try:
            assert self.settings is not None
            self.exitcode = module_of(opts.dedup_command).run(Call(self.settings, opts)) or 0
            sys.stdout.flush()
        except DedupError as error:
            tell(str(error))
            self.exitcode = next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), 1)
        except BrokenPipeError:
            # `scrapy dedup log | head`: nobody reads on. Python would complain again when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except KeyboardInterrupt:
            self.exitcode = 130
        except Exception as error:  # noqa: BLE001 - a defect of ours; where it is says more than a traceback
            place = traceback.extract_tb(error.__traceback__)[-1]
            tell(f"{error!r} at {Path(place.filename).name}:{place.lineno}; please report it")
            self.exitcode = 1
