"""``scrapy dedup tune``: what another threshold would have done, and which one a person's eye speaks for."""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.cli.call import add_common_options, tell
from dedup_middleware.commandlines import scrapy_dedup
from dedup_middleware.errors import ConfigError, NothingFoundError, StoreError
from dedup_middleware.fingerprints import is_published
from dedup_middleware.records.log_reader import log_of, open_records
from dedup_middleware.report import tuning
from dedup_middleware.report.answers import Answers, side_by_side, side_by_side_lines
from dedup_middleware.report.tuning import suggestion, suggestion_text
from dedup_middleware.settings import THRESHOLD, Setting, as_whole
from dedup_middleware.stores import resolved_uri
from dedup_middleware.terminal import counted
from dedup_middleware.text.clauses import one_line

if TYPE_CHECKING:
    from dedup_middleware.cli.call import Call
    from dedup_middleware.records.log_reader import Records
    from dedup_middleware.records.records import Record
    from dedup_middleware.report.answers import SideBySide
    from dedup_middleware.report.tuning import Case
    from dedup_middleware.settings import Config


class _Pair(NamedTuple):
    """A pair to be checked."""

    case: Case
    record: Record
    texts: SideBySide | None


_AT = "comma-separated thresholds to evaluate (default: 0.55 to 1.0, in steps of 0.05)"
_SHOW = Setting("--show", 5, partial(as_whole, least=0), "a whole number from 0")
EXAMPLES = ("tune", "tune --at 0.7,0.75,0.8 --show 10")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)
    parser.add_argument("--run", metavar="R", help="only records of this crawl; `last`: the latest")
    parser.add_argument("--host", metavar="H", help="only pages of this host and its subdomains")
    parser.add_argument("--at", metavar="X,Y", type=_thresholds, default=tuning.THRESHOLDS, help=_AT)
    text = f"number of pairs to show above and below the threshold (default: {_SHOW.default})"
    parser.add_argument("--show", metavar="N", type=_number, default=_SHOW.default, help=text)
    parser.add_argument("--again", action="store_true", help="include pairs that you have labelled already")


def _thresholds(text: str) -> list[float]:
    try:
        return [THRESHOLD.read(part, "--at") for part in text.split(",")]
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _number(text: str) -> int:
    try:
        return int(_SHOW.read(text))
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(call: Call) -> None:
    """Print the table; at a terminal, ask about the pairs nearest the line; and print what the answers speak for."""
    config, opts = call.config, call.opts
    if is_published(config.fingerprint):
        raise ConfigError(
            f"DEDUP_FINGERPRINT = {config.fingerprint!r} has a threshold of its own, and DEDUP_THRESHOLD does nothing;"
            " `scrapy dedup compare` tries its options"
        )
    log = log_of(config)
    records, answers = open_records(log, run=opts.run, host=opts.host), Answers.beside(log)
    found, today = tuning.recorded(counted(records, "records read")), config.threshold
    if not found.cases:
        raise NothingFoundError(f"no verdict in {log} hangs on the threshold; crawl first, or widen --run and --host")
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
        tell(f"{error}; until then there is only the evidence in the log")
        texts = {}
    # A log that is removed meanwhile has none of them.
    return [_Pair(case, read[case.number], texts.get(case.pair)) for case in near if case.number in read]


def _show(pairs: list[_Pair], answers: Answers, config: Config) -> None:
    """Print the *pairs*; at a terminal, ask about each, and keep the answers."""
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    for number, pair in enumerate(pairs, 1):
        print(f"{number} of {len(pairs)}", _text(pair), sep="\n", end="\n\n")
        answer = _answer() if asks else "s"
        if answer == "q":
            break
        if answer != "s":
            answers.add(pair.case.pair, pair.case.score, same=answer == "y")
            if answer == "n" and pair.case.is_dropped:
                allow = scrapy_dedup("allow", pair.case.url, store=resolved_uri(config.store))
                print(f"to release its items: {allow}\n")


def _answer() -> str:
    """Return what a person at the terminal answers: y, n, s or q."""
    while True:
        print("the same story? y, n, s to skip it, q to stop: ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            print()
            return "q"
        if (answer := line.strip().lower()[:1]) in {"y", "n", "s", "q"}:
            return answer


def _text(pair: _Pair) -> str:
    case, record = pair.case, pair.record
    title = one_line(record.title) or "(without a title)"
    what = "repeats" if case.is_dropped else "kept beside"
    lines = [
        f"{case.score:.4f}  {title}",
        f"        {one_line(case.url)}",
        f"        {what} {one_line(case.original_url)}",
    ]
    if pair.texts is not None:
        lines += [f"    {line}" for line in side_by_side_lines(pair.texts)]
    else:
        lines += [f"    = {one_line(sentence)}" for sentence in record.evidence]
        lines += [f"    + {one_line(own)}" for own in record.difference]
    return "\n".join(lines)


def _as_dict(pair: _Pair) -> dict[str, Any]:
    return pair.record.as_dict() | {"texts": None if pair.texts is None else pair.texts._asdict()}
