"""Reads the settings of a crawl: its project folder, its feeds, and which feeds it overwrites."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy.exceptions import NotConfigured
from scrapy.extensions.feedexport import FTPFeedStorage, GCSFeedStorage, S3FeedStorage
from scrapy.utils.misc import load_object
from scrapy.utils.project import inside_project, project_data_dir

from dedup_middleware.settings import FOLDER, Config, Place

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


# A feed URI with one of these names another file in each crawl.
_TIME = re.compile(r"%\((?:batch_)?time\)s")


def read_config(settings: BaseSettings, spider: str | None) -> Config:
    """Return :meth:`Config.from_settings` of a crawl of *spider*, or of a command without one."""
    feeds = _feeds(settings)
    overwritten = [uri for uri, options in feeds.items() if _is_overwritten(uri, options, settings)]
    return Config.from_settings(settings, spider, project=project_folder(), feeds=feeds, overwritten=overwritten)


def _feeds(settings: BaseSettings) -> dict[str, dict[str, Any]]:
    """Return the options of each feed by its URI, also of the one that the deprecated FEED_URI names."""
    feeds: dict[str, dict[str, Any]] = {str(settings["FEED_URI"]): {}} if settings["FEED_URI"] else {}
    return feeds | {str(uri): options for uri, options in settings.getdict("FEEDS").items()}


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
    replaces = issubclass(storage, FTPFeedStorage) and "overwrite" not in options
    return replaces or issubclass(storage, (S3FeedStorage, GCSFeedStorage))


def place_of(settings: BaseSettings) -> Place:
    """Return where a crawl or a command with these *settings*, in this working folder, looks."""
    return Place.of(settings, project_folder())


def project_folder() -> Path | None:
    """Return our folder in the data folder of the project that the working folder is in; ``None`` outside of one.

    Scrapy makes the data folder. ``SCRAPY_SETTINGS_MODULE`` alone makes a project for Scrapy, but gives it none.
    """
    try:
        return Path(project_data_dir(), FOLDER).absolute() if inside_project() else None
    except (NotConfigured, OSError):
        return None
