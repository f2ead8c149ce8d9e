"""``scrapy dedup explain``: shows what is stored of a page, its last record, and how it would be checked now."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dedup_middleware.api import would_be_checked
from dedup_middleware.cli.commands import Subcommand
from dedup_middleware.errors import ConfigError
from dedup_middleware.model import VerdictKind
from dedup_middleware.reasons import Outcome
from dedup_middleware.records.explain import explain
from dedup_middleware.records.log import Record
from dedup_middleware.terminal import columns, shortened, styled
from dedup_middleware.text.clauses import one_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from dedup_middleware.cli.call import Call

_LISTED = 10
_REPEATED = 0.5
#: Repeated sentences of a record that are shown.
_SENTENCES = 2
_STYLES = {"dropped": "red", "would_drop": "yellow", "tagged": "yellow", "released": "green", "related": "green"}


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="page URL, exactly as it was crawled")
    parser.add_argument(
        "--html", metavar="FILE", help="check this HTML of the page now, and store nothing; -: standard input"
    )


def run(call: Call) -> None:
    """Print the explanation, or the record that the page would have."""
    config, opts = call.config, call.opts
    if opts.html is None:
        explanation = explain(config, opts.url)
        print(json.dumps(explanation) if opts.json else explanation_text(explanation, columns()))
        return
    record = would_be_checked(config, opts.url, _read(opts.html))
    if opts.json:
        print(record.to_line())
        return
    print(record_text(record, columns()))
    if record.verdict == VerdictKind.DUPLICATE.value:
        print("In a crawl, its items are compared too before they are dropped.")


def _read(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise ConfigError(f"--html {name} cannot be read ({error.strerror or error}). Name another file.") from error


def record_text(record: Record, width: int | None = None) -> str:
    """Return *record* for a person in at most *width* columns, ``None`` for any: a line, and the details below."""
    # All duplicates have an outcome of their own; other pages are kept.
    what = one_line(record.outcome if record.outcome != Outcome.KEPT else record.verdict)
    score = "" if record.score is None else f"{record.score:.0%}"
    details = [
        ("original", record.original_url),
        ("reason", " ".join(filter(None, (record.reason, record.message and f"({record.message})")))),
        *(("differs", own) for own in record.difference),
        *(("repeats", sentence) for sentence in record.evidence[:_SENTENCES]),
        ("time", record.time[:19].replace("T", " ")),
    ]
    lines = [f"{what:<10} {score:>4}  ", *(f"    {name:<8}  " for name, text in details if text)]
    texts = [record.url, *(text for _, text in details if text)]
    rest = [None if width is None else width - len(line) for line in lines]
    lines[0] = lines[0].replace(what, styled(what, _STYLES.get(what, "bold")), 1)
    return "\n".join(
        line + shortened(one_line(text), most) for line, text, most in zip(lines, texts, rest, strict=True)
    )


def explanation_text(explanation: dict[str, Any], width: int | None = None) -> str:
    """Return what :func:`explain` found for a person, sentence by sentence."""
    stored, record = explanation["stored"], explanation["record"]
    lines = [one_line(explanation["url"])]
    if explanation["note"]:
        lines.append(f"  ({explanation['note']})")
    if record is not None:
        lines += ["", "Last record:", record_text(Record(**record), width)]
    if stored is not None:
        lines += ["", *_stored_lines(stored)]
    return "\n".join(lines)


def _stored_lines(stored: dict[str, Any]) -> Iterator[str]:
    since, sentences = one_line(stored["since"]), stored["sentences"]
    if stored["kind"] == "duplicate":
        if stored["original_url"] is None:
            yield f"Stored {since} as a duplicate of a page that is not stored any more:"
        else:
            changed = ", which has changed since" * stored["original_changed"]
            yield f"Stored {since} as a duplicate ({stored['score']:.0%} of its text) of"
            yield f"  {one_line(stored['original_url'])}{changed}"
            yield "Its text ('=' repeated, '+' not repeated, ' ' too short to compare):"
        for sentence in sentences:
            share = sentence["share"]
            yield f"  {' ' if share is None else '=' if share >= _REPEATED else '+'} {one_line(sentence['text'])}"
    else:
        repeats = stored["repeated_by"]
        yield f"Stored {since} as an original of {stored['clauses']} clauses, repeated by {len(repeats)} pages:"
        yield from (f"  {one_line(url)}" for url in repeats[:_LISTED])
        yield "Its text:"
        yield from (f"    {one_line(sentence['text'])}" for sentence in sentences)
    if not sentences:
        yield "  (not stored)"


COMMANDS = {
    "explain": Subcommand(
        run,
        ("explain https://example.org/story", "explain https://example.org/story --html story.html"),
        _add_options,
    )
}
