"""Finds out which feeds want an item and have taken it, and brings what they have taken onto disk.

A feed is identified by what it takes, its *kind*: by its item classes, or by a filter of the project's own and the
options that this may use, and by the fields that it takes of an item. So it is the same feed in later crawls, wherever
it is written to. Classes and functions are equal if their names are, and values if they are stored alike. Of any other
object, such as a lambda, nothing shows that two are equal: it makes a feed of this crawl alone.

A local file, or standard output, that one of Scrapy's own exporters writes without postprocessing can be flushed while
the crawl runs. All other feeds are durable when Scrapy has stored them: S3, Google and FTP storages, which collect in a
temporary file; compressed feeds; exporters and storages of a project's own.
"""

from __future__ import annotations

import os
import pkgutil
import re
import stat
from contextlib import ExitStack, suppress
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy.exceptions import NotConfigured
from scrapy.extensions import feedexport
from scrapy.extensions.feedexport import FeedExporter, FeedSlot, FileFeedStorage, ItemFilter, StdoutFeedStorage
from scrapy.extensions.postprocessing import PostProcessingManager
from scrapy.utils.misc import load_object
from scrapy.utils.project import inside_project, project_data_dir

from dedup_middleware.common.plain_files import ends_torn, open_file
from dedup_middleware.common.urls import without_secrets
from dedup_middleware.errors import FeedError
from dedup_middleware.index import item_codec
from dedup_middleware.settings import FOLDER, Config, DefaultPlace

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from dedup_middleware.visits.durability import Wait

# Options of a feed for how it is written, not for what it takes.
_OPTIONS = re.compile(
    r"(batch_item_count|encoding|fields|format|indent|item_export_kwargs|item_filter|overwrite|postprocessing"
    r"|store_empty|uri_params|(gzip|bz2|lzma)_.*)\Z"
)
# The formats in which a line is an item.
_LINES = ("jsonlines", "jsonl", "jl")
# Windows has no named pipes among its files, and syncs only what is open for writing.
_TO_SYNC = os.O_RDWR if os.name == "nt" else os.O_RDONLY | os.O_NONBLOCK


class Feeds:
    """The feeds of one crawl."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._run = os.urandom(8).hex()
        # Not weak: one whose end fails must not be forgotten.
        self._slots: set[FeedSlot] = set()
        self._before: list[FeedSlot] = []
        self._counts: list[int] = []
        self._ended = 0
        # How items have left the pipelines, by the type that they came in with.
        self._as_they_came: set[type] = set()
        self._as_others: set[type] = set()

    def snapshot(self) -> None:
        """Note the feeds and their counts, before the next item comes."""
        self._before = self._open
        self._counts = [slot.itemcount for slot in self._before]
        self._slots.update(self._before)

    def end_torn_lines(self) -> list[str]:
        """End the last line of each file that is appended to, if a killed crawl has torn it; return these files.

        Scrapy writes the next item behind that part, and both would be lost for every reader of the file.
        """
        by_line = [slot for slot in self._open if slot.format in _LINES and not slot.feed_options.get("postprocessing")]
        files = {s.path for s in _files_of(by_line) if s.write_mode == "ab"}
        return [path for path in sorted(files) if _end_torn_line(path)]

    @property
    def pipes(self) -> list[str]:
        """The named pipes among the files of feeds: Scrapy waits for a program that reads each."""
        return [path for path in sorted({storage.path for storage in _files_of(self._open)}) if Path(path).is_fifo()]

    @cached_property
    def exporter(self) -> FeedExporter | None:
        """What writes the feeds; ``None`` if the crawl has none."""
        return self._crawler.get_extension(FeedExporter)

    @property
    def _open(self) -> list[FeedSlot]:
        return [] if self.exporter is None else self.exporter.slots

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of all feeds."""
        return frozenset(_kind(slot, self._run) for slot in self._open)

    def wanting(self, item: Any) -> frozenset[str]:
        """Return the kinds of the feeds that would take *item* if it came out of the pipelines as it goes in.

        A filter of the project's own is taken to want everything, because it may count its calls. So is every feed
        where a pipeline may make the item one of another type: where such items have come out as others, or until the
        first of them has come out.
        """
        kind = type(item)
        stays = kind not in self._as_others and (kind in self._as_they_came or not self._are_piped)
        wanting = (
            slot for slot in self._open if not stays or type(slot.filter) is not ItemFilter or slot.filter.accepts(item)
        )
        return frozenset(_kind(slot, self._run) for slot in wanting)

    @property
    def _are_piped(self) -> bool:
        """Whether items go through other pipelines than ours."""
        # An ITEM_PROCESSOR of the project's own may do anything.
        pipelines = getattr(self._crawler.engine.scraper.itemproc, "middlewares", [None])
        return any(not type(pipeline).__module__.startswith("dedup_middleware.") for pipeline in pipelines)

    def took(self, item: Any, came_as: type | None) -> frozenset[str] | None:
        """Return the kinds of the feeds that have taken *item*, that of Scrapy's signal; ``None`` if one failed on it.

        Once an item; *came_as* is its type before the pipelines, if that is known. A serialiser that raises stops
        neither the signal nor the crawl, but then Scrapy keeps its list of slots instead of making a new one.
        """
        if came_as is not None:
            (self._as_they_came if came_as is type(item) else self._as_others).add(came_as)
        before, counts = self._before, self._counts
        self.snapshot()
        if self._before is before and self.exporter is not None:
            return None
        grown = [slot for slot, count in zip(before, counts, strict=True) if slot.itemcount > count]
        return frozenset(_kind(slot, self._run) for slot in grown)

    def end_late(self) -> bool:
        """Return whether there is a feed that is on disk only when it ends."""
        return any(not _is_writable(slot) for slot in self._open)

    def flush(self) -> tuple[set[Hashable], Wait]:
        """Hand what the feeds took to the operating system.

        Return the feeds that are durable only when they end, and what waits for the disks of the others.
        :class:`FeedError`, of either, if a file cannot be written.
        """
        closing: set[Hashable] = {slot for slot in self._slots if slot not in self._open and slot.itemcount}
        with ExitStack() as opened:
            descriptors: dict[int, str] = {}
            # One that has ended is not open any more, or not for long.
            for slot in (slot for slot in self._open if slot.itemcount and slot in self._slots):
                if not _is_writable(slot) or (slot.file is not None and slot.file.closed):
                    closing.add(slot)
                elif (descriptor := _flushed(slot)) is not None:
                    # Closed if another one cannot be flushed, and when all have been waited for.
                    opened.callback(os.close, descriptor)
                    descriptors[descriptor] = _shown(slot)
            return closing, partial(_wait_for, descriptors, opened.pop_all())

    def closed(self, slot: FeedSlot) -> Wait:
        """Note the end of *slot*; return what waits for its disk. :class:`FeedError` if its items were not stored."""
        self._ended += 1
        if self._counted("failed"):
            raise FeedError(f"the feed {_shown(slot)} could not be stored")
        # With Scrapy's DummyStatsCollector, or one that keeps its stats elsewhere.
        if self._counted("success") < self._ended:
            raise FeedError(f"whether the feed {_shown(slot)} was stored is not known without Scrapy's stats")
        is_file = type(slot.storage) is FileFeedStorage and slot in self._slots
        self._slots.discard(slot)
        return partial(_sync, slot) if is_file else lambda: None

    def _counted(self, how: str) -> int:
        stats = self._crawler.stats.get_stats()
        return sum(n for name, n in stats.items() if name.startswith(f"feedexport/{how}_count/"))

    def end(self) -> None:
        """:class:`FeedError` if any feed that took an item did not come to a good end."""
        for slot in self._slots:
            if slot.itemcount:
                raise FeedError(f"the feed {_shown(slot)} was not stored")


@lru_cache(maxsize=64)
def _kind(slot: FeedSlot, run: str) -> str:
    """Return the kind of *slot*, a feed of the crawl *run*."""
    fields, options = slot.feed_options.get("fields"), []
    if type(slot.filter) is ItemFilter:
        classes = sorted(slot.filter.item_classes, key=item_codec.name_of)
        if not classes and fields is None:
            return "everything"
    else:
        classes = [type(slot.filter)]
        # A filter of the project's own may use all other options of the feed.
        options = [(name, slot.feed_options[name]) for name in sorted(slot.feed_options) if not _OPTIONS.match(name)]
    try:
        written = item_codec.encode(_named([classes, options, None if fields is None else sorted(fields)]))
    except Exception:  # noqa: BLE001 - an option may be anything
        written = f"{run} {slot.uri_template}".encode()
    return sha256(written).hexdigest()[:32]


def _named(value: Any) -> Any:
    """Return *value* with the names of classes and functions in their places; an exception if one has another name."""
    kind = type(value)
    if isinstance(value, (type, FunctionType)):
        name = f"{value.__module__}:{value.__qualname__}"
        if pkgutil.resolve_name(name) is not value:
            raise ValueError(name)
        return name
    if kind is dict:
        return {key: _named(each) for key, each in value.items()}
    return kind(map(_named, value)) if kind in (list, tuple, set, frozenset) else value


def _is_writable(slot: FeedSlot) -> bool:
    """Return whether what *slot* takes can be flushed before the feed ends."""
    # A feed without an item has no exporter yet.
    exporter = slot.exporters.get(slot.format) if slot.exporter is None else type(slot.exporter)
    is_packed = isinstance(slot.file, PostProcessingManager) or bool(slot.feed_options.get("postprocessing"))
    ours = getattr(exporter, "__module__", "") == "scrapy.exporters"
    return ours and not is_packed and type(slot.storage) in (FileFeedStorage, StdoutFeedStorage)


def _files_of(slots: Iterable[FeedSlot]) -> Iterator[FileFeedStorage]:
    return (slot.storage for slot in slots if type(slot.storage) is FileFeedStorage)


def _end_torn_line(path: str) -> bool:
    """Return whether the last line of the file at *path* had no end; it has one now."""
    with suppress(OSError):  # the feed itself reports it
        if ends_torn(Path(path)):
            with open_file(path, "ab") as file:
                file.write(b"\n")
            return True
    return False


def _flushed(slot: FeedSlot) -> int | None:
    """Hand what *slot* took to the operating system; return a descriptor of its file, which may be closed meanwhile.

    ``None`` for standard output, which has no disk.
    """
    assert slot.file is not None
    try:
        slot.file.flush()
        return os.dup(slot.file.fileno()) if type(slot.storage) is FileFeedStorage else None
    except (OSError, ValueError) as error:
        raise _unwritable(_shown(slot), error) from error


def _wait_for(descriptors: dict[int, str], opened: ExitStack) -> None:
    """Return once all files, by *descriptors* with the names of their feeds, are on disk; close what is *opened*."""
    feed = ""
    with opened:
        try:
            for descriptor, feed in descriptors.items():  # noqa: B007 - the one that fails
                onto_disk(descriptor)
        except OSError as error:
            raise _unwritable(feed, error) from error


def _sync(slot: FeedSlot) -> None:
    """Bring the file of a closed *slot* onto its disk: closing it only hands it to the operating system."""
    assert isinstance(slot.storage, FileFeedStorage)
    try:
        # Without blocking: a named pipe may have no reader.
        descriptor = os.open(slot.storage.path, _TO_SYNC)
        try:
            onto_disk(descriptor)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return  # moved or removed by the project
    except OSError as error:
        raise _unwritable(_shown(slot), error) from error


def _unwritable(feed: str, error: Exception) -> FeedError:
    return FeedError(f"the feed {feed} cannot be written ({error})")


def onto_disk(descriptor: int) -> None:
    """Return once the open file is on its disk; ``OSError`` if that fails."""
    # Nothing else has a disk: /dev/null, a terminal, a pipe.
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.fsync(descriptor)


def _shown(slot: FeedSlot) -> str:
    return without_secrets(slot.uri, redact=False)


# A feed URI with one of these names another file in each crawl.
_TIME = re.compile(r"%\((?:batch_)?time\)s")


def read_config(settings: BaseSettings, spider: str | None) -> Config:
    """Return :meth:`Config.from_settings` of a crawl of *spider*, or of a command without one."""
    # The deprecated FEED_URI names one, too.
    feeds: dict[str, dict[str, Any]] = {str(settings["FEED_URI"]): {}} if settings["FEED_URI"] else {}
    feeds |= {str(uri): options for uri, options in settings.getdict("FEEDS").items()}
    overwritten = [uri for uri, options in feeds.items() if _is_overwritten(uri, options, settings)]
    return Config.from_settings(settings, spider, project=project_folder(), feeds=feeds, overwritten=overwritten)


def _is_overwritten(uri: str, options: dict[str, Any], settings: BaseSettings) -> bool:
    """Return whether the feed at *uri* replaces what an earlier crawl wrote there.

    Without the option ``overwrite``, Scrapy's storages for S3, Google Cloud and FTP replace the file, and the first two
    do so regardless of the option. All others append, or decide for themselves.
    """
    if options.get("overwrite"):
        return True
    storages = settings.getwithbase("FEED_STORAGES")
    storage: Any = None
    with suppress(Exception):  # Scrapy reports a storage that cannot be imported
        storage = load_object(storages.get(urlsplit(uri).scheme) or storages["file"])
    if not isinstance(storage, type) or _TIME.search(uri):
        return False
    replaces = issubclass(storage, feedexport.FTPFeedStorage) and "overwrite" not in options
    return replaces or issubclass(storage, (feedexport.S3FeedStorage, feedexport.GCSFeedStorage))


def place_of(settings: BaseSettings) -> DefaultPlace:
    """Return where a crawl or a command with these *settings*, in this working folder, looks."""
    return DefaultPlace.of(settings, project_folder())


def project_folder() -> Path | None:
    """Return our folder in the data folder of the project that the working folder is in; ``None`` outside of one.

    Scrapy makes the data folder. ``SCRAPY_SETTINGS_MODULE`` alone makes a project for Scrapy, but gives it none.
    """
    try:
        return Path(project_data_dir(), FOLDER).absolute() if inside_project() else None
    except (NotConfigured, OSError):
        return None
