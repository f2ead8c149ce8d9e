"""``scrapy dedup batch``: what a user asks for, and what is answered."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dedup_middleware.batch import output
from dedup_middleware.batch.archive import SPLIT, Refused, parts_of
from dedup_middleware.batch.inline import judge_in_order
from dedup_middleware.batch.judging import Job
from dedup_middleware.batch.outcome import CHOICES
from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints import fingerprinter
from dedup_middleware.inspection.progress import progress
from dedup_middleware.model import Scope
from dedup_middleware.session.runs import run_id
from dedup_middleware.stores.layout import Header
from dedup_middleware.text.clauses import one_line

if TYPE_CHECKING:
    import argparse
    from collections import Counter
    from collections.abc import Callable, Sequence

    from dedup_middleware.batch.archive import Part
    from dedup_middleware.batch.output import Files
    from dedup_middleware.settings.config import Config

#: What of the settings a batch on Spark knows how to do side by side.
_ON_SPARK = "clauses"
# Of each core, parts of the archive, and of what is gathered: few, for each costs 50 ms and more, whatever is in it.
_PARTS_A_CORE, _BUCKETS_A_CORE = 4, 2
# Bytes of an archive, packed or not, whose pages can be in the memory of one core.
_BUCKET = 2**28
_LEAST_SPLIT = 2**18


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    parser.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="+",
        type=Path,
        help="an archive, or a folder of such: .jsonl (.gz, .xz), .parquet, .warc (.gz), in the order of the crawls",
    )
    parser.add_argument("-o", "--output", metavar="FOLDER", type=Path, required=True, help="where the results go")
    parser.add_argument(
        "--owner", choices=CHOICES, default=CHOICES[0], help="which page stands for a cluster (%(default)s)"
    )
    parser.add_argument(
        "--spark",
        metavar="MASTER",
        nargs="?",
        const="",
        help="judge on Spark: at MASTER, such as spark://host:7077; without one on all cores of this machine, or where "
        "spark-submit says",
    )


def batch(opts: argparse.Namespace, config: Config, tell: Callable[[str], None]) -> str:
    """Judge the archives that *opts* name, write what comes of it, and return what to print; *tell* how far it is.

    :class:`DedupError` for a user's mistake.
    """
    config = replace(config, scope=Scope.STORE, lease=None, spider=None, log=None, jobdir=None)
    if opts.spark is not None and config.fingerprint != _ON_SPARK:
        raise ConfigError(
            f"DEDUP_FINGERPRINT={config.fingerprint!r} cannot be judged on Spark, for it looks beyond the clauses of "
            f"pages: leave out --spark, or set it to {_ON_SPARK!r}"
        )
    job = Job(config, Header.new(fingerprinter(config.fingerprint).scheme), run_id(None), opts.owner)
    with output.files_in(opts.output) as files:
        came, refused = (_in_order if opts.spark is None else _on_spark)(opts, job, files, tell)
    report = {
        "output": str(opts.output),
        "pages": sum(count for kind, count in came.items() if kind != output.RELEASED),
        "verdicts": {kind: count for kind, count in sorted(came.items()) if count},
        "left_out": dict(refused.counts),
        "left_out_first": refused.first,
    }
    return json.dumps(report) if opts.json else _text(report)


def _in_order(
    opts: argparse.Namespace,
    job: Job,
    files: Files,
    tell: Callable[[str], None],  # noqa: ARG001 - as the other
) -> tuple[Counter[str], Refused]:
    with progress("pages judged") as step:
        return judge_in_order(job, parts_of(opts.inputs), files, opts.output, step)


def _on_spark(
    opts: argparse.Namespace, job: Job, files: Files, tell: Callable[[str], None]
) -> tuple[Counter[str], Refused]:
    from dedup_middleware.batch.rounds import judge_all  # noqa: PLC0415 - only here
    from dedup_middleware.batch.spark import Spark, spark_context  # noqa: PLC0415

    with spark_context(opts.spark) as context:
        cores: int = context.defaultParallelism
        parts = _split(parts_of(opts.inputs), cores)
        size = sum(path.stat().st_size for path in {part.path for part in parts})
        job = replace(job, buckets=max(cores * _BUCKETS_A_CORE, size // _BUCKET))
        engine = Spark(context, job.buckets)
        judged = judge_all(engine, job, parts, tell=tell)
        return output.write_judged(engine, job, judged, files), judged.refused


def _split(parts: Sequence[Part], cores: int) -> list[Part]:
    """Return *parts* so that each core has some, where they are plain files of JSON Lines."""
    size = sum(part.stop - part.start for part in parts if part.stop > 0)
    split = max(_LEAST_SPLIT, min(SPLIT, size // (cores * _PARTS_A_CORE)))
    return [*parts_of(dict.fromkeys(part.path for part in parts), split=split)]


def _text(report: dict[str, Any]) -> str:
    verdicts = ", ".join(f"{count} {kind}" for kind, count in report["verdicts"].items())
    lines = [f"{report['pages']} pages judged: {verdicts}" if report["pages"] else "no pages in there"]
    lines.append(f"wrote {', '.join(output.NAMES)} to {report['output']}; the last has the key of their store: keep it")
    if report["left_out"]:
        counts = ", ".join(f"{count} × {why}" for why, count in report["left_out"].items())
        lines.append(f"left out: {counts}")
        lines += [f"    {one_line(line)}" for line in report["left_out_first"]]
    return "\n".join(lines)
