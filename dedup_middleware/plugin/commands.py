"""``scrapy dedup``: read the records and the closed store of a crawl, and mend it."""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.utils.conf import arglist_to_dict

from dedup_middleware.comparison import options as comparison
from dedup_middleware.delivery.restoring import PageFilter, restore, restored_text
from dedup_middleware.errors import ConfigError, DedupError
from dedup_middleware.index import consistency
from dedup_middleware.inspection import explain
from dedup_middleware.inspection.records import log_exists, observer_logs_beside, remove_log
from dedup_middleware.plugin.command_config import config_of
from dedup_middleware.stores import destroy_store, resolved_uri, store_exists
from dedup_middleware.stores.refusals import nothing_there
from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    from dedup_middleware.settings.config import Config


class Command(ScrapyCommand):
    """Dispatch to the subcommands; a user's mistake is one line and exit status 1."""

    requires_project = False
    requires_crawler_process = False

    def syntax(self) -> str:
        return "<log|stats|explain|restore|repair|reset|compare> [options]"

    def short_desc(self) -> str:
        return "Show why pages were dropped as duplicates, and what the store knows"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        # Else argparse takes the --log of `reset` for an abbreviation of Scrapy's own --logfile.
        parser.allow_abbrev = False
        commands = parser.add_subparsers(dest="dedup_command", title="Commands", prog="scrapy dedup")
        log = _add(commands, "log", "show what was dropped, with evidence")
        log.add_argument("--follow", action="store_true", help="go on showing records as a crawl writes them")
        log.add_argument("--host", metavar="H", help="only pages of this host and its subdomains")
        log.add_argument("--owner", metavar="URL", help="only pages that repeat this one")
        log.add_argument("--min-score", metavar="X", type=_share, default=0.0, help="only scores from X (0-1) on")
        log.add_argument("--all", action="store_true", help="also pages that were the same or could not be judged")
        _add(commands, "stats", "sum up the log and the store")
        explain = _add(commands, "explain", "show what is stored of a page, or why it was dropped")
        explain.add_argument("url", metavar="URL", help="the page's address, as the crawl had it")
        restore = _add(commands, "restore", "let the next crawl request dropped pages and deliver them")
        restore.add_argument("url", metavar="URL", nargs="?", help="the page's address, as the crawl had it")
        restore.add_argument("--host", metavar="H", help="pages of this host and its subdomains")
        restore.add_argument("--owner", metavar="URL", help="pages dropped in favour of this one")
        restore.add_argument("--all", action="store_true", help="every page that was dropped")
        _add(commands, "repair", "make a repaired copy of a damaged store, and say what is missing")
        reset = _add(commands, "reset", "forget every page: remove the store")
        reset.add_argument("--log", action="store_true", help="remove the log of records too")
        reset.add_argument("--yes", action="store_true", help="do not ask")
        text = "score published methods on pages of your own"
        compare = commands.add_parser("compare", help=text, description=text)
        # It has nothing to do with a store, whoever's.
        compare.set_defaults(spider=None, set_here=[])
        comparison.add_options(compare, _share)

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
            if opts.dedup_command == "compare":
                self._compare(opts)
            else:
                getattr(self, f"_{opts.dedup_command}")(config_of(self.settings, opts.spider, tell=_tell), opts)
            sys.stdout.flush()
        except DedupError as error:
            print(f"dedup: {error}", file=sys.stderr)
            self.exitcode = 1
        except BrokenPipeError:
            # `scrapy dedup log | head`: nobody reads on. Python would complain again when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except KeyboardInterrupt:
            self.exitcode = 130
        except Exception as error:  # noqa: BLE001 - a defect of ours; where it is says more than a traceback
            place = traceback.extract_tb(error.__traceback__)[-1]
            print(f"dedup: {error!r} at {Path(place.filename).name}:{place.lineno}; please report it", file=sys.stderr)
            self.exitcode = 1

    # --- the commands

    def _log(self, config: Config, opts: argparse.Namespace) -> None:
        wanted = PageFilter.of(None, opts.host, opts.owner)
        for record in explain.records(config, follow=opts.follow):
            if not explain.is_wanted(record, wanted, config, min_score=opts.min_score, everything=opts.all):
                continue
            print(record.to_line() if opts.json else explain.record_text(record), flush=opts.follow)

    def _stats(self, config: Config, opts: argparse.Namespace) -> None:
        stats = explain.stats(config)
        print(json.dumps(stats) if opts.json else explain.stats_text(stats))

    def _explain(self, config: Config, opts: argparse.Namespace) -> None:
        explanation = explain.explain(config, opts.url)
        print(json.dumps(explanation) if opts.json else explain.explanation_text(explanation))

    def _restore(self, config: Config, opts: argparse.Namespace) -> None:
        if not (opts.url or opts.host or opts.owner or opts.all):
            raise ConfigError("say which pages: a URL, --host H, --owner URL, or --all")
        report = restore(config, PageFilter.of(opts.url, opts.host, opts.owner))
        print(json.dumps(report) if opts.json else restored_text(report))

    def _repair(self, config: Config, opts: argparse.Namespace) -> None:
        if not store_exists(config.store):
            raise ConfigError(nothing_there(resolved_uri(config.store)))
        report = consistency.repair(config.store)
        print(json.dumps(report) if opts.json else consistency.repair_text(report))

    def _reset(self, config: Config, opts: argparse.Namespace) -> None:
        store, log = resolved_uri(config.store), config.log if opts.log else None
        shown_store = without_secrets(store, redact=False)
        logs = [] if log is None else [*[log] * log_exists(log), *observer_logs_beside(log)]
        doomed = [*[f"the store {shown_store}"] * store_exists(store), *(f"the log {path}" for path in logs)]
        if doomed and not opts.yes:
            _ask(f"This removes {' and '.join(doomed)}.")
        removed = destroy_store(store)
        logs = [path for path in logs if remove_log(path)]
        if opts.json:
            shown = None if config.log is None else str(config.log)
            print(json.dumps({"store": shown_store, "removed": removed, "log": shown, "log_removed": bool(logs)}))
            return
        print(f"removed the store {shown_store}" if removed else nothing_there(resolved_uri(config.store)))
        for path in logs:
            print(f"removed the log {path}")
        if opts.log and not logs:
            print(f"there is no log at {log}")

    def _compare(self, opts: argparse.Namespace) -> None:
        from dedup_middleware.comparison.command import compare  # noqa: PLC0415 - 25 ms that no other command needs

        for text in compare(opts, _tell):
            print(text, flush=True)


def _tell(line: str) -> None:
    print(f"dedup: {line}", file=sys.stderr)


def _ask(what: str) -> None:
    """Return if a person at the terminal agrees with *what*; else raise `DedupError`."""
    if not sys.stdin.isatty():
        raise DedupError(f"{what} There is no terminal to ask at: add --yes if that is what you want")
    print(f"{what} Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise DedupError("nothing was removed")


def _add(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    """Return a new subcommand's parser with the options that every one takes."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("--json", action="store_true", help="print JSON, one object a line")
    parser.add_argument("--spider", metavar="NAME", help="whose store and log, with that spider's own settings")
    # Another name than that of Scrapy's own -s, or argparse would forget the settings before the subcommand.
    parser.add_argument(
        "-s",
        "--set",
        dest="set_here",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set/override setting (may be repeated)",
    )
    return parser


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        _refuse(f"{text!r} is no number from 0 to 1")
    return value


def _refuse(message: str) -> NoReturn:
    raise argparse.ArgumentTypeError(message)
