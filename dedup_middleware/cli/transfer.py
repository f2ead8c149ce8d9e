"""``scrapy dedup store export`` and ``store import``: copies the pages of a store to a file, and back."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dedup_middleware.cli.call import add_host_option, existing_store, whole_file
from dedup_middleware.cli.commands import Subcommand
from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints import fingerprinter, is_published
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.index.transfer import Exporter, Spool, fill, is_empty, is_export
from dedup_middleware.merging import merge
from dedup_middleware.model import Scope
from dedup_middleware.opening import open_at_once
from dedup_middleware.records.log import host_named
from dedup_middleware.stores import resolved_uri
from dedup_middleware.stores.refusals import nothing_there
from dedup_middleware.terminal import counted, plural, progress, tell
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from dedup_middleware.cli.call import Call
    from dedup_middleware.settings import Config

# That of `gzip`: 9, Python's default, takes twice the time for hardly fewer bytes.
_GZIP_LEVEL = 6


# --- export


def _add_export_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="-", help="FILE, FILE.gz or FILE.xz (default: standard output)"
    )
    add_host_option(parser)


def export_pages(call: Call) -> None:
    """Write the pages; to standard error how many, if they do not go to standard output."""
    config, output = call.config, call.opts.output
    host = host_named(call.opts.host)
    with (
        index_for_command(existing_store(config), "store export", fingerprint=config.fingerprint) as (_, index),
        _opened(output) as file,
    ):
        exporter = Exporter(index, host)
        for line in exporter.lines() if output == "-" else counted(exporter.lines(), "lines written"):
            file.write(line + "\n")
    if output != "-":
        tell(f"Wrote {plural(exporter.pages, 'page')} to {output}. It contains the key of the store: keep it private.")
    if exporter.in_doubt:
        tell(f"Left out {plural(exporter.in_doubt, 'page')} in doubt after a crash. Crawl again, then export.")


@contextmanager
def _opened(output: str) -> Iterator[IO[str]]:
    """Open the file *output*, compressed by its suffix; ``-`` is standard output."""
    if output == "-":
        yield sys.stdout
        return
    path = Path(output)
    with ExitStack() as stack:
        raw: Any = stack.enter_context(whole_file(path, is_export))
        if path.suffix == ".gz":
            # Without a name and a time: the same pages make the same file.
            raw = stack.enter_context(gzip.GzipFile("", "wb", _GZIP_LEVEL, raw, mtime=0))
        elif path.suffix == ".xz":
            raw = stack.enter_context(lzma.open(raw, "wb"))
        yield stack.enter_context(io.TextIOWrapper(raw, encoding="utf8", newline="\n"))


# --- import


def _add_import_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", metavar="FILE", nargs="+", type=Path, help="a file that `scrapy dedup store export` wrote"
    )
    parser.add_argument("--dry-run", action="store_true", help="read the files, and change nothing")


def import_pages(call: Call) -> None:
    """Import the files, and print what became of their pages."""
    config, opts = call.config, call.opts
    uri = resolved_uri(config.store)
    if uri == "memory:":
        raise ConfigError(nothing_there(uri))
    with Spool() as spool:
        for path in opts.files:
            with progress(f"reading {one_line(str(path))}"):
                spool.read(path)
        moves = len(spool.origins) == 1 and is_empty(uri)
        scheme = fingerprinter(config.fingerprint).scheme
        for origin in spool.origins:
            if origin.scheme != scheme:
                raise ConfigError(
                    f"The files contain fingerprints of scheme {origin.scheme!r:.80}, but "
                    f"DEDUP_FINGERPRINT={config.fingerprint!r} makes {scheme!r}. Set it as their store had it."
                )
        if not moves and is_published(config.fingerprint):
            # The fingerprints of a method cannot be computed from the stored text alone.
            raise ConfigError(
                f"Stores of DEDUP_FINGERPRINT={config.fingerprint!r} cannot be merged. "
                "Import one file into an empty store."
            )
        report: dict[str, Any] = {
            "store": without_secrets(uri, redact=False),
            "how": "moved" if moves else "merged",
            "dry_run": opts.dry_run,
            "read": len(spool.entries),
        }
        if not opts.dry_run:
            with progress("importing pages"):
                report |= _import(config, spool, moves=moves)
        report |= {"left_out": spool.refusals, "left_out_first": spool.refused}
    print(json.dumps(report) if opts.json else _text(report))


def _import(config: Config, spool: Spool, *, moves: bool) -> dict[str, int]:
    if moves:
        return fill(config.store, spool, fingerprint=config.fingerprint)
    # All pages of the store count.
    opened = open_at_once(replace(config, log=None, scope=Scope.STORE, expire_after=None))
    try:
        return merge(opened.index, spool, config)
    finally:
        opened.store.close()


def _text(report: dict[str, Any]) -> str:
    if report["dry_run"]:
        lines = [f"Read {report['read']} pages for {report['store']}, to be {report['how']}"]
    else:
        kinds = ", ".join(f"{report[kind]} {kind}" for kind in ("originals", "duplicates", "known") if kind in report)
        lines = [f"{report['how'].capitalize()} into {report['store']}: {kinds}"]
    if report["left_out"]:
        lines.append(f"Left out {report['left_out']}; crawls will check these pages again:")
        lines += [f"    {one_line(line)}" for line in report["left_out_first"]]
    return "\n".join(lines)


COMMANDS = {
    "store export": Subcommand(
        export_pages,
        ("store export -o pages.jsonl.xz", "store export --host example.org -o pages.jsonl"),
        _add_export_options,
    ),
    "store import": Subcommand(
        import_pages, ("store import pages.jsonl.xz", "store import a.jsonl b.jsonl --dry-run"), _add_import_options
    ),
}
