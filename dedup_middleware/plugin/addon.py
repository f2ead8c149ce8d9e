"""Registers the components of the plugin, with their priorities, and loads the annexe that orders requests."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy.exceptions import NotConfigured
from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.utils.misc import load_object

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from typing_extensions import Self

#: The line that switches the plugin on.
ADDONS = 'ADDONS = {"dedup_middleware.Addon": 500}'
#: The oldest release that the plugin works with, as in `pyproject.toml`.
OLDEST_SCRAPY = (2, 16)
_PLUGIN = "dedup_middleware.plugin"
#: The setting of each component, the component, and its priority. By name: an older Scrapy lacks what they import.
COMPONENTS: tuple[tuple[str, str, int], ...] = (
    # After Scrapy's own, so that a feed has taken an item, or has not, when we look.
    ("EXTENSIONS", f"{_PLUGIN}.extension.DedupExtension", 1000),
    # Engine side of OffsiteMiddleware (50), the engine-most of Scrapy's own: it sees a response last.
    ("DOWNLOADER_MIDDLEWARES", f"{_PLUGIN}.downloader_middleware.DedupDownloaderMiddleware", 25),
    # Engine side of StartSpiderMiddleware (25), the engine-most of Scrapy's own: nothing changes an item after it.
    ("SPIDER_MIDDLEWARES", f"{_PLUGIN}.spider_middleware.DedupSpiderMiddleware", 5),
    # Spider side of all others, also those of the project: next to the callback.
    ("SPIDER_MIDDLEWARES", f"{_PLUGIN}.spider_middleware.DedupCallbackMiddleware", 1_000_000),
    # Before the pipelines of any project, which count from 0 on.
    ("ITEM_PIPELINES", f"{_PLUGIN}.spider_middleware.DedupItemPipeline", -1000),
)
#: Decides which requests are fetched last; a crawl without it fetches them as Scrapy does.
_ANNEX = "dedup_middleware.order"
_LOG_FORMATTER = f"{_PLUGIN}.spider_middleware.DropLogFormatter"


class Addon:
    """``ADDONS = {"dedup_middleware.Addon": 500}`` switches the plugin on."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return the add-on; where a setting names it as a middleware or the like, the crawl logs what to do."""
        if crawler.settings.frozen:
            raise NotConfigured(f"it is an add-on, and no middleware, pipeline or extension: set {ADDONS}")
        return cls()

    def update_settings(self, settings: BaseSettings) -> None:
        """Register the components, unless the project has placed them itself; the quiet ``Dropped:`` line; the queue.

        With an older Scrapy, or without one of the packages that the plugin needs, Scrapy logs why, and crawls without.
        """
        if trouble := old_scrapy():
            raise NotConfigured(trouble)
        try:
            from dedup_middleware.settings import puts_off  # noqa: PLC0415 - it needs a package that may be missing

            components: list[tuple[str, Any, int]] = [(name, load_object(path), at) for name, path, at in COMPONENTS]
            formatter, queue = load_object(_LOG_FORMATTER), annex("queue") if puts_off(settings) else None
        except ImportError as error:
            raise NotConfigured(missing_package(error)) from error
        for name, component, priority in components:
            settings.setdefault_in_component_priority_dict(name, component, priority)
        wanted: list[tuple[Any, ...]] = [(formatter, "LOG_FORMATTER")]
        if queue is not None:
            # A project's own scheduler may have queues of another kind.
            wanted.append((queue.TwoTierQueue, "SCHEDULER_PRIORITY_QUEUE", "SCHEDULER"))
        for kind, *names in wanted:
            if all(settings.getpriority(name) == SETTINGS_PRIORITIES["default"] for name in names):
                settings.set(names[0], kind, priority="addon")


def old_scrapy() -> str:
    """Return a line that the installed Scrapy is too old; empty if it is not."""
    if scrapy.version_info[:2] >= OLDEST_SCRAPY:
        return ""
    oldest = ".".join(map(str, OLDEST_SCRAPY))
    return (
        f"Scrapy {scrapy.__version__} is installed, and dedup-middleware needs {oldest} or newer. "
        f"Run `pip install --upgrade 'scrapy>={oldest}'`."
    )


def missing_package(error: ImportError) -> str:
    """Return a line that a package that the plugin needs cannot be imported because of *error*."""
    return f"dedup-middleware lacks a package it needs ({error}). Run `pip install --upgrade dedup-middleware`."


def annex(module: str) -> Any:
    """Return a *module* of the annexe; ``None`` where that is not installed."""
    name = f"{_ANNEX}.{module}"
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in {_ANNEX, name}:
            raise
        return None
