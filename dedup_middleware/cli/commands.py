"""``scrapy dedup``: finds the subcommand, reads its options, and turns errors into one line and an exit status."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
import traceback
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from scrapy.cmdline import ScrapyArgumentParser
from scrapy.commands import ScrapyCommand
from scrapy.utils.conf import arglist_to_dict

from dedup_middleware.cli.options import OF_SPIDER, SET, Subcommand
from dedup_middleware.errors import CallError, DedupError, NothingFoundError
from dedup_middleware.plugin.addon import missing_package, old_scrapy
from dedup_middleware.text.terminal import styled, tell
from dedup_middleware.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dedup_middleware.cli.options import Option

#: Exit statuses beside 0.
TROUBLE, WRONG_CALL, NOTHING_FOUND = 1, 2, 3

#: The commands, in the order of the help.
GROUPS = {
    "Look": {
        "log": "Show dropped and related pages, with evidence",
        "stats": "Count pages and items by verdict, reason and host",
        "changes": "List new, changed, moved and vanished pages since a crawl",
        "explain": "Show why a page was kept or dropped",
        "report": "Write an HTML report",
    },
    "Decide": {
        "tune": "Label borderline pairs to find a threshold",
        "dropped": "List or export dropped items",
        "allow": "Release dropped items and mark their pages as different",
        "rules": "List the parts of URLs that never changed the text",
    },
    "Store": {
        "doctor": "Check the settings, the store and the records",
        "store info": "Show the contents and the size of the store",
        "store forget": "Delete pages from the store",
        "store compact": "Reclaim the disk space of deleted pages",
        "store reset": "Delete the store",
        "store export": "Write a copy of the store to a file",
        "store import": "Fill an empty store with a copy of another",
    },
    "Archives and methods": {
        "batch": "Find duplicates in an archive of past crawls",
        "compare": "Measure published methods on your own pages",
    },
}
COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}
_ARGUMENTS = {None: "{}", "?": "[{}]", "*": "[{} ...]", "+": "{} ..."}
_LATER = """`scrapy dedup COMMAND --help` shows the options of a command, and examples.
Exit status: 0 done, 1 error, 2 usage error, 3 nothing found."""


def subcommand(name: str) -> Subcommand:
    """Return the subcommand *name*. Imports its module: Scrapy loads this one for each of its own commands."""
    room, _, of_store = name.partition(" ")
    module = import_module(f"dedup_middleware.cli.{room}")
    found: Subcommand = module.COMMANDS[name] if of_store else module.COMMAND
    return found


def overview(prefix: str = "") -> str:
    """Return the help on all commands, or on those whose names begin with *prefix*."""
    lines = ["Find near-duplicate pages, and manage what is stored of them.", ""] * (not prefix)
    lines.append(f"Usage: scrapy dedup {prefix}COMMAND [options]")
    for group, commands in GROUPS.items():
        shown = {name: text for name, text in commands.items() if name.startswith(prefix)}
        if shown:
            lines += ["", styled(f"{group}:", "bold"), *(f"  {name:<15}{text}" for name, text in shown.items())]
    if not prefix:
        lines += ["", styled("Options:", "bold")]
        lines += ["  -s NAME=VALUE  Override a setting (repeatable)"]
        lines += ["  -h, --help     Show this help", "  --version      Show the version"]
    return "\n".join([*lines, "", _LATER])


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a sentence that names the closest of *known* to *word*; empty without a close one."""
    near = difflib.get_close_matches(word, [*known], n=1)
    return f". Did you mean {near[0]}?" if near else ""


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Writes "Usage" with a capital, as the other headings."""

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, prefix or "Usage: ")


class Parser(ScrapyArgumentParser):
    """The parser of one subcommand."""

    def __init__(self, name: str) -> None:
        found = subcommand(name)
        examples = "\n  ".join(["Examples:", *(f"scrapy dedup {example}" for example in found.examples)])
        super().__init__(
            prog=f"scrapy dedup {name}",
            description=COMMANDS[name],
            epilog=examples,
            formatter_class=_HelpFormatter,
            allow_abbrev=False,
        )
        self._positionals.title, self._optionals.title = "Arguments", "Options"
        for each in found.options:
            self._add(self.add_mutually_exclusive_group(), *each) if isinstance(each, list) else self._add(self, each)
        self.set_defaults(spider=None)
        self._add(self.add_argument_group("Common options"), *(OF_SPIDER if found.is_of_spider else ()), SET)
        arguments = [_ARGUMENTS[each.nargs].format(each.metavar) for each in self._get_positional_actions()]  # type: ignore[index]
        self.usage = " ".join([self.prog, *arguments, "[options]"])

    @staticmethod
    def _add(place: argparse._ActionsContainer, *options: Option) -> None:
        for names, how in options:
            place.add_argument(*names, **how)

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """Return the options in *words*; where they are wrong, end with an error that suggests the right ones."""
        opts, unknown = self.parse_known_args(words)
        if unknown:
            options = [option for action in self._actions for option in action.option_strings]
            self.error(f"unexpected argument {unknown[0]}{suggestion(unknown[0], options)}")
        return opts

    def error(self, message: str) -> NoReturn:
        """End with *message* and the exit status of a usage error."""
        wrong_call(message, f"{self.prog} --help")


def wrong_call(message: str, help_command: str = "scrapy dedup --help") -> NoReturn:
    """End with *message*, the command that shows the help, and the exit status of a usage error."""
    tell(f"{message.rstrip('?.')}{'?' if message.endswith('?') else '.'} See `{help_command}`.")
    sys.exit(WRONG_CALL)


@contextmanager
def _while_read() -> Iterator[None]:
    """End the block without an error where the reader of standard output has enough: ``scrapy dedup log | head``."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would fail again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show(text: str, status: int = 0) -> NoReturn:
    with _while_read():
        print(text)
    sys.exit(status)


def _fail(trouble: str) -> NoReturn:
    tell(trouble)
    sys.exit(TROUBLE)


def _name_in(words: Sequence[str]) -> str:
    """Return the name of the subcommand that *words* begin with; without one, end with the help, or an error."""
    name = " ".join(words[: 2 if words[0] == "store" else 1])
    if name in {"store", "store -h", "store --help"}:
        _show(overview("store "), WRONG_CALL if name == "store" else 0)
    if name not in COMMANDS:
        meant = f"store {words[0]}" if f"store {words[0]}" in COMMANDS else name
        wrong_call(f"unknown command {name!r}{suggestion(meant, [*COMMANDS, 'store'])}")
    return name


class Command(ScrapyCommand):
    """Runs a subcommand; a user's mistake is one line and an exit status."""

    requires_project = False
    requires_crawler_process = False
    name = ""

    def syntax(self) -> str:
        return "COMMAND [options]"

    def short_desc(self) -> str:
        return "Find near-duplicate pages, and manage what is stored of them"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        # Else the --log of `store reset` is taken for an abbreviation of Scrapy's own --logfile.
        parser.allow_abbrev = False
        parser.add_argument("-h", "--help", action="store_true")
        parser.add_argument("--version", action="store_true")
        parser.add_argument("words", nargs=argparse.REMAINDER)

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Apply Scrapy's own options, and read those of the subcommand into *opts*."""
        super().process_options(args, opts)
        if args:
            wrong_call(f"unexpected argument {args[0]}. The options of a command follow its name")
        if opts.version:
            _show(f"dedup-middleware {__version__}")
        if opts.help or not opts.words:
            _show(overview(), 0 if opts.help else WRONG_CALL)
        self.name = _name_in(opts.words)
        if trouble := old_scrapy():
            _fail(trouble)
        try:
            opts.subcommand = Parser(self.name).read(opts.words[len(self.name.split()) :])
        except ImportError as error:
            _fail(missing_package(error))
        assert self.settings is not None
        try:
            self.settings.setdict(arglist_to_dict(opts.subcommand.set), priority="cmdline")
        except ValueError:
            wrong_call("invalid -s value; use -s NAME=VALUE")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:  # noqa: ARG002 - Scrapy's signature
        """Run the subcommand."""
        from dedup_middleware.cli.call import Call  # noqa: PLC0415 - as in `subcommand`

        # A title may hold what this terminal cannot show.
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        assert self.settings is not None
        try:
            with _while_read():
                self.exitcode = subcommand(self.name).run(Call(self.settings, opts.subcommand)) or 0
        except CallError as error:
            wrong_call(str(error), f"scrapy dedup {self.name} --help")
        except DedupError as error:
            tell(str(error))
            self.exitcode = NOTHING_FOUND if isinstance(error, NothingFoundError) else TROUBLE
        except KeyboardInterrupt:
            self.exitcode = 130
        except Exception as error:  # noqa: BLE001 - a bug of ours; its place is more useful than a traceback
            place = traceback.extract_tb(error.__traceback__)[-1]
            tell(f"{error!r} at {Path(place.filename).name}:{place.lineno}. Please report it.")
            self.exitcode = TROUBLE
