"""``scrapy dedup``: read the records and the closed store of a crawl, and mend it."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.utils.conf import arglist_to_dict

from dedup_middleware.errors import CallError, DedupError, NothingFoundError

if TYPE_CHECKING:
    from types import ModuleType

#: The exit status where nothing is what was asked for, as of grep; 1 is trouble, 2 a wrong call.
NOTHING_FOUND = 3
_STATUSES = {NothingFoundError: NOTHING_FOUND, CallError: 2}
#: In the order of the help, with what each does. Each is a module of `subcommands`.
SUBCOMMANDS = {
    "log": "show what was dropped, with evidence",
    "stats": "sum up the log and the store",
    "explain": "show what is stored of a page, or why it was dropped",
    "tune": "replay verdicts at other thresholds, judge pairs by eye, and get a threshold suggested",
    "report": "make a page that shows what was dropped, to look at in a browser",
    "dropped": "list the dropped items, or export them to a file",
    "allow": "mark dropped pages as no duplicates, and release their items in the next crawl",
    "doctor": "check the store, the settings and the plugin, or how a page is or would be judged",
    "repair": "make a repaired copy of a damaged store, and say what is missing",
    "forget": "take pages out of the store, as if they had never been met",
    "export": "write the pages of the store to a file, to move, merge or compare stores",
    "import": "take exported pages into the store: one file into an empty one, or several together",
    "batch": "judge an archive of past crawls, on Spark if it is large, and make a store that knows it",
    "compact": "give back the room that removed pages have left in the store's files",
    "reset": "forget every page: remove the store",
    "compare": "score published methods on pages of your own",
}


def _module(name: str) -> ModuleType:
    # Scrapy loads this module whatever its user wants, and there is much behind a subcommand.
    return import_module(f"dedup_middleware.plugin.subcommands.{f'{name}_' if iskeyword(name) else name}")


class _LateOptions(argparse.ArgumentParser):
    """A parser that learns the options of its subcommand when it is first needed."""

    name: str | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self.name is not None:
            _module(self.name).add_options(self)
            self.name = None
        return super().parse_known_args(args, namespace)


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
        # Scrapy's own parser knows what -:json is.
        late: Any = type("SubcommandParser", (_LateOptions, type(parser)), {})
        commands = parser.add_subparsers(dest="dedup_command", title="Commands", prog="scrapy dedup", parser_class=late)
        for name, text in SUBCOMMANDS.items():
            commands.add_parser(name, help=text, description=text).name = name

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
        from dedup_middleware.plugin.subcommands.call import Call, tell  # noqa: PLC0415 - as in `_module`

        # A title may hold what this terminal cannot show.
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        try:
            assert self.settings is not None
            self.exitcode = _module(opts.dedup_command).run(Call(self.settings, opts)) or 0
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
