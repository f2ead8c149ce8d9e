"""``scrapy dedup tune``: replays the records at other thresholds, and suggests one from pairs that a person labels."""

from __future__ import annotations

import argparse
import json
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dedup_middleware.cli.options import HOST, Subcommand, crawl_option, option
from dedup_middleware.errors import ConfigError, NothingFoundError
from dedup_middleware.fingerprints import another
from dedup_middleware.model import now
from dedup_middleware.report import tuning
from dedup_middleware.report.answers import Answer, Answers
from dedup_middleware.report.data import NEARLY, OWN, SAME, stored
from dedup_middleware.report.tuning import suggestion, suggestion_text
from dedup_middleware.settings import THRESHOLD
from dedup_middleware.stores.refusals import scrapy_dedup
from dedup_middleware.text.clauses import one_line
from dedup_middleware.text.terminal import counted, fitted, plural, tell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dedup_middleware.cli.call import Call
    from dedup_middleware.records.file import Record, Records
    from dedup_middleware.report.tuning import Case
    from dedup_middleware.settings import Config

    #: A pair of pages that a person may label, and their texts.
    _Pair = tuple[Case, Record, dict[str, Any] | None]

_SHOW = "pairs to show above and below the threshold (default: 5)"
_AT = "comma-separated thresholds to evaluate (default: 0.55 to 1.0, in steps of 0.05)"
# Sentences of a page that the other page lacks, and characters of a sentence.
_SHOWN, _CHARACTERS = 8, 200


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
    """Print the table, the pairs nearest the threshold, which a person at a terminal labels, and the suggestion."""
    config, opts = call.config, call.opts
    if another(config.fingerprint) is not None:
        raise ConfigError(
            f"DEDUP_FINGERPRINT = {config.fingerprint!r} has its own threshold and ignores DEDUP_THRESHOLD. "
            "Use `scrapy dedup compare` to try its options."
        )
    records, labels = call.records, Answers.beside(call.log)
    if opts.labels is not None:
        given = Answers.given(opts.labels)
        tell(f"{plural(len(given.about()), 'label')} in {opts.labels}, {labels.add_newer(given)} of them new")
    found, current = tuning.recorded(counted(records, "records read")), config.threshold
    if not found.cases:
        raise NothingFoundError(
            f"No verdict in {call.log} depends on the threshold", "Crawl first, or widen --crawl and --host."
        )
    rows = tuning.rows_of(found.cases, current, opts.at)
    near = tuning.borderline(found.cases, current, opts.show, labelled=labels.about())
    pairs = _pairs(config, records, near)
    if not opts.json:
        print(tuning.tuning_text(found, rows, current), end="\n\n")
        _show(pairs, labels, config)
    suggested = suggestion(labels.about(records.wanted.host), current)
    if opts.json:
        shown = [record.as_dict() | {"texts": texts} for _, record, texts in pairs]
        more = {"pairs": shown, "suggestion": suggested.as_dict()}
        print(json.dumps({**tuning.as_dict(found, rows, current), **more}))
    else:
        print(suggestion_text(suggested))


def _pairs(config: Config, records: Records, near: list[Case]) -> list[_Pair]:
    """Return the pairs of *near* with their records, and with their texts if the store can be read and has them."""
    wanted = {case.number for case in near}
    last = max(wanted, default=-1) + 1
    read = {number: record for number, record in enumerate(islice(records, last)) if number in wanted}
    with stored(config) as (store, note):
        if store is None and near:
            tell(f"Only the evidence in the records is shown: {note}")
        # A file that is removed meanwhile has no records.
        return [
            (case, record, None if store is None else store.side_by_side(record))
            for case in near
            if (record := read.get(case.number)) is not None
        ]


def _show(pairs: list[_Pair], labels: Answers, config: Config) -> None:
    """Print the *pairs*; at a terminal, ask for the label of each, and write it."""
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    for number, (case, record, texts) in enumerate(pairs, 1):
        print(f"{number} of {len(pairs)}", _text(case, record, texts), sep="\n", end="\n\n")
        answer = _answer() if asks else "s"
        if answer == "q":
            break
        if answer != "s":
            labels.add(Answer(*case.pair, case.score, answer == "y", record.reason, now()))
            if answer == "n" and case.is_dropped:
                allow = scrapy_dedup("allow", case.url, store=config.store)
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


def _text(case: Case, record: Record, texts: dict[str, Any] | None) -> str:
    what = "duplicate of" if case.is_dropped else "similar to"
    lines = [f"{case.score:.4f}  {one_line(record.title) or '(no title)'}", f"        {one_line(case.url)}"]
    lines.append(f"        {what} {one_line(case.original_url)}")
    if texts is not None:
        lines += [f"    {line}" for line in _side_by_side(texts)]
    else:
        lines += [f"    = {one_line(sentence)}" for sentence in record.evidence]
        lines += [f"    + {one_line(own)}" for own in record.difference]
    return "\n".join(map(fitted, lines))


def _side_by_side(texts: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence in both pages (``=``), and those that only the page (``+``) or the original (``-``) has so."""
    both = [text for mark, text in texts["page"] if mark == SAME]
    if both:
        yield f"= {one_line(both[0], _CHARACTERS)}"
    if len(both) > 1:
        yield f"= … and {len(both) - 1} more"
    for sign, side in (("+", "page"), ("-", "original")):
        own = [text for mark, text in texts[side] if mark in (OWN, NEARLY)]
        yield from (f"{sign} {one_line(text, _CHARACTERS)}" for text in own[:_SHOWN])
        if len(own) > _SHOWN:
            yield f"{sign} … and {len(own) - _SHOWN} more"


COMMAND = Subcommand(
    run,
    ("tune", "tune --at 0.7,0.75,0.85 --show 10"),
    (
        *(crawl_option(), HOST),
        option("--at", metavar="X,Y", type=_thresholds, default=tuning.THRESHOLDS, help=_AT),
        option("--show", metavar="N", type=_number, default=5, help=_SHOW),
        option("--labels", metavar="FILE", type=Path, help="add the labels that a report has saved to FILE"),
    ),
)
