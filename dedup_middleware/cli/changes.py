"""``scrapy dedup changes``: lists pages that are new, changed, moved, gone, or were not seen, since a crawl."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dedup_middleware.cli.options import HOST, Subcommand, option
from dedup_middleware.common.permissions import whole_file
from dedup_middleware.records.crawl_changes import CHANGED, KINDS, NOT_COMPARED, UNCHANGED, changes_since
from dedup_middleware.records.file import LAST, TEXT, crawl_lines
from dedup_middleware.text.clauses import one_line
from dedup_middleware.text.terminal import plural, tell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.cli.call import Call
    from dedup_middleware.records.crawl_changes import PageChange
    from dedup_middleware.records.file import RecordedChanges

# How a line of ours begins.
_EXPORT = b'{"change": "'
_NOT_COMPARED = (
    "Whether the pages that were not compared have changed is not known: a crawl that overwrites its feed (-O), or has "
    "DEDUP_SCOPE = 'crawl', compares no page with an earlier crawl, and unchecked pages are not compared."
)


def run(call: Call) -> None:
    """Print what became of each page, or write it into a file."""
    opts = call.opts
    found = [*changes_since(call.log, None if opts.since == LAST else opts.since, call.wanted)]
    if not all(line.has_new for line in crawl_lines(call.log)):
        tell("DEDUP_LOG leaves out new pages (new=0): they are missing here.")
    if opts.output is not None:
        with whole_file(Path(opts.output), lambda start: start.startswith(_EXPORT)) as file:
            file.writelines(_line(change).encode("ascii") + b"\n" for change in found)
        tell(f"Wrote {plural(len(found), 'page')} to {opts.output}.")
    else:
        call.show_each(found if opts.json else [found], _text, _line)
    if any(change.kind == NOT_COMPARED and change.has_items for change in found):
        tell(_NOT_COMPARED)


def _line(change: PageChange) -> str:
    found: dict[str, Any] = {"change": change.kind, "url": change.url}
    if change.key:
        found["key"] = change.key
    if change.moved_from is not None:
        found["moved_from"] = change.moved_from
    if change.record is not None:
        found |= {"crawl": change.record.crawl, "time": change.record.time, "verdict": change.record.verdict}
        if (changes := change.record.changes) is not None:
            names = ("field", "before", "after")
            found["changes"] = [dict(zip(names, each, strict=True)) for each in changes.by_field()]
            found["shown_otherwise"] = changes.shown_otherwise
    return json.dumps(found)


def _text(found: Iterable[PageChange]) -> str:
    """Return the changes for a person: a heading for each kind with its number of pages, and below it the pages."""
    counts: Counter[str] = Counter()
    without_items = 0
    shown: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for change in found:
        counts[change.kind] += 1
        without_items += not change.has_items and change.kind == NOT_COMPARED
        url = change.url if change.moved_from is None else f"{change.moved_from} -> {change.url}"
        url = f"{change.key} {url}" if change.key else url
        if change.kind not in {UNCHANGED, NOT_COMPARED}:
            record = change.record
            copy = f" repeats {record.original_url}" if record is not None and record.is_duplicate else ""
            shown[change.kind].append(f"  {one_line(url + copy)}")
        if change.kind == CHANGED and change.record is not None:
            shown[change.kind] += [f"    {line}" for line in change_lines(change.record.changes)]
    more = {NOT_COMPARED: f" ({without_items} without items)"} if without_items else {}
    return "\n".join(line for kind in KINDS for line in (f"{kind} {counts[kind]}{more.get(kind, '')}", *shown[kind]))


def change_lines(changes: RecordedChanges | None) -> list[str]:
    """Return what has changed on a page, a line each: ``old -> new``, ``-`` for what is gone, ``+`` for what is new."""
    if changes is None:
        return []
    lines = []
    for name, old, new in changes.by_field():
        change = f"{old} -> {new}" if old and new else f"- {old}" if old else f"+ {new}" if new else ""
        lines.append(one_line(change if change and name == TEXT else f"{name}: {change or 'changed'}"))
    return [*lines, "(pictures, media, files, formulas or form values)"] if changes.shown_otherwise else lines


COMMAND = Subcommand(
    run,
    ("changes", "changes --since 3f2a9c81d0b4 --host example.org", "changes -o changes.jsonl"),
    (
        HOST,
        option("--since", metavar="CRAWL", help="compare with this crawl (default or last: the one before the last)"),
        option("-o", dest="output", metavar="FILE", help="write JSON Lines into this file"),
    ),
)
