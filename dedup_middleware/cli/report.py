"""``scrapy dedup report``: writes an HTML report of the duplicates."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from dedup_middleware.cli.options import Subcommand, crawl_option, option
from dedup_middleware.common.permissions import whole_file
from dedup_middleware.plugin.messages import crawl_command
from dedup_middleware.report import page
from dedup_middleware.report.data import gather
from dedup_middleware.text.clauses import one_line
from dedup_middleware.text.terminal import plural, progress, tell

if TYPE_CHECKING:
    from dedup_middleware.cli.call import Call

_DEFAULT = "report.html"


def run(call: Call) -> None:
    """Write the report, and print its name."""
    config, opts = call.config, call.opts
    with progress("reading the records and the store") as step:
        report = gather(config, opts.crawl, step=step)
    report.summary["commands"] = {
        "allow": crawl_command(config, "allow"),
        "tune": crawl_command(config, "tune", "--labels", "dedup-labels.jsonl"),
    }
    with whole_file(Path(opts.output), page.is_report) as draft:
        draft.write(page.html(report).encode("utf8"))
    crawls = report.summary["crawls"]
    counts = {name: report.summary[name] for name in ("records", "duplicates", "bytes", "note")}
    counts |= {name: crawls["sum"][name] for name in ("pages", "items", "items_dropped")}
    note = f", without the texts of the store: {counts['note']}" if counts["note"] else ""
    found = [
        f"{plural(kinds['duplicate'], 'duplicate')} in {plural(sum(kinds.values()), what)}"
        for what, kinds in (("page", counts["pages"]), ("item", counts["items"]))
        if what == "page" or any(kinds.values())
    ]
    line = f"Wrote {opts.output}: {', '.join(found)}{note}"
    print(json.dumps({"output": opts.output, **counts}) if opts.json else one_line(line))
    if opts.open and not webbrowser.open(Path(opts.output).absolute().as_uri()):
        tell(f"Cannot open a browser. Open {opts.output} yourself.")


COMMAND = Subcommand(
    run,
    ("report --open", "report --crawl last -o last.html"),
    (
        option("-o", "--output", metavar="FILE", default=_DEFAULT, help=f"file to write (default: {_DEFAULT})"),
        crawl_option(),
        option("--open", action="store_true", help="open the page in a browser"),
    ),
)
