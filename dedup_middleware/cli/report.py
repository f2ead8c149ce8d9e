"""``scrapy dedup report``: writes an HTML page on what was dropped, or a row for each dropped page."""

from __future__ import annotations

import io
import json
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dedup_middleware.cli.call import add_run_option, whole_file
from dedup_middleware.cli.commands import Subcommand
from dedup_middleware.errors import CallError
from dedup_middleware.report import page
from dedup_middleware.report.data import gather
from dedup_middleware.terminal import progress, tell
from dedup_middleware.text.clauses import one_line

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.cli.call import Call

_STDOUT = "-"


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", help="write the page to FILE; -: standard output")
    parser.add_argument("--csv", metavar="FILE", help="write a row for each dropped page to FILE")
    add_run_option(parser)
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def run(call: Call) -> None:
    """Write the files that are wanted, and print their names."""
    config, opts = call.config, call.opts
    if opts.output is None and opts.csv is None:
        raise CallError("name the file to write: -o report.html, or --csv rows.csv")
    if opts.open and opts.output in (None, _STDOUT):
        raise CallError("--open needs a file to open: add -o report.html")
    done: dict[str, Any] = {}
    lines = []
    if opts.output is not None:
        with progress("reading the log and the store") as step:
            report = gather(config, opts.run, step=step)
        _write(opts.output, page.html(report))
        done |= {"output": opts.output}
        done |= {name: report.summary[name] for name in ("records", "duplicates", "saved", "note")}
        note = f", without the texts of the store: {done['note']}" if done["note"] else ""
        lines.append(f"Wrote {opts.output}: {done['duplicates']} duplicates in {done['records']} records{note}")
    if opts.csv is not None:
        # Spreadsheets read the encoding from a byte-order mark.
        with (
            whole_file(Path(opts.csv), page.are_rows) as draft,
            io.TextIOWrapper(draft, encoding="utf-8-sig", errors="backslashreplace", newline="") as file,
        ):
            done |= {"csv": opts.csv, "rows": page.write_rows(file, config, opts.run)}
        lines.append(f"Wrote {opts.csv}: {done['rows']} rows")
    if opts.output != _STDOUT:
        print(json.dumps(done) if opts.json else "\n".join(map(one_line, lines)))
    if opts.open and not webbrowser.open(Path(opts.output).absolute().as_uri()):
        tell(f"No browser can be opened here. Open {opts.output} yourself.")


def _write(output: str, html: str) -> None:
    if output == _STDOUT:
        sys.stdout.write(html)
        return
    with whole_file(Path(output), page.is_report) as draft:
        draft.write(html.encode("utf8"))


COMMANDS = {
    "report": Subcommand(run, ("report -o report.html --open", "report --csv dropped.csv --run last"), _add_options)
}
