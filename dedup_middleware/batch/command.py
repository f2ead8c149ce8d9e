"""Runs ``scrapy dedup batch``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dedup_middleware.batch import output
from dedup_middleware.batch.archive import Job, files_of
from dedup_middleware.batch.engine import engine
from dedup_middleware.batch.pairs import check
from dedup_middleware.common.registry import required
from dedup_middleware.driver.opening import new_crawl
from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints import fingerprinter
from dedup_middleware.model import Scope
from dedup_middleware.stores.base import Header
from dedup_middleware.text.clauses import one_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from dedup_middleware.settings import Config


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    parser.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="+",
        type=Path,
        help="archive or folder: .jsonl (.gz, .xz), .parquet, .warc (.gz), in the order of the crawls",
    )
    parser.add_argument("-o", "--output", metavar="FOLDER", type=Path, required=True, help="folder for the results")
    parser.add_argument(
        "--spark",
        metavar="MASTER",
        nargs="?",
        const="",
        help="run on Spark at MASTER, such as spark://host:7077 (default: the master of spark-submit, or all cores)",
    )
    parser.add_argument("--parquet", action="store_true", help="write verdicts and clusters as Parquet")


def batch(opts: argparse.Namespace, config: Config, tell: Callable[[str], None]) -> str:
    """Check the archives that *opts* names, write the results, and return the report; *tell* reports progress.

    :class:`DedupError` for a user's mistake.
    """
    # Candidates are found by clauses.
    if config.fingerprint != "clauses":
        where = f"DEDUP_FINGERPRINT={config.fingerprint!r} cannot be used in a batch"
        raise ConfigError(where, "set it to 'clauses', or check the pages with Deduplicator.stream")
    config = replace(config, scope=Scope.STORE, expire_after=None, spider=None, log=None, jobdir=None)
    job = Job(config, Header.new(fingerprinter(config.fingerprint).scheme), new_crawl())
    if opts.parquet:
        required("pyarrow.parquet", "--parquet", extra="archive")
    ending, files = "parquet" if opts.parquet else "jsonl", files_of(opts.inputs)
    names = (f"verdicts.{ending}", f"clusters.{ending}", "store.jsonl.gz")
    with output.new_folder(opts.output) as folder, engine(opts.spark, files, folder) as tables:
        refused, named = check(tables, job, files, tell)
        kinds = output.write_verdicts(tables, folder / names[0])
        output.write_clusters(tables, folder / names[1])
        output.write_store(tables, job, folder / names[2])
    report = {
        "output": str(opts.output),
        "files": names,
        "pages": kinds.total(),
        "verdicts": dict(sorted(kinds.items())),
        "left_out": refused,
        "left_out_first": named,
    }
    return json.dumps(report) if opts.json else _text(report)


def _text(report: dict[str, Any]) -> str:
    verdicts = ", ".join(f"{count} {kind}" for kind, count in report["verdicts"].items())
    lines = [f"{report['pages']} pages checked: {verdicts}" if report["pages"] else "no pages found"]
    lines.append(f"wrote {', '.join(report['files'])} to {report['output']}; the last has the key of the store")
    if report["left_out"]:
        lines.append(f"left out: {', '.join(f'{count} × {why}' for why, count in report['left_out'].items())}")
        lines += [f"    {one_line(line)}" for line in report["left_out_first"]]
    return "\n".join(lines)
