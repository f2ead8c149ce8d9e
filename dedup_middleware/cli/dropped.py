"""``scrapy dedup dropped``: list the dropped items, or export them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dedup_middleware import item_codec
from dedup_middleware.cli.call import add_common_options, add_item_filter, spiders_of, tell
from dedup_middleware.cli.exporting import Export
from dedup_middleware.records.dropped import PageFilter, dropped
from dedup_middleware.text.clauses import one_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from dedup_middleware.cli.call import Call
    from dedup_middleware.index.dropped_items import DroppedItem

_FIELDS = ("time", "spider", "run", "url", "original_url", "score", "type")

EXAMPLES = ("dropped --host example.org", "dropped --below 0.9 -o dropped.jsonl")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)
    parser.add_argument("url", metavar="URL", nargs="?", help="page URL, exactly as it was crawled")
    add_item_filter(parser)
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="append the items to FILE, as `scrapy crawl -o` does; FILE:FORMAT, -:FORMAT",
    )
    output.add_argument("-O", "--overwrite-output", metavar="FILE", help="write the items to FILE, and overwrite it")


def run(call: Call) -> None:
    """Print or export the items that are wanted; the store stays as it is."""
    opts = call.opts
    wanted = PageFilter.of(opts.url, opts.host, opts.original, opts.run, opts.below)
    target = opts.overwrite_output or opts.output
    count = 0

    def counted(items: Iterator[DroppedItem]) -> Iterator[DroppedItem]:
        nonlocal count
        for item in items:
            count += 1
            yield item

    with dropped(call.config, wanted) as items:
        if target is None:
            for item in counted(items):
                print(_line(item, as_json=opts.json))
            if not count and not opts.json:
                print("no such item was dropped, or it was removed since: see DEDUP_DROPPED_SIZE and DEDUP_DROPPED_AGE")
            return
        item_codec.PROJECT.give(spiders_of(call.settings))
        export = Export(call.settings, target, overwrite=opts.overwrite_output is not None)
        export.write(item.item for item in counted(items))
    line = (
        json.dumps({"items": count}) if opts.json else f"{count} dropped item{'s' * (count != 1)} written to {target}"
    )
    # Where the items go to standard output, nothing else does.
    tell(line) if export.is_stdout else print(line)


def _line(item: DroppedItem, *, as_json: bool) -> str:
    if as_json:
        return json.dumps({name: getattr(item, name) for name in _FIELDS})
    time, url, original = map(one_line, (item.time, item.url, item.original_url))
    return f"{time[:19]}  {item.score:4.0%}  {url}\n    repeats {original}"
