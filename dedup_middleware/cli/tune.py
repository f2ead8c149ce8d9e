"""``scrapy dedup tune``: shows what other thresholds would have done, and suggests one from answers about pairs."""

from __future__ import annotations

import argparse
import json
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.cli.call import add_host_option, add_run_option
from dedup_middleware.cli.commands import Subcommand
from dedup_middleware.errors import ConfigError, NothingFoundError, StoreError
from dedup_middleware.fingerprints import is_published
from dedup_middleware.records.log import log_of, open_records
from dedup_middleware.report import tuning
from dedup_middleware.report.answers import Answers, side_by_side, side_by_side_lines
from dedup_middleware.report.tuning import suggestion, suggestion_text
from dedup_middleware.settings import THRESHOLD
from dedup_middleware.stores import resolved_uri
from dedup_middleware.stores.refusals import scrapy_dedup
from dedup_middleware.terminal import columns, counted, shortened, tell
from dedup_middleware.text.clauses import one_line

if TYPE_CHECKING:
    from dedup_middleware.cli.call import Call
    from dedup_middleware.records.log import Record, Records
    from dedup_middleware.report.answers import SideBySide
    from dedup_middleware.report.tuning import Case
    from dedup_middleware.settings import Config

_AT = "comma-separated thresholds to evaluate (default: 0.55 to 1.0, in steps of 0.05)"


class _Pair(NamedTuple):
    """A pair of pages that a person may label."""

    case: Case
    record: Record
    texts: SideBySide | None


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_run_option(parser)
    add_host_option(parser)
    parser.add_argument("--at", metavar="X,Y", type=_thresholds, default=tuning.THRESHOLDS, help=_AT)
    parser.add_argument(
        "--show", metavar="N", type=_number, default=5, help="pairs to show above and below the threshold (default: 5)"
    )
    parser.add_argument("--again", action="store_true", help="include pairs that you have labelled already")


def _thresholds(text: str) -> list[float]:
    try:
        return [THRESHOLD.read(part, "--at") for part in text.split(",")]
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def run(call: Call) -> None:
    """Print the table and the pairs nearest the threshold, with a question each at a terminal; then the suggestion."""
    config, opts = call.config, call.opts
    if is_published(config.fingerprint):
        raise ConfigError(
            f"DEDUP_FINGERPRINT = {config.fingerprint!r} has its own threshold and ignores DEDUP_THRESHOLD. "
            "Use `scrapy dedup compare` to try its options."
        )
    log = log_of(config)
    records, answers = open_records(log, run=opts.run, host=opts.host), Answers.beside(log)
    found, today = tuning.recorded(counted(records, "records read")), config.threshold
    if not found.cases:
        raise NothingFoundError(
            f"No verdict in {log} depends on the threshold. Crawl first, or widen --run and --host."
        )
    rows = tuning.rows_of(found.cases, today, opts.at)
    near = tuning.borderline(found.cases, today, opts.show, checked=() if opts.again else answers.about())
    pairs = _pairs(config, records, near)
    if not opts.json:
        print(tuning.tuning_text(found, rows, today), end="\n\n")
        _show(pairs, answers, config)
    suggested = suggestion(answers.about(records.wanted.host), today)
    if opts.json:
        shown = {"pairs": [_as_dict(pair) for pair in pairs], "suggestion": suggested.as_dict()}
        print(json.dumps({**tuning.as_dict(found, rows, today), **shown}))
    else:
        print(suggestion_text(suggested))


def _pairs(config: Config, records: Records, near: list[Case]) -> list[_Pair]:
    """Return the pairs of *near* with their records, and with their texts if the store has them and is not in use."""
    wanted = {case.number for case in near}
    last = max(wanted, default=-1) + 1
    read = {number: record for number, record in enumerate(islice(records, last)) if number in wanted}
    try:
        texts = side_by_side(config, [case.pair for case in near])
    except StoreError as error:
        tell(f"{str(error).rstrip('.')}. Until then, only the evidence in the log is shown.")
        texts = {}
    # A log that is removed meanwhile has none of them.
    return [_Pair(case, read[case.number], texts.get(case.pair)) for case in near if case.number in read]


def _show(pairs: list[_Pair], answers: Answers, config: Config) -> None:
    """Print the *pairs*; at a terminal, ask about each, and write the answers."""
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    for number, pair in enumerate(pairs, 1):
        print(f"{number} of {len(pairs)}", _text(pair, columns()), sep="\n", end="\n\n")
        answer = _answer() if asks else "s"
        if answer == "q":
            break
        if answer != "s":
            answers.add(pair.case.pair, pair.case.score, same=answer == "y")
            if answer == "n" and pair.case.is_dropped:
                allow = scrapy_dedup("allow", pair.case.url, store=resolved_uri(config.store))
                print(f"To release its items: {allow}\n")


def _answer() -> str:
    """Return what a person at the terminal answers: y, n, s or q."""
    while True:
        print("Duplicates? [y]es, [n]o, [s]kip, [q]uit: ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            print()
            return "q"
        if (answer := line.strip().lower()[:1]) in {"y", "n", "s", "q"}:
            return answer


def _text(pair: _Pair, width: int | None) -> str:
    case, record = pair.case, pair.record
    what = "duplicate of" if case.is_dropped else "kept beside"
    lines = [f"{case.score:.4f}  {one_line(record.title) or '(no title)'}", f"        {one_line(case.url)}"]
    lines.append(f"        {what} {one_line(case.original_url)}")
    if pair.texts is not None:
        lines += [f"    {line}" for line in side_by_side_lines(pair.texts)]
    else:
        lines += [f"    = {one_line(sentence)}" for sentence in record.evidence]
        lines += [f"    + {one_line(own)}" for own in record.difference]
    return "\n".join(shortened(line, width) for line in lines)


def _as_dict(pair: _Pair) -> dict[str, Any]:
    return pair.record.as_dict() | {"texts": None if pair.texts is None else pair.texts._asdict()}


COMMANDS = {"tune": Subcommand(run, ("tune", "tune --at 0.7,0.75,0.8 --show 10"), _add_options)}
