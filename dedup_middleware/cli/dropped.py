"""``scrapy dedup dropped``: lists the dropped items, or exports them by Scrapy's own exporters or the project's."""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.extensions.feedexport import FileFeedStorage
from scrapy.utils.conf import feed_complete_default_values_from_settings, feed_process_params_from_cli
from scrapy.utils.misc import build_from_crawler, load_object

from dedup_middleware.cli.commands import NOTHING_FOUND
from dedup_middleware.cli.explain import explain
from dedup_middleware.cli.options import NO_PAGE, OF_ITEMS, OF_PAGE_OR_KEY, Subcommand, option, url_argument
from dedup_middleware.common import permissions
from dedup_middleware.common.plain_files import DEVICES, FILES, open_file
from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.index import item_codec
from dedup_middleware.index.shared import index_for_command
from dedup_middleware.items.keys import ItemKeys, as_shown
from dedup_middleware.plugin.feeds import onto_disk
from dedup_middleware.reasons import Outcome
from dedup_middleware.records.file import LAST, RecordFilter, is_named, recorded_url
from dedup_middleware.text.clauses import one_line
from dedup_middleware.text.terminal import fitted, plural, tell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scrapy.exporters import BaseItemExporter
    from scrapy.settings import BaseSettings, Settings

    from dedup_middleware.cli.call import Call
    from dedup_middleware.index.dropped_items import DroppedItem
    from dedup_middleware.index.index import Index
    from dedup_middleware.settings import Config

_FIELDS = ("time", "spider", "crawl", "url", "original_url", "score", "type")
_STDOUT = "stdout:"
#: Where a key is named and `DEDUP_KEY` is not set: what is so, and the remedy.
NO_KEY = "DEDUP_KEY is not set here, so dropped items are found by URL alone", "Set it, as in -s DEDUP_KEY=id."
_RELEASED = "Released items leave the store."
_REMOVED = "Old ones are removed: see DEDUP_DROPPED_SIZE and DEDUP_DROPPED_AGE."


def run(call: Call) -> int:
    """Print or export the chosen items; return 3 if a filter matches none. The store stays as it is."""
    opts, wanted, config = call.opts, call.wanted, call.config
    give_classes(call)
    with index_for_command(config.store, "dropped") as (_, index):
        items = chosen(index, config, wanted, opts.url)
        if target := opts.overwrite_output or opts.output:
            _export(call, items, target)
            return 0
        if call.show_each(items, lambda item: item_text(item, key_of(config, item)), lambda item: _json(config, item)):
            return 0
        is_chosen = wanted != RecordFilter()
        is_alone = opts.url and wanted == RecordFilter(url=wanted.url)
        tell(
            _why_none(config, opts.url)
            if is_alone
            else f"No {'such ' * is_chosen}dropped item is stored. {_RELEASED} {_REMOVED}"
        )
        return NOTHING_FOUND if is_chosen else 0


def _export(call: Call, items: Iterator[DroppedItem], target: str) -> None:
    item_codec.PROJECT.give(call.spider_classes())
    export = _Export(call.settings, target, overwrite=call.opts.overwrite_output is not None)
    written = export.write(item.item for item in items)
    line = json.dumps({"items": written}) if call.opts.json else f"Wrote {plural(written, 'dropped item')} to {target}"
    # Where the items go to standard output, nothing else does.
    tell(line) if export.is_stdout else print(line)


def give_classes(call: Call) -> None:
    """Load the project's classes where items have keys: the key of an item depends on its class."""
    if call.config.key:
        item_codec.PROJECT.give(call.spider_classes())


def chosen(index: Index, config: Config, wanted: RecordFilter, name: str | None = None) -> Iterator[DroppedItem]:
    """Return the dropped items in a store that are *wanted*, oldest first; with *name*, those with this URL or key."""
    if wanted.crawl == LAST:
        crawl = ""
        for item in index.dropped:
            crawl = item.crawl
        wanted = replace(wanted, crawl=crawl)
    name = name and as_shown(name)
    url = name and recorded_url(name, config)
    wanted = replace(wanted, url=None)
    return (
        item
        for item in index.dropped
        if wanted.has(item) and (name is None or item.url == url or is_named(key_of(config, item), name))
    )


def key_of(config: Config, item: DroppedItem) -> str:
    """Return the key of a dropped *item*, as records show it; empty if it has none."""
    if not config.key:
        return ""
    try:
        key = ItemKeys(item.spider, config.key).of(item.item)
    except UnreadableError:
        return ""
    return "" if key is None else key.text


def _why_none(config: Config, url: str) -> str:
    """Return why no item of the page at *url* is stored as dropped; :class:`NothingFoundError` for an unknown page."""
    found = explain(config, url)
    outcome = None if found["record"] is None else found["record"]["outcome"]
    is_copy = found["stored"] is not None and found["stored"]["kind"] == "duplicate"
    if not config.key and found["record"] is not None and found["record"]["key"]:
        return ". ".join(NO_KEY)
    if outcome == Outcome.RELEASED.value:
        return f"The items of {found['url']} were released: none is stored any more."
    if outcome == Outcome.DROPPED.value or (outcome is None and is_copy):
        return f"No item of {found['url']} is stored any more. {_REMOVED}"
    return f"{found['url']} was kept, and none of its items was dropped. `scrapy dedup explain URL` has more."


def _json(config: Config, item: DroppedItem) -> str:
    key = key_of(config, item)
    return json.dumps({name: getattr(item, name) for name in _FIELDS} | ({"key": key} if key else {}))


def item_text(item: DroppedItem, key: str = "") -> str:
    """Return a dropped *item* with this *key*, if any, for a person."""
    time, url = one_line(item.time[:19].replace("T", " ")), one_line(f"{key} {item.url or NO_PAGE}".strip())
    first = fitted(url, f"{time}  {item.score:.2f}  ")
    return f"{first}\n{fitted(one_line(item.original_url or NO_PAGE), '    original  ')}"


class _Export:
    """A file, or standard output, and the format that items are written in."""

    def __init__(self, settings: BaseSettings, target: str, *, overwrite: bool) -> None:
        """Read *target* as ``scrapy crawl -o`` does: ``FILE``, ``FILE:FORMAT``, ``-:FORMAT``; :class:`ConfigError`."""
        self._settings = settings.copy()
        # The project's feeds are those of its crawls.
        self._settings.set("FEEDS", {}, priority="cmdline")
        try:
            ((self._uri, options),) = feed_process_params_from_cli(
                self._settings, [] if overwrite else [target], overwrite_output=[target] if overwrite else None
            ).items()
        except UsageError as error:
            raise ConfigError(
                f"-o {target} has no format ({error})", f"name it, as in -o {target}:jsonlines"
            ) from error
        self._options = feed_complete_default_values_from_settings(options, self._settings)
        self.is_stdout = self._uri == _STDOUT
        if "://" in self._uri and not self._uri.startswith("file://"):
            raise ConfigError(f"-o {target} is not a file", "Use -o FILE, or -o -:FORMAT for standard output.")

    def write(self, items: Iterable[Any]) -> int:
        """Write *items*, and return their number once they are on the disk; :class:`ConfigError` if that fails.

        Then a file that was appended to is as long as before.
        """
        try:
            with nullcontext(sys.stdout.buffer) if self.is_stdout else self._opened() as file:
                before = file.tell() if file.seekable() else None
                try:
                    written = self._export(items, file)
                    file.flush()
                    with suppress(io.UnsupportedOperation):  # standard output that a program has replaced
                        onto_disk(file.fileno())
                except Exception:
                    if before is not None:
                        with suppress(OSError):
                            file.flush()
                            file.truncate(before)
                    raise
        except BrokenPipeError:
            raise
        except OSError as error:
            raise ConfigError(
                f"{self._uri} cannot be written ({error.strerror or error})", "Name another file."
            ) from error
        return written

    def _opened(self) -> BinaryIO:
        storage = FileFeedStorage(self._uri, feed_options=self._options)
        permissions.make_folder(Path(storage.path).parent)
        permissions.make_file(Path(storage.path))
        file = open_file(storage.path, storage.write_mode, (*FILES, *DEVICES))
        file.seek(0, os.SEEK_END)
        return cast("BinaryIO", file)

    def _export(self, items: Iterable[Any], file: BinaryIO) -> int:
        options = self._options
        exporter: BaseItemExporter = build_from_crawler(
            load_object(self._settings.getwithbase("FEED_EXPORTERS")[options["format"]]),
            Crawler(Spider, cast("Settings", self._settings)),
            file,
            fields_to_export=options["fields"],
            encoding=options["encoding"],
            indent=options["indent"],
            **options["item_export_kwargs"],
        )
        exporter.start_exporting()
        written, item = 0, None
        try:
            for written, item in enumerate(items, 1):  # noqa: B007 - the last one counts
                exporter.export_item(item)
            exporter.finish_exporting()
        except (TypeError, ValueError) as error:
            kind = type(item).__qualname__
            raise ConfigError(
                f"An item of class {kind} cannot be written as {options['format']} ({error})", "Use another format."
            ) from error
        return written


COMMAND = Subcommand(
    run,
    ("dropped --host example.org", "dropped --below 0.9 -o dropped.jsonl"),
    (
        url_argument(nargs="?", help=OF_PAGE_OR_KEY),
        *OF_ITEMS,
        [
            option(
                *("-o", "--output"),
                metavar="FILE",
                help="append the items to FILE (FILE:FORMAT, -:FORMAT: standard output)",
            ),
            option("-O", "--overwrite-output", metavar="FILE", help="write the items to FILE, and overwrite it"),
        ],
    ),
)
