"""Writes ``reference/cli.md`` from the parsers of ``scrapy dedup``, as their ``--help`` shows them.

Usage: python docs/cli_reference.py
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from dedup_middleware.cli.commands import COMMANDS, GROUPS, Parser, subcommand

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

PAGE = Path(__file__).parent / "reference" / "cli.md"
_COMMON = {"-h", "--json", "--spider", "-s"}
_HEAD = """# Commands

<!-- Made by docs/cli_reference.py; a test compares. -->

These options are common to all commands. If several spiders have a store, choose one with `--spider`. A command works
outside a project too. Commands that only show something change nothing.

"""
_TAIL = """
Output at a terminal fits its width; in a pipe or a file it is complete. `NO_COLOR` turns off colours.

| exit status | meaning |
|--:|---|
| 0 | done, or nothing to do |
| 1 | error: the store is in use, a file cannot be written, `doctor` has found problems |
| 2 | usage error: an unknown command or option |
| 3 | nothing found: no record matches the filter, no page has this URL |
"""


def page() -> str:
    """Return the page."""
    common = [action for action in Parser("log")._actions if _COMMON & {*action.option_strings}]  # noqa: SLF001
    parts = [_HEAD + _table(common) + "\n" + _TAIL]
    for group, names in GROUPS.items():
        parts.append(f"## {group}\n")
        parts += [_command(name) for name in names]
    return "\n".join(parts)


def _command(name: str) -> str:
    parser = Parser(name)
    own = [action for action in parser._actions if not _COMMON & {*action.option_strings}]  # noqa: SLF001
    options = f"\n{_table(own)}\n" if own else ""
    examples = "\n".join(f"$ scrapy dedup {example}" for example in subcommand(name).examples)
    usage = f"```text\n{parser.usage}\n```\n"
    examples = f"<!-- illustration: examples of the help -->\n```console\n{examples}\n```\n"
    return f"### {name}\n\n{COMMANDS[name]}.\n\n{usage}{options}\n{examples}"


def _table(actions: Iterable[argparse.Action]) -> str:
    rows = [f"| {_names(action)} | {_cell(action.help or '')} |" for action in actions]
    return "\n".join(["| option | meaning |", "|---|---|", *rows])


def _names(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{action.metavar}`"
    value = "" if action.nargs == 0 else f" [{action.metavar}]" if action.nargs == "?" else f" {action.metavar}"
    return ", ".join(f"`{name}{value}`" for name in action.option_strings)


def _cell(text: str) -> str:
    return re.sub(r"\|", r"\\|", text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf8")
