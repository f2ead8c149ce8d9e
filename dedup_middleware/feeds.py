"""Scrapy's feeds: which items they took, and whether these are on their media. ★ Scrapy glue.

What can be brought onto its medium while the crawl runs is a local file, or standard output, that one of Scrapy's own
exporters writes without postprocessing. Everything else is on its medium when it has been stored: S3, Google and FTP
storages, which collect in a temporary file; compressed feeds; exporters and storages of a project's own.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from scrapy.extensions.feedexport import FeedExporter, FeedSlot, FileFeedStorage, StdoutFeedStorage
from scrapy.extensions.postprocessing import PostProcessingManager

from dedup_middleware.addresses import without_secrets
from dedup_middleware.errors import FeedError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from scrapy.crawler import Crawler


class Feeds:
    """The feeds of one crawl."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        # Not weak: one whose end fails must not be forgotten.
        self._slots: set[FeedSlot] = set()
        self._before: list[FeedSlot] = []

    def begin(self) -> None:
        """Look at the feeds before the first item comes."""
        self._before = self._open
        self._slots.update(self._before)

    @property
    def _open(self) -> list[FeedSlot]:
        exporter = self._crawler.get_extension(FeedExporter)
        return [] if exporter is None else exporter.slots

    @property
    def exist(self) -> bool:
        """Whether the crawl has any."""
        return self._crawler.get_extension(FeedExporter) is not None

    @property
    def overwritten(self) -> list[str]:
        """The addresses of those that will not be added to what is there."""
        feeds = self._crawler.settings.getdict("FEEDS")
        return [str(uri) for uri, options in feeds.items() if options.get("overwrite")]

    def took(self) -> bool:
        """Tell whether every feed has taken or declined the item of Scrapy's signal; once an item.

        A serialiser that raises stops neither the signal nor the crawl, but then Scrapy keeps its list of slots instead
        of making a new one. The filters themselves are not to be asked: one may count what it is asked.
        """
        before, self._before = self._before, self._open
        self._slots.update(self._before)
        return self._before is not before or not self.exist

    def flush(self) -> set[Hashable]:
        """Bring what the feeds took onto their media; return those for which only their end can do that.

        :class:`FeedError` if a medium fails.
        """
        closing: set[Hashable] = {slot for slot in self._slots if slot not in self._open and slot.itemcount}
        return closing | {slot for slot in self._open if slot.itemcount and not _flushed(slot)}

    def closed(self, slot: FeedSlot) -> None:
        """Note the end of *slot*; :class:`FeedError` if its items were not stored."""
        if any(name.startswith("feedexport/failed_count/") for name in self._crawler.stats.get_stats()):
            raise FeedError(f"the feed {_shown(slot)} could not be stored")
        if type(slot.storage) is FileFeedStorage and slot in self._slots:
            _sync(slot)
        self._slots.discard(slot)

    def end(self) -> None:
        """:class:`FeedError` if any feed that took an item did not come to a good end."""
        for slot in self._slots:
            if slot.itemcount:
                raise FeedError(f"the feed {_shown(slot)} was not stored")


def _flushed(slot: FeedSlot) -> bool:
    """Bring what *slot* took onto its medium; tell whether that can be done."""
    ours = type(slot.exporter).__module__ == "scrapy.exporters" and not isinstance(slot.file, PostProcessingManager)
    if not ours or slot.file is None or type(slot.storage) not in (FileFeedStorage, StdoutFeedStorage):
        return False
    try:
        slot.file.flush()
        if type(slot.storage) is FileFeedStorage:
            os.fsync(slot.file.fileno())
    except (OSError, ValueError) as error:
        raise FeedError(f"the feed {_shown(slot)} cannot be written ({error})") from error
    return True


def _sync(slot: FeedSlot) -> None:
    """Bring the file of a closed *slot* onto its disk: closing it has only told the system."""
    assert isinstance(slot.storage, FileFeedStorage)
    try:
        descriptor = os.open(slot.storage.path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise FeedError(f"the feed {_shown(slot)} cannot be written ({error})") from error


def _shown(slot: FeedSlot) -> str:
    return without_secrets(slot.uri, redact=False)
