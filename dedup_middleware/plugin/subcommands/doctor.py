"""``scrapy dedup doctor``: what is well, what is wrong, and what to do; and how a page is or would be judged."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dedup_middleware.errors import ConfigError, NothingFoundError, RecordsError
from dedup_middleware.inspection import doctor, explain
from dedup_middleware.inspection.doctor import Finding, Level
from dedup_middleware.inspection.progress import working
from dedup_middleware.plugin.subcommands.call import add_common_options
from dedup_middleware.plugin.subcommands.checkup import misspelt, resolved, standing
from dedup_middleware.plugin.subcommands.command_config import NothingYetError, settings_of
from dedup_middleware.session.reading import would_be_judged

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from dedup_middleware.plugin.subcommands.call import Call


#: The exit status where there are problems.
PROBLEMS = 4

EXAMPLES = ("doctor", "doctor --deep", "doctor https://example.org/story --html story.html")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)
    parser.add_argument(
        "url", metavar="URL", nargs="?", help="page URL, exactly as it was crawled: show how it is judged"
    )
    parser.add_argument("--html", metavar="FILE", help="judge this HTML of the page now; -: standard input")
    parser.add_argument("--deep", action="store_true", help="read the whole store too; takes minutes if it is large")


def run(call: Call) -> int:
    """Print the findings; 4 if some of them are problems."""
    opts = call.opts
    if opts.html is not None and opts.url is None:
        raise ConfigError("--html FILE is the page of which URL? add its address")
    found = []
    for finding in _page(call) if opts.url is not None else _all(call):
        found.append(finding)
        print(json.dumps(finding.as_dict()) if opts.json else doctor.finding_text([finding]), flush=True)
    return PROBLEMS if any(finding.level is Level.PROBLEM for finding in found) else 0


def _all(call: Call) -> Iterator[Finding]:
    yield from doctor.versions()
    yield from standing(settings_of(call.settings, call.opts.spider))
    yield from misspelt(call.settings)
    try:
        config = call.config
    except NothingYetError as error:
        yield doctor.note("store", str(error))
        return
    except ConfigError as error:
        said, _, remedy = str(error).partition("; ")
        yield doctor.problem("settings", said, remedy or said)
        return
    yield from resolved(settings_of(call.settings, config.spider), config)
    with working("reading the store"):
        health = list(doctor.store_health(config, deep=call.opts.deep))
    yield from health
    yield from doctor.log_health(config)
    with working("reading the last crawl"):
        pages = list(doctor.pages_health(config))
    yield from pages


def _page(call: Call) -> Iterator[Finding]:
    config, opts = call.config, call.opts
    if opts.html is not None:
        yield from doctor.as_judged(would_be_judged(config, opts.url, _read(opts.html)))
        return
    try:
        explanation = explain.explain(config, opts.url)
    except (NothingFoundError, RecordsError) as error:
        remedy = "`scrapy dedup doctor URL --html FILE` tells how it would be judged, with its page in FILE"
        yield doctor.note("page", str(error), remedy)
    else:
        yield from doctor.as_explained(explanation, config)


def _read(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise ConfigError(f"--html {name} cannot be read ({error.strerror or error}); name another file") from error
