"""``scrapy dedup batch``: checks an archive of past crawls. The store and the records of a spider are not touched.

``spark-submit`` takes this file as a program.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.cmdline import execute

from dedup_middleware.batch import output
from dedup_middleware.batch.archive import Job, files_of
from dedup_middleware.batch.engine import engine
from dedup_middleware.batch.pairs import check
from dedup_middleware.cli.options import Subcommand, option
from dedup_middleware.common.registry import required
from dedup_middleware.driver.opening import new_crawl
from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints import fingerprinter
from dedup_middleware.model import Scope
from dedup_middleware.settings import as_key
from dedup_middleware.stores.base import Header
from dedup_middleware.text.clauses import one_line
from dedup_middleware.text.terminal import tell

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.cli.call import Call
    from dedup_middleware.settings import Config

_KEYS = "keys.jsonl"


def run(call: Call) -> None:
    """Check the archives, write the results, and print the report."""
    call.show(batch(call.opts, call.config_of(call.opts.spider)), _text)


def batch(opts: argparse.Namespace, config: Config) -> dict[str, Any]:
    """Check the archives that *opts* names, write the results, and return the report; :class:`DedupError`."""
    # Candidates are found by clauses.
    if config.fingerprint != "clauses":
        where = f"DEDUP_FINGERPRINT={config.fingerprint!r} cannot be used in a batch"
        raise ConfigError(where, "set it to 'clauses', or check the pages with Deduplicator.stream")
    key = as_key(opts.key or [])
    config = replace(config, key=key, scope=Scope.STORE, expire_after=None, spider=None, log=None, jobdir=None)
    job = Job(config, Header.new(fingerprinter(config.fingerprint).scheme), new_crawl())
    if opts.parquet:
        required("pyarrow.parquet", "--parquet", extra="archive")
    keyed: Counter[str] = Counter()
    ending, files = "parquet" if opts.parquet else "jsonl", files_of(opts.inputs)
    names = (f"verdicts.{ending}", f"clusters.{ending}", "store.jsonl.gz")
    with output.new_folder(opts.output) as folder, engine(opts.spark, files, folder) as tables:
        refused, named = check(tables, job, files, tell)
        kinds = output.write_verdicts(tables, folder / names[0])
        output.write_clusters(tables, folder / names[1])
        output.write_store(tables, job, folder / names[2])
        if key:
            keyed = output.write_keyed(job, files, folder / _KEYS)
    return {
        "output": str(opts.output),
        "files": (*names, _KEYS) if key else names,
        "pages": kinds.total(),
        "verdicts": dict(sorted(kinds.items())),
        "items": dict(sorted(keyed.items())),
        "left_out": refused,
        "left_out_first": named,
    }


def _text(report: dict[str, Any]) -> str:
    verdicts, items = (", ".join(f"{n} {kind}" for kind, n in report[of].items()) for of in ("verdicts", "items"))
    lines = [f"{report['pages']} pages checked: {verdicts}"]
    if items:
        lines.append(f"{sum(report['items'].values())} items judged by key: {items}")
    lines.append(f"wrote {', '.join(report['files'])} to {report['output']}; store.jsonl.gz has the key of the store")
    if report["left_out"]:
        lines.append(f"left out: {', '.join(f'{count} × {why}' for why, count in report['left_out'].items())}")
        lines += [f"    {one_line(line)}" for line in report["left_out_first"]]
    return "\n".join(lines)


COMMAND = Subcommand(
    run,
    ("batch crawl-2024.jsonl crawl-2025.warc.gz -o checked",),
    (
        option(
            "inputs",
            metavar="INPUT",
            nargs="+",
            type=Path,
            help="archive or folder: .jsonl (.gz, .xz), .parquet, .warc (.gz), .wacz, in the order of the crawls",
        ),
        option("-o", "--output", metavar="FOLDER", type=Path, required=True, help="folder for the results"),
        option(
            "--spark",
            metavar="MASTER",
            nargs="?",
            const="",
            help="run on Spark at MASTER, such as spark://host:7077 "
            "(default: the master of spark-submit, or all cores)",
        ),
        option("--key", metavar="FIELD", action="append", help="judge items of JSON Lines with this field by it"),
        option("--parquet", action="store_true", help="write verdicts and clusters as Parquet"),
    ),
)

if __name__ == "__main__":
    execute(["scrapy", "dedup", "batch", "--spark=", *sys.argv[1:]])
