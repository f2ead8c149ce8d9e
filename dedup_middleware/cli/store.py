"""``scrapy dedup store``: dispatches to the commands on the store itself, a module each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.cli.commands import add_commands, module_of

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.cli.call import Call

EXAMPLES = ("store info", "store reset --yes", "store export -o pages.jsonl.xz")
#: In the order of the help, with what each does.
COMMANDS = {
    "info": "show what is in the store, and its size",
    "forget": "delete pages from the store",
    "reset": "delete the store, with all pages and dropped items",
    "compact": "reclaim the disk space of deleted pages",
    "export": "write the pages to a file, to move, merge or compare stores",
    "import": "add the pages of exports to the store",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the commands."""
    commands = parser.add_subparsers(
        dest="store_command", metavar="COMMAND", title="Commands", prog="scrapy dedup store", required=True
    )
    add_commands(commands, COMMANDS, "store.")


def run(call: Call) -> int | None:
    """Run the command; return its exit status, ``None`` for 0."""
    status: int | None = module_of(f"store.{call.opts.store_command}").run(call)
    return status
