"""``scrapy dedup report``: one page of HTML that shows what was dropped; or its rows."""

from __future__ import annotations

import io
import json
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from dedup_middleware.cli.call import add_common_options, tell, whole_file
from dedup_middleware.errors import CallError
from dedup_middleware.report import page
from dedup_middleware.report.data import gather
from dedup_middleware.report.page import are_rows, write_rows
from dedup_middleware.terminal import progress
from dedup_middleware.text.clauses import one_line

if TYPE_CHECKING:
    import argparse
    from typing import Any

    from dedup_middleware.cli.call import Call

_STDOUT = "-"

EXAMPLES = ("report -o report.html --open", "report --csv dropped.csv --run last")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write the page to FILE; -: standard output")
    parser.add_argument("--csv", metavar="FILE", help="write a row for each dropped page to FILE")
    parser.add_argument("--run", metavar="R", help="only records of this crawl; `last`: the latest")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def run(call: Call) -> None:
    """Write what is asked for, and say where it is."""
    config, opts = call.config, call.opts
    if opts.output is None and opts.csv is None:
        raise CallError("name the file to write: -o report.html, or --csv rows.csv")
    if opts.open and opts.output in (None, _STDOUT):
        raise CallError("--open needs a file to open: add -o report.html")
    done: dict[str, Any] = {}
    if opts.output is not None:
        with progress("reading the log and the store") as step:
            report = gather(config, opts.run, step=step)
        _write(opts.output, page.html(report))
        summary = report.summary
        done |= {"output": opts.output, **{name: summary[name] for name in ("records", "duplicates", "saved", "note")}}
    if opts.csv is not None:
        # With a mark of its encoding, which spreadsheets go by.
        with (
            whole_file(Path(opts.csv), are_rows) as draft,
            io.TextIOWrapper(draft, encoding="utf-8-sig", errors="backslashreplace", newline="") as file,
        ):
            done |= {"csv": opts.csv, "rows": write_rows(file, config, opts.run)}
    if opts.output != _STDOUT:
        _say(done, as_json=opts.json)
    if opts.open and not webbrowser.open(Path(opts.output).absolute().as_uri()):
        tell(f"no browser can be opened here; open {opts.output} yourself")


def _write(output: str, html: str) -> None:
    if output == _STDOUT:
        sys.stdout.write(html)
        return
    with whole_file(Path(output), page.is_report) as draft:
        draft.write(html.encode("utf8"))


def _say(done: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(done))
        return
    if "output" in done:
        note = f"; without the texts of the store: {done['note']}" if done["note"] else ""
        print(one_line(f"wrote {done['output']}: {done['duplicates']} duplicates in {done['records']} records{note}"))
    if "csv" in done:
        print(one_line(f"wrote {done['csv']}: {done['rows']} rows"))
